//! Greedy suppression: of boxes, the best first, those are kept that overlap no kept one by too much.

use super::boxes::{Overlap, Rect, Threshold};
use super::grid::Grid;
use super::real::Real;
use crate::{OpError, Stop};
use vinelift_tensor::memory::push;

/// Goes through the positions `candidates` of boxes, the best first, and keeps those that no kept one suppresses; at most
/// `most`.
pub(super) fn greedy<R: Real>(
    candidates: impl IntoIterator<Item = usize>,
    most: usize,
    threshold: Threshold<R>,
    stop: Stop<'_>,
    overlap: Overlap<R>,
    rect: impl Fn(usize) -> Rect<R>,
) -> Result<Vec<usize>, OpError> {
    let mut grid = Grid::new(overlap);
    let mut in_grid = 0;
    select(candidates, most, threshold, stop, |kept, threshold, i| {
        if threshold.is_exceeded_by(R::of(0.0)) {
            let mut kept = kept.iter();
            return Ok(kept.any(|j| threshold.is_exceeded_by(overlap.of(&rect(i), &rect(*j)))));
        }
        for j in &kept[in_grid..] {
            grid.add(rect(*j))?;
        }
        in_grid = kept.len();
        Ok(grid.has_above(&rect(i), threshold))
    })
}

/// As [`greedy`], by any `iou` of two positions.
pub(super) fn greedy_by<R: Real>(
    candidates: impl IntoIterator<Item = usize>,
    most: usize,
    threshold: Threshold<R>,
    stop: Stop<'_>,
    iou: impl Fn(usize, usize) -> R,
) -> Result<Vec<usize>, OpError> {
    select(candidates, most, threshold, stop, |kept, threshold, i| {
        Ok(kept.iter().any(|j| threshold.is_exceeded_by(iou(i, *j))))
    })
}

/// Keeps those that are not suppressed: by the kept ones, at the threshold of now.
fn select<R: Real>(
    candidates: impl IntoIterator<Item = usize>,
    most: usize,
    mut threshold: Threshold<R>,
    stop: Stop<'_>,
    mut is_suppressed: impl FnMut(&[usize], &Threshold<R>, usize) -> Result<bool, OpError>,
) -> Result<Vec<usize>, OpError> {
    let mut kept: Vec<usize> = Vec::new();
    for i in candidates {
        if kept.len() >= most {
            break;
        }
        stop.go_on()?;
        if !is_suppressed(&kept, &threshold, i)? {
            push(&mut kept, i)?;
            threshold.lower();
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn suppression() {
        let iou = |i: usize, j: usize| if i.abs_diff(j) == 1 { 0.6f32 } else { 0.0 };
        let all = [0, 1, 2, 3];
        let kept = |most, threshold| greedy_by(all, most, threshold, Stop::NEVER, iou).unwrap();
        let below = Threshold::below(0.6);
        assert_eq!(kept(9, below), [0, 2]);
        assert_eq!(kept(1, below), [0]);
        assert_eq!(kept(9, Threshold::above(0.6)), all);
        let adaptive = Threshold {
            eta: 0.9,
            ..Threshold::above(0.65)
        };
        assert_eq!(kept(9, adaptive), [0, 2]);
    }

    /// Coordinates of few values, so that sides are equal and boxes touch, or of all sizes.
    fn coordinate() -> impl Strategy<Value = f32> {
        prop_oneof![
            40 => (0..40i8).prop_map(|x| f32::from(x) / 2.0),
            40 => 0.0..1000.0f32,
            1 => Just(f32::NAN),
            1 => Just(f32::INFINITY),
            1 => Just(f32::MIN),
            1 => any::<f32>(),
        ]
    }

    /// Boxes of which most are small and some are none.
    fn boxes() -> impl Strategy<Value = Vec<Rect<f32>>> {
        let corner = [coordinate(), coordinate()];
        let small = (corner, [-1.0..20.0f32, -1.0..20.0f32]);
        let small = small.prop_map(|([x, y], [w, h])| [x, y, x + w, y + h]);
        let any = [coordinate(), coordinate(), coordinate(), coordinate()];
        let one = prop_oneof![9 => small, 1 => any].prop_map(Rect::from_corners);
        prop_oneof![
            prop::collection::vec(one.clone(), 0..40),
            prop::collection::vec(one, 200..1200)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// It keeps the boxes that the definition keeps, which compares each box with all kept ones.
        #[test]
        fn the_grid_leaves_out_only_what_does_not_overlap(
            boxes in boxes(),
            iou in prop_oneof![Just(0.0f32), Just(0.5), Just(-0.1), 0.0..1.0f32],
            equal: bool,
            eta in prop_oneof![Just(1.0f32), Just(0.9), Just(-1.0)],
            pixel in prop_oneof![Just(0.0f32), Just(1.0)],
            touching: bool,
        ) {
            let threshold = Threshold { iou, equal, eta };
            let overlap = Overlap { pixel, touching };
            let (all, rect) = (0..boxes.len(), |i: usize| boxes[i]);
            let found = greedy(all.clone(), 900, threshold, Stop::NEVER, overlap, rect).unwrap();
            let iou = |i: usize, j: usize| overlap.of(&boxes[i], &boxes[j]);
            let want = greedy_by(all, 900, threshold, Stop::NEVER, iou).unwrap();
            prop_assert_eq!(found, want);
        }
    }
}
