//! Into which parts a nest can be cut that may run in any order, or at the same time.

use crate::effects::Effects;
use crate::linear::Linear;
use crate::nest::{Axis, BufferId, Nest, Stage};
use crate::range::{Interval, Ranges};
use crate::rewrite::{free_axes, visit_stage};
use crate::row_major;
use crate::scalar::{AxisId, Binary, Kind, Scalar};
use crate::simplify::flat_offset;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A nest that does the same in one go and part by part.
///
/// Each stage's loop over the [axis](Parts::axis) that is shared out, mostly the outermost one, goes round
/// `extent` times, or a multiple of that. A part is a range of `0..extent`: it does the turns of every stage
/// that are its share, stage after stage. What different parts write lies apart, and no part reads what another
/// writes; parts of any sizes cover the nest, in any order. At most one stage can fault, so the fault of the
/// first part that has one is that of the whole nest if parts follow each other; if not, that is the fault of
/// the whole nest, run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Turns that are shared out.
    pub extent: usize,
    /// A part begins at a multiple of this, and is at least as long: shorter ones would not fill vectors.
    pub grain: usize,
    /// The dim of the target that is shared out, where that of the outermost loops cannot be: its index at all
    /// stages is an axis. A part is no run of the nest's points then.
    pub dim: Option<usize>,
}

/// Points that a part of a loop should have at least, if nothing is inside that loop.
const LEAST_POINTS: usize = 256;

/// Points that a part of an inner loop should have at least: as many as make a line of the cache or more, which
/// parts should not share.
const LEAST_COLUMNS: usize = 16;

impl Parts {
    /// Of a nest that cannot be cut.
    pub const WHOLE: Parts = Parts {
        extent: 1,
        grain: 1,
        dim: None,
    };

    /// The largest parts that `nest` can be cut into; [`Parts::WHOLE`] if it cannot.
    pub fn of(nest: &Nest) -> Parts {
        if let [stage] = nest.stages.as_slice()
            && stage.group.is_some()
        {
            // One after the other, as its turns come.
            return Parts {
                extent: stage.turns(),
                ..Parts::WHOLE
            };
        }
        cut(nest)
            .or_else(|| cut_inside(nest))
            .unwrap_or(Parts::WHOLE)
    }

    /// The axis of a stage whose turns are shared out.
    pub fn axis(self, stage: &Stage) -> Option<Axis> {
        let Some(dim) = self.dim else {
            return outermost(stage);
        };
        let is_index = |axis: &&Axis| is_axis(&stage.at[dim], axis.id);
        stage.domain.iter().find(is_index).copied()
    }

    /// Into how many parts it can be cut, `count` at most.
    pub fn count(self, count: usize) -> usize {
        count.min(self.extent / self.grain).max(1)
    }

    /// The `k`-th of `count` parts that cover `0..extent`, of about the same length; `count` is one that
    /// [`Parts::count`] gave.
    pub fn range(self, k: usize, count: usize) -> Range<usize> {
        let Parts { extent, grain, .. } = self;
        let bound = |k: usize| match k == count {
            true => extent,
            // Not the other way round: the product may be too large.
            false => (extent / grain * k / count) * grain,
        };
        bound(k)..bound(k + 1)
    }

    /// At most `count` ranges that cover `0..extent`, of about the same length.
    pub fn ranges(self, count: usize) -> Vec<Range<usize>> {
        let count = self.count(count);
        (0..count).map(|k| self.range(k, count)).collect()
    }

    /// A part as smaller parts, one after the other; `count` of them would be about the whole. It stays one if a
    /// dim is shared out: short runs of many rows take longer than they save.
    pub fn pieces(self, part: Range<usize>, count: usize) -> impl Iterator<Item = Range<usize>> {
        let count = if self.dim.is_some() { 1 } else { count };
        let length = (self.extent / count.max(1)).next_multiple_of(self.grain);
        let length = length.max(self.grain);
        let mut start = part.start;
        std::iter::from_fn(move || {
            let left = part.end.checked_sub(start).filter(|left| *left > 0)?;
            // What would be left may not be less than a part.
            let length = if left < length + self.grain {
                left
            } else {
                length
            };
            start += length;
            Some(start - length..start)
        })
    }

