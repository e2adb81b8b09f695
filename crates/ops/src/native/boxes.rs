//! Boxes with sides along the axes, how much two of them overlap, and their order by scores.

use super::real::Real;
use crate::OpError;
use vinelift_tensor::memory::collected;
use vinelift_tensor::order::{self, OneByOne};

/// A box by two opposite corners, the first of which has the smaller coordinates unless the box is
/// none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect<R> {
    pub(super) x0: R,
    pub(super) y0: R,
    pub(super) x1: R,
    pub(super) y1: R,
}

impl<R: Real> Rect<R> {
    /// Box `i` of rows of `x0, y0, x1, y1`.
    pub(super) fn read(rows: &[R], i: usize) -> Rect<R> {
        Rect::from_corners([0, 1, 2, 3].map(|c| rows[4 * i + c]))
    }

    /// From `x0, y0, x1, y1`.
    #[inline]
    pub(super) fn from_corners([x0, y0, x1, y1]: [R; 4]) -> Rect<R> {
        Rect { x0, y0, x1, y1 }
    }

    /// `x0, y0, x1, y1`
    pub(super) fn corners(&self) -> [R; 4] {
        [self.x0, self.y0, self.x1, self.y1]
    }

    /// The corners moved into `0..=width` and `0..=height`.
    pub(super) fn clipped(&self, width: R, height: R) -> Rect<R> {
        let clip = |x: R, most: R| R::of(0.0).most(most.least(x));
        Rect {
            x0: clip(self.x0, width),
            y0: clip(self.y0, height),
            x1: clip(self.x1, width),
            y1: clip(self.y1, height),
        }
    }

    /// Width and height. `pixel` is 1 where coordinates count pixels, both corners included, else 0.
    #[inline]
    pub(super) fn extents(&self, pixel: R) -> (R, R) {
        (self.x1 - self.x0 + pixel, self.y1 - self.y0 + pixel)
    }

    /// Whether there is a gap between the two.
    #[inline]
    pub(super) fn is_apart(&self, other: &Rect<R>) -> bool {
        // All four comparisons: no jump depends on which it is that tells them apart.
        (other.x0 > self.x1) | (other.x1 < self.x0) | (other.y0 > self.y1) | (other.y1 < self.y0)
    }

    #[inline]
    pub(super) fn area(&self, pixel: R) -> R {
        let (w, h) = self.extents(pixel);
        w * h
    }

    /// The area of what the two have in common.
    #[inline]
    pub(super) fn intersection(&self, other: &Rect<R>, pixel: R) -> R {
        let common = Rect {
            x0: self.x0.most(other.x0),
            y0: self.y0.most(other.y0),
            x1: self.x1.least(other.x1),
            y1: self.y1.least(other.y1),
        };
        let (w, h) = common.extents(pixel);
        let zero = R::of(0.0);
        zero.most(w) * zero.most(h)
    }

    /// Area of the intersection over area of the union; 0 if either is empty.
    pub(super) fn iou(&self, other: &Rect<R>, pixel: R) -> R {
        let zero = R::of(0.0);
        let (a, b) = (self.area(pixel), other.area(pixel));
        if a <= zero || b <= zero {
            return zero;
        }
        let common = self.intersection(other, pixel);
        common / (a + b - common)
    }

    /// As [`Rect::iou`], 0 also if there is a gap of less than a pixel between the two.
    pub(super) fn iou_if_touching(&self, other: &Rect<R>, pixel: R) -> R {
        if self.is_apart(other) {
            return R::of(0.0);
        }
        self.iou(other, pixel)
    }

    /// The box that `deltas` make of this one: its center moves by `dx, dy` times its extents, which grow
    /// by `exp(dw), exp(dh)`. The far corner is moved by `-end`.
    pub(super) fn refined(&self, [dx, dy, dw, dh]: [R; 4], pixel: R, end: R) -> Rect<R> {
        let half = R::of(0.5);
        let along = |start: R, extent: R, shift: R, growth: R| {
            let center = shift * extent + (start + half * extent);
            let extent = growth.exp() * extent;
            (center - half * extent, center + half * extent - end)
        };
        let (width, height) = self.extents(pixel);
        let (x0, x1) = along(self.x0, width, dx, dw);
        let (y0, y1) = along(self.y0, height, dy, dh);
        Rect { x0, y0, x1, y1 }
    }
}

/// When a box is suppressed by a better one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold<R> {
    /// The intersection over union that is still allowed.
    pub(super) iou: R,
    /// Whether exactly that is allowed.
    pub(super) equal: bool,
    /// The factor of the threshold after each box that is kept, while it is above a half.
    pub(super) eta: R,
}

impl<R: Real> Threshold<R> {
    /// Allows intersections over union up to this.
    pub(super) fn above(iou: R) -> Threshold<R> {
        Threshold {
            iou,
            equal: true,
            eta: R::of(1.0),
        }
    }

