//! Prefetching: the next rows of a block of columns are fetched into the cache ahead.
//!
//! A row of a block is a short run, and the next one lies far from it, often in another page: the processor does not
//! foresee that by itself. An instruction that fetches ahead does not fault, wherever it points to: behind the
//! last row it does nothing.

use super::build::{Builder, Run};
use crate::analysis::coefficient::Coefficient;
use crate::vector_ir::ops::{Access, Op};
use vinelift_nest::BufferId;
use vinelift_tensor::ElementType::U8;

/// Buffers of fewer bytes stay in the cache between blocks.
const LARGE: usize = 1 << 19;
/// Bytes that are fetched at once.
const LINE: i32 = 64;
/// Points that prefetches run ahead, and the least and the most rows of a stage that has them.
const POINTS: usize = 256;
const ROWS: [usize; 2] = [2, 16];

impl Builder<'_, '_> {
    /// Takes down a run of a block of columns.
    pub(super) fn note_run(
        &mut self,
        buffer: BufferId,
        access: Access,
        width: i64,
        row_bytes: i64,
    ) {
        // At the example: what is fetched ahead changes nothing but the time.
        let bytes = self.analysis.nest.buf(buffer).byte_len();
        let is_large = bytes.is_some_and(|bytes| bytes >= LARGE);
        if let (Ok(width), Ok(row_bytes)) = (i32::try_from(width), i32::try_from(row_bytes))
            && is_large
            && !self.blocked.is_empty()
        {
            let run = Run {
                access,
                width,
                row_bytes,
            };
            if !self.runs.contains(&run) {
                self.runs.push(run);
            }
        }
    }

    /// Fetches the runs of a row to come, of `points` points.
    pub(super) fn fetch_ahead(&mut self, points: usize) -> Option<()> {
        let rows = (POINTS / points).clamp(ROWS[0], ROWS[1]) as i32;
        let before = self.go_to(ROWS_BLOCK);
        for run in std::mem::take(&mut self.runs) {
            let bytes = run.width.checked_mul(i32::try_from(points).ok()?)?;
            // One that does not begin with a line ends in one more.
            let more = if run.row_bytes % LINE == 0 { 0 } else { LINE };
            let start = run
                .access
                .offset
                .checked_add(run.row_bytes.checked_mul(rows)?)?;
            for at in (0..bytes + more).step_by(LINE as usize) {
                let access = Access {
                    offset: start.checked_add(at)?,
                    ..run.access
                };
                self.add(Op::Prefetch(access), U8, &[]);
            }
        }
        self.go_to(before);
        Some(())
    }
}

/// The loop over rows, among those of a block of columns.
const ROWS_BLOCK: usize = 1;

/// By how many bytes that loop moves a pointer, given those of all loops.
pub(super) fn row_bytes(moves: &[(usize, Coefficient)]) -> Option<i64> {
    let rows = moves.iter().find(|(block, _)| *block == ROWS_BLOCK);
    rows.and_then(|(_, by)| by.number())
}
