//! Prefetching: while a tile computes, it has the caches fetch the rows and columns of the tiles after it.

use super::{At, Run};
use crate::geometry::ColumnPanel;
use crate::partition::{ColumnSource, RowSource};
use crate::simd::HasEngine;
use crate::tile::{LINE, Next};

/// How far ahead what is used once is fetched: as far as memory is slow.
const FETCH_BYTES: usize = 4 << 10;

/// How far ahead anything is fetched: the second cache has to hold it.
const FETCH_MOST: usize = 256 << 10;

impl<T: HasEngine> Run<'_, T> {
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
