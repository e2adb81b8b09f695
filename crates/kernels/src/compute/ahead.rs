//! Prefetching: while a tile computes, it has the caches fetch the rows and columns of the tiles after it.

use super::{At, Run};
use crate::geometry::ColumnPanel;
use crate::partition::{ColumnSource, RowSource};
use crate::simd::HasEngine;
use crate::tile::{LINE, Next};
use std::ops::Range;

/// How far ahead what is used once is fetched: as far as memory is slow.
const FETCH_BYTES: usize = 4 << 10;

/// How far ahead anything is fetched: the second cache has to hold it.
const FETCH_MOST: usize = 256 << 10;

/// The least bytes of a row side that rows are fetched of, where they lie: a smaller one stays in the second cache.
const LEAST_ROWS_BYTES: usize = 512 << 10;

/// The most bytes that are fetched of them at a step.
const MOST_ROW_STEP: usize = LINE;

impl<T: HasEngine> Run<'_, T> {
    /// Says what each tile fetches of the next tile's rows, if tiles read rows from the operand. Only tiles of the first panel of
    /// columns fetch them, in the first block of `k`: later tiles find the rows in the second cache.
    pub(super) fn rows_of_next_tiles(
        &self,
        at: &At<'_, T>,
        panel: &ColumnPanel,
    ) -> Option<RowsAhead<'_, T::Item>> {
        let Run {
            kernel, plan, part, ..
        } = self;
        let is_first = at.k == 0 && panel.first_vector == at.panels[0].first_vector;
        let is_strided = plan.rows == RowSource::Strided && plan.live.is_none();
        // Windows share most of their elements with those before them.
        let (rows, terms) = (kernel.rows.points.len(), kernel.rows.offsets.len());
        let are_apart = kernel.rows.needed >= rows.saturating_mul(terms);
        let streams = kernel.rows.needed * size_of::<T::Item>() >= LEAST_ROWS_BYTES;
        (is_first && is_strided && are_apart && streams).then(|| RowsAhead {
            rows: at.rows.cast(),
            points: &kernel.rows.points[..part.rows.end],
            length: kernel.rows.largest as usize + 1,
            steps: at.count.max(1),
        })
    }

    /// How many elements ahead of a tile rows should be fetched: those of the next tile where they are packed.
    pub(super) fn rows_ahead(&self) -> usize {
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
    pub(super) fn ahead(
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
        if matches!(
            self.plan.columns,
            ColumnSource::Plain | ColumnSource::Across
        ) {
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
}

/// The rows of tiles that have the second cache fetch what the tile after each of them reads first.
pub(super) struct RowsAhead<'a, I> {
    rows: *const I,
    points: &'a [u32],
    /// How many elements it is from the point of a row to the end of what it reads.
    length: usize,
    /// How many steps a tile takes.
    steps: usize,
}

impl<I> RowsAhead<'_, I> {
    /// The elements behind the last one that the tile of these rows reads, as far as the next tile reads: an equal part at each step.
    /// `None` if there is no next tile, or it reads elsewhere.
    pub(super) fn of<T>(&self, rows: &Range<usize>) -> Option<Next<T>> {
        let end = self.points.len().min(rows.end + rows.len());
        let [last, next] = [rows.end, end].map(|end| self.points[end - 1] as usize);
        let count = next.checked_sub(last).filter(|count| *count > 0)?;
        let step = (count * size_of::<I>()).div_ceil(self.steps);
        (step <= MOST_ROW_STEP).then(|| Next {
            from: self.rows.wrapping_add(last + self.length).cast(),
            step: step.div_ceil(size_of::<T>()),
        })
    }
}

/// The columns that the tiles of a panel prefetch, a part each.
pub(super) struct Ahead<T> {
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
    pub(super) fn of(&self, number: usize) -> Next<T> {
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
