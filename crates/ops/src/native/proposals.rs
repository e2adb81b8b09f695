//! The common part of the operators that propose boxes from anchors: boxes with scores, the best of which are
//! kept.

use super::boxes::{Overlap, Rect, Threshold, best_first};
use super::real::Real;
use super::suppression::greedy;
use crate::error::ensure;
use crate::{OpError, Stop};
use vinelift_tensor::memory::collected;

/// A box with its score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal<R> {
    pub(super) rect: Rect<R>,
    pub(super) score: R,
}

/// The logarithm of the most by which a side may grow.
pub(super) fn most_growth<R: Real>() -> R {
    R::of((1000.0f64 / 16.0).ln())
}

/// The box that deltas make of an anchor, moved into an image of `[height, width]`.
pub(super) fn refine<R: Real>(
    anchor: &Rect<R>,
    [dx, dy, dw, dh]: [R; 4],
    pixel: R,
    [height, width]: [R; 2],
) -> Rect<R> {
    let most = most_growth::<R>();
    let deltas = [dx, dy, dw.least(most), dh.least(most)];
    anchor
        .refined(deltas, pixel, pixel)
        .clipped(width - pixel, height - pixel)
}

/// Whether both sides are as long as they have to be. `least` is `[height, width]`.
pub(super) fn is_large_enough<R: Real>(rect: &Rect<R>, pixel: R, [height, width]: [R; 2]) -> bool {
    let (w, h) = rect.extents(pixel);
    w >= width && h >= height
}

/// Of the `before` best those that `admits` lets pass and no better one suppresses, at most `after`.
pub(super) fn best<R: Real>(
    proposals: &[Proposal<R>],
    [before, after]: [usize; 2],
    threshold: Threshold<R>,
    pixel: R,
    stop: Stop<'_>,
    admits: impl Fn(&Rect<R>) -> bool,
) -> Result<Vec<Proposal<R>>, OpError> {
    let mut order = best_first(0..proposals.len(), before, |i| proposals[i].score)?;
    order.retain(|i| admits(&proposals[*i].rect));
    let overlap = Overlap {
        pixel,
        touching: true,
    };
    let rect = |i: usize| proposals[i].rect;
    let kept = greedy(order.iter().copied(), after, threshold, stop, overlap, rect)?;
    Ok(collected(kept.into_iter().map(|i| proposals[i]))?)
}

/// A count that an attribute gives, which must not be negative.
pub(super) fn count(name: &str, value: i64) -> Result<usize, OpError> {
    ensure!(value >= 0, "`{name}` must not be negative, found {value}");
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}
