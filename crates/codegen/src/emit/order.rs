//! Points that are done in another order than theirs, because memory is faster that way.
//!
//! Of a gather along an axis that is not the last, each point of a row may lead to another row of the data.
//! If these do not fit into the cache, the columns are done in blocks that do. What a block may lead to is
//! packed before it, row after row, into a panel of scratch memory: rows that lie far apart take a page each,
//! more than the processor keeps in mind, and memory is several times as fast in its own order as in that of
//! the indices.
//!
//! Where an index is wrong, the first that is found need not be the first in the order of points. It is not
//! reported, then: all points are done again, one by one in their order.

use super::Result;
use super::address::{Linear, Place};
use super::loops::Turns;
use super::strip::{Ready, even};
use super::vector::Plan;
use super::{Binding, Emitter, Runs, any_under};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, BufferId, Kind, Mode, Scalar, Stage};

/// Bytes of the data that a block of columns may lead to.
const CACHED: usize = 1 << 19;
/// Bytes that the cache takes from each row at least.
const LINE: usize = 64;
/// Data of more bytes are packed in any case: some cache may hold them only for a while.
const LARGE: usize = 6 << 20;
/// Narrow elements that stay in the cache anyway take so many bytes at most; they are packed sooner than others.
const NEAR: usize = 1 << 16;
/// Lines of each row that are packed at once, and columns: fewer would be short runs of indices and results.
const MOST_LINES: usize = 4;
const MOST_COLUMNS: usize = 64;
/// Bytes of panels: what is larger stays in no cache.
const MOST_SCRATCH: usize = 16 << 20;

/// Points that are done in blocks of columns.
pub(super) struct Columns<'n> {
    count: usize,
    pub(super) plan: Plan,
    /// What is packed for each block.
    pub(super) panels: Vec<Panel<'n>>,
    /// The strip that does a block, if one can.
    pub(super) strip: Option<Ready<'n>>,
}

