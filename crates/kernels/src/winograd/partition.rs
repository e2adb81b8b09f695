//! How a run is divided into tasks: by rows of tiles.

use super::WinogradConvolution;
use crate::geometry::shares;
use crate::partition::{LINE, with_slack};
use crate::winograd_tile::POSITIONS;
use std::ops::Range;

/// How the runs of a [`WinogradConvolution`] are divided into tasks, which are independent of each other. Results are the same
/// whatever the division.
#[derive(Debug)]
pub struct WinogradPartition {
    /// The number of the convolution it is for.
    pub(super) kernel: u64,
    /// The rows of tiles of each task: those of all pictures are counted.
    pub(super) shares: Vec<Range<usize>>,
    regions: Option<Vec<Range<usize>>>,
    worker_bytes: usize,
}

impl WinogradConvolution {
    /// Plans runs of at most `tasks` tasks.
    pub fn plan(&self, tasks: usize) -> WinogradPartition {
        let rows = self.tile_rows();
        let shares: Vec<Range<usize>> = shares(rows, tasks.clamp(1, rows.max(1)))
            .filter(|rows| !rows.is_empty())
            .collect();
        let region = |rows: &Range<usize>| match shares.len() {
            1 => Some(0..self.convolution.out_needed),
            _ => Some(self.first_result(rows.start)?..self.first_result(rows.end)?),
        };
        let regions = shares.iter().map(region).collect();
        WinogradPartition {
            kernel: self.number,
            regions,
            shares,
            worker_bytes: self.worker().bytes,
        }
    }

    /// How many rows of tiles all pictures have.
    fn tile_rows(&self) -> usize {
        self.convolution.pictures.points() * self.convolution.tiles()[0]
    }

    /// Where in `out` the results of a row of tiles begin, if all are dense.
    fn first_result(&self, row: usize) -> Option<usize> {
        let picture = self.convolution.dense_picture()?;
        let rows = self.convolution.tiles()[0];
        Some(row / rows * picture + row % rows * 2 * self.convolution.out_steps[0])
    }

    /// The memory of a task.
    pub(super) fn worker(&self) -> Worker {
        let pixels = POSITIONS * self.block * self.convolution.channels * size_of::<i16>();
        let sums = POSITIONS * self.block * self.engine.width() * size_of::<i32>();
        let sums_at = pixels.next_multiple_of(LINE);
        let zeros_at = (sums_at + sums).next_multiple_of(LINE);
        Worker {
            sums_at,
            zeros_at,
            bytes: zeros_at + self.convolution.zeros(),
        }
    }
}

/// Where in the memory of a task the sums are, which come after the transformed pixels, and a pixel of zeros.
pub(super) struct Worker {
    pub(super) sums_at: usize,
    pub(super) zeros_at: usize,
    bytes: usize,
}

impl WinogradPartition {
    /// How many tasks there are: none if `out` is empty.
    pub fn tasks(&self) -> usize {
        self.shares.len()
    }

    /// The elements of `out` from the first to the last that a task writes, if no other task writes any between them.
    pub fn region(&self, task: usize) -> Option<Range<usize>> {
        self.regions.as_ref().map(|regions| regions[task].clone())
    }

    /// The bytes of memory that a task has for itself while it runs.
    pub fn worker_bytes(&self) -> usize {
        with_slack(self.worker_bytes)
    }
}
