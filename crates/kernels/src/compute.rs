//! One task of a run: blocks of rows and `k`, panels of columns, tiles.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::PreparedContraction;
use crate::coded::{Coded, Decode};
use crate::engine::{CodedTiles, Engine};
use crate::geometry::ColumnPanel;
use crate::partition::{ColumnSource, RowSource, TaskPartition, TaskShare};
use crate::points::PointsAt;
use crate::prepared::RowTile;
use crate::simd::HasEngine;
use crate::tile::{LINE, Next, SPREAD_WIDTH, Tile, TileFn};

/// How far ahead what is used once is fetched: as far as memory is slow.
const FETCH_BYTES: usize = 4 << 10;

/// The most rows of several tiles that are packed together: a few lines of the cache.
const PACKED_ROWS: usize = 48;

/// How far ahead anything is fetched: the second cache has to hold it.
const FETCH_MOST: usize = 256 << 10;

/// A task of the second phase.
pub(crate) struct Run<'a, T: HasEngine> {
    pub(crate) kernel: &'a PreparedContraction,
    pub(crate) plan: &'a TaskPartition,
    pub(crate) part: &'a TaskShare,
    pub(crate) engine: &'static Engine<T>,
    /// How the sides are coded, if they are.
    pub(crate) row_code: Option<&'a Coded>,
    pub(crate) column_code: Option<&'a Coded>,
    pub(crate) own_rows: *mut T,
    pub(crate) own_columns: *mut T,
    pub(crate) stop: &'a AtomicBool,
}

