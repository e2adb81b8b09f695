//! Packing operands: once for constants, or within runs.

use std::ops::Range;

use crate::engine::Engine;
use crate::geometry::{ColumnPanel, parts};
use crate::groups::Side;
use crate::memory::elements;
use crate::narrow::{Narrow, NarrowBlock};
use crate::pack::{Block, MOST_POINTS, pack};
use crate::packed::Packed;
use crate::simd::HasEngine;
use crate::{Element, PreparedContraction};

impl PreparedContraction {
    /// Packs a left operand that is the same in many runs. The original is not needed afterwards. `None` if there is no
    /// memory for it.
    ///
    /// # Panics
    /// if it has fewer elements than [`elements`](PreparedContraction::elements) says.
    pub fn pack_left(&self, left: &[u8]) -> Option<Packed> {
        self.pack_side(left, self.exchanged)
    }

    /// Packs a right operand that is the same in many runs. The original is not needed afterwards. `None` if there is no
    /// memory for it.
    ///
    /// # Panics
    /// if it has fewer elements than [`elements`](PreparedContraction::elements) says.
    pub fn pack_right(&self, right: &[u8]) -> Option<Packed> {
        self.pack_side(right, !self.exchanged)
    }

    fn pack_side(&self, bytes: &[u8], columns: bool) -> Option<Packed> {
        match self.element {
            Element::F32 => self.pack_elements::<f32>(bytes, columns),
            Element::F64 => self.pack_elements::<f64>(bytes, columns),
            Element::U8I8 | Element::I8U8 => self.pack_elements::<i32>(bytes, columns),
        }
    }

    fn pack_elements<T: HasEngine>(&self, bytes: &[u8], columns: bool) -> Option<Packed> {
        let (side, one, count) = self.side(columns);
        let size = self.item_bytes::<T>(columns);
        let from = elements(bytes, side.needed, size);
        let engine = self.engine::<T>();
        let mut packed = Packed::zeroed(count.checked_mul(size_of::<T>())?, columns)?;
        if count == 0 {
            return Some(packed);
        }
        let to: *mut T = packed.as_mut_ptr().cast();
        for batch in 0..self.batch.points() {
            let [row_offset, column_offset, _, row_copy, column_copy] = self.batch.at(batch);
            // SAFETY: `from` has all elements that any offset leads to; `to` has room for all copies,
            // and each panel's place in it is as large as the panel.
            unsafe {
                if columns {
                    let to = to.add(column_copy * one);
                    let from = from.add(column_offset * size);
                    self.pack_columns(engine, from, to, &self.packed.panels, 0, self.k);
                } else {
                    let to = to.add(row_copy * one);
                    for rows in parts(self.rows.points.len(), self.row_panels) {
                        let to = to.add(rows.start * self.k);
                        let from = from.add(row_offset * size).cast();
                        self.pack_rows(engine, from, to, (rows, 1), 0, self.k);
                    }
                }
            }
        }
        Some(packed)
    }

    /// Where a panel starts within packed columns of `count` lines.
    pub(crate) fn packed_place(&self, panel: &ColumnPanel, count: usize) -> usize {
        panel.first_vector as usize * self.lanes * count
    }

