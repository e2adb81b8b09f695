//! Spans: the interval of offsets that each turn of a loop accesses in a buffer.

use crate::analysis::{Interval, Linear, Ranges, flat_offset};
use crate::ir::{AxisId, BufferId, Kind, Nest, Scalar, Stage, visit_stage};
use rustc_hash::FxHashMap;

/// Where turn `k` accesses a buffer: from `k·step + low` to `k·step + high`.
#[derive(Default)]
pub(crate) struct Span {
    pub(crate) known: Option<(i64, i64, i64)>,
}

impl Span {
    /// Takes in an access whose stage does `turns` rounds of `axis` in each turn; `None` if it lies
    /// anywhere.
    fn widen(
        &mut self,
        offset: &Scalar,
        axis: AxisId,
        turns: i64,
        ranges: &mut Ranges,
    ) -> Option<()> {
        let mut rest = Linear::of(offset);
        let at = rest.terms.iter().position(|(x, _)| x.is_axis(axis))?;
        let (_, each) = rest.terms.remove(at);
        let step = each.checked_mul(turns).filter(|step| *step > 0)?;
        let Interval { low, high } = ranges.of(&rest.into_scalar());
        let high = high.checked_add(each.checked_mul(turns - 1)?)?;
        let (low, high) = match self.known {
            Some((other, ..)) if other != step => return None,
            Some((_, l, h)) => (l.min(low), h.max(high)),
            None => (low, high),
        };
        self.known = Some((step, low, high));
        Some(())
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.known
            .is_none_or(|(step, low, high)| high.checked_sub(low).is_some_and(|width| width < step))
    }
}

/// Widens spans by all accesses of a nest that is cut into `extent` turns; `None` if one lies anywhere.
pub(crate) fn widen(
    nest: &Nest,
    extent: usize,
    spans: &mut FxHashMap<BufferId, Span>,
) -> Option<()> {
    let runs = |s: &&Stage| s.domain.iter().all(|axis| axis.extent > 0);
    for stage in nest.stages.iter().filter(runs) {
        let axis = stage.outermost()?;
        let turns = i64::try_from(axis.extent.example() / extent).ok()?;
        let mut known = true;
        let mut ranges = Ranges::of_stage(stage);
        visit_stage(stage, &mut |x| {
            if let Kind::Reduce { axes, .. } = x.kind() {
                ranges.bind(axes);
            }
        });
        let mut access = |buffer: BufferId, at: &[Scalar]| {
            if let Some(span) = spans.get_mut(&buffer) {
                let strides = nest.buf(buffer).strides();
                let offset = flat_offset(at, &strides, &mut ranges);
                known &= span.widen(&offset, axis.id, turns, &mut ranges).is_some();
            }
        };
        access(stage.target, &stage.at);
        visit_stage(stage, &mut |x| {
            if let Kind::Load { buffer, at } = x.kind() {
                access(*buffer, at);
            }
        });
        if !known {
            return None;
        }
    }
    Some(())
}
