//! How a run is divided: what is packed when, and into which tasks.

mod shares;
mod sources;

use std::ops::Range;

use crate::PreparedContraction;
use crate::pack::MOST_POINTS;
use crate::packed::Form;
use crate::padding::LiveBlocks;

/// How the runs of a [`PreparedContraction`] are divided into tasks.
///
/// A run has two phases: [`packing_tasks`](TaskPartition::packing_tasks) tasks pack what all others share, and
/// when they are done, [`tasks`](TaskPartition::tasks) tasks compute. The tasks of a phase are independent of
/// each other. Results are the same bits whatever the division.
#[derive(Debug)]
pub struct TaskPartition {
    pub(crate) rows: RowSource,
    pub(crate) columns: ColumnSource,
    /// The largest block of `k`, and of rows.
    pub(crate) k_block: usize,
    pub(crate) row_block: usize,
    /// How many panels of columns a task packs at a time.
    pub(crate) group: usize,
    /// Whether tiles take coded columns as they are, if there are tiles for the coding.
    pub(crate) in_tiles: bool,
    /// Where blocks of `k` begin in the lists of steps, if tiles leave out padding.
    pub(crate) live: Option<LiveBlocks>,
    pub(crate) parts: Vec<TaskShare>,
    pub(crate) packing: usize,
    element: usize,
    shared: usize,
    worker_rows: usize,
    worker_columns: usize,
    /// The number of the kernel it is for.
    pub(crate) kernel: u64,
    name: String,
}

/// Where a tile's rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowSource {
    Packed,
    /// The operand has them as tiles want them: consecutive, this far from one `k` to the next.
    Direct {
        step: usize,
    },
    /// The operand has them apart; tiles take each element, or word, from where it is.
    Strided,
    /// Each task widens the bytes of its own to 16 bits; tiles take each word from where it is then.
    Widened,
    /// Each task packs its own.
    Own,
    /// Each task makes its own of coded ones.
    Coded,
}

/// Where a tile's columns come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    Packed,
    /// From the operand as it is.
    Plain,
    /// From the operand, in lines of `k`, squares of which tiles lay across themselves: all `k` at once.
    Across,
    /// The first phase packs them.
    Shared,
    /// Each task packs its own, panel by panel.
    Own,
    /// Each task makes its own of coded ones, panel by panel.
    Coded,
}

impl RowSource {
    /// Whether a task has memory for them.
    pub(crate) fn are_own(self) -> bool {
        matches!(self, RowSource::Own | RowSource::Coded | RowSource::Widened)
    }
}

impl ColumnSource {
    /// Whether a task has memory for them.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, ColumnSource::Own | ColumnSource::Coded)
    }
}

/// The share of a task: ranges of the batch, of the rows, and of the column panels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskShare {
    pub(crate) batch: Range<usize>,
    pub(crate) rows: Range<usize>,
    pub(crate) panels: Range<usize>,
    /// The elements of `out` from the first to the last, if those of other tasks do not lie between them.
    pub(crate) region: Option<Range<usize>>,
}

/// The bytes of panels that few rows take one after the other, packed together: they stay in the first cache.
const GROUP_BYTES: usize = 16 << 10;

/// The most rows that a task packs at a time.
const ROW_BLOCK: usize = 1 << 10;

/// Buffers for packing are aligned to cache lines, wherever the memory they are given starts.
pub(crate) const LINE: usize = 64;

impl PreparedContraction {
    /// Plans runs whose operands come in the given forms, in about `tasks` tasks.
    pub fn plan(&self, left: Form, right: Form, tasks: usize) -> TaskPartition {
        let (rows, columns) = self.sides(left, right);
        let (columns, parts) = self.divided(rows, columns, tasks.max(1));
        self.planned(rows, columns, parts, tasks)
    }

    /// Plans runs whose operands come in the given forms, with a task for each of these ranges of `0..`[`rows`]
    /// and all columns; `None` if one of them is empty, or neither lies in one batch nor consists of whole ones.
    ///
    /// [`rows`]: PreparedContraction::rows
    pub fn plan_rows(
        &self,
        left: Form,
        right: Form,
        ranges: &[Range<usize>],
    ) -> Option<TaskPartition> {
        let (rows, columns) = self.sides(left, right);
        let columns = match self.column_source(rows, columns) {
            ColumnSource::Own if self.is_shared_small() && ranges.len() > 1 => ColumnSource::Shared,
            columns => columns,
        };
        let panels = 0..self.columns_of(columns).panels.len();
        let each = self.rows.points.len();
        let share = |range: &Range<usize>| {
            let batch = range.start / each..range.end.div_ceil(each);
            let first = batch.start * each;
            let rows = match batch.len() {
                1 => range.start - first..range.end - first,
                _ => 0..each,
            };
            let is_whole = range.start == first && range.end == batch.end * each;
            let fits = !range.is_empty() && (batch.len() == 1 || is_whole);
            fits.then(|| self.share(columns, batch, rows, panels.clone()))
        };
        let shares = match each == 0 || panels.is_empty() {
            true => Vec::new(),
            false => ranges.iter().map(share).collect::<Option<_>>()?,
        };
        Some(self.planned(rows, columns, shares, ranges.len()))
    }

