//! Vector loops over a block of points for which the kernel has collected elements that are no neighbours.

use super::build::Builder;
use super::vector_loop::{Argument, VectorLoop};
use crate::analysis::Analysis;
use crate::analysis::coefficient::Coefficient;
use crate::analysis::columns::even;
use crate::analysis::walk::{Visit, visit};
use crate::analysis::work::usual_points;
use crate::vector_ir::ops::{Access, Op, lane_bytes, unsigned};
use crate::vector_ir::program::{Stride, Value};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, Effects, Kind, Scalar, Stage};
use vinelift_tensor::ElementType;

/// A vector loop over a block of points, and the loads that are collected for it.
pub(crate) struct Collected<'n> {
    pub(crate) ready: VectorLoop<'n>,
    /// The loads whose elements are collected, in order of evaluation.
    pub(crate) loads: Vec<&'n Scalar>,
    /// The innermost axis, and how many points of it a block has.
    pub(crate) lane: (Axis, usize),
    /// The same of the axis around it, if a block has several points of that.
    pub(crate) rows: Option<(Axis, usize)>,
}

impl Collected<'_> {
    /// The axes that may have fewer points than a block, and those that a block has.
    pub(crate) fn may_be_few(&self) -> impl Iterator<Item = (Axis, usize)> + use<> {
        let all = self.rows.into_iter().chain([self.lane]);
        all.filter(|(axis, count)| axis.extent.least() < *count)
    }
}

/// How many cache lines a row may load from for its elements to be collected. The innermost cache keeps as many until the next row
/// loads from them again; rows of fewer elements do not fill vectors.
const CACHED_LINES: std::ops::RangeInclusive<usize> = 16..=64;
/// Lines whose distance is a multiple of this many bytes lie in the same few sets of that cache, which then loses them.
const COLLIDES: u64 = 1024;
/// Points of a block: what is collected for them stays in the innermost cache.
const MOST_POINTS: usize = 256;
/// As [`MOST_POINTS`], for an axis whose extent has symbols: points that do not fill a block are done one by one.
const SYMBOLIC_POINTS: usize = 32;
/// Rows of a block: as many words fill a line of the cache.
const MOST_ROWS: usize = 16;
/// Fewer points, or rows, are not worth it.
const LEAST_POINTS: usize = 16;
const LEAST_ROWS: usize = 8;
/// Bytes of the stack for what is collected.
const MOST_BYTES: usize = 1 << 15;
/// The most bytes from an element to the next with which a cache line holds several of them.
const NEAR: u64 = 16;

