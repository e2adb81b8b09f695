//! Bounds of slices, as in Python: the one rule that `Slice`, `SliceScatter` and `StridedSlice` share.

use crate::lower::formula;
use vinelift_nest::{Scalar, build::index};
use vinelift_tensor::{Dim, Extent, Formula, symbols};

/// A slice of a dim, before the dim's extent is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The first index; negative counts from the end. Where the dim begins if `None`.
    pub(super) start: Option<Formula>,
    /// The index at which it stops, exclusive. Where the dim ends if `None`.
    pub(super) stop: Option<Formula>,
    /// Not 0; negative walks backwards.
    pub(super) step: i64,
    /// Whether a backward slice that starts before the dim takes its first element, where Python's
    /// is empty.
    pub(super) clamp_start: bool,
}

/// The indices `start + step * i` for `i` in `0..count`, all inside the dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: Formula,
    step: i64,
    pub(super) count: Extent,
}

impl Bounds {
    /// All of a dim.
    pub(super) const FULL: Bounds = Bounds {
        start: None,
        stop: None,
        step: 1,
        clamp_start: false,
    };

    /// The indices taken of a dim of `extent`.
    pub(super) fn span(&self, extent: Extent) -> Span {
        self.symbolic_span(extent).unwrap_or_else(|| {
            let number = |x: Option<Formula>| x.and_then(|x| symbols::pin(&x));
            let (start, count) =
                self.span_of_number(number(self.start), number(self.stop), extent.pin());
            Span {
                start: Formula::number(start),
                step: self.step,
                count: count.into(),
            }
        })
    }

    /// The first index taken of a dim of `n` points, and how many are.
    fn span_of_number(&self, start: Option<i64>, stop: Option<i64>, n: usize) -> (i64, usize) {
        // In 128 bits nothing overflows: extents have 64 bits, bounds and steps 63 and a sign.
        let (n, step) = (n as i128, i128::from(self.step));
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let inside = |x: i64| {
            let x = i128::from(x);
            (if x < 0 { x + n } else { x }).clamp(low, high)
        };
        let mut start = start.map_or(first, inside);
        let stop = stop.map_or(last, inside);
        if self.clamp_start && n > 0 {
            start = start.max(0);
        }
        let distance = if step > 0 { stop - start } else { start - stop };
        let count = if distance > 0 {
            (distance - 1) / step.abs() + 1
        } else {
            0
        };
        (start as i64, count as usize)
    }

    /// As [`Bounds::span`], if something has symbols and there are formulas for the span.
    fn symbolic_span(&self, extent: Extent) -> Option<Span> {
        let is_number = |x: &Option<Formula>| x.is_none_or(|x| x.as_number().is_some());
        if !extent.is_symbolic() && is_number(&self.start) && is_number(&self.stop) {
            return None;
        }
        let (zero, one) = (Formula::number(0), Formula::number(1));
        let n = *extent.formula();
        let (low, high) = match self.step > 0 {
            true => (zero, n),
            false => (zero.minus(&one)?, n.minus(&one)?),
        };
        let (first, last) = if self.step > 0 {
            (low, high)
        } else {
            (high, low)
        };
        let inside = |x: Formula| {
            let x = match symbols::is_negative(&x)? {
                true => x.plus(&n)?,
                false => x,
            };
            if symbols::is_negative(&x.minus(&low)?)? {
                return Some(low);
            }
            Some(match symbols::is_negative(&high.minus(&x)?)? {
                true => high,
                false => x,
            })
        };
        let mut start = self.start.map_or(Some(first), inside)?;
        let stop = self.stop.map_or(Some(last), inside)?;
        // An empty dim has no first element.
        if self.clamp_start
            && symbols::is_negative(&start)?
            && !symbols::is_negative(&n.minus(&one)?)?
        {
            start = zero;
        }
        let distance = match self.step > 0 {
            true => stop.minus(&start)?,
            false => start.minus(&stop)?,
        };
        let step = usize::try_from(self.step.unsigned_abs()).ok()?;
        let count = match symbols::is_negative(&distance.minus(&one)?)? {
            false if step == 1 => Extent::of(distance)?,
            false => {
                let up = Formula::number(i64::try_from(step).ok()? - 1);
                Extent::of(distance.plus(&up)?)?.quotient(step.into())
            }
            true => 0.into(),
        };
        Some(Span {
            start,
            step: self.step,
            count,
        })
    }

