//! The columns of the data that a block of points may lead to, packed into scratch memory.
//!
//! Rows that lie far apart take a page each, more than the processor keeps in mind, and often the same few places
//! in the cache. In a panel they lie side by side; and memory is several times as fast in its own order, in
//! which they are packed, as in that of the indices.

use super::Emitter;
use super::address::{Linear, Place};
use cranelift_codegen::ir::{InstBuilder, Value};
use vinelift_nest::{Axis, AxisId, BufferId, Kind, Scalar, Stage};

/// Bytes of the data that a block of columns may lead to.
const CACHED: usize = 1 << 19;
/// Bytes that the cache takes from each row at least.
const LINE: usize = 64;
/// Data of more bytes are packed in any case: some cache may hold them only for a while.
const LARGE: usize = 6 << 20;
/// Narrow elements that stay in the cache anyway take so many bytes at most; they are packed sooner than others.
const NEAR: usize = 1 << 16;
/// Columns that are packed at once: fewer would be short runs of indices and results.
const MOST_COLUMNS: usize = 64;
/// Fewer columns, so that there are several blocks of them, are at least so many lines of each row.
const LEAST_LINES: usize = 2;
/// Bytes of panels: what is larger stays in no cache.
const MOST_SCRATCH: usize = 16 << 20;

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
    /// Bytes of an element.
    size: usize,
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

    /// Bytes of so many columns.
    fn bytes(&self, columns: usize) -> usize {
        self.extent.saturating_mul(columns * self.size)
    }
}

/// Gives the panels for so many columns their places in scratch memory; drops them if they are too large.
pub(super) fn place_panels(panels: &mut Vec<Panel<'_>>, count: usize) {
    let mut offset = 0usize;
    for panel in &mut *panels {
        panel.offset = offset;
        panel.terms[0].1 = count as i64;
        offset = offset.saturating_add(panel.bytes(count).next_multiple_of(LINE));
    }
    if offset > MOST_SCRATCH {
        panels.clear();
    }
}

impl<'n> Emitter<'n, '_> {
    /// If each point of `buffer[at]` leads to a row of its own: how many columns should be done at once, and
    /// what may be packed before.
    pub(super) fn lead_apart(
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
        let near = if word < 4 { NEAR } else { CACHED };
        let is_far = extent.saturating_mul(pitch) > near;
        let finds_many = rows.extent.saturating_mul(4) >= extent.saturating_mul(word);
        let pays = bytes > LARGE || (is_far && finds_many);
        if !(pays && is_known) || bytes == 0 || ty.is_packed() {
            return Some((fitting * LINE / size, None));
        }
        let panel = Panel {
            buffer,
            at,
            linear,
            extent,
            step,
            size,
            offset: 0,
            base: self.scratch,
            terms: [(row, 0), column],
        };
        let mut columns = (fitting * LINE / size).min(MOST_COLUMNS);
        while columns * 2 >= lane.extent && columns * size > LEAST_LINES * LINE {
            columns /= 2;
        }
        Some((columns, Some(panel)))
    }

    /// Copies the columns of a block, the first of which has the number `first`, into a panel, row after row. All
    /// of them exist: the access is proven for every row and every column of the block.
    pub(super) fn pack(&mut self, panel: &mut Panel<'n>, rows: Axis, first: Value, count: usize) {
        let end = panel.offset + panel.bytes(count);
        self.scratch_bytes = self.scratch_bytes.max(end.next_multiple_of(LINE));
        let Place::Bytes { address, offset } = self.place(panel.buffer, &panel.linear) else {
            return;
        };
        let offset_of_panel = panel.offset as i64;
        let base = self.builder.ins().iadd_imm_s(self.scratch, offset_of_panel);
        let axis = Axis {
            extent: panel.extent,
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
        panel.base = self.builder.ins().isub(base, before);
    }

    fn varies_with(&self, x: &Scalar, axes: [AxisId; 2]) -> bool {
        axes.iter().all(|axis| self.facts.free(x).contains(axis))
    }
}