    /// Allows intersections over union below this.
    pub(super) fn below(iou: R) -> Threshold<R> {
        Threshold {
            equal: false,
            ..Threshold::above(iou)
        }
    }

    /// Whether that is too much; NaN never is.
    #[inline]
    pub(super) fn is_exceeded_by(&self, iou: R) -> bool {
        (iou > self.iou) | (!self.equal & (iou == self.iou))
    }

    /// Lowers it after a box that is kept.
    pub(super) fn lower(&mut self) {
        if self.eta < R::of(1.0) && self.iou > R::of(0.5) {
            self.iou = self.iou * self.eta;
        }
    }
}

/// How the intersection over union of two boxes is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap<R> {
    /// 1 where coordinates count pixels, both corners included, else 0.
    pub(super) pixel: R,
    /// Whether boxes with a gap of less than a pixel between them do not overlap.
    pub(super) touching: bool,
}

impl<R: Real> Overlap<R> {
    /// Of boxes whose coordinates are real numbers.
    pub(super) fn exact() -> Overlap<R> {
        Overlap {
            pixel: R::of(0.0),
            touching: false,
        }
    }

    pub(super) fn of(&self, a: &Rect<R>, b: &Rect<R>) -> R {
        match self.touching {
            true => a.iou_if_touching(b, self.pixel),
            false => a.iou(b, self.pixel),
        }
    }
}

/// Sorts positions by their scores, the highest first, the lowest position first among equals, and NaN
/// last; at most the first `most` are left.
pub(super) fn best_first<R: Real>(
    positions: impl Iterator<Item = usize>,
    most: usize,
    score: impl Fn(usize) -> R,
) -> Result<Vec<usize>, OpError> {
    let mut ranked = collected(positions.map(|i| (score(i).rank(), i)))?;
    order::select(&mut ranked, most);
    order::sort(&mut ranked);
    Ok(collected(ranked.into_iter().map(|(_, i)| i))?)
}

/// As [`best_first`], all of them, sorted as far as they are asked for.
pub(super) fn best_one_by_one<R: Real>(
    positions: impl Iterator<Item = usize>,
    score: impl Fn(usize) -> R,
) -> Result<OneByOne, OpError> {
    Ok(OneByOne::of(collected(
        positions.map(|i| (score(i).rank(), i)),
    )?))
}

/// An attribute for which -1 stands for no limit.
pub(super) fn limit(attribute: i64) -> usize {
    usize::try_from(attribute).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Rect<f32> = Rect {
        x0: 0.0,
        y0: 0.0,
        x1: 1.0,
        y1: 1.0,
    };

    #[test]
    fn intersection_over_union() {
        let shifted = Rect::from_corners([0.5, 0.0, 1.5, 1.0]);
        assert_eq!(UNIT.iou(&shifted, 0.0), 1.0 / 3.0);
        // 2×2 pixels each; the common ones are 1.5×2.
        assert_eq!(UNIT.iou(&shifted, 1.0), 3.0 / 5.0);
        let point = Rect::from_corners([0.5; 4]);
        assert_eq!(UNIT.iou(&point, 0.0), 0.0);
        assert_eq!(point.iou(&point, 0.0), 0.0);
        let apart = Rect::from_corners([1.5, 0.0, 2.5, 1.0]);
        assert!(UNIT.iou(&apart, 1.0) > 0.0);
        assert_eq!(UNIT.iou_if_touching(&apart, 1.0), 0.0);
        let nan = Rect::from_corners([f32::NAN; 4]);
        assert!(UNIT.iou(&nan, 0.0).is_nan());
    }

    #[test]
    fn refined_and_clipped() {
        let grown = UNIT.refined([0.5, 0.0, f32::ln(2.0), 0.0], 0.0, 0.0);
        assert_eq!(grown, Rect::from_corners([0.0, 0.0, 2.0, 1.0]));
        assert_eq!(
            grown.clipped(1.5, 0.5),
            Rect::from_corners([0.0, 0.0, 1.5, 0.5])
        );
        let still = UNIT.refined([0.0; 4], 1.0, 1.0);
        assert_eq!(still, UNIT);
    }

    #[test]
    fn the_best_come_first() {
        let scores = [0.5, f32::NAN, 0.9, 0.5, -f32::INFINITY, 0.9];
        let order = |most| best_first(0..6, most, |i| scores[i]).unwrap();
        assert_eq!(order(9), [2, 5, 0, 3, 4, 1]);
        assert_eq!(order(3), [2, 5, 0]);
        assert_eq!(order(0), [0; 0]);
        let all = best_one_by_one(0..6, |i| scores[i]).unwrap();
        assert!(all.eq(order(6)));
    }
}
