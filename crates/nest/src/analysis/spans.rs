//! Spans: the interval of offsets that each turn of a loop accesses in a buffer.

use crate::analysis::formula_bounds::{Bounds, is_at_most};
use crate::analysis::{
    Interval, Linear, Ranges, flat_offset, joined_digits, multiple_of_extent, ranges_of,
};
use crate::ir::{Axis, AxisId, Buffer, BufferId, Nest, Scalar, Stage, visit_accesses};
use rustc_hash::FxHashMap;
use vinelift_tensor::{Extent, Formula};

/// Where turn `k` accesses a buffer: from `k·step + low` to `k·step + high`, for each of the lows and highs.
#[derive(Default)]
pub(crate) struct Span {
    pub(crate) known: Option<(Formula, Bounds)>,
}

/// An offset in a loop: `step` for each point of the axis, and the rest.
struct Moves {
    step: Formula,
    rest: Scalar,
}

impl Span {
    /// Widens the span by an access of a stage that does `turns` points of its axis in each shared turn; `None` if the access moves in
    /// another way than those before.
    fn widen(
        &mut self,
        moves: &Moves,
        bounds: Bounds,
        turns: i64,
        relations: &[Formula],
    ) -> Option<()> {
        let number = Formula::number;
        let step = moves.step.times(&number(turns))?;
        let is_forward = step.least().is_some_and(|least| least > 0);
        let more = moves.step.times(&number(turns - 1))?;
        let highs = bounds.highs.iter().filter_map(|high| high.plus(&more));
        let bounds = Bounds {
            highs: highs.collect(),
            lows: bounds.lows,
        };
        self.known = Some(match self.known.take() {
            Some((other, _)) if other != step => return None,
            Some((_, known)) => (step, known.or(&bounds, relations)),
            None => (step, bounds),
        });
        is_forward.then_some(())
    }

    /// Whether different turns access different elements, whatever the symbols are; `relations` are never negative.
    pub(crate) fn is_apart(&self, relations: &[Formula]) -> bool {
        let Some((step, bounds)) = &self.known else {
            return true;
        };
        let Some(last) = step.minus(&Formula::number(1)) else {
            return false;
        };
        let is_narrow = |low: &Formula, high: &Formula| {
            let width = high.minus(low);
            width.is_some_and(|width| is_at_most(&width, &last, relations))
        };
        let mut highs = bounds.highs.iter();
        highs.any(|high| bounds.lows.iter().any(|low| is_narrow(low, high)))
    }
}

/// How `buffer[at]` moves with an axis; `None` if it does not, or not always by as much.
fn moves(buffer: &Buffer, at: &[Scalar], axis: AxisId, ranges: &mut Ranges) -> Option<Moves> {
    let inner = buffer.shape.get(1..).unwrap_or_default();
    if inner.iter().all(|extent| !extent.is_symbolic()) {
        // Only the first dim may have symbols, which no stride depends on.
        let mut rest = Linear::of(&flat_offset(at, &buffer.strides(), ranges));
        let step = Formula::number(take(&mut rest, axis)?);
        let rest = rest.into_scalar();
        return Some(Moves { step, rest });
    }
    let mut stride = Extent::from(1);
    let (mut step, mut rest) = (Formula::number(0), Scalar::extent(0.into()));
    for (index, extent) in joined_digits(at, &buffer.shape)?.iter().rev() {
        let mut form = Linear::of(index);
        let each = Formula::number(take(&mut form, axis).unwrap_or(0));
        let each = each.plus(&take_extents(&mut form, axis)?)?;
        step = step.plus(&stride.formula().times(&each)?)?;
        rest = rest + form.into_scalar() * Scalar::extent(stride);
        stride = stride.times(*extent)?;
    }
    Some(Moves { step, rest })
}

/// Takes the axis out of a sum, and returns its coefficient.
fn take(form: &mut Linear, axis: AxisId) -> Option<i64> {
    let at = form.terms.iter().position(|(x, _)| x.is_axis(axis))?;
    Some(form.terms.remove(at).1)
}

/// Takes the terms out of a sum that multiply the axis by extents, and returns these factors.
fn take_extents(form: &mut Linear, axis: AxisId) -> Option<Formula> {
    let mut sum = Some(Formula::number(0));
    form.terms.retain(|(x, k)| match multiple_of_extent(x) {
        Some((x, extent)) if x.is_axis(axis) => {
            let product = extent.times(&Formula::number(*k));
            sum = sum.zip(product).and_then(|(sum, more)| sum.plus(&more));
            false
        }
        _ => true,
    });
    sum
}

/// How deep in a scalar is looked for its bounds.
const DEPTH: usize = 24;

/// The bounds of an offset.
fn bounds_of(x: &Scalar, ranges: &mut Ranges, is_symbolic: bool) -> Bounds {
    let Interval { low, high } = ranges.of(x);
    let numbers = Bounds {
        lows: vec![Formula::number(low)],
        highs: vec![Formula::number(high)],
    };
    match is_symbolic {
        true => ranges.bounds(x, DEPTH).and(numbers),
        false => numbers,
    }
}

/// Widens spans by all accesses of stages that are cut in this way; `None` if one does not move with the turns.
pub(crate) fn widen(
    nest: &Nest,
    stages: &[Stage],
    extent: Extent,
    spans: &mut FxHashMap<BufferId, Span>,
) -> Option<()> {
    let runs = |s: &&Stage| s.domain.iter().all(|axis| axis.extent > 0);
    for stage in stages.iter().filter(runs) {
        let axis: Axis = stage.outermost()?;
        let turns = i64::try_from(axis.extent.over(extent)?.number()?).ok()?;
        let mut known = true;
        let mut ranges = ranges_of(stage).with_symbols(nest);
        let mut access = |buffer: BufferId, at: &[Scalar]| {
            if let Some(span) = spans.get_mut(&buffer) {
                let moves = moves(nest.buf(buffer), at, axis.id, &mut ranges);
                let widened = moves.and_then(|moves| {
                    let bounds = bounds_of(&moves.rest, &mut ranges, nest.is_symbolic());
                    span.widen(&moves, bounds, turns, &nest.relations)
                });
                known &= widened.is_some();
            }
        };
        visit_accesses(stage, &mut access);
        if !known {
            return None;
        }
    }
    Some(())
}