    /// How many rows all batches have together.
    pub fn rows(&self) -> usize {
        self.batch.points() * self.rows.points.len()
    }

    /// Whether the rows are those of the left operand.
    pub fn rows_are_left(&self) -> bool {
        !self.exchanged
    }

    /// How many elements `n` each row has, if row `r` has those of number `r·n..(r + 1)·n`.
    pub fn dense_rows(&self) -> Option<usize> {
        self.row_length
    }

    /// The forms of the row side and of the column side.
    fn sides(&self, left: Form, right: Form) -> (Form, Form) {
        match self.exchanged {
            true => (right, left),
            false => (left, right),
        }
    }

    /// The plan for these tasks, before which about `tasks` others pack what they share.
    fn planned(
        &self,
        rows: Form,
        columns: ColumnSource,
        parts: Vec<TaskShare>,
        tasks: usize,
    ) -> TaskPartition {
        let panels = &self.columns_of(columns).panels;
        let rows = self.row_source(rows, columns, panels.len());
        let width = self.width(columns);
        let in_tiles = columns == ColumnSource::Coded && self.takes_codes(width);
        let rows_stream = self.rows_stream(rows, columns);
        let makes_columns = columns.is_own() && !in_tiles;
        let k_block = match rows_stream || self.row_panels == 1 && !makes_columns {
            true => self.k,
            false => {
                // A byte may hold codes of two `k`.
                let whole = match self.row_line {
                    0 => 2,
                    words => words,
                };
                self.k_block(columns, width).next_multiple_of(whole)
            }
        };
        let row_block = match rows {
            RowSource::Own | RowSource::Coded => ROW_BLOCK.next_multiple_of(self.height),
            RowSource::Strided if panels.len() > 1 => self.strided_block(k_block),
            RowSource::Widened => self.widened_block(),
            _ if rows_stream => self.height,
            _ => usize::MAX,
        };
        let most_rows = parts.iter().map(|part| part.rows.len()).max().unwrap_or(0);
        // Packing several at a time reads more of each line. Many rows make up for panels that are only in the second
        // cache; those for few rows stay in the first one.
        let panel_bytes = width * k_block * self.element.bytes();
        let in_cache = match self.row_panels > 3 {
            true => usize::MAX,
            false => GROUP_BYTES / panel_bytes.max(1),
        };
        let group = match columns {
            ColumnSource::Coded => 1,
            _ => (MOST_POINTS / width).min(in_cache).max(1),
        };
        let packing = match columns {
            ColumnSource::Shared => tasks.min(self.columns.copies * panels.len()).max(1),
            _ => 0,
        };
        let leaves_out = rows == RowSource::Strided && !in_tiles;
        let live = self.live.as_ref().filter(|_| leaves_out);
        let live = live.map(|live| live.blocks(k_block.max(1), self.k));
        let mut name = self.describe(rows, columns, in_tiles);
        if live.is_some() {
            name.push_str(", without padding");
        }
        TaskPartition {
            rows,
            columns,
            in_tiles,
            live,
            k_block: k_block.max(1),
            row_block,
            group,
            packing: if parts.is_empty() { 0 } else { packing },
            element: self.element.bytes(),
            shared: match columns {
                ColumnSource::Shared => self.packed_columns() * self.columns.copies,
                _ => 0,
            },
            worker_rows: match rows {
                RowSource::Own | RowSource::Coded => most_rows.min(row_block) * k_block,
                RowSource::Widened => self.most_widened(&parts, row_block),
                RowSource::Packed | RowSource::Direct { .. } | RowSource::Strided => 0,
            },
            worker_columns: match makes_columns {
                true => width * k_block * group.min(panels.len()),
                false => 0,
            },
            kernel: self.number,
            parts,
            name,
        }
    }
}

impl TaskPartition {
    /// How many tasks the first phase has: often none.
    pub fn packing_tasks(&self) -> usize {
        self.packing
    }

    /// How many tasks the second phase has: none if `out` is empty.
    pub fn tasks(&self) -> usize {
        self.parts.len()
    }

    /// The elements of `out` from the first to the last that a task of the second phase writes, if no other task writes any
    /// between them.
    pub fn region(&self, task: usize) -> Option<Range<usize>> {
        self.parts[task].region.clone()
    }

    /// The bytes of memory that all tasks of a run share.
    pub fn shared_bytes(&self) -> usize {
        with_slack(self.shared * self.element)
    }

    /// The bytes of memory that a task of the second phase has for itself while it runs.
    pub fn worker_bytes(&self) -> usize {
        with_slack(self.rows_bytes() + self.worker_columns * self.element)
    }

    /// The bytes of a task's packed rows; its packed columns come after them.
    pub(crate) fn rows_bytes(&self) -> usize {
        (self.worker_rows * self.element).next_multiple_of(LINE)
    }

    /// A description of the runs in a few words: instructions, tile, and how each operand is read.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Room for `bytes` from the next cache line on.
pub(crate) fn with_slack(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + LINE - 1 }
}