    /// Packs `count` lines, from number `k` on, of some panels that follow each other.
    ///
    /// # Safety
    /// `from` is the column side of one batch, and `to` has room for the panels.
    pub(crate) unsafe fn pack_columns<T: HasEngine>(
        &self,
        engine: &Engine<T>,
        from: *const u8,
        to: *mut T,
        panels: &[ColumnPanel],
        k: usize,
        count: usize,
    ) {
        if let Some(narrow) = self.narrow {
            let widen = engine.widen.expect("engines of `f32` widen");
            let to = to.cast();
            // SAFETY: the caller's; the elements are `f32`, as they are narrow, and the engine is of this machine.
            return unsafe {
                self.widen_columns((narrow, widen), from.cast(), to, panels, k, count)
            };
        }
        let from = from.cast::<T::Item>();
        let (from, offsets) = self.columns.lines(from, self.group, k, count);
        let mut rest = panels;
        while let [panel, ..] = rest {
            // Full panels of the same width are packed together, so that lines are read further.
            let width = panel.vectors as usize * self.lanes;
            let stride = width * count;
            let same = |other: &&ColumnPanel| {
                other.vectors == panel.vectors && other.columns as usize == width
            };
            let most = match stride < (u32::MAX as usize) / MOST_POINTS {
                true => MOST_POINTS / width,
                false => 1,
            };
            let group = rest.iter().take(most).take_while(same).count().max(1);
            let first = panel.first_column as usize;
            let columns: u32 = rest[..group].iter().map(|panel| panel.columns).sum();
            let place = self.packed_place(panel, count) - self.packed_place(&panels[0], count);
            let block = Block {
                from,
                // SAFETY: `to` has room for all panels.
                to: unsafe { to.add(place) },
                width,
                points: &self.columns.points[first..first + columns as usize],
                k: count,
                offsets,
                unit: self.columns.k_line == Some(1),
                signed: self.columns.signed,
            };
            // SAFETY: the caller's, and the engine is of this machine.
            unsafe { pack(&engine.packing, engine.lanes, &block, group, stride) }
            if let Some(overlap) = &self.overlap {
                for panel in 0..group {
                    let to = block.to.wrapping_add(panel * stride).cast();
                    // SAFETY: all lines of the panel, which is of words, were written.
                    unsafe { clear_repeated(to, width, &overlap.first[k..k + count]) }
                }
            }
            rest = &rest[group..];
        }
    }

    /// As [`pack_columns`](Self::pack_columns), of elements that are stored as numbers of 16 bits.
    ///
    /// # Safety
    /// as that; the machine has the instructions of `widen`.
    unsafe fn widen_columns(
        &self,
        (narrow, widen): (Narrow, unsafe fn(&NarrowBlock)),
        from: *const u16,
        to: *mut f32,
        panels: &[ColumnPanel],
        k: usize,
        count: usize,
    ) {
        let (from, offsets) = self.columns.lines(from, self.group, k, count);
        for panel in panels {
            let first = panel.first_column as usize;
            let place = self.packed_place(panel, count) - self.packed_place(&panels[0], count);
            let block = NarrowBlock {
                narrow,
                from,
                // SAFETY: `to` has room for all panels.
                to: unsafe { to.add(place) },
                width: panel.vectors as usize * self.lanes,
                points: &self.columns.points[first..first + panel.columns as usize],
                k: count,
                offsets,
                unit: self.columns.k_line == Some(1),
            };
            // SAFETY: the caller's.
            unsafe { widen(&block) }
        }
    }

    /// Packs `count` lines, from number `k` on, of rows in as many panels of the same height.
    ///
    /// # Safety
    /// `from` is the row side of one batch, and `to` has room for the panels.
    pub(crate) unsafe fn pack_rows<T: HasEngine>(
        &self,
        engine: &Engine<T>,
        from: *const T::Item,
        to: *mut T,
        (rows, panels): (Range<usize>, usize),
        k: usize,
        count: usize,
    ) {
        let (from, offsets) = self.rows.lines(from, self.group, k, count);
        let width = rows.len() / panels;
        let block = Block {
            from,
            to,
            width,
            points: &self.rows.points[rows],
            k: count,
            offsets,
            unit: self.rows.k_line == Some(1),
            signed: self.rows.signed,
        };
        // SAFETY: the caller's, and the engine is of this machine.
        unsafe { pack(&engine.packing, engine.lanes, &block, panels, width * count) }
    }
}

/// Keeps of the words of each line, `width` of them, these bits.
///
/// # Safety
/// All lines may be read and written.
unsafe fn clear_repeated(to: *mut u32, width: usize, kept: &[u32]) {
    for (line, &kept) in kept
        .iter()
        .enumerate()
        .filter(|(_, bits)| **bits != u32::MAX)
    {
        for lane in 0..width {
            // SAFETY: the caller's.
            unsafe {
                let word = to.add(line * width + lane);
                word.write_unaligned(word.read_unaligned() & kept);
            }
        }
    }
}

impl Side {
    /// Where `count` lines of `group` elements each start, from number `k` on, and the offsets of their
    /// elements from there.
    fn lines<I>(&self, from: *const I, group: usize, k: usize, count: usize) -> (*const I, &[u32]) {
        let first = k * group;
        let last = (first + count * group).min(self.offsets.len());
        match self.k_line {
            // The offset of an element is its number.
            Some(1) => (from.wrapping_add(first), &self.offsets[..last - first]),
            _ => (from, &self.offsets[first..last]),
        }
    }
}
