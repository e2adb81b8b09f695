//! Where tasks find their rows and columns: what pays for the caches of the machine.

use super::{ColumnSource, LINE, RowSource, TaskShare};
use crate::engine::{ADDRESSED_ROWS, CODED_ROWS};
use crate::geometry::ColumnVectors;
use crate::groups::Spacing;
use crate::packed::Form;
use crate::tile::SPREAD_WIDTH;
use crate::{Isa, PreparedContraction};
use std::ops::Range;

/// The bytes of packed columns that a tile should find in the first cache.
const PANEL_BYTES: usize = 32 << 10;

/// The bytes of columns that are made of coded ones at a time: the first cache takes them while rows are there.
const MADE_BYTES: usize = 24 << 10;

/// The bytes of columns that the second cache keeps while rows go by.
const STAY_BYTES: usize = 128 << 10;

/// The bytes of rows that the second cache keeps while panels of columns go by.
const ROW_BYTES: usize = 256 << 10;

/// The first cache: its sets hold eight lines each, of which rows take at most seven and columns one.
const FIRST_CACHE: Sets = Sets {
    span: 4 << 10,
    lines: 7,
};

/// The second cache: its sets hold eight lines each. One row more than that costs less than packing all rows.
const SECOND_CACHE: Sets = Sets {
    span: 128 << 10,
    lines: 9,
};

/// The sets of a cache.
struct Sets {
    /// Lines that are this many bytes apart are in the same set.
    span: usize,
    /// How many lines of a set rows may take.
    lines: usize,
}

impl Sets {
    /// Whether they have room for a line of each of `rows` that are `step` bytes apart.
    fn have_room(&self, rows: usize, step: usize) -> bool {
        // Rows without a step between them are in one line.
        let places = self.span / (1 << self.span.trailing_zeros().min(step.trailing_zeros()));
        step == 0 || rows <= self.lines * places
    }
}

/// The most bytes that the first phase packs.
const SHARED_BYTES: usize = 256 << 20;

impl PreparedContraction {
    /// The elements of some rows, and those between them.
    pub(crate) fn elements_of(&self, rows: Range<usize>) -> Range<usize> {
        let points = &self.rows.points[rows];
        let (first, last) = match self.rows.ordered_points {
            true => (points.first(), points.last()),
            false => (points.iter().min(), points.iter().max()),
        };
        let of = |point: Option<&u32>| point.map_or(0, |point| *point as usize);
        of(first)..of(last) + self.rows.largest as usize + 1
    }

    /// The most words of blocks of `block` rows of these tasks.
    pub(super) fn most_widened(&self, parts: &[TaskShare], block: usize) -> usize {
        let starts = |part: &TaskShare| part.rows.clone().step_by(block);
        let blocks = parts.iter().flat_map(|part| {
            starts(part).map(|start| start..part.rows.end.min(start.saturating_add(block)))
        });
        let elements = blocks.map(|rows| self.elements_of(rows).len()).max();
        elements.map_or(0, |elements| elements.div_ceil(self.group))
    }

    /// Whether tiles read plain columns where these lie, for some form of the rows.
    pub(crate) fn reads_plain_columns(&self) -> bool {
        !self.laying_across_pays() && self.plain_pays()
    }

    /// Where tiles get columns of a form from, if each task has some of its own, and rows come in the other.
    pub(super) fn column_source(&self, rows: Form, columns: Form) -> ColumnSource {
        match columns {
            Form::Packed => ColumnSource::Packed,
            Form::Coded => ColumnSource::Coded,
            Form::Plain if self.laying_across_pays() => ColumnSource::Across,
            Form::Plain if self.plain_pays() && !self.packing_spares_rows(rows) => {
                ColumnSource::Plain
            }
            Form::Plain => ColumnSource::Own,
        }
    }

    /// Whether the first phase may pack the columns of all batches.
    pub(super) fn is_shared_small(&self) -> bool {
        let bytes = self
            .packed_columns()
            .checked_mul(self.columns.copies * self.element.bytes());
        bytes.is_some_and(|bytes| bytes <= SHARED_BYTES)
    }

    /// Whether many packed rows go by once: if the second cache has room for all columns.
    pub(super) fn rows_stream(&self, rows: RowSource, columns: ColumnSource) -> bool {
        rows == RowSource::Packed
            && columns == ColumnSource::Plain
            && self.columns.needed * self.element.bytes() <= STAY_BYTES
            && self.packed_rows() * self.element.bytes() > 2 * STAY_BYTES
    }