    /// Whether `part` is one that may be run.
    pub fn allow(self, part: &Range<usize>) -> bool {
        let whole = *part == (0..self.extent);
        let starts = part.start.is_multiple_of(self.grain);
        let ends = part.end == self.extent || part.end.is_multiple_of(self.grain);
        whole || (starts && ends && part.end <= self.extent && part.len() >= self.grain)
    }
}

/// Which elements of a buffer the turns of a nest use: turn `k` some of those from `k·step + low` to
/// `k·step + high`, in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    step: i64,
    low: i64,
    high: i64,
}

impl Reach {
    /// How the turns of `nest` use `buffer`, if they move along it.
    pub fn of(nest: &Nest, buffer: BufferId) -> Option<Reach> {
        let parts = Parts::of(nest);
        let extent = parts.extent;
        let is_whole =
            extent == 1 || parts.dim.is_some() || nest.stages.iter().any(|s| s.group.is_some());
        let mut spans = FxHashMap::default();
        spans.insert(buffer, Span::default());
        (!is_whole).then(|| widen(nest, extent, &mut spans))??;
        let (step, low, high) = spans[&buffer].known?;
        Some(Reach { step, low, high })
    }

    /// The largest part that uses no elements of the buffer but those of `region`; `parts` are those of the
    /// nest.
    pub fn within(self, parts: Parts, region: &Range<usize>) -> Option<Range<usize>> {
        let Reach { step, low, high } = self;
        let Parts { extent, grain, .. } = parts;
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
        let first = usize::try_from(first.max(0)).ok()?.next_multiple_of(grain);
        let last = usize::try_from(last.max(0)).ok()?.min(extent);
        let last = if last == extent {
            last
        } else {
            last / grain * grain
        };
        let part = first..last;
        (first < last && parts.allow(&part)).then_some(part)
    }
}

impl Nest {
    /// About how much work it is, in tenths of a nanosecond; saturates.
    pub fn work(&self) -> usize {
        let stages = 0..self.stages.len();
        let work = stages.map(|k| {
            let stage = &self.stages[k];
            let mut seen = FxHashSet::default();
            let mut each = 1 + self.scattered(stage, stage.target, &stage.at);
            visit_stage(stage, &mut |x| {
                if seen.insert(x.address()) {
                    each += self.work_of_scalar(stage, x);
                }
            });
            self.points_in(k..k + 1).saturating_mul(each)
        });
        work.fold(0, usize::saturating_add)
    }

    /// About how much work a scalar of a stage is without its operands, in tenths of a nanosecond.
    pub fn work_of_scalar(&self, stage: &Stage, x: &Scalar) -> usize {
        match x.kind() {
            Kind::Unary(op, _) if !op.is_primitive() => 5,
            Kind::Load { buffer, at } => 1 + self.scattered(stage, *buffer, at),
            Kind::Wrap(_) | Kind::Cast(_) => 1,
            Kind::Binary(Binary::Div | Binary::Rem | Binary::Pow, ..) => 5,
            _ => 0,
        }
    }

    /// What it takes more to reach an element of a buffer through an index that depends on data, if neighbours
    /// have indices of their own: the larger the buffer, the farther away it is.
    fn scattered(&self, stage: &Stage, buffer: BufferId, at: &[Scalar]) -> usize {
        let inner = stage.domain.iter().rfind(|axis| axis.extent > 1);
        let is_own = |i: &Scalar| {
            let differs = |axis: &Axis| free_axes(i).contains(&axis.id);
            matches!(i.kind(), Kind::Wrap(_)) && inner.is_some_and(differs)
        };
        if !at.iter().any(is_own) {
            return 0;
        }
        match self.buf(buffer).byte_len().unwrap_or(usize::MAX) >> 10 {
            0..32 => 0,
            32..512 => 4,
            512..16_384 => 10,
            _ => 30,
        }
    }
}

/// The outermost loop of a stage, if it has any.
fn outermost(stage: &Stage) -> Option<Axis> {
    stage.domain.iter().find(|axis| axis.extent > 1).copied()
}

