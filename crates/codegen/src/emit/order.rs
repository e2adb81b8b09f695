//! Points that are done in another order than theirs, because memory is faster that way.
//!
//! Of a gather along an axis that is not the last, each point of a row may lead to another row of the data.
//! If these do not fit into the cache, the columns are done in blocks that do, packed before it where that pays
//! ([`panel`](super::panel)).
//!
//! Where an index is wrong, the first that is found need not be the first in the order of points. It is not
//! reported, then: all points are done again, one by one in their order.

use super::Result;
use super::address::Linear;
use super::loops::Turns;
use super::panel::{Panel, place_panels};
use super::vector::Plan;
use super::{Binding, Emitter, Runs, any_under};
use crate::vectorize::{VectorLoop, even};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, Effects, Kind, Scalar, Stage};

/// Points that are done in blocks of columns.
pub(crate) struct Columns<'n> {
    count: usize,
    pub(super) plan: Plan,
    /// What is packed for each block.
    pub(super) panels: Vec<Panel<'n>>,
    /// The strip that does a block, if one can.
    pub(super) vector_loop: Option<VectorLoop<'n>>,
}

impl Columns<'_> {
    pub(super) fn runs(&self) -> Runs {
        match &self.vector_loop {
            Some(ready) => ready.runs(),
            None => self.plan.runs(),
        }
    }
}

impl std::fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let packed = match self.panels.is_empty() {
            true => "",
            false => ", packed",
        };
        write!(f, "{} columns at a time{packed}", self.count)
    }
}

impl<'n> Emitter<'n, '_> {
    /// How the points of a stage are done in blocks of columns, if they should be. `many` are its axes of more
    /// than one point.
    pub(super) fn columns_of(
        &mut self,
        stage: &'n Stage,
        many: &[Axis],
        plan: Plan,
    ) -> Option<Columns<'n>> {
        let &[.., rows, lane] = many else {
            return None;
        };
        let mut columns = self.columns(stage, rows, plan)?;
        place_panels(&mut columns.panels, columns.count);
        let outer = many.len() - 2;
        self.panels = std::mem::take(&mut columns.panels);
        columns.vector_loop =
            self.vector_loop_of_columns(stage, [rows, lane], columns.count, outer);
        columns.panels = std::mem::take(&mut self.panels);
        Some(columns)
    }

    /// The columns, which are points of the innermost axis, that should be done before the next, but not
    /// fewer than those that are done at once; `None` if all. `rows` is the axis around it.
    pub(crate) fn columns(&self, stage: &'n Stage, rows: Axis, plan: Plan) -> Option<Columns<'n>> {
        let lane = plan.axis;
        let mut count = usize::MAX;
        let mut panels = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![(&stage.value, false)];
        while let Some((x, guarded)) = open.pop() {
            if !self.facts.free(x).contains(&lane.id) || !seen.insert((x.address(), guarded)) {
                continue;
            }
            if let Kind::Load { buffer, at } = x.kind()
                && let Some((columns, panel)) = self.lead_apart(stage, *buffer, at, [rows, lane])
            {
                count = count.min(columns);
                // What a select guards need not exist.
                panels.extend(panel.filter(|_| !guarded));
            }
            let guards = guarded || matches!(x.kind(), Kind::Select(..) | Kind::Reduce { .. });
            open.extend(x.children().map(|child| (child, guards)));
        }
        // The last block overlaps the one before, by as little as can be.
        let count = even(lane.extent, count, plan.lanes).max(plan.lanes);
        let fewer = count < lane.extent / 2 && rows.extent >= 8;
        // In another order, and all points once more if an index is wrong.
        let ordered = stage.group.is_none() && Effects::of_stage(stage).may_repeat();
        let may = fewer && ordered && self.is_injective(stage);
        may.then_some(Columns {
            count,
            plan,
            panels,
            vector_loop: None,
        })
    }

    /// Opens a loop over blocks of columns of `lane`, packs what a block leads to, and lets the axis have just
    /// those columns. The block that is given leads to [`Self::point_by_point`].
    pub(super) fn open_columns(
        &mut self,
        stage: &'n Stage,
        [rows, lane]: [Axis; 2],
        columns: &mut Columns<'n>,
    ) -> Block {
        let count = columns.count;
        let turns = self.turns(stage, lane);
        self.open_loop(lane, turns, count as i64, &[]);
        self.stay_before(lane, turns, count);
        let first = self.axes[&lane.id];
        let mut panels = std::mem::take(&mut columns.panels);
        for panel in &mut panels {
            self.pack(panel, rows, first.value, count);
        }
        self.panels = panels;
        self.axes.remove(&lane.id);
        let to = self.builder.ins().iadd_imm_s(first.value, count as i64);
        self.narrowed = Some((lane.id, Turns::between(first.value, to)));
        let exact = self.builder.create_block();
        self.instead_of_faults = Some(exact);
        exact
    }

    /// Does the block of columns that is open by a strip, which leads to `exact` if an index is out of range.
    pub(super) fn run_vector_loop_of_columns(
        &mut self,
        number: usize,
        stage: &'n Stage,
        ready: VectorLoop<'n>,
        exact: Block,
    ) -> Result {
        let Some((axis, Turns { from, .. })) = self.narrowed else {
            return super::no_primitive("a block of columns that is not open");
        };
        let first = Binding {
            value: from,
            plus: 0,
            depth: self.loops.len(),
        };
        self.axes.insert(axis, first);
        let status = self.call_vector_loop(number, stage, ready)?;
        self.axes.remove(&axis);
        self.leave_if(status, exact);
        Ok(())
    }

    /// Goes on at `exact` if the condition is not zero.
    pub(super) fn leave_if(&mut self, condition: Value, exact: Block) {
        let after = self.builder.create_block();
        self.builder.ins().brif(condition, exact, &[], after, &[]);
        self.builder.switch_to_block(after);
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
    pub(crate) fn reads(&self, x: &Scalar, from: vinelift_nest::BufferId) -> bool {
        any_under(
            x,
            |x| matches!(x.kind(), Kind::Load { buffer, .. } if *buffer == from),
        )
    }

    /// Whether no two points write the same element.
    pub(crate) fn is_injective(&self, stage: &'n Stage) -> bool {
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
