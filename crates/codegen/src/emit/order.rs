//! Points that are done in another order than theirs, because memory is faster that way.
//!
//! Of a gather along an axis that is not the last, each point of a row may lead to another row of the data.
//! If these do not fit into the cache, the columns are done in blocks that do. What a block may lead to is read
//! once before it, row after row, if the data is large: memory is several times as fast in its own order as in
//! that of the indices.
//!
//! Where an index is wrong, the first that is found need not be the first in the order of points. It is not
//! reported, then: all points are done again, one by one in their order.

use super::Result;
use super::address::{Linear, Place};
use super::loops::Turns;
use super::strip::{Ready, even};
use super::vector::Plan;
use super::{Binding, Emitter, any_under};
use cranelift_codegen::ir::{Block, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, BufferId, Kind, Mode, Scalar, Stage};

/// Bytes of the data that a block of columns may lead to.
const CACHED: usize = 1 << 19;
/// Bytes that the cache takes from each row at least.
const LINE: usize = 64;
/// Data of more bytes, which some cache may hold only for a while, is read in its own order first.
const LARGE: usize = 6 << 20;
/// Lines of each row that are read at once then.
const MOST_LINES: usize = 8;

/// Points that are done in blocks of columns.
pub(super) struct Columns<'n> {
    pub(super) count: usize,
    /// The axis around them.
    rows: Axis,
    ahead: Vec<Ahead<'n>>,
    /// The strip that does a block, if one can.
    pub(super) strip: Option<Ready<'n>>,
}

impl std::fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = if self.ahead.is_empty() {
            ""
        } else {
            ", read ahead"
        };
        write!(f, "{} columns at a time{first}", self.count)
    }
}

/// Data that is read before a block of columns needs it.
struct Ahead<'n> {
    buffer: BufferId,
    /// Where a row begins, but for its number.
    linear: Linear<'n>,
    /// Rows, and how many elements they are apart.
    extent: usize,
    step: i64,
}

