//! Points that are done in another order than theirs, because memory is faster that way.
//!
//! Of a gather along an axis that is not the last, each point of a row may lead to another row of the data.
//! If these do not fit into the cache, the columns are done in blocks that do.
//!
//! Where an index is wrong, the first that is found need not be the first in the order of points. It is not
//! reported, then: all points are done again, one by one in their order.

use super::Result;
use super::address::Linear;
use super::loops::Turns;
use super::vector::Plan;
use super::{Emitter, any_under};
use cranelift_codegen::ir::{Block, InstBuilder};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, Kind, Mode, Scalar, Stage};

/// Bytes of the data that a block of columns may lead to.
const CACHED: usize = 1 << 19;
/// Bytes that the cache takes from each row at least.
const LINE: usize = 64;

impl<'n> Emitter<'n, '_> {
    /// How many columns, which are points of the innermost axis, should be done before the next, but not
    /// fewer than those that are done at once; `None` if all. `rows` is the axis around it.
    pub(super) fn columns(&self, stage: &'n Stage, rows: Axis, plan: Plan) -> Option<usize> {
        let lane = plan.axis;
        let mut columns = usize::MAX;
        let mut seen = FxHashSet::default();
        let mut open = vec![&stage.value];
        while let Some(x) = open.pop() {
            if !self.facts.free(x).contains(&lane.id) || !seen.insert(x.address()) {
                continue;
            }
            if let Kind::Load { buffer, at } = x.kind() {
                let size = (self.nest.buf(*buffer).ty.bits() / 8).max(1);
                let linear = self.linear(*buffer, at);
                let along = |(leaf, k): (&Scalar, i64)| {
                    k == 1 && matches!(leaf.kind(), Kind::Axis(id) if *id == lane.id)
                };
                // Each of them leads to a row of its own.
                let leads: Option<usize> = linear.terms().find_map(|(leaf, k)| match leaf.kind() {
                    Kind::Wrap(wrap) if self.varies_with(leaf, [rows.id, lane.id]) => {
                        let far = k.unsigned_abs() as usize * size >= LINE;
                        far.then_some(wrap.extent)
                    }
                    _ => None,
                });
                // Few points do not come back to what a block has brought into the cache.
                let back = |extent: &usize| rows.extent >= extent / 4;
                let leads = leads.filter(|_| linear.terms().any(along));
                if let Some(extent) = leads.filter(back) {
                    let lines = CACHED / (extent.max(1) * LINE);
                    columns = columns.min(lines.max(1) * LINE / size);
                }
            }
            open.extend(x.children());
        }
        let columns = columns.max(plan.lanes);
        let fewer = columns < lane.extent / 2 && rows.extent >= 8;
        let ordered = stage.mode == Mode::Set && stage.group.is_none();
        (fewer && ordered && self.is_injective(stage) && !self.reads(&stage.value, stage.target))
            .then_some(columns)
    }

    fn varies_with(&self, x: &Scalar, axes: [AxisId; 2]) -> bool {
        axes.iter().all(|axis| self.facts.free(x).contains(axis))
    }

    /// Opens a loop over blocks of so many points of `axis`, and inside it lets the axis have just those. The
    /// block that is given leads to [`Self::point_by_point`].
    pub(super) fn open_columns(&mut self, stage: &'n Stage, axis: Axis, count: usize) -> Block {
        let turns = self.turns(stage, axis);
        self.open_loop(axis, turns, count as i64, &[]);
        self.stay_before(axis, turns, count);
        if let Some(first) = self.axes.remove(&axis.id) {
            let to = self.builder.ins().iadd_imm_s(first.value, count as i64);
            self.narrowed = Some((axis.id, Turns::between(first.value, to)));
        }
        let exact = self.builder.create_block();
        self.instead_of_faults = Some(exact);
        exact
    }

    /// From `exact` on: all points of the loops that are left to open, one by one.
    pub(super) fn point_by_point(
        &mut self,
        stage: &'n Stage,
        exact: Block,
        inner: &[Axis],
    ) -> Result {
        let done = self.builder.create_block();
        self.builder.ins().jump(done, &[]);
        let blocks = self.cold_from_here();
        self.builder.set_cold_block(exact);
        self.builder.switch_to_block(exact);
        let depth = self.loops.len();
        for &axis in inner {
            self.hoist(stage.at.iter().chain([&stage.value]))?;
            let turns = self.turns(stage, axis);
            self.open_loop(axis, turns, 1, &[]);
        }
        self.assign(stage)?;
        while self.loops.len() > depth {
            self.close_loop(&[]);
        }
        self.builder.ins().jump(done, &[]);
        blocks.end(self);
        self.builder.switch_to_block(done);
        Ok(())
    }

    /// Whether anything under `x` is loaded from a buffer.
    pub(super) fn reads(&self, x: &Scalar, from: vinelift_nest::BufferId) -> bool {
        any_under(
            x,
            |x| matches!(x.kind(), Kind::Load { buffer, .. } if *buffer == from),
        )
    }

    /// Whether no two points write the same element.
    pub(super) fn is_injective(&self, stage: &'n Stage) -> bool {
        let linear: Linear = self.linear(stage.target, &stage.at);
        let digit = |(leaf, k): (&Scalar, i64)| match leaf.kind() {
            Kind::Axis(id) => {
                let axis = stage.domain.iter().find(|axis| axis.id == *id)?;
                Some((k.unsigned_abs(), axis.extent as u64, axis.id))
            }
            _ => None,
        };
        let Some(mut digits) = linear.terms().map(digit).collect::<Option<Vec<_>>>() else {
            return false;
        };
        digits.sort_unstable();
        let mut beyond = 1u64;
        let apart = digits.iter().all(|(k, extent, _)| {
            let fits = *k >= beyond;
            beyond = k.saturating_mul(*extent);
            fits
        });
        let mut many = stage.domain.iter().filter(|axis| axis.extent > 1);
        apart && many.all(|axis| digits.iter().any(|(.., id)| *id == axis.id))
    }
}