/// Whether the turns of a stage's outermost loop may write the same element: it is reached through indices that
/// depend on data, and the axis of that loop is not an index itself.
pub(crate) fn may_collide(stage: &Stage) -> bool {
    let is_index = |axis: Axis| stage.at.iter().any(|i| is_axis(i, axis.id));
    stage.at.iter().any(|i| matches!(i.kind(), Kind::Wrap(_)))
        && outermost(stage).is_some_and(|outer| !is_index(outer))
}

/// The dim of a stage's target whose turns write different elements where those of the outermost loop may write
/// the same: its index is an axis, on which those that depend on data depend.
pub(crate) fn dim_apart(stage: &Stage) -> Option<usize> {
    let is_wrap = |i: &&Scalar| matches!(i.kind(), Kind::Wrap(_));
    let differs = |axis: &AxisId| {
        stage
            .at
            .iter()
            .filter(is_wrap)
            .any(|i| free_axes(i).contains(axis))
    };
    stage.at.iter().rposition(|i| match i.kind() {
        Kind::Axis(id) => differs(id),
        _ => false,
    })
}

/// Parts along a dim of the only target of a nest, for indices that differ along it.
fn cut_inside(nest: &Nest) -> Option<Parts> {
    let first = nest.stages.first()?;
    let dim = nest.stages.iter().find(|stage| may_collide(stage));
    let dim = dim.and_then(dim_apart);
    // Another target may have fewer dims, or be indexed in another way.
    if nest.stages.iter().any(|stage| stage.target != first.target) {
        return None;
    }
    let extent = *nest.buf(first.target).shape.get(dim?)?;
    let parts = Parts {
        extent,
        grain: LEAST_COLUMNS,
        dim,
    };
    let fits = |stage: &Stage| {
        let is_whole = parts.axis(stage).is_some_and(|axis| axis.extent == extent);
        is_whole && stage.group.is_none() && stage.domain.iter().all(|axis| axis.extent > 0)
    };
    let is_one = nest.stages.iter().filter(|s| may_fault(s)).count() <= 1;
    let is_long = extent >= 2 * LEAST_COLUMNS;
    let is_packed = nest.buf(first.target).ty.is_packed();
    // A fault is looked for again in all parts, one after the other.
    let repeats = Effects::of(&nest.stages).faults_again();
    (is_one && is_long && !is_packed && repeats && nest.stages.iter().all(fits)).then_some(parts)
}

fn is_axis(index: &Scalar, axis: AxisId) -> bool {
    matches!(index.kind(), Kind::Axis(id) if *id == axis)
}

fn cut(nest: &Nest) -> Option<Parts> {
    let runs = |s: &&Stage| s.domain.iter().all(|axis| axis.extent > 0);
    let stages: Vec<&Stage> = nest.stages.iter().filter(runs).collect();
    let outer: Vec<Axis> = stages.iter().map(|s| outermost(s)).collect::<Option<_>>()?;
    let extent = outer.iter().map(|axis| axis.extent).min()?;
    let mut grain = 1;
    for (stage, axis) in stages.iter().zip(&outer) {
        let turns = axis.extent / extent;
        if !axis.extent.is_multiple_of(extent) {
            return None;
        }
        if stage
            .domain
            .iter()
            .all(|a| a.extent == 1 || a.id == axis.id)
        {
            grain = grain.max(LEAST_POINTS.div_ceil(turns));
        }
    }
    if extent < 2 * grain || stages.iter().filter(|s| may_fault(s)).count() > 1 {
        return None;
    }
    let mut spans: FxHashMap<BufferId, Span> = FxHashMap::default();
    for stage in &stages {
        if nest.buf(stage.target).ty.is_packed() {
            return None;
        }
        spans.insert(stage.target, Span::default());
    }
    widen(nest, extent, &mut spans)?;
    spans.values().all(Span::is_apart).then_some(Parts {
        extent,
        grain,
        dim: None,
    })
}