impl<T: HasEngine> Run<'_, T> {
    /// Computes the task's part of one batch, whose operands and `out` start at the given places. Of
    /// a plain column side, `readable` elements follow.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    pub(crate) unsafe fn batch(
        &self,
        rows: *const u8,
        columns: *const u8,
        readable: usize,
        out: *mut T,
    ) {
        let Run {
            kernel, plan, part, ..
        } = self;
        let mut start = part.rows.start;
        while start < part.rows.end {
            let block = start..part.rows.end.min(start.saturating_add(plan.row_block));
            let panel = kernel.row_panel(block.start);
            let tiles = kernel.row_tiles(block.clone(), panel).count();
            let panels = &kernel.columns_of(plan.columns).panels[part.panels.clone()];
            // Where nothing is packed block by block, the sums of a panel stay in the cache from one block of `k` to the next.
            let is_plain = plan.columns == ColumnSource::Plain && !plan.rows.are_own();
            let together = match is_plain && plan.k_block < kernel.k {
                true => 1,
                false => panels.len().max(1),
            };
            for panels in panels.chunks(together) {
                let mut k = 0;
                loop {
                    if self.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let count = plan.k_block.min(kernel.k - k);
                    let at = At {
                        rows,
                        columns,
                        out,
                        readable,
                        block: block.clone(),
                        panel,
                        tiles,
                        panels,
                        k,
                        count,
                    };
                    // SAFETY: the caller's.
                    unsafe { self.block(&at) }
                    k += count;
                    if k >= kernel.k {
                        break;
                    }
                }
            }
            start = block.end;
        }
    }

    /// Computes a block: makes the rows and columns that the task has memory for, and goes through the panels.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    unsafe fn block(&self, at: &At<'_, T>) {
        let Run { kernel, plan, .. } = self;
        if plan.rows.are_own() {
            // SAFETY: `own_rows` has room for a block of rows and of `k`.
            unsafe { self.make_rows(at) }
        }
        let mut rest = at.panels;
        while !rest.is_empty() {
            let spread = self.spread(at, rest);
            if spread > 1 {
                // SAFETY: the panels' columns are there, and the rows and `out`.
                unsafe { self.panels(at, &rest[..spread]) }
                rest = &rest[spread..];
                continue;
            }
            let group = &rest[..plan.group.min(rest.len())];
            if plan.columns.is_own() && !plan.in_tiles {
                // SAFETY: `own_columns` has room for a group of panels and a block of `k`.
                unsafe { self.make_columns(at, group) }
            }
            let next = at.k + at.count;
            for (number, panel) in group.iter().enumerate() {
                let following = match rest.get(number + 1) {
                    Some(panel) => Some((panel, at.k)),
                    None => Some((&at.panels[0], next)).filter(|_| next < kernel.k),
                };
                // SAFETY: the panel's columns are there, and the rows and `out`.
                unsafe { self.panel(at, &group[0], panel, following) }
            }
            rest = &rest[group.len()..];
        }
    }

    /// How many of the panels a tile takes at once.
    fn spread(&self, at: &At<'_, T>, rest: &[ColumnPanel]) -> usize {
        let most = self.kernel.spread(self.plan.columns);
        let codes = self.plan.columns == ColumnSource::Coded;
        let fits = |panel: &ColumnPanel| panel.whole && panel.vectors as usize == SPREAD_WIDTH;
        let panels = match codes {
            false => most,
            true if self.plan.in_tiles => self.coded_spread(at.block.len()).0,
            true => 1,
        };
        let is_whole = at.tiles == 1 && at.block.len() == self.kernel.height;
        match rest.get(..panels).is_some_and(|rest| rest.iter().all(fits)) && is_whole {
            true => panels,
            false => 1,
        }
    }

    /// Computes the only tile of panels that it takes at once.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    #[inline(never)]
    unsafe fn panels(&self, at: &At<'_, T>, panels: &[ColumnPanel]) {
        let Run { kernel, plan, .. } = self;
        if self.stop.load(Ordering::Relaxed) {
            return;
        }
        let h = at.block.len();
        let mut tile = self.tile(at, &panels[0], &panels[0]);
        let only = RowTile {
            rows: at.block.clone(),
            panel: at.panel,
        };
        (tile.rows, tile.rows_step) = self.rows(at, &only);
        tile.row_offsets = kernel.row_out[at.block.clone()].as_ptr();
        let width = SPREAD_WIDTH * kernel.lanes;
        let run = match self.column_code.filter(|_| plan.in_tiles) {
            Some(code) => {
                self.set_points(&mut tile, code, at.k, &panels[0]);
                tile.panel_step = code.place(width, kernel.k, 0, 0);
                tile.points_panel_step = code.group_place(width, 0, 0);
                self.coded_spread(h).1
            }
            None => {
                tile.panel_step = width * kernel.k;
                self.engine.spread[h - 1].1
            }
        };
        // SAFETY: the caller's; the micro-kernel is for as many rows and panels, all of whole vectors.
        unsafe { run(&tile) }
    }

    /// Makes the columns of a group of panels that the task has memory for.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    unsafe fn make_columns(&self, at: &At<'_, T>, group: &[ColumnPanel]) {
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
    unsafe fn make_rows(&self, at: &At<'_, T>) {
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

    /// Computes the tiles of a panel, which is in the group that starts with `first`. Another panel follows, at some
    /// `k`, maybe.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    #[inline(never)]
    unsafe fn panel(
        &self,
        at: &At<'_, T>,
        first: &ColumnPanel,
        panel: &ColumnPanel,
        following: Option<(&ColumnPanel, usize)>,
    ) {
        let Run {
            kernel,
            plan,
            engine,
            ..
        } = self;
        let n = panel.vectors as usize;
        let mut tile = self.tile(at, first, panel);
        let coded = self.column_code.filter(|_| plan.in_tiles);
        if let Some(code) = coded {
            self.set_points(&mut tile, code, at.k, panel);
        }
        if self.stop.load(Ordering::Relaxed) {
            return;
        }
        let ahead = self.ahead(at, panel, following, tile.columns);
        for (number, row_tile) in kernel.row_tiles(at.block.clone(), at.panel).enumerate() {
            (tile.rows, tile.rows_step) = self.rows(at, &row_tile);
            let h = row_tile.rows.len();
            if plan.rows == RowSource::Strided {
                tile.row_points = kernel.rows.points[row_tile.rows.clone()].as_ptr();
                tile.row_steps = kernel.rows.offsets[at.k..at.k + at.count].as_ptr();
            }
            tile.row_offsets = kernel.row_out[row_tile.rows].as_ptr();
            tile.next = ahead.of(number);
            // SAFETY: the caller's; each micro-kernel is for as many rows and vectors as the tile has.
            unsafe {
                match coded {
                    Some(code) => self.coded_tiles(code).packed[n - 1][h - 1](&tile),
                    _ if plan.columns == ColumnSource::Plain => {
                        self.plain_tile(at, panel, &tile, h)
                    }
                    _ if plan.rows == RowSource::Strided => engine.strided[n - 1][h - 1](&tile),
                    _ => engine.packed[n - 1][h - 1](&tile),
                }
            }
        }
    }

    /// A tile of a panel, which is in the group that starts with `first`: all but its rows and what is fetched.
    fn tile(&self, at: &At<'_, T>, first: &ColumnPanel, panel: &ColumnPanel) -> Tile<T> {
        let Run { kernel, plan, .. } = self;
        let n = panel.vectors as usize;
        let vectors = &kernel.columns_of(plan.columns).vectors[panel.first_vector as usize..][..n];
        let mut tile = Tile {
            k: at.count,
            rows: at.rows.cast(),
            rows_step: 0,
            row_points: std::ptr::null(),
            row_steps: std::ptr::null(),
            columns: self.columns(at.columns, first, panel, at.k, at.count),
            rows_ahead: self.rows_ahead(),
            next: Next {
                from: std::ptr::null(),
                step: 0,
            },
            panel_step: 0,
            points: PointsAt::NONE,
            points_step: 0,
            points_panel_step: 0,
            group: 0,
            offsets: std::ptr::null(),
            vectors: vectors.as_ptr(),
            out: at.out,
            row_offsets: std::ptr::null(),
            scatter: kernel
                .scatter
                .as_ref()
                .map_or(std::ptr::null(), |table| table.as_ptr()),
            whole: panel.whole,
            fresh: at.k == 0,
        };
        if plan.columns == ColumnSource::Plain {
            tile.offsets = kernel.columns.offsets[at.k..at.k + at.count].as_ptr();
        }
        tile
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
    fn coded_tiles(&self, code: &Coded) -> CodedTiles<T> {
        let Some(tiles) = self.engine.coded else {
            unreachable!("runs are only planned with such tiles if there are some");
        };
        tiles(code.code, code.is_fused)
    }

    /// Those that take several panels of `rows` rows.
    fn coded_spread(&self, rows: usize) -> (usize, TileFn<T>) {
        let Some(code) = self.column_code else {
            unreachable!("there are codes");
        };
        self.coded_tiles(code).spread[rows - 1]
    }

    /// Says where the shifts and scales of a panel are, from number `k` on.
    fn set_points(&self, tile: &mut Tile<T>, code: &Coded, k: usize, panel: &ColumnPanel) {
        let first = panel.first_vector as usize * self.kernel.lanes;
        let width = panel.vectors as usize * self.kernel.lanes;
        tile.points = code.points.at(code.group_place(first, k, width));
        (tile.points_step, tile.group) = (width, code.group);
    }

    /// Where the rows of a tile are, and how far it is from one `k` to the next.
    #[inline(always)]
    fn rows(&self, at: &At<'_, T>, tile: &RowTile) -> (*const T, usize) {
        let rows = at.rows.cast::<T>();
        let first = tile.rows.start;
        match self.plan.rows {
            RowSource::Own | RowSource::Coded => {
                let place = (first - at.block.start) * at.count;
                let step = tile.rows.len();
                (self.own_rows.wrapping_add(place).cast_const(), step)
            }
            RowSource::Strided => (rows, 0),
            RowSource::Direct { step } => {
                let row = self.kernel.rows.points[first] as usize;
                (rows.wrapping_add(row + at.k * step), step)
            }
            RowSource::Packed => {
                // The panel may start before the tile.
                let (start, height) = tile.panel;
                let place = start * self.kernel.k + at.k * height + (first - start);
                (rows.wrapping_add(place), height)
            }
        }
    }

    /// Where the columns of a panel are, which is in the group that starts with `first`.
    #[inline(never)]
    fn columns(
        &self,
        columns: *const u8,
        first: &ColumnPanel,
        panel: &ColumnPanel,
        k: usize,
        count: usize,
    ) -> *const T {
        let place = |panel, count| self.kernel.packed_place(panel, count);
        match self.plan.columns {
            ColumnSource::Plain => columns.cast(),
            ColumnSource::Packed | ColumnSource::Shared => {
                let width = panel.vectors as usize * self.kernel.lanes;
                let place = place(panel, self.kernel.k) + k * width;
                columns.cast::<T>().wrapping_add(place)
            }
            ColumnSource::Coded if self.plan.in_tiles => {
                let width = panel.vectors as usize * self.kernel.lanes;
                let first = panel.first_vector as usize * self.kernel.lanes;
                let place = |code: &Coded| code.place(first, self.kernel.k, k, width);
                let place = self.column_code.map_or(0, place);
                columns.wrapping_add(place).cast()
            }
            ColumnSource::Own | ColumnSource::Coded => self
                .own_columns
                .wrapping_add(place(panel, count) - place(first, count))
                .cast_const(),
        }
    }

    /// How many elements ahead of a tile rows should be fetched: those of the next tile where they are packed.
    fn rows_ahead(&self) -> usize {
        let Run { kernel, plan, .. } = self;
        match (plan.rows, kernel.height * kernel.k) {
            (RowSource::Packed, next)
                if plan.k_block < kernel.k || next <= FETCH_MOST / size_of::<T>() =>
            {
                next
            }
            (RowSource::Packed, _) => FETCH_BYTES / size_of::<T>(),
            _ => 0,
        }
    }

    /// Divides the columns of the `following` panel among the tiles of this one: each tile prefetches its part while it
    /// computes, so that memory is asked evenly.
    fn ahead(
        &self,
        at: &At<'_, T>,
        panel: &ColumnPanel,
        following: Option<(&ColumnPanel, usize)>,
        columns: *const T,
    ) -> Ahead<T> {
        let nothing = Ahead {
            from: columns,
            step: 0,
            tiles: 0,
            tile_bytes: 0,
            columns,
        };
        if self.plan.columns == ColumnSource::Plain {
            return nothing;
        }
        let width = panel.vectors as usize * self.kernel.lanes;
        if at.tiles == 1 {
            // The only tile is as fast as memory.
            return Ahead {
                from: columns.wrapping_byte_add(FETCH_BYTES),
                step: width,
                tiles: 1,
                ..nothing
            };
        }
        let Some((following, k)) = following else {
            return nothing;
        };
        let lines = (width * size_of::<T>()).div_ceil(LINE);
        let each = lines.div_ceil(at.tiles);
        Ahead {
            from: self.columns(at.columns, following, following, k, at.count),
            step: each * LINE / size_of::<T>(),
            tiles: lines.div_ceil(each),
            tile_bytes: each * at.count * LINE,
            columns,
        }
    }

    /// Computes a tile of plain columns.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    unsafe fn plain_tile(&self, at: &At<'_, T>, panel: &ColumnPanel, tile: &Tile<T>, h: usize) {
        let Run { kernel, engine, .. } = self;
        let n = panel.vectors as usize;
        let last = kernel.columns_last(at.k + at.count);
        // SAFETY: the caller's; the micro-kernels are for as many rows and vectors as the tile has.
        unsafe {
            if last + panel.reach <= at.readable {
                return engine.plain[n - 1][h - 1](tile);
            }
            // Whole vectors would reach beyond the operand.
            for number in 0..n {
                let vectors = tile.vectors.add(number);
                let tile = Tile { vectors, ..*tile };
                if last + (*vectors).from as usize + kernel.lanes <= at.readable {
                    engine.plain[0][h - 1](&tile);
                } else {
                    engine.edge[h - 1](&tile);
                }
            }
        }
    }
}

