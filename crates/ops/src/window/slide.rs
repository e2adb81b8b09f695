//! How a window slides: window `o` of a dim covers the elements `o · stride - begin + k · dilation`,
//! `k` running over the kernel, and what lies outside of the dim is padding.
//!
//! Specification: Shape calculation rules for Pooling Operators, and Convolution-1.

use crate::OpError;
use crate::error::ensure;
use crate::layout::index_map::extent;
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select};
use vinelift_tensor::Dim;

/// The attribute `auto_pad`: where the pads come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum AutoPad {
    /// The attributes `pads_begin` and `pads_end`.
    #[default]
    Explicit,
    /// As many as give `⌈extent / stride⌉` windows, an odd one at the end.
    SameUpper,
    /// As many as give `⌈extent / stride⌉` windows, an odd one at the beginning.
    SameLower,
    /// There are none.
    Valid,
}

/// The attribute `rounding_type`: whether a window that does not fit any more still counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rounding {
    /// No.
    #[default]
    Floor,
    /// Yes.
    Ceil,
    /// Yes, unless it starts in the padding at the end.
    CeilTorch,
}

/// The attributes that say how a window slides, with one number for each spatial dim.
#[derive(Clone, Debug)]
pub(super) struct Slide {
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    pub(super) pads_begin: Vec<usize>,
    pub(super) pads_end: Vec<usize>,
    pub(super) auto_pad: AutoPad,
    pub(super) rounding: Rounding,
}

impl Slide {
    /// Checks the attributes for `count` spatial dims.
    pub(super) fn check(&self, count: usize) -> Result<(), OpError> {
        let explicit = self.auto_pad == AutoPad::Explicit;
        for (name, list, needed, least) in [
            ("strides", &self.strides, true, 1),
            ("dilations", &self.dilations, true, 1),
            ("pads_begin", &self.pads_begin, explicit, 0),
            ("pads_end", &self.pads_end, explicit, 0),
        ] {
            ensure!(
                !needed || list.len() == count,
                "`{name}` {list:?} must have {count} elements, one for each spatial dim"
            );
            ensure!(
                list.iter().all(|&n| n >= least),
                "`{name}` {list:?} must be at least {least}"
            );
        }
        Ok(())
    }

    /// How many windows of `kernel` elements there are along spatial dim `d` of extent `n`.
    pub(super) fn windows(&self, d: usize, n: Dim, kernel: Dim) -> Result<Dim, OpError> {
        if let (Some(n), Some(kernel)) = (n.get(), kernel.get()) {
            return Ok(Dim::fixed(self.lane(d, n, kernel)?.windows));
        }
        let most = n.max().map(|n| self.lane(d, n, kernel.min().max(1)));
        let least = kernel
            .max()
            .and_then(|kernel| self.lane(d, n.min(), kernel).ok());
        Ok(Dim::between(
            least.map_or(1, |lane| lane.windows),
            most.transpose()?.map(|lane| lane.windows),
        ))
    }

    /// The windows of `kernel` elements along spatial dim `d` of extent `n`.
    pub(super) fn lane(&self, d: usize, n: usize, kernel: usize) -> Result<Lane, OpError> {
        ensure!(kernel > 0, "the kernel has no elements in spatial dim {d}");
        let (stride, dilation) = (self.strides[d] as i128, self.dilations[d] as i128);
        let wide = n as i128;
        let reach = (kernel as i128 - 1).saturating_mul(dilation) + 1;
        let same = (wide + stride - 1) / stride;
        let total = ((same - 1) * stride + reach - wide).max(0);
        let (begin, end) = match self.auto_pad {
            AutoPad::Explicit => (self.pads_begin[d] as i128, self.pads_end[d] as i128),
            AutoPad::SameUpper => (total / 2, total - total / 2),
            AutoPad::SameLower => (total - total / 2, total / 2),
            AutoPad::Valid => (0, 0),
        };
        let padded = wide + begin + end;
        let far = padded.max(reach).saturating_add(stride).max(dilation);
        ensure!(
            far < 1 << 62,
            "spatial dim {d}: {padded} elements, a window of {reach} and a stride of {stride} are too large"
        );
        ensure!(
            padded >= reach,
            "spatial dim {d}: a window of {reach} elements does not fit into {padded}"
        );
        let free = padded - reach;
        let mut windows = match self.rounding {
            Rounding::Floor => free / stride + 1,
            Rounding::Ceil | Rounding::CeilTorch => (free + stride - 1) / stride + 1,
        };
        if self.rounding == Rounding::CeilTorch && (windows - 1) * stride >= wide + begin {
            windows -= 1;
        }
        Ok(Lane {
            extent: extent(n),
            kernel: extent(kernel),
            stride: stride as i64,
            dilation: dilation as i64,
            begin: begin as i64,
            end: end as i64,
            windows: usize::try_from(windows).unwrap_or(usize::MAX),
        })
    }
}

