//! One task of a run: blocks of rows and `k`, panels of columns, tiles.

mod ahead;
mod made;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::PreparedContraction;
use crate::coded::Coded;
use crate::engine::Engine;
use crate::geometry::{ColumnPanel, parts};
use crate::partition::{ColumnSource, RowSource, TaskPartition, TaskShare};
use crate::points::PointsAt;
use crate::prepared::RowTile;
use crate::simd::HasEngine;
use crate::tile::{Next, SPREAD_WIDTH, Tile};

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
            let widened = match plan.rows {
                // SAFETY: `own_rows` has room for the words of a block of rows.
                RowSource::Widened => unsafe { self.widen_rows(rows, block.clone()) },
                _ => 0,
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
                        widened,
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
        if matches!(plan.rows, RowSource::Own | RowSource::Coded) {
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
        let lanes = self.kernel.lanes;
        let fits =
            |panel: &ColumnPanel| panel.is_whole(lanes) && panel.vectors as usize == SPREAD_WIDTH;
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
        let next_rows = self.rows_of_next_tiles(at, panel);
        let is_strided = matches!(plan.rows, RowSource::Strided | RowSource::Widened);
        let steps = kernel.row_steps();
        if is_strided {
            // All tiles take theirs from here.
            let all = RowTile {
                rows: at.block.clone(),
                panel: at.panel,
            };
            (tile.rows, tile.rows_step) = self.rows(at, &all);
            tile.row_steps = steps[at.k..at.k + at.count].as_ptr();
        }
        for (number, row_tile) in kernel.row_tiles(at.block.clone(), at.panel).enumerate() {
            let h = row_tile.rows.len();
            match is_strided {
                true => tile.row_points = kernel.rows.points[row_tile.rows.clone()].as_ptr(),
                false => (tile.rows, tile.rows_step) = self.rows(at, &row_tile),
            }
            tile.row_offsets = kernel.row_out[row_tile.rows.clone()].as_ptr();
            if let Some(live) = self.live_steps(at, &row_tile) {
                let width = n * kernel.lanes;
                let tile = Tile {
                    k: live.len(),
                    row_steps: steps.as_ptr(),
                    live: live.as_ptr(),
                    columns: tile.columns.wrapping_sub(at.k * width),
                    ..tile
                };
                // SAFETY: the caller's; all steps are of the block, and the micro-kernel is for as many rows and vectors.
                unsafe { engine.live[n - 1][h - 1](&tile) }
                continue;
            }
            let rows = next_rows.as_ref().and_then(|next| next.of(&row_tile.rows));
            tile.next = rows.unwrap_or_else(|| ahead.of(number));
            // SAFETY: the caller's; each micro-kernel is for as many rows and vectors as the tile has.
            unsafe {
                match coded {
                    Some(code) => self.coded_tiles(code).packed[n - 1][h - 1](&tile),
                    _ if plan.columns == ColumnSource::Plain => {
                        self.plain_tile(at, panel, &tile, h)
                    }
                    _ if plan.columns == ColumnSource::Across => self.across_tiles(panel, &tile, h),
                    _ if is_strided => engine.strided[n - 1][h - 1](&tile),
                    _ => engine.packed[n - 1][h - 1](&tile),
                }
            }
        }
    }

    /// The steps that a tile of a block takes, if padding is left out of it.
    fn live_steps(&self, at: &At<'_, T>, tile: &RowTile) -> Option<&[u32]> {
        let blocks = self.plan.live.as_ref()?;
        let panel = self.kernel.row_panel_number(tile.panel.0);
        let live = self.kernel.live.as_ref()?;
        live.steps(panel, at.k / self.plan.k_block, blocks)
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
            live: std::ptr::null(),
            row_line: kernel.row_line,
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
            column_points: std::ptr::null(),
            column_count: 0,
            vectors: vectors.as_ptr(),
            out: at.out,
            row_offsets: std::ptr::null(),
            scatter: kernel
                .scatter
                .as_ref()
                .map_or(std::ptr::null(), |table| table.as_ptr()),
            last: panel.last.into(),
            fresh: at.k == 0,
        };
        if matches!(plan.columns, ColumnSource::Plain | ColumnSource::Across) {
            tile.offsets = kernel.columns.offsets[at.k..at.k + at.count].as_ptr();
        }
        if plan.columns == ColumnSource::Across {
            let columns =
                panel.first_column as usize..(panel.first_column + panel.columns) as usize;
            tile.column_points = kernel.columns.points[columns].as_ptr();
            tile.column_count = panel.columns as usize;
        }
        tile
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
            RowSource::Widened => {
                let first: *const i16 = self.own_rows.cast();
                (first.wrapping_sub(at.widened).cast(), 0)
            }
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
            ColumnSource::Plain | ColumnSource::Across => columns.cast(),
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
                let tile = Tile {
                    vectors,
                    last: match panel.is_whole(kernel.lanes) {
                        true => kernel.lanes,
                        false => 0,
                    },
                    ..*tile
                };
                if last + (*vectors).from as usize + kernel.lanes <= at.readable {
                    engine.plain[0][h - 1](&tile);
                } else {
                    engine.edge[h - 1](&tile);
                }
            }
        }
    }

    /// Computes a tile of columns that it lays across, as many vectors at a time as registers are enough for.
    ///
    /// # Safety
    /// as [`PreparedContraction::run_task`].
    unsafe fn across_tiles(&self, panel: &ColumnPanel, tile: &Tile<T>, h: usize) {
        let lanes = self.kernel.lanes;
        let tiles = self.engine.across[h - 1];
        let mut first = 0;
        for vectors in parts(
            panel.vectors as usize,
            (panel.vectors as usize).div_ceil(tiles.len()),
        ) {
            let n = vectors.len();
            let is_last = vectors.end == panel.vectors as usize;
            let part = Tile {
                vectors: tile.vectors.wrapping_add(vectors.start),
                column_points: tile.column_points.wrapping_add(first),
                column_count: (tile.column_count - first).min(n * lanes),
                last: match is_last || tile.last == 0 {
                    true => tile.last,
                    false => lanes,
                },
                ..*tile
            };
            // SAFETY: the caller's; the micro-kernel is for as many rows and vectors, all but the last of which are of whole lanes.
            unsafe { tiles[n - 1](&part) }
            first += n * lanes;
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
    /// The number of the first element of `own_rows`, where these are widened.
    widened: usize,
}
