//! Footprints: the elements of a buffer that each parallel chunk of a nest uses.

use crate::analysis::spans::{Span, widen};
use crate::analysis::{BoundChunks, ParallelChunks};
use crate::ir::{BufferId, Nest};
use rustc_hash::FxHashMap;
use std::ops::Range;
use vinelift_tensor::Formula;

/// Turn `k` of a nest uses only elements of a buffer with offsets in `k·step + low ..= k·step + high`, in row-major
/// order, for each of the lows and highs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    step: Formula,
    lows: Vec<Formula>,
    highs: Vec<Formula>,
}

/// A [`Footprint`] in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundFootprint {
    step: i64,
    low: i64,
    high: i64,
}

impl Footprint {
    /// How the turns of `nest`, of which `parts` are the chunks, use `buffer`, if they move along it.
    pub fn of(nest: &Nest, parts: ParallelChunks, buffer: BufferId) -> Option<Footprint> {
        let extent = parts.extent;
        let is_whole =
            extent == 1 || parts.dim.is_some() || nest.stages.iter().any(|s| s.group.is_some());
        let mut spans = FxHashMap::default();
        spans.insert(buffer, Span::default());
        (!is_whole).then(|| widen(nest, &nest.stages, extent, &mut spans))??;
        let (step, bounds) = spans.remove(&buffer)?.known?;
        Some(Footprint {
            step,
            lows: bounds.lows,
            highs: bounds.highs,
        })
    }

    /// Where the symbol of number `k` is `values[k]`; `None` if a number does not fit.
    pub fn bound_to(&self, values: &[usize]) -> Option<BoundFootprint> {
        let numbers = |formulas: &[Formula]| -> Option<Vec<i64>> {
            formulas.iter().map(|f| f.evaluate(values)).collect()
        };
        Some(BoundFootprint {
            step: self.step.evaluate(values).filter(|step| *step > 0)?,
            low: numbers(&self.lows)?.into_iter().max()?,
            high: numbers(&self.highs)?.into_iter().min()?,
        })
    }
}

impl BoundFootprint {
    /// How many elements further a turn begins than the one before.
    pub fn step(self) -> usize {
        usize::try_from(self.step).unwrap_or_default()
    }

    /// The elements between the first and the last that a part uses.
    pub fn elements(self, part: &Range<usize>) -> Option<Range<usize>> {
        let turn = |k: usize, more: i64| {
            let offset = i64::try_from(k).ok()?.checked_mul(self.step)?;
            usize::try_from(offset.checked_add(more)?).ok()
        };
        let last = part.end.checked_sub(1).filter(|_| !part.is_empty())?;
        Some(turn(part.start, self.low)?..turn(last, self.high)?.checked_add(1)?)
    }

    /// The largest part that uses no elements of the buffer but those of `region`; `parts` are those of the
    /// nest.
    pub fn within(self, parts: BoundChunks, region: &Range<usize>) -> Option<Range<usize>> {
        let BoundFootprint { step, low, high } = self;
        let BoundChunks { extent, unit, .. } = parts;
        let (start, end) = (
            i64::try_from(region.start).ok()?,
            i64::try_from(region.end).ok()?,
        );
        // The first turn with k·step + low ≥ start, and the first with k·step + high ≥ end.
        let first = start
            .checked_sub(low)?
            .checked_add(step - 1)?
            .div_euclid(step);
        let last = end
            .checked_sub(high)?
            .checked_add(step - 1)?
            .div_euclid(step);
        let first = usize::try_from(first.max(0)).ok()?.next_multiple_of(unit);
        let last = usize::try_from(last.max(0)).ok()?.min(extent);
        let last = if last == extent {
            last
        } else {
            last / unit * unit
        };
        let part = first..last;
        (first < last && parts.allow(&part)).then_some(part)
    }
}