/// Widens spans by all accesses of a nest that is cut into `extent` turns; `None` if one lies anywhere.
fn widen(nest: &Nest, extent: usize, spans: &mut FxHashMap<BufferId, Span>) -> Option<()> {
    let runs = |s: &&Stage| s.domain.iter().all(|axis| axis.extent > 0);
    for stage in nest.stages.iter().filter(runs) {
        let axis = outermost(stage)?;
        let turns = i64::try_from(axis.extent / extent).ok()?;
        let mut known = true;
        let mut ranges = Ranges::of_stage(stage);
        visit_stage(stage, &mut |x| {
            if let Kind::Reduce { axes, .. } = x.kind() {
                ranges.bind(axes);
            }
        });
        let mut access = |buffer: BufferId, at: &[Scalar]| {
            if let Some(span) = spans.get_mut(&buffer) {
                let strides = row_major(&nest.buf(buffer).shape);
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

/// Whether evaluating a stage can end the run with a fault.
fn may_fault(stage: &Stage) -> bool {
    let mut found = false;
    visit_stage(stage, &mut |x| {
        found |= matches!(x.kind(), Kind::Wrap(w) if !w.policy.zero);
    });
    found
}

/// Where turn `k` accesses a buffer: from `k·step + low` to `k·step + high`.
#[derive(Default)]
struct Span {
    known: Option<(i64, i64, i64)>,
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
        let at = rest.terms.iter().position(|(x, _)| is_axis(x, axis))?;
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

    fn is_apart(&self) -> bool {
        self.known
            .is_none_or(|(step, low, high)| high.checked_sub(low).is_some_and(|width| width < step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::nest::{Mode, Role, Site};
    use crate::scalar::Policy;
    use vinelift_tensor::ElementType::{F32, I32, U4};

    /// `y[i, wrap(indices[i, j])] += 1` after `y = x` of so many columns, or `y[wrap(indices[i, j]), j] += 1`.
    fn scatter(rows: bool, columns: usize) -> Nest {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[64, columns], Role::Input);
        let indices = nest.buffer("indices", I32, &[64, columns], Role::Input);
        let y = nest.buffer("y", F32, &[64, columns], Role::Output);
        let layer = nest.layer("s", "Scatter, opset1");
        nest.define(vec![], y, |n, at| n.load(x, at.to_vec()));
        let domain = nest.axes(&[64, columns]);
        let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let index = nest.load(indices, at.clone());
        let input = "indices".to_owned();
        let extent = if rows { columns } else { 64 };
        let index = nest.wrap(
            index,
            extent,
            Policy::WRAP,
            Site { layer, input },
            at.clone(),
        );
        let at = match rows {
            true => vec![at[0].clone(), index],
            false => vec![index, at[1].clone()],
        };
        nest.stages.push(Stage {
            domain,
            target: y,
            at,
            mode: Mode::Combine(Binary::Add),
            value: number(1.0, F32),
            layers: vec![],
            group: None,
        });
        nest
    }

    #[test]
    fn updates_are_shared_out_where_they_lie_apart() {
        let whole = Parts {
            extent: 64,
            ..Parts::WHOLE
        };
        assert_eq!(Parts::of(&scatter(true, 32)), whole);
        let mut scheduled = scatter(true, 32);
        crate::schedule(&mut scheduled);
        assert_eq!(Parts::of(&scheduled), whole);
        assert_eq!(Parts::of(&scatter(false, 16)), Parts::WHOLE);
    }

    #[test]
    fn updates_are_shared_out_by_columns_where_rows_may_be_the_same() {
        let found = |updates: &Nest| Parts::of(updates).dim.is_some();
        let scheduled = |mut nest: Nest| {
            crate::schedule(&mut nest);
            nest
        };
        let updates = scatter(false, 32);
        let parts = Parts {
            extent: 32,
            grain: LEAST_COLUMNS,
            dim: Some(1),
        };
        assert_eq!(Parts::of(&updates), parts);
        assert_eq!(Parts::of(&scheduled(updates.clone())), parts);
        for stage in &updates.stages {
            assert_eq!(parts.axis(stage), Some(stage.domain[1]));
        }
        let mut alone = updates.clone();
        alone.stages.remove(0);
        assert_eq!(Parts::of(&alone), parts);
        // Rows of their own, too few columns, and what reads the rows of others.
        assert!(!found(&scatter(true, 32)));
        assert!(!found(&scatter(false, 31)));
        let mut reads = updates.clone();
        let target = reads.stages[0].target;
        reads.stages[1].value = reads.load(target, vec![index(0), index(1)]);
        assert_eq!(Parts::of(&reads), Parts::WHOLE);
    }

    /// The first stage may have a target of fewer dims than the one that is updated.
    #[test]
    fn several_targets_are_not_cut_along_a_dim_of_one() {
        let mut nest = scatter(false, 64);
        let sums = nest.buffer("sums", F32, &[64], Role::Temporary);
        let zero = nest.stages[0].clone();
        nest.define(vec![], sums, |_, _| number(0.0, F32));
        nest.stages.rotate_right(1);
        assert_ne!(nest.stages[0].target, zero.target);
        assert_eq!(Parts::of(&nest), Parts::WHOLE);
    }

    #[test]
    fn no_part_reads_what_another_writes() {
        let shifted = |by: i64| {
            let mut nest = Nest::new();
            let x = nest.buffer("x", F32, &[64, 300], Role::Input);
            let t = nest.buffer("t", F32, &[65, 300], Role::Temporary);
            let y = nest.buffer("y", F32, &[64, 300], Role::Output);
            nest.define(vec![], t, |n, at| {
                n.load(x, vec![at[0].min(index(63)), at[1].clone()])
            });
            nest.stages[0].domain[0].extent = 64;
            nest.define(vec![], y, |n, at| {
                n.load(t, vec![&at[0] + by, at[1].clone()])
            });
            Parts::of(&nest)
        };
        assert_eq!(shifted(0).extent, 64);
        assert_eq!(shifted(1), Parts::WHOLE);
    }

    #[test]
    fn a_part_follows_what_it_uses() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[64, 300], Role::Input);
        let y = nest.buffer("y", F32, &[32, 300], Role::Output);
        // Turn `k` uses rows `2k` and `2k + 1`.
        nest.define(vec![], y, |n, at| {
            let row = &at[0] * 2;
            let next = &row + 1;
            n.load(x, vec![row, at[1].clone()]) + n.load(x, vec![next, at[1].clone()])
        });
        let parts = Parts::of(&nest);
        assert_eq!((parts.extent, parts.grain), (32, 1));
        let reach = Reach::of(&nest, x).unwrap();
        let within = |rows: Range<usize>, more| {
            reach.within(parts, &(rows.start * 300..rows.end * 300 + more))
        };
        assert_eq!(within(0..64, 0), Some(0..32));
        assert_eq!(within(0..10, 0), Some(0..5));
        assert_eq!(within(10..15, 299), Some(5..7));
        assert_eq!(within(11..16, 0), Some(6..8));
        assert_eq!(within(11..13, 0), None);
        assert_eq!(within(12..13, 0), None);
        // What is the same for all turns has no reach.
        let z = nest.buffer("z", F32, &[300], Role::Input);
        nest.define(vec![], y, |n, at| n.load(z, vec![at[1].clone()]));
        assert_eq!(Reach::of(&nest, z), None);
    }

    #[test]
    fn short_loops_stay_whole_and_bytes_are_not_shared() {
        let copy = |ty, count: usize| {
            let mut nest = Nest::new();
            let x = nest.buffer("x", ty, &[count], Role::Input);
            let y = nest.buffer("y", ty, &[count], Role::Output);
            nest.define(vec![], y, |n, at| n.load(x, at.to_vec()));
            Parts::of(&nest)
        };
        assert_eq!(copy(F32, 511), Parts::WHOLE);
        assert_eq!(copy(U4, 5120), Parts::WHOLE);
        let parts = copy(F32, 1000);
        assert_eq!((parts.extent, parts.grain), (1000, 256));
        assert_eq!(parts.ranges(2), [0..256, 256..1000]);
        assert_eq!(parts.ranges(1).first(), Some(&(0..1000)));
        assert!(parts.ranges(9).iter().all(|part| parts.allow(part)));
        let pieces: Vec<_> = parts.pieces(0..1000, 3).collect();
        assert_eq!(pieces, [0..512, 512..1000]);
        assert!(parts.pieces(256..1000, 99).all(|piece| parts.allow(&piece)));
        assert!(!parts.allow(&(1..1000)) && !parts.allow(&(0..100)));
    }
}
