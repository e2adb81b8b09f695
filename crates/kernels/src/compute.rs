//! One task of a run: blocks of rows and `k`, panels of columns, tiles.

use std::ops::Range;

use crate::Kernel;
use crate::coded::{Coded, Decode};
use crate::geometry::Panel;
use crate::plan::{Part, Plan, Rows, Source};
use crate::simd::Number;
use crate::tile::{Engine, Tile, TileFn};

/// How far ahead what is used once is fetched: as far as memory is slow.
const FETCH_BYTES: usize = 4 << 10;

/// How far ahead anything is fetched: the second cache has to hold it.
const FETCH_MOST: usize = 256 << 10;

/// A task of the second phase.
pub(crate) struct Run<'a, T: Number> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) plan: &'a Plan,
    pub(crate) part: &'a Part,
    pub(crate) engine: &'static Engine<T>,
    /// How the sides are coded, if they are.
    pub(crate) row_code: Option<&'a Coded>,
    pub(crate) column_code: Option<&'a Coded>,
    pub(crate) own_rows: *mut T,
    pub(crate) own_columns: *mut T,
}

impl<T: Number> Run<'_, T> {
    /// Computes the task's part of one batch, whose operands and `out` start at the given places. Of
    /// a plain column side, `readable` elements follow.
    ///
    /// # Safety
    /// as [`Kernel::run_task`].
    pub(crate) unsafe fn batch(
        &self,
        rows: *const u8,
        columns: *const u8,
        readable: usize,
        out: *mut T,
    ) {
        let Run {
            kernel,
            plan,
            part,
            engine,
            ..
        } = self;
        let panels = &kernel.columns_of(plan.columns).panels[part.panels.clone()];
        let mut start = part.rows.start;
        while start < part.rows.end {
            let block = start..part.rows.end.min(start.saturating_add(plan.row_block));
            let mut k = 0;
            loop {
                let count = plan.k_block.min(kernel.k - k);
                if plan.rows.are_own() {
                    for tile in self.tiles(block.clone()) {
                        // SAFETY: `own_rows` has room for a block of rows and of `k`.
                        unsafe {
                            let to = self.own_rows.add((tile.start - block.start) * count);
                            match self.row_code {
                                Some(code) => self.decode_rows(code, rows, to, tile, k, count),
                                None => kernel.pack_rows(engine, rows.cast(), to, tile, k, count),
                            }
                        }
                    }
                }
                for group in panels.chunks(plan.group) {
                    // Where tiles take numbers, none are made before.
                    if plan.columns.is_own() && !self.in_tiles() {
                        // SAFETY: `own_columns` has room for a group of panels and a block of `k`.
                        unsafe {
                            let to = self.own_columns;
                            match self.column_code {
                                Some(code) => self.decode_columns(code, columns, group, k, count),
                                None => {
                                    kernel.pack_columns(engine, columns.cast(), to, group, k, count)
                                }
                            }
                        }
                    }
                    for panel in group {
                        let columns = self.columns(columns, &group[0], panel, k, count);
                        let ahead = self.ahead(panel, block.len());
                        for tile in self.tiles(block.clone()) {
                            let (rows, rows_step) = self.rows(rows, &block, &tile, k, count);
                            // SAFETY: the tile's rows, columns and part of `out` are there.
                            unsafe {
                                let at = At {
                                    rows,
                                    rows_step,
                                    columns,
                                    ahead,
                                    k,
                                    count,
                                    readable,
                                    out,
                                };
                                self.tile(panel, tile, &at);
                            }
                        }
                    }
                }
                k += count;
                if k >= kernel.k {
                    break;
                }
            }
            start = block.end;
        }
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
        let place = start * self.kernel.k + k * height + (tile.start - start);
        let lines = Decode {
            to,
            width: tile.len(),
            k: count,
            ..code.lines(rows, place, height, tile.start)
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
        panels: &[Panel],
        k: usize,
        count: usize,
    ) {
        let kernel = self.kernel;
        for panel in panels {
            let width = panel.vectors as usize * kernel.lanes;
            let place = kernel.packed_place(panel, kernel.k) + k * width;
            let own = kernel.packed_place(panel, count) - kernel.packed_place(&panels[0], count);
            let first = panel.first_vector as usize * kernel.lanes;
            let lines = Decode {
                to: self.own_columns.wrapping_add(own),
                width,
                k: count,
                ..code.lines(columns, place, width, first)
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

    /// Whether tiles take coded columns as they are.
    fn in_tiles(&self) -> bool {
        self.plan.in_tiles && self.column_code.is_some_and(|code| code.in_tiles)
    }

    /// The tiles that take a panel's columns as numbers, if they do.
    fn coded_tiles(&self, panel: &Panel) -> Option<&'static [TileFn<T>]> {
        let code = self.column_code.filter(|_| self.in_tiles())?;
        let tables = self.engine.coded.get(code.code as usize)?;
        tables.get(panel.vectors as usize - 1).copied()
    }

    /// The rows of `block` in tiles: panels, or the parts of panels that lie in it.
    fn tiles(&self, block: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut start = block.start;
        std::iter::from_fn(move || {
            if start >= block.end {
                return None;
            }
            let (panel, height) = self.kernel.row_panel(start);
            let tile = start..(panel + height).min(block.end);
            start = tile.end;
            Some(tile)
        })
    }

    /// Where the rows of a tile are, and how far it is from one `k` to the next.
    fn rows(
        &self,
        rows: *const u8,
        block: &Range<usize>,
        tile: &Range<usize>,
        k: usize,
        count: usize,
    ) -> (*const T, usize) {
        match self.plan.rows {
            Rows::Own | Rows::Coded => {
                let place = (tile.start - block.start) * count;
                (self.own_rows.wrapping_add(place).cast_const(), tile.len())
            }
            Rows::Direct { step } => {
                let row = self.kernel.rows.points[tile.start] as usize;
                (rows.cast::<T>().wrapping_add(row + k * step), step)
            }
            Rows::Packed => {
                // The panel may start before the tile.
                let (start, height) = self.kernel.row_panel(tile.start);
                let place = start * self.kernel.k + k * height + (tile.start - start);
                (rows.cast::<T>().wrapping_add(place), height)
            }
        }
    }

    /// Where the columns of a panel are, which is in the group that starts with `first`.
    fn columns(
        &self,
        columns: *const u8,
        first: &Panel,
        panel: &Panel,
        k: usize,
        count: usize,
    ) -> *const T {
        let place = |panel, count| self.kernel.packed_place(panel, count);
        match self.plan.columns {
            Source::Plain => columns.cast(),
            Source::Packed | Source::Shared => {
                let width = panel.vectors as usize * self.kernel.lanes;
                let place = place(panel, self.kernel.k) + k * width;
                columns.cast::<T>().wrapping_add(place)
            }
            Source::Coded if self.in_tiles() => {
                let width = panel.vectors as usize * self.kernel.lanes;
                let place = place(panel, self.kernel.k) + k * width;
                let size = self.column_code.map_or(1, |code| code.code.bytes());
                columns.wrapping_add(place * size).cast()
            }
            Source::Own | Source::Coded => self
                .own_columns
                .wrapping_add(place(panel, count) - place(first, count))
                .cast_const(),
        }
    }

    /// How far ahead of a tile rows and columns should be fetched: what comes next where they are packed,
    /// if that is not the tile's own.
    fn ahead(&self, panel: &Panel, rows: usize) -> [usize; 2] {
        let Run { kernel, plan, .. } = self;
        let near = FETCH_BYTES / size_of::<T>();
        let whole = |width: usize| match width * kernel.k {
            next if plan.k_block < kernel.k || next <= FETCH_MOST / size_of::<T>() => next,
            _ => near,
        };
        let rows_ahead = match plan.rows {
            Rows::Packed => whole(kernel.height),
            _ => 0,
        };
        let columns_ahead = match rows > kernel.height {
            true => whole(panel.vectors as usize * kernel.lanes),
            // The only tile is as fast as memory.
            false => near,
        };
        [rows_ahead, columns_ahead]
    }

    /// Computes a tile.
    ///
    /// # Safety
    /// as [`Kernel::run_task`].
    unsafe fn tile(&self, panel: &Panel, rows: Range<usize>, at: &At<T>) {
        let Run {
            kernel,
            plan,
            engine,
            ..
        } = self;
        let (h, n) = (rows.len(), panel.vectors as usize);
        let vectors = &kernel.columns_of(plan.columns).vectors[panel.first_vector as usize..][..n];
        let mut tile = Tile {
            k: at.count,
            rows: at.rows,
            rows_step: at.rows_step,
            columns: at.columns,
            rows_ahead: at.ahead[0],
            columns_ahead: at.ahead[1],
            zero: std::ptr::null(),
            scale: std::ptr::null(),
            offsets: std::ptr::null(),
            vectors: vectors.as_ptr(),
            out: at.out,
            row_offsets: kernel.row_out[rows].as_ptr(),
            scatter: kernel
                .scatter
                .as_ref()
                .map_or(std::ptr::null(), |table| table.as_ptr()),
            whole: panel.whole,
            fresh: at.k == 0,
        };
        // SAFETY: the caller's; each micro-kernel is for as many rows and vectors as the tile has.
        unsafe {
            if let (Some(code), Some(tiles)) = (self.column_code, self.coded_tiles(panel)) {
                let first = panel.first_vector as usize * kernel.lanes;
                tile.zero = code.zero[first..].as_ptr().cast();
                tile.scale = code.scale[first..].as_ptr().cast();
                return tiles[h - 1](&tile);
            }
            if plan.columns != Source::Plain {
                return engine.packed[n - 1][h - 1](&tile);
            }
            let offsets = &kernel.columns.offsets[at.k..at.k + at.count];
            tile.offsets = offsets.as_ptr();
            let last = kernel.columns_last(at.k + at.count);
            if last + panel.reach <= at.readable {
                return engine.plain[n - 1][h - 1](&tile);
            }
            // Whole vectors would reach beyond the operand.
            for (number, vector) in vectors.iter().enumerate() {
                tile.vectors = vectors[number..].as_ptr();
                tile.whole = panel.whole;
                if last + vector.from as usize + kernel.lanes <= at.readable {
                    engine.plain[0][h - 1](&tile);
                } else {
                    engine.edge[h - 1](&tile);
                }
            }
        }
    }
}

/// Where a tile is.
struct At<T> {
    rows: *const T,
    rows_step: usize,
    columns: *const T,
    ahead: [usize; 2],
    k: usize,
    count: usize,
    readable: usize,
    out: *mut T,
}
