//! How a run is divided: what is packed when, and into which tasks.

use std::ops::Range;

use crate::PreparedContraction;
use crate::engine::CODED_ROWS;
use crate::geometry::{ColumnVectors, part_start, parts};
use crate::groups::Spacing;
use crate::pack::MOST_POINTS;
use crate::packed::Form;
use crate::tile::SPREAD_WIDTH;

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
    /// The operand has them apart; tiles take each element from where it is.
    Strided,
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
        matches!(self, RowSource::Own | RowSource::Coded)
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

/// The bytes of packed columns that a tile should find in the first cache.
const PANEL_BYTES: usize = 32 << 10;

/// The bytes of columns that are made of coded ones at a time: the first cache takes them while rows are there.
const MADE_BYTES: usize = 24 << 10;

/// The bytes of columns that the second cache keeps while rows go by.
const STAY_BYTES: usize = 128 << 10;

/// The bytes of panels that few rows take one after the other, packed together: they stay in the first cache.
const GROUP_BYTES: usize = 16 << 10;

/// The most rows that a task packs at a time.
const ROW_BLOCK: usize = 1 << 10;

/// The bytes of rows that the second cache keeps while panels of columns go by.
const ROW_BYTES: usize = 256 << 10;

/// The most rows of a tile that takes their elements from where they are.
const STRIDED_ROWS: usize = 8;

/// The most bytes that the first phase packs.
const SHARED_BYTES: usize = 256 << 20;

/// Buffers for packing are aligned to cache lines, wherever the memory they are given starts.
pub(crate) const LINE: usize = 64;

