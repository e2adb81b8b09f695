//! Rows and columns that a task packs, or makes of codes.

use super::{At, Run};
use crate::coded::{Coded, Decode};
use crate::engine::CodedTiles;
use crate::geometry::ColumnPanel;
use crate::pack::Packing;
use crate::pack::words::WidenBytes;
use crate::simd::HasEngine;
use crate::tile::{Tile, TileFn};
use std::ops::Range;

/// The most rows of several tiles that are packed together: a few lines of the cache.
const PACKED_ROWS: usize = 48;

impl<T: HasEngine> Run<'_, T> {
    /// Makes the columns of a group of panels that the task has memory for.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    pub(super) unsafe fn make_columns(&self, at: &At<'_, T>, group: &[ColumnPanel]) {
        // SAFETY: the caller's.
        unsafe {
            match self.column_code {
                Some(code) => self.decode_columns(code, at.columns, group, at.k, at.count),
                None => {
                    let (from, to) = (at.columns, self.own_columns);
                    self.kernel
                        .pack_columns(self.engine, from, to, group, at.k, at.count)
                }
            }
        }
    }

    /// Makes the rows of a block that the task has memory for.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    pub(super) unsafe fn make_rows(&self, at: &At<'_, T>) {
        let tiles = self.kernel.row_tiles(at.block.clone(), at.panel);
        let mut tiles = tiles.map(|tile| tile.rows).peekable();
        while let Some(mut rows) = tiles.next() {
            let height = rows.len();
            let place = (rows.start - at.block.start) * at.count;
            // SAFETY: the caller's.
            unsafe {
                let to = self.own_rows.add(place);
                let Some(code) = self.row_code else {
                    // Tiles of the same height are packed together, so that lines are read further.
                    let fits = |next: &Range<usize>, rows: &Range<usize>| {
                        next.len() == height && rows.len() + height <= PACKED_ROWS
                    };
                    while let Some(next) = tiles.next_if(|next| fits(next, &rows)) {
                        rows.end = next.end;
                    }
                    let panels = rows.len() / height;
                    let from = at.rows.cast();
                    self.kernel
                        .pack_rows(self.engine, from, to, (rows, panels), at.k, at.count);
                    continue;
                };
                self.decode_rows(code, at.rows, to, rows, at.k, at.count);
            }
        }
    }

    /// Widens the bytes of a block of rows, and of those between them. Returns the number of the first one.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`]; `rows` is the row side of one batch.
    pub(super) unsafe fn widen_rows(&self, rows: *const u8, block: Range<usize>) -> usize {
        let Packing::Words {
            widen_bytes: Some(widen),
            ..
        } = &self.engine.packing
        else {
            unreachable!("runs are only planned so where words are of 16 bits");
        };
        let elements = self.kernel.elements_of(block);
        let bytes = WidenBytes {
            from: rows.wrapping_add(elements.start),
            to: self.own_rows.cast(),
            count: elements.len(),
            signed: self.kernel.rows.signed,
        };
        // SAFETY: the operand has all bytes from the first to the last of these; the task has memory for as many numbers.
        unsafe { widen(&bytes) }
        elements.start
    }

    /// Makes `count` lines of a tile's rows, from number `k` on.
    ///
    /// # Safety
    /// `rows` is the row side of one batch; `to` has room for the lines.
    unsafe fn decode_rows(
        &self,
        code: &Coded,
        rows: *const u8,
        to: *mut T,
        tile: Range<usize>,
        k: usize,
        count: usize,
    ) {
        let (start, height) = self.kernel.row_panel(tile.start);
        let place = code.place(start, self.kernel.k, k, height);
        let place = place + (tile.start - start) * code.code.bytes();
        let points = code.group_place(start, k, height) + tile.start - start;
        let lines = Decode {
            to,
            width: tile.len(),
            k: count,
            ..code.lines(rows, (place, points), height, k)
        };
        // SAFETY: the rows lie there; the caller vouches for the rest.
        unsafe { self.decode(&lines) }
    }

    /// Makes `count` lines of the columns of `panels`, from number `k` on.
    ///
    /// # Safety
    /// `columns` is the column side of one batch; `own_columns` has room for the lines.
    unsafe fn decode_columns(
        &self,
        code: &Coded,
        columns: *const u8,
        panels: &[ColumnPanel],
        k: usize,
        count: usize,
    ) {
        let kernel = self.kernel;
        for panel in panels {
            let width = panel.vectors as usize * kernel.lanes;
            let first = panel.first_vector as usize * kernel.lanes;
            let place = code.place(first, kernel.k, k, width);
            let points = code.group_place(first, k, width);
            let own = kernel.packed_place(panel, count) - kernel.packed_place(&panels[0], count);
            let lines = Decode {
                to: self.own_columns.wrapping_add(own),
                width,
                k: count,
                ..code.lines(columns, (place, points), width, k)
            };
            // SAFETY: as in `decode_rows`.
            unsafe { self.decode(&lines) }
        }
    }

    /// # Safety
    /// as [`crate::coded::decode`].
    unsafe fn decode(&self, lines: &Decode<T>) {
        let Some(decode) = self.engine.decode else {
            unreachable!("only elements of `f32` are coded");
        };
        // SAFETY: the caller's, and the engine is of this machine.
        unsafe { decode(lines) }
    }

    /// The tiles that take columns as codes.
    pub(super) fn coded_tiles(&self, code: &Coded) -> CodedTiles<T> {
        let Some(tiles) = self.engine.coded else {
            unreachable!("runs are only planned with such tiles if there are some");
        };
        tiles(code.code, code.is_fused)
    }

    /// The tile that takes codes of `rows` rows from several panels at once, and from how many.
    pub(super) fn coded_spread(&self, rows: usize) -> (usize, TileFn<T>) {
        let Some(code) = self.column_code else {
            unreachable!("there are codes");
        };
        self.coded_tiles(code).spread[rows - 1]
    }

    /// Says where the shifts and scales of a panel are, from number `k` on.
    pub(super) fn set_points(
        &self,
        tile: &mut Tile<T>,
        code: &Coded,
        k: usize,
        panel: &ColumnPanel,
    ) {
        let first = panel.first_vector as usize * self.kernel.lanes;
        let width = panel.vectors as usize * self.kernel.lanes;
        tile.points = code.points.at(code.group_place(first, k, width));
        (tile.points_step, tile.group) = (width, code.group);
    }
}