    /// The columns of the widest panel of those that come from `source`, with the lanes that are left over.
    pub(super) fn width(&self, source: ColumnSource) -> usize {
        let vectors = self.columns_of(source).panels.iter().map(|p| p.vectors);
        vectors.max().unwrap_or(1) as usize * self.lanes
    }

    /// The most rows whose elements, `k_block` of each at a time, the second cache keeps.
    pub(super) fn strided_block(&self, k_block: usize) -> usize {
        self.rows_in_cache(k_block * self.group)
    }

    /// The most rows that the second cache keeps, of all `k` widened to 16 bits.
    pub(super) fn widened_block(&self) -> usize {
        self.rows_in_cache(usize::MAX)
    }

    /// The most rows whose elements, at most `most` of each at a time, the second cache keeps.
    fn rows_in_cache(&self, most: usize) -> usize {
        let rows = self.rows.points.len();
        // Rows may share elements, as windows of a picture do.
        let each = (self.rows.needed / rows.max(1)).clamp(1, most.max(1));
        let most = ROW_BYTES / each.saturating_mul(self.row_bytes());
        match most >= rows {
            true => usize::MAX,
            false => most.max(1).next_multiple_of(self.height),
        }
    }

    /// Where tiles get their rows from, with this many panels of columns from `columns`.
    pub(super) fn row_source(&self, rows: Form, columns: ColumnSource, panels: usize) -> RowSource {
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
            (Form::Plain, None) if self.strided_rows_pay(columns, panels) => {
                match &self.row_words {
                    Some(words) if words.are_widened => RowSource::Widened,
                    _ => RowSource::Strided,
                }
            }
            (Form::Plain, None) => RowSource::Own,
        }
    }

    /// Whether it is cheaper to take elements of rows from where they are than to pack them for this many panels of columns.
    fn strided_rows_pay(&self, columns: ColumnSource, panels: usize) -> bool {
        let has_tiles = match columns {
            ColumnSource::Plain | ColumnSource::Across => false,
            ColumnSource::Coded if self.takes_codes(self.width(columns)) => false,
            _ => self.can_be_strided() && self.spread(columns) == 1,
        };
        // Tiles have a register for the address of each row, or the time to load it.
        let fits = self.height <= ADDRESSED_ROWS || self.isa.instructions() == Isa::Avx512;
        // Rows that a task packs have all steps: where tiles would leave out one of this many products, they are not packed.
        const MUCH: usize = 8;
        let leaves_out = self.live.as_ref().is_some_and(|live| live.leave_out(MUCH));
        has_tiles
            && fits
            && (leaves_out
                || match self.rows.spacing {
                    Spacing::Runs => self.rows_have_room(columns, panels),
                    Spacing::Apart => panels <= 8,
                    Spacing::Crowded => false,
                })
    }

    /// Whether tiles could take elements or words of rows from where they are: bytes that are widened first must be fewer than
    /// those that would be packed, and the second cache must keep all `k` of the rows of a tile.
    fn can_be_strided(&self) -> bool {
        match &self.row_words {
            None => self.group == 1,
            Some(words) if words.are_widened => {
                let rows = self.rows.points.len();
                let packed = rows.saturating_mul(self.rows.offsets.len());
                let tile = (self.rows.needed / rows.max(1)).saturating_mul(self.height);
                self.rows.needed <= packed && tile.saturating_mul(self.row_bytes()) <= ROW_BYTES
            }
            Some(_) => true,
        }
    }

    /// The bytes of an element of the row side where tiles take it from where it is.
    fn row_bytes(&self) -> usize {
        self.element.bytes() / self.group
    }

    /// Whether the lines that rows are read from stay in the caches until all of their elements were taken: those of a tile in
    /// the first one, those of a block of rows, which each panel of columns takes anew, in the second one.
    fn rows_have_room(&self, columns: ColumnSource, panels: usize) -> bool {
        let [first, second, ..] = *self.rows.points else {
            return true;
        };
        let step = second.abs_diff(first) as usize * self.row_bytes();
        let k_block = self.k_block(columns, self.width(columns));
        let block = match &self.row_words {
            Some(words) if words.are_widened => self.widened_block(),
            _ => self.strided_block(k_block),
        };
        let block = block.min(self.rows.points.len());
        // Tiles that take whole lines need each once.
        (self.row_line > 0 || FIRST_CACHE.have_room(self.height, step))
            && (panels == 1 || SECOND_CACHE.have_room(block, step))
    }

    /// The length of blocks of `k`, as equal as possible, whose panels of `width` columns the cache has room for.
    pub(super) fn k_block(&self, columns: ColumnSource, width: usize) -> usize {
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
    pub(super) fn takes_codes(&self, width: usize) -> bool {
        let has_tiles = self.has_coded_tiles && width <= SPREAD_WIDTH * self.lanes;
        has_tiles && self.row_panels == 1 && self.height <= CODED_ROWS
    }

    /// The panels of columns that come from `source`.
    pub(crate) fn columns_of(&self, source: ColumnSource) -> &ColumnVectors {
        match (source, &self.plain) {
            (ColumnSource::Plain, Some(plain)) => plain,
            (ColumnSource::Plain, None) => {
                unreachable!("columns are only read where they lie if there are vectors for that")
            }
            _ => &self.packed,
        }
    }

    /// Whether it is cheapest that tiles lay columns across: where they can, that is faster than packing these in any case.
    fn laying_across_pays(&self) -> bool {
        /// The cost of loading a vector and laying it across, in multiply-adds; without the latter it is 1.
        const ACROSS: usize = 4;
        let rows = self.rows.points.len();
        let plain = self.plain_vectors.filter(|_| self.scatter.is_none());
        let packed = self.packed.vectors.len();
        let is_faster = |plain: usize| packed * (rows + ACROSS) < plain * (rows + 1);
        self.lays_across && plain.is_none_or(is_faster)
    }

    /// Whether it is cheaper to compute from the columns as they are than to pack them.
    fn plain_pays(&self) -> bool {
        let Some(plain) = self.plain_vectors.filter(|_| self.scatter.is_none()) else {
            return false;
        };
        let packed = self.packed.vectors.len();
        // In cycles for each `k`: two vectors of a row are computed in one, if the loads allow.
        let more =
            plain.saturating_sub(packed) as f64 * (self.rows.points.len() as f64 / 2.0).max(1.5);
        let step = self.columns.k_line.unwrap_or(0) * self.element.bytes();
        if self.lines_crowd(step) {
            return false;
        }
        more <= self.packing_columns(plain)
    }

    /// Whether the first cache loses plain columns, `step` bytes from one `k` to the next, from one tile to the next, because their
    /// lines share few of its sets; and there are enough rows for packing to pay.
    fn lines_crowd(&self, step: usize) -> bool {
        /// Lines this far apart are all in one set.
        const PAGE: usize = 4096;
        const SETS: usize = PAGE / LINE;
        /// How many lines of a set columns may take: rows and results take others.
        const MOST_OF_SET: usize = 2;
        /// Fewer lines are found in a set, whatever else is.
        const FEWEST: usize = 8;
        /// Rows that pay for packing: few where all lines are in one set.
        const ROWS: usize = 40;
        if step < LINE || self.k < FEWEST {
            return false;
        }
        let sets = SETS.min(PAGE >> PAGE.trailing_zeros().min(step.trailing_zeros()));
        let are_many = match sets {
            1 => self.row_panels > 2,
            _ => self.rows.points.len() >= ROWS,
        };
        are_many && self.k > MOST_OF_SET * sets
    }

    /// The cycles for each `k` that packing the columns takes, which lie in `plain` vectors: for a packed vector less than three if
    /// all lanes are equally far apart, five if it comes from a few loads or lines are laid across.
    fn packing_columns(&self, plain: usize) -> f64 {
        let packed = self.packed.vectors.len();
        let few = plain <= 3 * packed || self.columns.k_line == Some(1);
        let of_vector = match few {
            true if self.columns.has_whole_vectors(self.lanes) => 2.75,
            true => 5.0,
            false => 16.0,
        };
        packed as f64 * of_vector
    }

    /// Whether it is cheaper to pack plain columns than the rows: tiles take rows from where they lie beside packed columns, but
    /// beside plain ones only if these rows are direct.
    fn packing_spares_rows(&self, rows: Form) -> bool {
        /// Cycles that packing an element of a row takes.
        const ROW_ELEMENT: f64 = 1.0;
        let Some(plain) = self.plain_vectors else {
            return false;
        };
        let source = |columns, panels| self.row_source(rows, columns, panels);
        let packs_rows = |columns| source(columns, self.packed.panels.len()) == RowSource::Own;
        packs_rows(ColumnSource::Plain)
            && !packs_rows(ColumnSource::Own)
            && self.packing_columns(plain) < ROW_ELEMENT * self.rows.points.len() as f64
    }
}