impl<'n> Analysis<'n> {
    /// The vector loop for a stage whose facts are known, of which some loads do not step with the innermost
    /// axis: because their indices depend on data, or because they lie the other way round.
    pub(crate) fn collected_loop(
        &mut self,
        stage: &'n Stage,
        axes: &[Axis],
        first: usize,
    ) -> Option<Collected<'n>> {
        let (lane, around) = axes.split_last()?;
        if !self.may_be_vector_loop(stage, *lane) || lane.extent < LEAST_POINTS {
            return None;
        }
        let speculable = self.speculable(stage);
        let loads = self.to_collect(stage, lane.id, &speculable)?;
        if self.stays_cached(stage, *lane) {
            return None;
        }
        let rows = around.last().filter(|_| around.len() > first);
        // This changes the order of points, and all points run again if an index is wrong.
        let rows = rows.filter(|_| Effects::of_stage(stage).may_repeat());
        let rows = rows.filter(|rows| self.runs_better_along(rows.id, lane.id, stage, &loads));
        if let Some(rows) = rows {
            let count = even(usual_points(rows.extent), MOST_ROWS, LEAST_ROWS);
            let collected = self.try_collected(
                stage,
                axes,
                &loads,
                *lane,
                Some((*rows, count)),
                &speculable,
            );
            if collected.is_some() {
                return collected;
            }
        }
        // Elements that are only moved gain nothing by being collected first.
        match stage.value.kind() {
            Kind::Load { .. } => None,
            _ => self.try_collected(stage, axes, &loads, *lane, None, &speculable),
        }
    }

    /// Whether a stage only moves elements, from few enough lines for each row that the cache still has them for the
    /// next rows: nothing is gained by another order then.
    fn stays_cached(&self, stage: &'n Stage, lane: Axis) -> bool {
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return false;
        };
        let size = u64::from(lane_bytes(stage.value.ty()));
        let step = self.steps_with(lane.id, &self.linear(*buffer, at));
        let collides = |step: i64| (step.unsigned_abs() * size).is_multiple_of(COLLIDES);
        lane.extent
            .number()
            .is_some_and(|n| CACHED_LINES.contains(&n))
            && step.is_some_and(|step| !collides(step))
    }

    fn try_collected(
        &self,
        stage: &'n Stage,
        axes: &[Axis],
        loads: &[&'n Scalar],
        lane: Axis,
        rows: Option<(Axis, usize)>,
        speculable: &FxHashSet<usize>,
    ) -> Option<Collected<'n>> {
        let target = self.target?;
        let widest = self
            .widest_of(&stage.value)
            .max(self.width_of(stage.target));
        let each: usize = loads.iter().map(|x| usize::from(lane_bytes(x.ty()))).sum();
        let count = rows.map_or(1, |(_, count)| count);
        let most = MOST_POINTS.min(MOST_BYTES / (each * count));
        let points = self.usual_points(stage, lane);
        let most = lane
            .extent
            .number()
            .map_or(most.min(SYMBOLIC_POINTS), |_| most);
        let length = even(points, most, LEAST_POINTS);
        for bytes in [target.bytes(), 32, 16] {
            let lanes = bytes / widest;
            if lanes < 2 || lanes > length || bytes > target.bytes() {
                continue;
            }
            let mut builder =
                Builder::new(self, Some(target), stage, (lanes, 1), speculable.clone());
            builder.collected = loads.to_vec();
            builder.blocked = rows.iter().map(|(axis, _)| axis.id).collect();
            builder.blocked.push(lane.id);
            let of = |axis: Axis, extent: usize| Axis {
                extent: extent.into(),
                ..axis
            };
            let outer: Vec<Axis> = rows.iter().map(|(axis, n)| of(*axis, *n)).collect();
            let built = builder.stage(&outer, of(lane, length), None);
            let ready = built.and_then(|()| builder.ready(axes.len() - 1 - outer.len(), bytes));
            let Some(ready) = ready.filter(|ready| !ready.may_fault) else {
                continue;
            };
            return Some(Collected {
                ready,
                loads: loads.to_vec(),
                lane: (lane, length),
                rows,
            });
        }
        None
    }

    /// The loads that a vector loop along `lane` cannot do, in order of evaluation; `None` if there are none, or if one cannot be
    /// collected either.
    fn to_collect(
        &self,
        stage: &'n Stage,
        lane: AxisId,
        speculable: &FxHashSet<usize>,
    ) -> Option<Vec<&'n Scalar>> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![&stage.value];
        while let Some(x) = open.pop() {
            let free = self.facts.free(x);
            if !free.contains(&lane) || !seen.insert(x.address()) {
                continue;
            }
            let below = open.len();
            match x.kind() {
                Kind::Load { buffer, .. } if *buffer == stage.target => return None,
                Kind::Load { buffer, at } => {
                    let step = self.steps_with(lane, &self.linear(*buffer, at));
                    let skips = |i: &Scalar| i.reads_zero() && self.facts.free(i).contains(&lane);
                    if step == Some(1) && !at.iter().any(skips) {
                        continue;
                    }
                    let bound = |id: &AxisId| stage.domain.iter().all(|axis| axis.id != *id);
                    let ahead = speculable.contains(&x.address()) && !free.iter().any(bound);
                    if !ahead || x.ty().is_packed() || self.reads(x, stage.target) {
                        return None;
                    }
                    found.push(x);
                }
                _ => open.extend(x.children()),
            }
            open[below..].reverse();
        }
        let each = |x: &&Scalar| usize::from(lane_bytes(x.ty()));
        let fits = found.iter().map(each).sum::<usize>() * MOST_POINTS <= MOST_BYTES;
        (!found.is_empty() && fits).then_some(found)
    }

    /// Whether what is collected is cheaper to go through along the axis `rows` than along `lane`, and the
    /// points may be done in another order.
    fn runs_better_along(
        &self,
        rows: AxisId,
        lane: AxisId,
        stage: &'n Stage,
        loads: &[&'n Scalar],
    ) -> bool {
        let Some(axis) = stage.domain.iter().find(|axis| axis.id == rows) else {
            return false;
        };
        let cost = |axis| -> usize { loads.iter().map(|x| self.cost_along(x, axis)).sum() };
        usual_points(axis.extent) >= LEAST_ROWS
            && cost(rows) < cost(lane)
            && self.is_injective(stage)
    }

    /// The cost of one step along the axis for the loads under `x`, itself included: some lead far away,
    /// some indices must be checked again.
    fn cost_along(&self, x: &'n Scalar, axis: AxisId) -> usize {
        let mut cost = 0;
        visit(x, |x| {
            if !self.facts.free(x).contains(&axis) {
                return Visit::Past;
            }
            match x.kind() {
                Kind::Load { buffer, at } => {
                    let linear = self.linear(*buffer, at);
                    let size = u64::from(lane_bytes(x.ty()));
                    let leads = |(leaf, k): (&Scalar, Coefficient)| {
                        // A step that has symbols counts as far.
                        let step = k.number().map_or(u64::MAX, i64::unsigned_abs);
                        leaf.is_axis(axis) && step.saturating_mul(size) > NEAR
                    };
                    cost += 2 * usize::from(linear.terms().any(leads));
                }
                Kind::Wrap(_) => cost += 1,
                _ => {}
            }
            Visit::Children
        });
        cost
    }
}