impl Columns<'_> {
    pub(super) fn runs(&self) -> Runs {
        match &self.strip {
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

/// The columns that a block of points may lead to, in scratch memory: row after row.
pub(super) struct Panel<'n> {
    /// Whose elements these are: `buffer[at]`.
    buffer: BufferId,
    at: &'n [Scalar],
    /// Where a row begins in the buffer, but for its number.
    linear: Linear<'n>,
    /// Rows, and how many elements they are apart in the buffer.
    extent: usize,
    step: i64,
    /// Where it begins in scratch memory.
    offset: usize,
    /// Where the first column would begin, if all were packed.
    pub(super) base: Value,
    /// The flat offset from there.
    pub(super) terms: [(&'n Scalar, i64); 2],
}

impl Panel<'_> {
    /// Whether it holds what is loaded from `at`.
    pub(super) fn holds(&self, at: &[Scalar]) -> bool {
        std::ptr::eq(self.at, at)
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
        let outer = many.len() - 2;
        self.panels = std::mem::take(&mut columns.panels);
        columns.strip = self.strip_of_columns(stage, [rows, lane], columns.count, outer);
        columns.panels = std::mem::take(&mut self.panels);
        Some(columns)
    }

    /// The columns, which are points of the innermost axis, that should be done before the next, but not
    /// fewer than those that are done at once; `None` if all. `rows` is the axis around it.
    pub(super) fn columns(&self, stage: &'n Stage, rows: Axis, plan: Plan) -> Option<Columns<'n>> {
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
        let ordered = stage.mode == Mode::Set && stage.group.is_none();
        let may =
            fewer && ordered && self.is_injective(stage) && !self.reads(&stage.value, stage.target);
        let mut offset = 0;
        for panel in &mut panels {
            panel.offset = offset;
            panel.terms[0].1 = count as i64;
            offset += self.bytes_of_panel(panel, count).next_multiple_of(LINE);
        }
        if offset > MOST_SCRATCH {
            panels.clear();
        }
        may.then_some(Columns {
            count,
            plan,
            panels,
            strip: None,
        })
    }

    /// If each point of `buffer[at]` leads to a row of its own: how many columns should be done at once, and
    /// what may be packed before.
    fn lead_apart(
        &self,
        stage: &Stage,
        buffer: BufferId,
        at: &'n [Scalar],
        [rows, lane]: [Axis; 2],
    ) -> Option<(usize, Option<Panel<'n>>)> {
        let ty = self.nest.buf(buffer).ty;
        let size = (ty.bits() / 8).max(1);
        let linear = self.linear(buffer, at);
        let along = |(leaf, k): &(&Scalar, i64)| {
            *k == 1 && matches!(leaf.kind(), Kind::Axis(id) if *id == lane.id)
        };
        let column = linear.terms().find(along)?;
        let (row, extent, step) = linear.terms().find_map(|(leaf, k)| match leaf.kind() {
            Kind::Wrap(wrap) if self.varies_with(leaf, [rows.id, lane.id]) => {
                let far = (k.unsigned_abs() as usize).saturating_mul(size) >= LINE;
                far.then_some((leaf, wrap.extent, k))
            }
            _ => None,
        })?;
        // Few points do not come back to what a block has brought into the cache.
        if rows.extent < extent / 4 {
            return None;
        }
        let linear = linear.without(|leaf| leaf.address() == row.address());
        let is_known = linear.leaves().all(|leaf| match leaf.kind() {
            Kind::Axis(id) => *id != rows.id && stage.domain.iter().any(|axis| axis.id == *id),
            _ => false,
        });
        let shape = &self.nest.buf(buffer).shape;
        let bytes = shape.iter().fold(size, |all, n| all.saturating_mul(*n));
        let fitting = (CACHED / extent.max(1).saturating_mul(LINE)).max(1);
        let pitch = (step.unsigned_abs() as usize).saturating_mul(size);
        // To pack a word takes about as long as packing saves for an element that is found.
        let word = size.min(4);
        let is_far = extent.saturating_mul(pitch) > if word < 4 { NEAR } else { CACHED };
        let pays = rows.extent.saturating_mul(4) >= extent.saturating_mul(word);
        let pays = bytes > LARGE || (is_far && pays);
        if !(pays && is_known) || bytes == 0 || ty.is_packed() {
            return Some((fitting * LINE / size, None));
        }
        let panel = Panel {
            buffer,
            at,
            linear,
            extent,
            step,
            offset: 0,
            base: self.scratch,
            terms: [(row, 0), column],
        };
        let columns = fitting.min(MOST_LINES) * LINE / size;
        Some((columns.min(MOST_COLUMNS), Some(panel)))
    }

    fn varies_with(&self, x: &Scalar, axes: [AxisId; 2]) -> bool {
        axes.iter().all(|axis| self.facts.free(x).contains(axis))
    }

    /// Opens a loop over blocks of columns of `lane`, packs what a block leads to, and lets the axis have just
    /// those columns. The block that is given leads to [`Self::point_by_point`].
    pub(super) fn open_columns(
        &mut self,
        stage: &'n Stage,
        [rows, lane]: [Axis; 2],
        columns: &mut Columns<'n>,
    ) -> Block {
        self.panels = std::mem::take(&mut columns.panels);
        let count = columns.count;
        let turns = self.turns(stage, lane);
        self.open_loop(lane, turns, count as i64, &[]);
        self.stay_before(lane, turns, count);
        for number in 0..self.panels.len() {
            self.pack(number, rows, count);
        }
        if let Some(first) = self.axes.remove(&lane.id) {
            for panel in &mut self.panels {
                let size = (self.nest.buf(panel.buffer).ty.bits() / 8) as i64;
                let before = self.builder.ins().imul_imm_s(first.value, size);
                panel.base = self.builder.ins().isub(panel.base, before);
            }
            let to = self.builder.ins().iadd_imm_s(first.value, count as i64);
            self.narrowed = Some((lane.id, Turns::between(first.value, to)));
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

    /// Copies the columns of a block into a panel, row after row. All of them exist: the access is proven for
    /// every row and every column of the block.
    fn pack(&mut self, number: usize, rows: Axis, count: usize) {
        let panel = &self.panels[number];
        let Panel {
            buffer,
            extent,
            step,
            offset,
            ..
        } = *panel;
        let linear = panel.linear.clone();
        let size = self.nest.buf(buffer).ty.bits() / 8;
        let end = offset + self.bytes_of_panel(panel, count);
        self.scratch_bytes = self.scratch_bytes.max(end.next_multiple_of(LINE));
        let Place::Bytes {
            address,
            offset: first,
        } = self.place(buffer, &linear)
        else {
            return;
        };
        let base = self.builder.ins().iadd_imm_s(self.scratch, offset as i64);
        self.open_loop_by(Axis { extent, ..rows }, 1, &[]);
        let row = self.axes[&rows.id].value;
        let mut beyond = |each: i64| {
            let each = each.wrapping_mul(size as i64);
            self.builder.ins().imul_imm_s(row, each)
        };
        let (from, to) = (beyond(step), beyond(count as i64));
        let from = self.builder.ins().iadd(address, from);
        let to = self.builder.ins().iadd(base, to);
        let flags = [self.flags[buffer.0 as usize]; 2];
        self.copy_in_place(flags, (from, first), (to, 0), count * size);
        self.close_loop(&[]);
        self.panels[number].base = base;
    }

    fn bytes_of_panel(&self, panel: &Panel<'n>, count: usize) -> usize {
        let size = self.nest.buf(panel.buffer).ty.bits() / 8;
        panel.extent.saturating_mul(count * size)
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