/// The windows along one dim.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    extent: i64,
    kernel: i64,
    stride: i64,
    dilation: i64,
    begin: i64,
    end: i64,
    /// How many there are.
    pub(super) windows: usize,
}

impl Lane {
    /// The index of element `k` of window `o`, which may lie in the padding.
    fn place(&self, o: &Scalar, k: &Scalar) -> Scalar {
        let times = |x: &Scalar, by: i64| if by == 1 { x.clone() } else { x * by };
        let place = times(o, self.stride) + times(k, self.dilation);
        match self.begin {
            0 => place,
            begin => place - begin,
        }
    }

    /// Whether index `i` lies in the dim, where it may not.
    fn inside(&self, i: &Scalar) -> Option<Scalar> {
        let low = (self.begin > 0).then(|| i.ge(index(0)));
        let high = (self.last() >= i128::from(self.extent)).then(|| i.lt(index(self.extent)));
        and(low, high)
    }

    /// Whether there may be a window with no element in the dim. Of very many windows there may.
    pub(super) fn may_miss(&self) -> bool {
        self.windows > 1 << 20 || (0..self.windows).any(|o| self.count_of(o) == 0)
    }

    /// How many elements of window `o` lie in the dim.
    fn count_of(&self, o: usize) -> i64 {
        let start = o as i64 * self.stride - self.begin;
        let before = |bound: i64| {
            let count = ((bound - start).max(0) + self.dilation - 1) / self.dilation;
            count.min(self.kernel)
        };
        before(self.extent) - before(0)
    }

    /// How many elements of window `o` lie in the dim, with `padding` also counting what lies in the
    /// padding; `None` if these are all elements of the kernel in every window.
    fn count(&self, o: &Scalar, padding: bool) -> Option<Scalar> {
        let high = if padding {
            self.extent + self.end
        } else {
            self.extent
        };
        let first_misses = !padding && self.begin > 0;
        if !first_misses && self.last() < i128::from(high) {
            return None;
        }
        let before = |bound: i64| {
            let ahead = (index(bound + self.begin) - o * self.stride).max(index(0));
            let count = (ahead + (self.dilation - 1)) / self.dilation;
            count.min(index(self.kernel))
        };
        Some(match first_misses {
            true => before(high) - before(0),
            false => before(high),
        })
    }

    /// The index of the last element of the last window.
    fn last(&self) -> i128 {
        i128::from(self.stride) * (self.windows as i128 - 1) - i128::from(self.begin)
            + i128::from(self.kernel - 1) * i128::from(self.dilation)
    }
}

/// The number of elements of windows `o` that lie in the dims, with `padding` also counting what lies
/// in the padding.
pub(super) fn count(lanes: &[Lane], o: &[Scalar], padding: bool) -> Scalar {
    let mut fixed = 1i64;
    let mut product: Option<Scalar> = None;
    for (lane, o) in lanes.iter().zip(o) {
        match (lane.count(o, padding), product.take()) {
            (Some(count), Some(known)) => product = Some(known * count),
            (Some(count), None) => product = Some(count),
            (None, known) => {
                fixed = fixed.saturating_mul(lane.kernel);
                product = known;
            }
        }
    }
    match product {
        Some(product) if fixed == 1 => product,
        Some(product) => product * fixed,
        None => index(fixed),
    }
}

