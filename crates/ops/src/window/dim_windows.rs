//! The windows along a dim: window `o` covers the elements `o · stride - begin + k · dilation`, `k` running over the kernel,
//! and what lies outside of the dim is padding.

use crate::layout::index_map::extent;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select};
use vinelift_tensor::Extent;

/// The windows along one dim.
#[derive(Clone, Debug)]
pub(super) struct DimWindows {
    pub(super) extent: Extent,
    pub(super) kernel: i64,
    pub(super) stride: i64,
    pub(super) dilation: i64,
    /// How many places of the first window lie before the dim.
    pub(super) begin: i64,
    /// How many places of padding are behind the dim.
    pub(super) end: i64,
    /// How many there are.
    pub(super) windows: Extent,
    /// How many places the last window reaches beyond the dim, at most; exactly if the extent is a number.
    pub(super) beyond: i128,
}

impl DimWindows {
    /// The index of element `k` of window `o`, which may lie in the padding.
    fn place(&self, o: &Scalar, k: &Scalar) -> Scalar {
        self.unpadded(&self.padded_place(o, k))
    }

    /// The same, counted from the first place of the first window on.
    pub(super) fn padded_place(&self, o: &Scalar, k: &Scalar) -> Scalar {
        let times = |x: &Scalar, by: i64| if by == 1 { x.clone() } else { x * by };
        times(o, self.stride) + times(k, self.dilation)
    }

    /// The index in the dim of a place that is counted so.
    pub(super) fn unpadded(&self, place: &Scalar) -> Scalar {
        match self.begin {
            0 => place.clone(),
            begin => place - begin,
        }
    }

    /// How many places the windows reach over, from the first place of the first one on: the dim with what lies before and behind it.
    pub(super) fn padded_extent(&self) -> Extent {
        let around = i128::from(self.begin) + self.beyond.max(0);
        self.extent
            .sum(usize::try_from(around).unwrap_or(usize::MAX).into())
    }

    /// Whether index `i` lies in the dim, where it may not.
    pub(super) fn inside(&self, i: &Scalar) -> Option<Scalar> {
        let low = (self.begin > 0).then(|| i.ge(index(0)));
        let high = (self.beyond > 0).then(|| i.lt(Scalar::extent(self.extent)));
        and(low, high)
    }

    /// Whether there may be a window with no element in the dim. Of very many windows there may.
    pub(super) fn may_miss(&self) -> bool {
        match (self.windows.number(), self.extent.number()) {
            (Some(windows), Some(n)) => {
                windows > 1 << 20 || (0..windows).any(|o| self.count_of(o, extent(n)) == 0)
            }
            _ => {
                // Each window ends in the dim or behind it, begins before its end, and does not step over it.
                let reach = i128::from(self.kernel - 1) * i128::from(self.dilation) + 1;
                let meets = i128::from(self.begin) < reach && self.beyond < reach;
                !meets || self.dilation > extent(self.extent.least())
            }
        }
    }

    /// How many elements of window `o` lie in the dim, of `n` elements.
    pub(super) fn count_of(&self, o: usize, n: i64) -> i64 {
        let start = o as i64 * self.stride - self.begin;
        let before = |bound: i64| {
            let count = ((bound - start).max(0) + self.dilation - 1) / self.dilation;
            count.min(self.kernel)
        };
        before(n) - before(0)
    }

    /// How many elements of window `o` lie in the dim, with `padding` also counting what lies in the
    /// padding; `None` if these are all elements of the kernel in every window.
    fn count(&self, o: &Scalar, padding: bool) -> Option<Scalar> {
        let behind = if padding { self.end } else { 0 };
        let first_misses = !padding && self.begin > 0;
        if !first_misses && self.beyond <= i128::from(behind) {
            return None;
        }
        // Of the windows' places, the first of which is `-begin`.
        let before = |bound: Scalar| {
            let ahead = (bound - o * self.stride).max(index(0));
            let count = (ahead + (self.dilation - 1)) / self.dilation;
            count.min(index(self.kernel))
        };
        let shift = usize::try_from(self.begin + behind).unwrap_or_default();
        let high = before(Scalar::extent(self.extent.sum(shift.into())));
        Some(match first_misses {
            true => high - before(index(self.begin)),
            false => high,
        })
    }
}

/// The number of elements of windows `o` that lie in the dims, with `padding` also counting what lies
/// in the padding.
pub(super) fn count(dims: &[DimWindows], o: &[Scalar], padding: bool) -> Scalar {
    let mut fixed = 1i64;
    let mut product: Option<Scalar> = None;
    for (dim, o) in dims.iter().zip(o) {
        match (dim.count(o, padding), product.take()) {
            (Some(count), Some(known)) => product = Some(known * count),
            (Some(count), None) => product = Some(count),
            (None, known) => {
                fixed = fixed.saturating_mul(dim.kernel);
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

/// Whether [`count`] is the same for all windows.
pub(super) fn is_fixed(dims: &[DimWindows], padding: bool) -> bool {
    let mut dims = dims.iter();
    dims.all(|dim| dim.count(&index(0), padding).is_none())
}

/// The indices of elements `k` of windows `o`, and whether they lie in the dims, where they may not.
pub(super) fn places(
    dims: &[DimWindows],
    o: &[Scalar],
    k: &[Scalar],
) -> (Vec<Scalar>, Option<Scalar>) {
    let all = dims.iter().zip(o.iter().zip(k));
    let places: Vec<Scalar> = all.map(|(dim, (o, k))| dim.place(o, k)).collect();
    let guards = dims.iter().zip(&places).map(|(dim, i)| dim.inside(i));
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
pub(super) fn and(a: Option<Scalar>, b: Option<Scalar>) -> Option<Scalar> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        (a, b) => a.or(b),
    }
}
