//! The shares of tasks.

use super::{ColumnSource, RowSource, TaskShare};
use crate::PreparedContraction;
use crate::geometry::{ColumnVectors, part_start, share_start, shares};
use crate::packed::Form;
use std::ops::Range;

/// The most bytes of packed columns that stay in the second cache while other rows go on with them.
const CACHED_COLUMNS: usize = 1 << 18;

/// The least rows for which columns come from further away, packed.
const LEAST_ROWS: usize = 24;

/// The same of columns that are read where they lie, where each `k` may be in a page of its own.
const LEAST_ROWS_OF_PLAIN: usize = 96;

impl PreparedContraction {
    /// About `count` ranges that cover `0..`[`rows`](PreparedContraction::rows), for
    /// [`plan_rows`](PreparedContraction::plan_rows): whole batches, or parts of one; each of at least `least` rows, if
    /// there are as many. Parts are multiples of `unit` rows if a batch is, and otherwise whole tiles.
    pub fn row_ranges(&self, count: usize, least: usize, unit: usize) -> Vec<Range<usize>> {
        let (batch, rows) = (self.batch.points(), self.rows.points.len());
        if batch == 0 || rows == 0 {
            return Vec::new();
        }
        let unit = (unit > 1 && rows.is_multiple_of(unit)).then_some(unit);
        let most = match unit {
            Some(unit) => rows / unit / least.max(1).div_ceil(unit),
            // Of parts of `panels / each` tiles, none has fewer rows than as many of the lower ones.
            None => self.row_panels / least.max(1).div_ceil(self.low),
        };
        if count <= batch || most <= 1 {
            let most = batch / least.max(1).div_ceil(rows);
            let batches = shares(batch, count.min(most).max(1));
            return batches.map(|b| b.start * rows..b.end * rows).collect();
        }
        let each = count.div_ceil(batch).min(most);
        let start = |part| match unit {
            Some(unit) => share_start(rows / unit, each, part) * unit,
            None => {
                let panel = share_start(self.row_panels, each, part);
                part_start(rows, self.row_panels, panel)
            }
        };
        let of_batch =
            |b: usize| (0..each).map(move |p| b * rows + start(p)..b * rows + start(p + 1));
        (0..batch).flat_map(of_batch).collect()
    }

    /// The elements of the row side that a task reads, if its rows are [dense](PreparedContraction::dense_rows).
    pub(crate) fn row_elements(&self, part: &TaskShare) -> Option<Range<usize>> {
        let row = |batch: usize, row: usize| batch * self.rows.points.len() + row;
        let length = self.row_length?;
        let start = row(part.batch.start, part.rows.start) * length;
        Some(start..row(part.batch.end - 1, part.rows.end) * length)
    }

    /// Where tiles get their columns from, and what each of about this many tasks does.
    pub(super) fn divided(
        &self,
        rows: Form,
        columns: Form,
        tasks: usize,
    ) -> (ColumnSource, Vec<TaskShare>) {
        let columns = self.column_source(rows, columns);
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
            return shares(batch, tasks)
                .map(|batch| part(batch, 0..rows, 0..panels))
                .collect();
        }
        let each = if tasks <= batch {
            2
        } else {
            tasks.div_ceil(batch)
        };
        // Tiles of few rows take several panels.
        let unit = self.spread(source);
        let units = panels.div_ceil(unit);
        let of_columns = source.is_own() && panels >= each;
        let row_parts = match of_columns {
            true => 1,
            false if panels >= each && self.row_panels < each => 1,
            false => self.row_parts(each, units),
        };
        let column_parts = each.div_ceil(row_parts).min(panels);
        let row_start = |part| {
            part_start(
                rows,
                self.row_panels,
                share_start(self.row_panels, row_parts, part),
            )
        };
        let mut divided = Vec::new();
        for at in 0..batch {
            for number in 0..row_parts {
                let rows = row_start(number)..row_start(number + 1);
                for part_units in shares(units, column_parts.min(units)) {
                    let panels = part_units.start * unit..panels.min(part_units.end * unit);
                    divided.push(part(at..at + 1, rows.clone(), panels));
                }
            }
        }
        divided
    }

    /// Into how many parts the rows are divided among `each` tasks, each of which takes its share of `units` of columns: every
    /// part has all columns pass by, which pays for enough rows alone if they come from memory or the third cache.
    fn row_parts(&self, each: usize, units: usize) -> usize {
        let mut parts = each.min(self.row_panels);
        while parts > self.most_row_parts() {
            let fewer = match parts % 2 {
                0 => parts / 2,
                _ => parts - 1,
            };
            if each.div_ceil(fewer) > units {
                break;
            }
            parts = fewer;
        }
        parts
    }

    /// Into how many parts the rows of a batch may be divided, so that having all columns pass by for each pays.
    fn most_row_parts(&self) -> usize {
        let least = match self.plain_vectors {
            Some(_) => LEAST_ROWS_OF_PLAIN,
            None => LEAST_ROWS,
        };
        match self.columns_stay_cached() {
            true => self.row_panels.max(1),
            false => (self.rows.points.len() / least).max(1),
        }
    }

    /// In how many tasks a run may be that each take all columns, so that having these pass by for each pays.
    pub fn most_row_tasks(&self) -> usize {
        self.batch.points().saturating_mul(self.most_row_parts())
    }

    /// Whether the packed columns of a batch stay in the second cache while other rows go on with them, so that they may pass by
    /// for a few rows at a time.
    pub fn columns_stay_cached(&self) -> bool {
        self.packed_columns() * self.element.bytes() <= CACHED_COLUMNS
    }

    pub(super) fn share(
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

    pub(super) fn describe(
        &self,
        rows: RowSource,
        columns: ColumnSource,
        in_tiles: bool,
    ) -> String {
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
            RowSource::Widened => "widened in tasks",
            RowSource::Own => "packed in tasks",
            RowSource::Coded => "decoded in tasks",
        };
        let columns = match columns {
            ColumnSource::Packed => "packed",
            ColumnSource::Plain => "direct",
            ColumnSource::Across => "laid across in tiles",
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
