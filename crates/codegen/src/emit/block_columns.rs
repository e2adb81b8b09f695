//! The loops over blocks of columns ([`columns`](crate::analysis::columns)), and their packing.
//!
//! Where an index is wrong, the first that is found need not be the first in the order of points. It is not
//! reported, then: all points are done again, one by one in their order.

use super::address::ElementAddress;
use super::emitter::{Emitter, Result, no_primitive};
use super::state::{Binding, Bounds};
use crate::analysis::columns::{Columns, LINE};
use crate::analysis::linear::PackedColumns;
use crate::vectorize::VectorLoop;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use vinelift_nest::{Axis, Stage};

impl<'n> Emitter<'n, '_> {
    /// Opens a loop over blocks of columns of `lane`, packs what a block reads, and limits the axis to those columns. The CLIF block
    /// that is returned is for [`Self::point_by_point`].
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
        let panels = std::mem::take(&mut columns.panels);
        self.panel_bases.clear();
        for panel in &panels {
            let base = self.pack(panel, rows, first.value, count);
            self.panel_bases.push(base.unwrap_or(self.scratch));
        }
        self.analysis.panels = panels;
        self.axes.remove(&lane.id);
        let to = self.builder.ins().iadd_imm_s(first.value, count as i64);
        self.narrowed = Some((lane.id, Bounds::between(first.value, to)));
        let exact = self.builder.create_block();
        self.instead_of_faults = Some(exact);
        exact
    }

    /// Runs the block of columns that is open by a vector loop, and jumps to `exact` if an index is out of range.
    pub(super) fn run_vector_loop_of_columns(
        &mut self,
        number: usize,
        stage: &'n Stage,
        ready: VectorLoop<'n>,
        exact: Block,
    ) -> Result {
        let Some((axis, Bounds { from, .. })) = self.narrowed else {
            return no_primitive("a block of columns that is not open");
        };
        let first = Binding {
            value: from,
            plus: 0,
            depth: self.loops.len(),
        };
        self.axes.insert(axis, first);
        let status = self.call_vector_loop((number, number), stage, ready)?;
        self.axes.remove(&axis);
        self.leave_if(status, exact);
        Ok(())
    }

    /// Jumps to `exact` if the condition is not zero.
    pub(super) fn leave_if(&mut self, condition: Value, exact: Block) {
        let after = self.builder.create_block();
        self.builder.ins().brif(condition, exact, &[], after, &[]);
        self.builder.switch_to_block(after);
    }

    /// The code at `exact`, which runs all points of the loops that are not open yet one by one.
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

    /// Copies the columns of a block, the first of which has the number `first`, into a panel, row after row. All
    /// of them exist: the access is proven for every row and every column of the block.
    pub(super) fn pack(
        &mut self,
        panel: &PackedColumns<'n>,
        rows: Axis,
        first: Value,
        count: usize,
    ) -> Option<Value> {
        let end = panel.offset + panel.bytes(count);
        self.scratch_bytes = self.scratch_bytes.max(end.next_multiple_of(LINE));
        let ElementAddress::Bytes { address, offset } = self.place(panel.buffer, &panel.linear)
        else {
            return None;
        };
        let offset_of_panel = panel.offset as i64;
        let base = self.builder.ins().iadd_imm_s(self.scratch, offset_of_panel);
        let axis = Axis {
            extent: panel.extent.into(),
            ..rows
        };
        self.open_loop_by(axis, 1, &[]);
        let row = self.axes[&rows.id].value;
        let size = panel.size as i64;
        let mut beyond = |each: i64| {
            let each = each.wrapping_mul(size);
            self.builder.ins().imul_imm_s(row, each)
        };
        let (from, to) = (beyond(panel.step), beyond(count as i64));
        let from = self.builder.ins().iadd(address, from);
        let to = self.builder.ins().iadd(base, to);
        let flags = [self.flags[panel.buffer.0 as usize]; 2];
        self.copy_in_place(flags, (from, offset), (to, 0), count * panel.size);
        self.close_loop(&[]);
        let before = self.builder.ins().imul_imm_s(first, size);
        Some(self.builder.ins().isub(base, before))
    }
}