impl<'n> Builder<'_, 'n> {
    pub(super) fn is_collected(&self, x: &Scalar) -> bool {
        self.collected.iter().any(|c| c.address() == x.address())
    }

    /// Where the elements of a load that has been collected lie: by row, and side by side.
    pub(super) fn collected(&mut self, x: &Scalar) -> Option<Access> {
        let number = self
            .collected
            .iter()
            .position(|c| c.address() == x.address())?;
        let argument = self.argument(Argument::Collected(number));
        self.program.pointers.push(argument);
        let (lane, rows) = self.blocked.split_last()?;
        let block = self.blocks.iter().find(|b| b.is_over(*lane))?;
        let length = block.axis?.extent.number()?;
        let row = i32::try_from(length * usize::from(lane_bytes(x.ty()))).ok()?;
        for block in &mut self.blocks {
            if block.axis.is_some_and(|axis| rows.contains(&axis.id)) {
                block.moves.push((argument, Stride::Bytes(row)));
            }
        }
        Some(Access {
            pointer: argument,
            step: 0,
            offset: 0,
        })
    }

    /// The value `loaded` through indices that are the same throughout: zero, if one that reads zero is
    /// out of range.
    pub(super) fn where_inside(
        &mut self,
        at: &'n [Scalar],
        ty: ElementType,
        loaded: Value,
    ) -> Value {
        if !at.iter().any(Scalar::reads_zero) {
            return loaded;
        }
        let argument = self.argument(Argument::Inside(at));
        let bits = unsigned(lane_bytes(ty));
        let all = self.throughout(Op::Argument(argument), bits);
        self.apply(Op::And, bits, &[loaded, all])
    }
}
