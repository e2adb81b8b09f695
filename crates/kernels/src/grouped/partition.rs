//! How a run is divided into tasks: by columns.

use super::{GroupedProduct, RowTiles};
use crate::geometry::shares;
use crate::grouped_tile::{MOST_ROWS, PANEL};
use crate::partition::with_slack;
use std::ops::Range;

/// How the runs of a [`GroupedProduct`] are divided into tasks, which are independent of each other. Results are the same
/// bits whatever the division.
#[derive(Debug)]
pub struct GroupedPartition {
    /// The number of the product it is for.
    pub(super) kernel: u64,
    /// The panels of each task.
    pub(super) shares: Vec<Range<usize>>,
    /// How many rows a task takes at a time.
    pub(super) row_block: usize,
    columns: usize,
    /// Whether all of `out` is one row, whose columns lie side by side.
    is_one_row: bool,
    worker_bytes: usize,
}

/// The bytes of rows that a task takes at a time: they stay in the second cache while panels go by.
const ROW_BYTES: usize = 128 << 10;

/// The fewest rows of bytes that a task takes at a time: panels come from memory for each of these. Of floats these are more, as
/// elements are made for them.
const FEWEST_ROWS: usize = 32;
const FEWEST_FLOAT_ROWS: usize = 128;

impl GroupedProduct {
    /// Plans runs of at most `tasks` tasks.
    pub fn plan(&self, tasks: usize) -> GroupedPartition {
        let rows = self.rows.points();
        // Tiles of few rows take several panels.
        let unit = self.tiles.panels_of(self.code, rows);
        let panels = if rows == 0 { 0 } else { self.shape.panels() };
        let units = panels.div_ceil(unit);
        let shares = shares(units, tasks.clamp(1, units.max(1)))
            .map(|part| part.start * unit..panels.min(part.end * unit))
            .filter(|panels| !panels.is_empty());
        let (fewest, row_bytes) = match &self.tiles {
            RowTiles::Bytes(_) => (FEWEST_ROWS, self.shape.k),
            RowTiles::Floats(_) => (FEWEST_FLOAT_ROWS, self.shape.k * size_of::<f32>()),
        };
        let most = (ROW_BYTES / row_bytes.max(1)).max(fewest);
        let row_block = match panels {
            0 => 0,
            _ => most.next_multiple_of(MOST_ROWS).min(rows),
        };
        GroupedPartition {
            kernel: self.number,
            shares: shares.collect(),
            row_block: row_block.max(1),
            columns: self.shape.n,
            is_one_row: rows == 1 && self.block == self.shape.n,
            worker_bytes: match &self.tiles {
                RowTiles::Bytes(_) => row_block * self.groups() * size_of::<i32>(),
                RowTiles::Floats(tiling) => tiling.worker(row_block.max(1)).bytes(),
            },
        }
    }
}

impl GroupedPartition {
    /// How many tasks there are: none if `out` is empty.
    pub fn tasks(&self) -> usize {
        self.shares.len()
    }

    /// The elements of `out` that a task writes, if there is one row.
    pub fn region(&self, task: usize) -> Option<Range<usize>> {
        let Range { start, end } = self.shares[task];
        self.is_one_row
            .then(|| start * PANEL..self.columns.min(end * PANEL))
    }

    /// The bytes of memory that a task has for itself while it runs.
    pub fn worker_bytes(&self) -> usize {
        with_slack(self.worker_bytes)
    }
}