impl PreparedContraction {
    /// Plans runs whose operands come in the given forms, in about `tasks` tasks.
    pub fn plan(&self, left: Form, right: Form, tasks: usize) -> TaskPartition {
        let (rows, columns) = self.sides(left, right);
        let (columns, parts) = self.divided(columns, tasks.max(1));
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
        let columns = match self.column_source(columns) {
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

    /// About `count` ranges that cover `0..`[`rows`](PreparedContraction::rows), for
    /// [`plan_rows`](PreparedContraction::plan_rows): whole batches, or whole tiles of one; each of at least `least` rows, if
    /// there are as many.
    pub fn row_ranges(&self, count: usize, least: usize) -> Vec<Range<usize>> {
        let (batch, rows) = (self.batch.points(), self.rows.points.len());
        if batch == 0 || rows == 0 {
            return Vec::new();
        }
        // Of parts of `panels / each` tiles, none has fewer rows than as many of the lower ones.
        let most = self.row_panels / least.max(1).div_ceil(self.low);
        if count <= batch || most <= 1 {
            let most = batch / least.max(1).div_ceil(rows);
            let parts = parts(batch, count.min(most).max(1));
            return parts.map(|p| p.start * rows..p.end * rows).collect();
        }
        let each = count.div_ceil(batch).min(most);
        let start = |part| {
            let panel = part_start(self.row_panels, each, part);
            part_start(rows, self.row_panels, panel)
        };
        let of_batch =
            |b: usize| (0..each).map(move |p| b * rows + start(p)..b * rows + start(p + 1));
        (0..batch).flat_map(of_batch).collect()
    }

    /// Whether the rows are those of the left operand.
    pub fn rows_are_left(&self) -> bool {
        !self.exchanged
    }

    /// How many elements `n` each row has, if row `r` has those of number `r·n..(r + 1)·n`.
    pub fn dense_rows(&self) -> Option<usize> {
        self.row_length
    }

    /// The elements of the row side that a task reads, if its rows are [dense](PreparedContraction::dense_rows).
    pub(crate) fn row_elements(&self, part: &TaskShare) -> Option<Range<usize>> {
        let row = |batch: usize, row: usize| batch * self.rows.points.len() + row;
        let length = self.row_length?;
        let start = row(part.batch.start, part.rows.start) * length;
        Some(start..row(part.batch.end - 1, part.rows.end) * length)
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
            // A byte may hold codes of two `k`.
            false => self.k_block(columns, width).next_multiple_of(2),
        };
        let row_block = match rows {
            RowSource::Own | RowSource::Coded => ROW_BLOCK.next_multiple_of(self.height),
            RowSource::Strided if panels.len() > 1 => self.strided_block(k_block),
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
        let name = self.describe(rows, columns, in_tiles);
        TaskPartition {
            rows,
            columns,
            in_tiles,
            k_block: k_block.max(1),
            row_block,
            group,
            packing: if parts.is_empty() { 0 } else { packing },
            element: self.element.bytes(),
            shared: match columns {
                ColumnSource::Shared => self.packed_columns() * self.columns.copies,
                _ => 0,
            },
            worker_rows: match rows.are_own() {
                true => most_rows.min(row_block) * k_block,
                false => 0,
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

    /// Where tiles get their columns from, and what each of about this many tasks does.
    fn divided(&self, columns: Form, tasks: usize) -> (ColumnSource, Vec<TaskShare>) {
        let columns = self.column_source(columns);
        let parts = self.parts(columns, tasks);
        let share_columns = parts
            .iter()
            .any(|part| part.rows.len() < self.rows.points.len());
        match columns {
            ColumnSource::Own if share_columns && self.is_shared_small() => {
                (ColumnSource::Shared, parts)
            }
            columns => (columns, parts),
        }
    }

    /// Where tiles get columns of a form from, if each task has some of its own.
    fn column_source(&self, columns: Form) -> ColumnSource {
        match columns {
            Form::Packed => ColumnSource::Packed,
            Form::Coded => ColumnSource::Coded,
            Form::Plain if self.narrow.is_none() && self.plain_pays() => ColumnSource::Plain,
            Form::Plain => ColumnSource::Own,
        }
    }

    /// Whether the first phase may pack the columns of all batches.
    fn is_shared_small(&self) -> bool {
        let bytes = self
            .packed_columns()
            .checked_mul(self.columns.copies * self.element.bytes());
        bytes.is_some_and(|bytes| bytes <= SHARED_BYTES)
    }

    /// Whether many packed rows go by once: if the second cache has room for all columns.
    fn rows_stream(&self, rows: RowSource, columns: ColumnSource) -> bool {
        rows == RowSource::Packed
            && columns == ColumnSource::Plain
            && self.columns.needed * self.element.bytes() <= STAY_BYTES
            && self.packed_rows() * self.element.bytes() > 2 * STAY_BYTES
    }

    /// The columns of the widest panel of those that come from `source`, with the lanes that are left over.
    fn width(&self, source: ColumnSource) -> usize {
        let vectors = self.columns_of(source).panels.iter().map(|p| p.vectors);
        vectors.max().unwrap_or(1) as usize * self.lanes
    }

    /// The most rows whose elements, `k_block` of each at a time, the second cache keeps.
    fn strided_block(&self, k_block: usize) -> usize {
        let rows = self.rows.points.len();
        // Rows may share elements, as windows of a picture do.
        let each = (self.rows.needed / rows.max(1)).clamp(1, k_block.max(1));
        let most = ROW_BYTES / (each * self.element.bytes());
        match most >= rows {
            true => usize::MAX,
            false => most.max(1).next_multiple_of(self.height),
        }
    }

    /// Where tiles get their rows from, with this many panels of columns from `columns`.
    fn row_source(&self, rows: Form, columns: ColumnSource, panels: usize) -> RowSource {
        // Each panel has the lines of all `k` fetched anew.
        let most_direct = match self.rows.spacing {
            Spacing::Crowded => 2,
            Spacing::Runs | Spacing::Apart => 4,
        };
        let direct = match (self.rows.points.len(), self.rows.line, self.rows.k_line) {
            _ if self.group > 1 => None,
            (1, _, Some(step)) => Some(step),
            (_, Some(1), Some(step)) if panels <= most_direct => Some(step),
            _ => None,
        };
        match (rows, direct) {
            (Form::Packed, _) => RowSource::Packed,
            (Form::Coded, _) => RowSource::Coded,
            (Form::Plain, Some(step)) => RowSource::Direct { step },
            (Form::Plain, None) if self.strided_rows_pay(columns, panels) => RowSource::Strided,
            (Form::Plain, None) => RowSource::Own,
        }
    }

    /// Whether it is cheaper to take elements of rows from where they are than to pack them for this many panels of columns.
    fn strided_rows_pay(&self, columns: ColumnSource, panels: usize) -> bool {
        let has_tiles = match columns {
            ColumnSource::Plain => false,
            ColumnSource::Coded if self.takes_codes(self.width(columns)) => false,
            _ => self.group == 1 && self.spread(columns) == 1,
        };
        // Tiles have a register for the address of each row.
        let fits = self.height <= STRIDED_ROWS || self.lanes == 16 && self.width(columns) == 16;
        has_tiles
            && fits
            && match self.rows.spacing {
                Spacing::Runs => true,
                Spacing::Apart => panels <= 8,
                Spacing::Crowded => false,
            }
    }

    /// The length of blocks of `k`, as equal as possible, whose panels of `width` columns the cache has room for.
    fn k_block(&self, columns: ColumnSource, width: usize) -> usize {
        let bytes = match columns {
            ColumnSource::Coded => MADE_BYTES,
            // Loading and storing sums that lie apart takes as long as many steps.
            ColumnSource::Packed if self.scatter.is_some() => 4 * PANEL_BYTES,
            _ => PANEL_BYTES,
        };
        let most = (bytes / (width * self.element.bytes())).max(64);
        // A little more is better than another block.
        self.k.div_ceil(self.k.div_ceil(most + most / 4).max(1))
    }

    /// How many packed panels the tiles of all rows take at once: several if there are few rows, or one.
    pub(crate) fn spread(&self, source: ColumnSource) -> usize {
        let is_packed = matches!(source, ColumnSource::Packed | ColumnSource::Coded);
        match is_packed && self.row_panels == 1 {
            true => self.panels_at_once,
            false => 1,
        }
    }

    /// Whether tiles take panels of `width` coded columns as they are: there are so few rows that each code is met once.
    fn takes_codes(&self, width: usize) -> bool {
        let has_tiles = self.has_coded_tiles && width <= SPREAD_WIDTH * self.lanes;
        has_tiles && self.row_panels == 1 && self.height <= CODED_ROWS
    }

    /// The panels of columns that come from `source`.
    pub(crate) fn columns_of(&self, source: ColumnSource) -> &ColumnVectors {
        match source {
            ColumnSource::Plain => &self.plain,
            ColumnSource::Packed
            | ColumnSource::Shared
            | ColumnSource::Own
            | ColumnSource::Coded => &self.packed,
        }
    }

    /// Whether it is cheaper to compute from the columns as they are than to pack them.
    fn plain_pays(&self) -> bool {
        let (plain, packed) = (self.plain.vectors.len(), self.packed.vectors.len());
        if self.scatter.is_some() || self.group > 1 {
            return false;
        }
        // In cycles for each `k`: two vectors of a row are computed in one, if the loads allow, and a
        // vector is packed in five if it comes from a few loads or lines are laid across.
        let more =
            plain.saturating_sub(packed) as f64 * (self.rows.points.len() as f64 / 2.0).max(1.5);
        // Lines a multiple of a page apart crowd the same few places of the first cache, and tiles
        // of few vectors use little of each.
        const PAGE: usize = 4096;
        // As many tiles as make up for packing.
        let many_tiles = self.row_panels > 2;
        let step = self.columns.k_line.unwrap_or(0) * self.element.bytes();
        if step > 0 && step.is_multiple_of(PAGE) && self.k >= 8 && many_tiles {
            return false;
        }
        let few = plain <= 3 * packed || self.columns.k_line == Some(1);
        let packing = packed as f64 * if few { 5.0 } else { 16.0 };
        more <= packing
    }

    /// Divides the batch, then the rows, unless there are too few of them or each task packs the columns
    /// that it takes: then those.
    fn parts(&self, source: ColumnSource, tasks: usize) -> Vec<TaskShare> {
        let columns = self.columns_of(source);
        let (batch, rows, panels) = (
            self.batch.points(),
            self.rows.points.len(),
            columns.panels.len(),
        );
        if batch == 0 || rows == 0 || panels == 0 {
            return Vec::new();
        }
        let part = |batch, rows, panels| self.share(source, batch, rows, panels);
        if tasks <= batch && (batch % tasks == 0 || batch >= 4 * tasks) {
            return parts(batch, tasks)
                .map(|batch| part(batch, 0..rows, 0..panels))
                .collect();
        }
        let each = if tasks <= batch {
            2
        } else {
            tasks.div_ceil(batch)
        };
        let of_columns = source.is_own() && panels >= each;
        let row_parts = match of_columns {
            true => 1,
            false if panels >= each && self.row_panels < each => 1,
            false => each.min(self.row_panels),
        };
        let column_parts = each.div_ceil(row_parts).min(panels);
        // Tiles of few rows take several panels.
        let unit = self.spread(source);
        let units = panels.div_ceil(unit);
        let row_start = |part| {
            part_start(
                rows,
                self.row_panels,
                part_start(self.row_panels, row_parts, part),
            )
        };
        let mut divided = Vec::new();
        for at in 0..batch {
            for number in 0..row_parts {
                let rows = row_start(number)..row_start(number + 1);
                for part_units in parts(units, column_parts.min(units)) {
                    let panels = part_units.start * unit..panels.min(part_units.end * unit);
                    divided.push(part(at..at + 1, rows.clone(), panels));
                }
            }
        }
        divided
    }

    fn share(
        &self,
        source: ColumnSource,
        batch: Range<usize>,
        rows: Range<usize>,
        panels: Range<usize>,
    ) -> TaskShare {
        let region = self.region(self.columns_of(source), &batch, &rows, &panels);
        TaskShare {
            batch,
            rows,
            panels,
            region,
        }
    }

    /// The elements of `out` from the first to the last that a part writes, if no other writes any between them.
    fn region(
        &self,
        columns: &ColumnVectors,
        batch: &Range<usize>,
        rows: &Range<usize>,
        panels: &Range<usize>,
    ) -> Option<Range<usize>> {
        let whole_rows = panels.len() == columns.panels.len();
        let whole_batch = whole_rows && rows.len() == self.rows.points.len();
        if !(rows.len() == 1 || whole_rows) || !(batch.len() == 1 || whole_batch) {
            return None;
        }
        let (first, last) = (columns.panels[panels.start], columns.panels[panels.end - 1]);
        let [batch_pitch, row_pitch] = self.out_pitches?;
        let row = |batch: usize, row: usize| batch * batch_pitch + row * row_pitch;
        let end = (last.first_column + last.columns) as usize;
        Some(
            row(batch.start, rows.start) + first.first_column as usize
                ..row(batch.end - 1, rows.end - 1) + end,
        )
    }

    fn describe(&self, rows: RowSource, columns: ColumnSource, in_tiles: bool) -> String {
        let width = self.width(columns);
        let [row_side, column_side] = if self.exchanged {
            ["right", "left"]
        } else {
            ["left", "right"]
        };
        let rows = match rows {
            RowSource::Packed => "packed",
            RowSource::Direct { .. } => "direct",
            RowSource::Strided => "strided",
            RowSource::Own => "packed in tasks",
            RowSource::Coded => "decoded in tasks",
        };
        let columns = match columns {
            ColumnSource::Packed => "packed",
            ColumnSource::Plain => "direct",
            ColumnSource::Shared => "packed first",
            ColumnSource::Own => "packed in tasks",
            ColumnSource::Coded if in_tiles => "decoded in tiles",
            ColumnSource::Coded => "decoded in tasks",
        };
        let scatter = if self.scatter.is_some() {
            ", scattered"
        } else {
            ""
        };
        format!(
            "{} {}x{width}, {row_side} {rows}, {column_side} {columns}{scatter}",
            self.isa, self.height,
        )
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
fn with_slack(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + LINE - 1 }
}
