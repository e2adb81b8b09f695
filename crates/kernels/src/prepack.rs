//! Packing operands: once for constants, or within runs.

use std::ops::Range;

use crate::geometry::{Panel, parts};
use crate::pack::{Block, pack};
use crate::packed::Packed;
use crate::run::elements;
use crate::simd::Float;
use crate::tile::Engine;
use crate::{Element, Kernel};

impl Kernel {
    /// Packs a left operand that is the same in many runs. The original is not needed afterwards.
    ///
    /// # Panics
    /// if it has fewer elements than [`elements`](Kernel::elements) says.
    pub fn pack_left(&self, left: &[u8]) -> Packed {
        self.pack_side(left, self.exchanged)
    }

    /// Packs a right operand that is the same in many runs. The original is not needed afterwards.
    ///
    /// # Panics
    /// if it has fewer elements than [`elements`](Kernel::elements) says.
    pub fn pack_right(&self, right: &[u8]) -> Packed {
        self.pack_side(right, !self.exchanged)
    }

    fn pack_side(&self, bytes: &[u8], columns: bool) -> Packed {
        match self.element {
            Element::F32 => self.pack_elements::<f32>(bytes, columns),
            Element::F64 => self.pack_elements::<f64>(bytes, columns),
        }
    }

    fn pack_elements<T: Float>(&self, bytes: &[u8], columns: bool) -> Packed {
        let side = if columns { &self.columns } else { &self.rows };
        let from = elements::<T>(bytes, side.needed);
        let engine = T::engine(self.isa);
        let one = if columns {
            self.packed_columns()
        } else {
            self.packed_rows()
        };
        if side.needed == 0 {
            return Packed::zeroed(0, columns);
        }
        let mut packed = Packed::zeroed(one * side.copies * size_of::<T>(), columns);
        let to: *mut T = packed.as_mut_ptr().cast();
        for batch in 0..self.batch.points() {
            let [row_offset, column_offset, _, row_copy, column_copy] = self.batch.at(batch);
            // SAFETY: `from` has all elements that any offset leads to; `to` has room for all copies,
            // and each panel's place in it is as large as the panel.
            unsafe {
                if columns {
                    let to = to.add(column_copy * one);
                    for panel in &self.packed.panels {
                        let to = to.add(self.packed_place(panel));
                        self.pack_columns(engine, from.add(column_offset), to, panel, 0, self.k);
                    }
                } else {
                    let to = to.add(row_copy * one);
                    for rows in parts(self.rows.points.len(), self.row_panels()) {
                        let to = to.add(rows.start * self.k);
                        self.pack_rows(engine, from.add(row_offset), to, rows, 0, self.k);
                    }
                }
            }
        }
        packed
    }

    /// Where a panel starts within the packed columns.
    pub(crate) fn packed_place(&self, panel: &Panel) -> usize {
        panel.first_vector as usize * self.lanes * self.k
    }

    /// # Safety
    /// `from` is the column side of one batch, and `to` has room for `k` lines of the panel.
    pub(crate) unsafe fn pack_columns<T: Float>(
        &self,
        engine: &Engine<T>,
        from: *const T,
        to: *mut T,
        panel: &Panel,
        k: usize,
        count: usize,
    ) {
        let first = panel.first_column as usize;
        let unit = self.columns.k_line == Some(1);
        let block = Block {
            // SAFETY: where lines follow each other, line `k` is `k` elements from the first.
            from: if unit { unsafe { from.add(k) } } else { from },
            to,
            width: panel.vectors as usize * self.lanes,
            points: &self.columns.points[first..first + panel.columns as usize],
            k: count,
            offsets: if unit {
                &self.columns.offsets[..count]
            } else {
                &self.columns.offsets[k..k + count]
            },
            unit,
        };
        // SAFETY: the caller's, and the engine is of this machine.
        unsafe { pack(engine, &block) }
    }

    /// # Safety
    /// `from` is the row side of one batch, and `to` has room for `k` lines of the rows.
    pub(crate) unsafe fn pack_rows<T: Float>(
        &self,
        engine: &Engine<T>,
        from: *const T,
        to: *mut T,
        rows: Range<usize>,
        k: usize,
        count: usize,
    ) {
        let unit = self.rows.k_line == Some(1);
        let block = Block {
            // SAFETY: as in `pack_columns`.
            from: if unit { unsafe { from.add(k) } } else { from },
            to,
            width: rows.len(),
            points: &self.rows.points[rows],
            k: count,
            offsets: if unit {
                &self.rows.offsets[..count]
            } else {
                &self.rows.offsets[k..k + count]
            },
            unit,
        };
        // SAFETY: the caller's, and the engine is of this machine.
        unsafe { pack(engine, &block) }
    }
}