impl<'n> Emitter<'n, '_> {
    /// The columns, which are points of the innermost axis, that should be done before the next, but not
    /// fewer than those that are done at once; `None` if all. `rows` is the axis around it.
    pub(super) fn columns(&self, stage: &'n Stage, rows: Axis, plan: Plan) -> Option<Columns<'n>> {
        let lane = plan.axis;
        let mut count = usize::MAX;
        let mut ahead = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![(&stage.value, false)];
        while let Some((x, guarded)) = open.pop() {
            if !self.facts.free(x).contains(&lane.id) || !seen.insert((x.address(), guarded)) {
                continue;
            }
            if let Kind::Load { buffer, at } = x.kind()
                && let Some((lines, first)) = self.lines(stage, *buffer, at, [rows, lane])
            {
                let size = (self.nest.buf(*buffer).ty.bits() / 8).max(1);
                count = count.min(lines * LINE / size);
                // What a select guards need not exist.
                ahead.extend(first.filter(|_| !guarded));
            }
            let guards = guarded || matches!(x.kind(), Kind::Select(..) | Kind::Reduce { .. });
            open.extend(x.children().map(|child| (child, guards)));
        }
        // The last block overlaps the one before, by as little as can be.
        let count = even(lane.extent, count, plan.lanes).max(plan.lanes);
        let fewer = count < lane.extent / 2 && rows.extent >= 8;
        let ordered = stage.mode == Mode::Set && stage.group.is_none();
        let may =
            fewer && ordered && self.is_injective(stage) && !self.reads(&stage.value, stage.target);
        may.then_some(Columns {
            count,
            rows,
            ahead,
            strip: None,
        })
    }

    /// If each point of `buffer[at]` leads to a row of its own: how many cache lines of each row should be done
    /// at once, and what should be read before.
    fn lines(
        &self,
        stage: &Stage,
        buffer: BufferId,
        at: &'n [Scalar],
        [rows, lane]: [Axis; 2],
    ) -> Option<(usize, Option<Ahead<'n>>)> {
        let shape = &self.nest.buf(buffer).shape;
        let size = (self.nest.buf(buffer).ty.bits() / 8).max(1);
        let linear = self.linear(buffer, at);
        let along = |(leaf, k): (&Scalar, i64)| {
            k == 1 && matches!(leaf.kind(), Kind::Axis(id) if *id == lane.id)
        };
        if !linear.terms().any(along) {
            return None;
        }
        let (leads, extent, step) = linear.terms().find_map(|(leaf, k)| match leaf.kind() {
            Kind::Wrap(wrap) if self.varies_with(leaf, [rows.id, lane.id]) => {
                let far = k.unsigned_abs() as usize * size >= LINE;
                far.then_some((leaf, wrap.extent, k))
            }
            _ => None,
        })?;
        let fitting = (CACHED / (extent.max(1) * LINE)).max(1);
        let bytes = shape.iter().fold(size, |all, n| all.saturating_mul(*n));
        // Few points do not come back to what a block has brought into the cache.
        if rows.extent < extent / 4 {
            return None;
        }
        if bytes > LARGE {
            let linear = linear.without(|leaf| leaf.address() == leads.address());
            let is_known = linear.leaves().all(|leaf| match leaf.kind() {
                Kind::Axis(id) => *id != rows.id && stage.domain.iter().any(|axis| axis.id == *id),
                _ => false,
            });
            if is_known {
                let ahead = Ahead {
                    buffer,
                    linear,
                    extent,
                    step,
                };
                return Some((fitting.min(MOST_LINES), Some(ahead)));
            }
        }
        Some((fitting, None))
    }

    fn varies_with(&self, x: &Scalar, axes: [AxisId; 2]) -> bool {
        axes.iter().all(|axis| self.facts.free(x).contains(axis))
    }

    /// Opens a loop over blocks of columns of `axis`, and inside it lets the axis have just those. The
    /// block that is given leads to [`Self::point_by_point`].
    pub(super) fn open_columns(
        &mut self,
        stage: &'n Stage,
        axis: Axis,
        columns: &Columns<'n>,
    ) -> Block {
        let count = columns.count;
        let turns = self.turns(stage, axis);
        self.open_loop(axis, turns, count as i64, &[]);
        self.stay_before(axis, turns, count);
        for ahead in &columns.ahead {
            self.read_ahead(ahead, columns);
        }
        if let Some(first) = self.axes.remove(&axis.id) {
            let to = self.builder.ins().iadd_imm_s(first.value, count as i64);
            self.narrowed = Some((axis.id, Turns::between(first.value, to)));
        }
        let exact = self.builder.create_block();
        self.instead_of_faults = Some(exact);
        exact
    }

    /// Does the block of columns that is open by a strip, which leads to `exact` if an index is out of range.
    pub(super) fn run_strip_of_columns(
        &mut self,
        number: usize,
        stage: &'n Stage,
        ready: Ready<'n>,
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
        let status = self.call_strip(number, stage, ready)?;
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

    /// Reads one element of each cache line that a block of columns may lead to, row after row. All of them
    /// exist: the access is proven for every row and every column of the block.
    fn read_ahead(&mut self, ahead: &Ahead<'n>, columns: &Columns<'n>) {
        let ty = self.nest.buf(ahead.buffer).ty;
        let size = ty.bits() / 8;
        let Place::Bytes { address, offset } = self.place(ahead.buffer, &ahead.linear) else {
            return;
        };
        let flags = self.flags[ahead.buffer.0 as usize];
        let wide = super::vector::integer(size);
        let none = self.builder.ins().iconst(wide, 0);
        let axis = Axis {
            extent: ahead.extent,
            ..columns.rows
        };
        let mut all = self.open_loop_by(axis, 1, &[none])[0];
        let row = self.axes[&axis.id].value;
        let beyond = self
            .builder
            .ins()
            .imul_imm_s(row, ahead.step.wrapping_mul(size as i64));
        let address = self.builder.ins().iadd(address, beyond);
        let last = (columns.count - 1) * size;
        for at in (0..last).step_by(LINE).chain([last]) {
            let ins = self.builder.ins();
            let found = ins.load(wide, flags, address, offset + at as i32);
            all = self.builder.ins().bxor(all, found);
        }
        let all = self.close_loop(&[all]);
        // What is not used would not be read.
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size as u32, 3);
        let slot = self.builder.create_sized_stack_slot(data);
        self.builder.ins().stack_store(types::I64, all[0], slot, 0);
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