/// The block that a task works on: a block of rows and of `k` of one batch.
struct At<'a, T> {
    /// The sides, where the batch starts in them, and in `out`.
    rows: *const u8,
    columns: *const u8,
    out: *mut T,
    /// How many elements of a plain column side follow.
    readable: usize,
    block: Range<usize>,
    /// The panel of its first row: where it starts, and its height.
    panel: (usize, usize),
    /// How many tiles it is.
    tiles: usize,
    panels: &'a [ColumnPanel],
    k: usize,
    count: usize,
}

/// The columns that the tiles of a panel prefetch, a part each.
struct Ahead<T> {
    /// Where the part of the first tile is.
    from: *const T,
    /// As [`Next::step`].
    step: usize,
    /// How many tiles there is something for.
    tiles: usize,
    /// How far it is from the part of a tile to that of the next.
    tile_bytes: usize,
    /// The columns of the panel itself, which are in the first cache: what tiles fetch that have no part.
    columns: *const T,
}

impl<T> Ahead<T> {
    /// The part of tile `number` of the panel; without one, it prefetches its own columns, which are in the first cache.
    fn of(&self, number: usize) -> Next<T> {
        match number < self.tiles {
            true => Next {
                from: self.from.wrapping_byte_add(number * self.tile_bytes),
                step: self.step,
            },
            false => Next {
                from: self.columns,
                step: 0,
            },
        }
    }
}