    /// How many indices are taken of a dim whose extent is an interval.
    pub(super) fn dim(&self, extent: Dim) -> Dim {
        if let Some(n) = extent.extent() {
            return self.span(n).count.into();
        }
        let number = |x: Option<Formula>| x.and_then(|x| symbols::pin(&x));
        let (start, stop) = (number(self.start), number(self.stop));
        let count = |n: usize| self.span_of_number(start, stop, n).1;
        let from_end = |x: Option<i64>| x.is_some_and(|x| x < 0);
        let from_begin = |x: Option<i64>| x.is_some_and(|x| x >= 0);
        // Where the two ends move against each other, a longer dim may have a shorter slice.
        let shrinks = match self.step > 0 {
            true => from_end(start) && from_begin(stop),
            false => from_end(stop) && (from_begin(start) || self.clamp_start),
        };
        if shrinks {
            let step = usize::try_from(self.step.unsigned_abs()).unwrap_or(usize::MAX);
            // No further than from the bound that is counted from the begin to the begin.
            let near = match self.step > 0 {
                true => stop,
                false => start.filter(|s| *s >= 0).and_then(|s| s.checked_add(1)),
            };
            let near = near.and_then(|n| usize::try_from(n).ok());
            let most = match (extent.max(), near) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            return Dim::between(0, most.map(|n| n.div_ceil(step)));
        }
        let max = match extent.max() {
            Some(n) => Some(count(n)),
            // The specifications suggest the largest i32 for "to the end", whatever that is.
            None if [start, stop]
                .into_iter()
                .flatten()
                .any(|x| x >= i32::MAX.into()) =>
            {
                None
            }
            // Bounded if it has stopped growing beyond every extent that a bound can name.
            None => {
                let counts = [usize::MAX / 2 + 1, usize::MAX].map(count);
                (counts[0] == counts[1]).then_some(counts[0])
            }
        };
        Dim::between(count(extent.min()), max)
    }
}

impl Span {
    /// `start + step * i`
    pub(super) fn at(&self, i: &Scalar) -> Scalar {
        let Some(start) = self.start.as_number() else {
            let steps = match self.step {
                1 => i.clone(),
                step => i * step,
            };
            return steps + formula(&self.start);
        };
        match (start, self.step) {
            (0, 1) => i.clone(),
            (start, _) if self.count == 0 || self.count == 1 => index(start),
            (0, step) => i * step,
            (start, 1) => i + start,
            (start, step) => i * step + start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_tensor::symbols::Symbols;

    /// The number of elements that `bounds` takes of a dim of `n` points if it stops at a symbol with this value.
    fn count_up_to_symbol(bounds: Bounds, stop: usize, n: usize) -> usize {
        let mut symbols = Symbols::default();
        let stop = symbols.add(stop).unwrap();
        let stop = Some(*stop.formula());
        symbols.record(|| Bounds { stop, ..bounds }.span(n.into()).count.example())
    }

    /// Python: `len(range(0)[start:stop:step])` is 0.
    #[test]
    fn a_dim_of_no_points_has_no_slice_wherever_that_stops() {
        for (step, clamp_start) in [(-2, true), (-1, true), (-1, false), (1, true)] {
            let bounds = Bounds {
                step,
                clamp_start,
                ..Bounds::FULL
            };
            for start in [None, Some(-3), Some(0), Some(2)] {
                let start = start.map(Formula::number);
                let of = |stop, n| count_up_to_symbol(Bounds { start, ..bounds }, stop, n);
                assert_eq!([of(2, 0), of(8, 0)], [0, 0], "{bounds:?}, {start:?}");
            }
        }
    }

    #[test]
    fn the_extent_of_an_interval_covers_that_of_its_members() {
        let bounds = [-7, -2, -1, 0, 1, 2, 5];
        for (start, stop, step, clamp_start) in bounds.into_iter().flat_map(|a| {
            let rest = [-3, -1, 1, 2]
                .into_iter()
                .flat_map(|s| [(s, false), (s, true)]);
            bounds
                .into_iter()
                .flat_map(move |b| rest.clone().map(move |(s, c)| (a, b, s, c)))
        }) {
            let bounds = Bounds {
                start: Some(Formula::number(start)),
                stop: Some(Formula::number(stop)),
                step,
                clamp_start,
            };
            for (min, max) in [(0, Some(9)), (3, Some(6)), (2, None)] {
                let dim = bounds.dim(Dim::between(min, max));
                for n in min..=max.unwrap_or(40) {
                    let count = bounds.span(n.into()).count.example();
                    assert!(
                        dim.contains(count),
                        "{bounds:?} of {n} has {count}, not in {dim}"
                    );
                }
            }
        }
        let of = |start, stop, dim: Dim| {
            Bounds {
                start: Some(Formula::number(start)),
                stop: Some(Formula::number(stop)),
                step: 2,
                clamp_start: false,
            }
            .dim(dim)
            .to_string()
        };
        assert_eq!(of(1, -1, Dim::between(4, Some(8))), "1..3");
        assert_eq!(of(0, 7, Dim::ANY), "0..4");
        assert_eq!(of(1, i64::MAX, Dim::between(3, None)), "1..");
        assert_eq!(
            Bounds {
                step: 2,
                ..Bounds::FULL
            }
            .dim(Dim::between(3, None))
            .to_string(),
            "2.."
        );
    }
}