/// The indices of elements `k` of windows `o`, and whether they lie in the dims, where they may not.
pub(super) fn places(lanes: &[Lane], o: &[Scalar], k: &[Scalar]) -> (Vec<Scalar>, Option<Scalar>) {
    let all = lanes.iter().zip(o.iter().zip(k));
    let places: Vec<Scalar> = all.map(|(lane, (o, k))| lane.place(o, k)).collect();
    let guards = lanes.iter().zip(&places).map(|(lane, i)| lane.inside(i));
    let guard = guards.fold(None, and);
    (places, guard)
}

/// `x` where `guard` holds, otherwise `fill`.
pub(super) fn guarded(guard: Option<Scalar>, x: Scalar, fill: Scalar) -> Scalar {
    match guard {
        Some(guard) => select(guard, x, fill),
        None => x,
    }
}

/// Both conditions, where there are any.
fn and(a: Option<Scalar>, b: Option<Scalar>) -> Option<Scalar> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slide(stride: usize, pads: [usize; 2], auto_pad: AutoPad, rounding: Rounding) -> Slide {
        Slide {
            strides: vec![stride],
            dilations: vec![1],
            pads_begin: vec![pads[0]],
            pads_end: vec![pads[1]],
            auto_pad,
            rounding,
        }
    }

    /// By the formulas of the specification, with an extent of 5 and a kernel of 2.
    #[test]
    fn windows_by_rounding_and_pads() {
        let of = |stride, pads, auto, rounding| {
            let lane = slide(stride, pads, auto, rounding).lane(0, 5, 2).unwrap();
            (
                lane.windows,
                (0..lane.windows)
                    .map(|o| lane.count_of(o))
                    .collect::<Vec<_>>(),
            )
        };
        let explicit = AutoPad::Explicit;
        assert_eq!(of(2, [0, 0], explicit, Rounding::Floor), (2, vec![2, 2]));
        assert_eq!(of(2, [0, 0], explicit, Rounding::Ceil), (3, vec![2, 2, 1]));
        assert_eq!(of(4, [1, 2], explicit, Rounding::Ceil), (3, vec![1, 2, 0]));
        assert_eq!(of(4, [0, 2], explicit, Rounding::Ceil), (3, vec![2, 1, 0]));
        assert_eq!(
            of(4, [0, 2], explicit, Rounding::CeilTorch),
            (2, vec![2, 1])
        );
        let same = of(2, [9, 9], AutoPad::SameUpper, Rounding::Floor);
        assert_eq!(same, (3, vec![2, 2, 1]));
        let same = of(2, [9, 9], AutoPad::SameLower, Rounding::Floor);
        assert_eq!(same, (3, vec![1, 2, 2]));
        assert_eq!(of(1, [9, 9], AutoPad::Valid, Rounding::Floor).0, 4);
    }

    #[test]
    fn windows_of_intervals() {
        let slide = slide(2, [0, 0], AutoPad::Explicit, Rounding::Floor);
        let dim = |min, max| Dim::between(min, max);
        let of = |n, kernel| slide.windows(0, n, kernel).unwrap();
        assert_eq!(of(dim(1, Some(9)), Dim::fixed(3)), dim(1, Some(4)));
        assert_eq!(of(dim(7, None), Dim::fixed(3)), dim(3, None));
        assert_eq!(of(Dim::ANY, Dim::ANY), dim(1, None));
        let error = slide.windows(0, Dim::fixed(2), Dim::fixed(3)).unwrap_err();
        let message = "spatial dim 0: a window of 3 elements does not fit into 2";
        assert_eq!(error.to_string(), message);
    }
}
