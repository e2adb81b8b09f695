//! A contraction prepared for this machine.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::axes::Axes;
use crate::engine::{ADDRESSED_ROWS, Engine};
use crate::geometry::{
    ColumnVectors, PanelShape, Tiles, aligned_height, plain_vectors, shape, shared_shape, width,
};
use crate::groups::{Groups, Side};
use crate::pack::Packing;
use crate::padding::{LiveSteps, Padding};
use crate::simd::HasEngine;
use crate::tile::SPREAD_WIDTH;
use crate::words::{Overlap, RowWords};
use crate::{Contraction, Element, Form, Isa, Narrow, Refused};

/// A [`Contraction`] prepared for this machine: dims joined where strides allow, the two sides
/// exchanged if `out` is contiguous along the left one's dims, offsets of all points in tables, and
/// the micro-kernels chosen. It never changes, and any number of threads may run it at once.
///
/// Inside, the operands are the *row* side, of which a tile takes single elements, and the *column*
/// side, of which it takes vectors.
#[derive(Debug)]
pub struct PreparedContraction {
    /// Which kernel this is: plans belong to one.
    pub(crate) number: u64,
    pub(crate) element: Element,
    pub(crate) isa: Isa,
    /// Whether the left operand is the column side.
    pub(crate) exchanged: bool,
    /// Strides in the rows, the columns, `out`, and the numbers of the packed rows and columns.
    pub(crate) batch: Axes<5>,
    pub(crate) rows: Side,
    pub(crate) columns: Side,
    /// The row side in words, where tiles could take these from where they are.
    pub(crate) row_words: Option<RowWords>,
    /// The order of `k`, if words of the row side overlap.
    pub(crate) overlap: Option<Overlap>,
    /// How the elements of the column side are stored, if not as they are.
    pub(crate) narrow: Option<Narrow>,
    /// How many steps the sums take, how many `k` each has, and how many there are.
    pub(crate) k: usize,
    pub(crate) group: usize,
    terms: usize,
    /// The height of the highest row panel.
    pub(crate) height: usize,
    /// How many row panels there are; how many of them are one row higher than the others, and how
    /// high those are.
    pub(crate) row_panels: usize,
    pub(crate) higher: usize,
    pub(crate) low: usize,
    pub(crate) lanes: usize,
    /// Whether there are tiles that make elements of coded columns themselves.
    pub(crate) has_coded_tiles: bool,
    /// How many words of rows a product of matrices takes, if tiles have their sums in matrix registers; otherwise 0.
    pub(crate) row_line: usize,
    /// The steps that tiles of each panel of rows take, if padding is left out.
    pub(crate) live: Option<LiveSteps>,
    /// How many packed panels a tile of all rows takes, if there are so few of them.
    pub(crate) panels_at_once: usize,
    pub(crate) packed: ColumnVectors,
    /// How many vectors tiles would read where columns lie; none if these are always packed.
    pub(crate) plain_vectors: Option<usize>,
    /// These vectors, if tiles do so.
    pub(crate) plain: Option<ColumnVectors>,
    /// Whether tiles lay plain columns across themselves.
    pub(crate) lays_across: bool,
    /// The offsets in `out` of all columns, if vectors of columns are not contiguous there.
    pub(crate) scatter: Option<Box<[u32]>>,
    /// The offsets in `out` of all rows.
    pub(crate) row_out: Box<[u32]>,
    /// How many elements of `out` there must be.
    pub(crate) out_needed: usize,
    /// How far apart batches, and rows, are in it, if each row lies together.
    pub(crate) out_pitches: Option<[usize; 2]>,
    /// How many elements each row of the row side has, if they lie in the order of the batch, the rows and `k`, without gaps.
    pub(crate) row_length: Option<usize>,
    /// The extents of the caller's `m` and `n`.
    pub(crate) m: usize,
    pub(crate) n: usize,
}

/// A number that no other kernel has: plans belong to one.
pub(crate) fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

impl PreparedContraction {
    /// Prepares a contraction for the best instructions of this machine.
    pub fn new(contraction: &Contraction) -> Result<PreparedContraction, Refused> {
        PreparedContraction::with_isa(contraction, Isa::fastest())
    }

    /// As [`PreparedContraction::new`], for operands that come to runs in these forms, the left one first. Of an operand
    /// that is packed once for many runs the layout depends neither on the number of points of the other nor on how its
    /// batch is divided, so that many contractions can share it. Where there are only a few points of the
    /// other, lanes run along those of the packed one, although `out` does not. The results are the same.
    pub fn with_forms(
        contraction: &Contraction,
        isa: Isa,
        forms: [Form; 2],
    ) -> Result<PreparedContraction, Refused> {
        PreparedContraction::prepare(contraction, isa, forms, [None; 2])
    }

    /// As [`PreparedContraction::with_forms`], for operands whose elements are stored so, the left one first. A plain
    /// operand has then numbers of 16 bits where the strides say. The results are those of elements of `f32`.
    ///
    /// # Errors
    /// [`Refused::Narrow`] too, unless only the operand is stored so along whose dims `out` is contiguous.
    pub fn with_narrow(
        contraction: &Contraction,
        isa: Isa,
        forms: [Form; 2],
        narrow: [Option<Narrow>; 2],
    ) -> Result<PreparedContraction, Refused> {
        PreparedContraction::prepare(contraction, isa, forms, narrow)
    }

    /// Prepares a contraction for the given instructions. The results are the same for all.
    pub fn with_isa(contraction: &Contraction, isa: Isa) -> Result<PreparedContraction, Refused> {
        PreparedContraction::prepare(contraction, isa, [Form::Plain; 2], [None; 2])
    }

    fn prepare(
        contraction: &Contraction,
        isa: Isa,
        forms: [Form; 2],
        [left, right]: [Option<Narrow>; 2],
    ) -> Result<PreparedContraction, Refused> {
        if !isa.available() {
            return Err(Refused::NoInstructions { isa });
        }
        let Tiling {
            isa,
            registers,
            groups,
            shape:
                PanelShape {
                    height,
                    vectors: most,
                    ..
                },
        } = Tiling::suited(contraction, isa, forms)?;
        let Registers {
            lanes,
            group,
            words,
            has_coded_tiles,
            spread,
            across,
            tiles,
        } = registers;
        let (row_narrow, narrow) = match groups.exchanged {
            true => (right, left),
            false => (left, right),
        };
        let is_float = contraction.element == Element::F32;
        if row_narrow.is_some() || narrow.is_some() && !is_float {
            return Err(Refused::Narrow);
        }
        let (rows, columns) = (&groups.rows, &groups.columns);
        let (row_out, column_out) = (rows.table(1)?, columns.table(1)?);
        let signed_rows = groups.exchanged == (contraction.element == Element::U8I8);
        let (mut row_side, mut column_side) =
            (groups.side(0, signed_rows)?, groups.side(1, !signed_rows)?);
        let overlap = words.and_then(|_| Overlap::of(&row_side.offsets, group, columns.points()));
        if let Some(overlap) = &overlap {
            overlap.apply(&mut row_side);
            overlap.apply(&mut column_side);
        }
        let row_words = match words {
            Some(are_widened) => RowWords::of(&row_side, group, are_widened),
            None => None,
        };
        let row_line = match &row_words {
            Some(words) if tiles.has_matrices(height, most) => words.line(),
            _ => 0,
        };
        let height = match row_line {
            0 => height,
            _ => aligned_height(height, &row_side.points),
        };
        let row_panels = rows.points().div_ceil(height);
        let panels_at_once = match most == SPREAD_WIDTH && row_panels == 1 {
            true => spread.get(height - 1).copied().unwrap_or(1),
            false => 1,
        };
        let (packed, contiguous) = ColumnVectors::packed(&column_out, lanes, most);
        let is_plain = forms[usize::from(!groups.exchanged)] == Form::Plain;
        let plain = (is_plain && group == 1 && narrow.is_none())
            .then(|| plain_vectors(&column_side.points, &column_out, lanes));
        let lays_across = row_panels == 1
            && height <= across
            && narrow.is_none()
            && column_side.copies == groups.batch.points()
            && column_side.lies_in_runs(lanes);
        let (m, n) = match groups.exchanged {
            true => (columns.points(), rows.points()),
            false => (rows.points(), columns.points()),
        };
        let mut kernel = PreparedContraction {
            number: next_number(),
            element: contraction.element,
            isa,
            exchanged: groups.exchanged,
            narrow,
            k: row_side.offsets.len().div_ceil(group),
            group,
            terms: groups.sum.points(),
            height,
            row_panels,
            higher: rows.points() % row_panels.max(1),
            low: rows.points() / row_panels.max(1),
            lanes,
            has_coded_tiles,
            row_line,
            live: None,
            panels_at_once,
            packed,
            plain_vectors: plain.as_ref().map(Vec::len),
            plain: None,
            lays_across,
            scatter: None,
            row_out,
            out_pitches: groups.out_pitches(),
            row_length: groups.row_length(),
            out_needed: groups.out_needed(),
            m,
            n,
            row_words,
            overlap,
            rows: row_side,
            columns: column_side,
            batch: groups.batch,
        };
        kernel.scatter = (!contiguous).then_some(column_out);
        kernel.plain = plain.filter(|_| kernel.reads_plain_columns()).map(|plain| {
            let most = width(height, plain.len(), &tiles);
            ColumnVectors::plain(plain, lanes, most)
        });
        Ok(kernel)
    }

    /// Has tiles leave out products with zeros of the `padding` from now on, where there are enough of these and all elements of
    /// the right operand are finite, which is only asked then. Results are the same.
    pub fn leave_out_padding(&mut self, padding: &[Padding], is_finite: impl FnOnce() -> bool) {
        if !self.exchanged && self.group == 1 && self.narrow.is_none() {
            let live = LiveSteps::of(&self.rows, &self.batch, self.panels_of_rows(), padding);
            self.live = live.filter(|_| is_finite());
        }
    }

    /// Whether tiles leave out padding, so that the right operand must be finite.
    pub fn leaves_out_padding(&self) -> bool {
        self.live.is_some()
    }

    /// How many operations a run does: two for each multiply-add.
    pub fn flops(&self) -> u64 {
        [self.batch.points(), self.m, self.n, self.terms]
            .iter()
            .fold(2, |flops: u64, &extent| flops.saturating_mul(extent as u64))
    }

    /// How many elements each operand must have at least: `[left, right, out]`.
    pub fn elements(&self) -> [usize; 3] {
        let (rows, columns) = (self.rows.needed, self.columns.needed);
        let [left, right] = if self.exchanged {
            [columns, rows]
        } else {
            [rows, columns]
        };
        [left, right, self.out_needed]
    }

    /// The bytes of an element of the column side, or of the row side, where it is plain.
    pub(crate) fn item_bytes<T: HasEngine>(&self, columns: bool) -> usize {
        match self.narrow {
            Some(_) if columns => Narrow::BYTES,
            _ => size_of::<T::Item>(),
        }
    }

    /// No offset of the column side's first `count` of `k` is larger.
    pub(crate) fn columns_last(&self, count: usize) -> usize {
        let offsets = &self.columns.offsets;
        let last = if self.columns.ordered {
            offsets[..count].last()
        } else {
            Some(&self.columns.largest)
        };
        last.map_or(0, |&last| last as usize)
    }

    /// Where tiles find the elements or words of each step in rows that lie apart, from the point of a row on.
    pub(crate) fn row_steps(&self) -> &[u32] {
        match &self.row_words {
            Some(words) => &words.steps,
            None => &self.rows.offsets,
        }
    }

    /// The row panel that has `row`: where it starts, and its height.
    pub(crate) fn row_panel(&self, row: usize) -> (usize, usize) {
        let high = self.higher * (self.low + 1);
        if row < high {
            let height = self.low + 1;
            (row / height * height, height)
        } else if row < high + self.low {
            (high, self.low)
        } else {
            (high + (row - high) / self.low * self.low, self.low)
        }
    }

    /// The number of the row panel that starts at `row`.
    pub(crate) fn row_panel_number(&self, row: usize) -> usize {
        let high = self.higher * (self.low + 1);
        match row < high {
            true => row / (self.low + 1),
            false => self.higher + (row - high) / self.low,
        }
    }

    /// The rows of each row panel.
    pub(crate) fn panels_of_rows(&self) -> impl Iterator<Item = Range<usize>> {
        let all = 0..self.rows.points.len();
        let first = self.row_panel(0);
        let tiles = (!all.is_empty()).then(|| self.row_tiles(all, first));
        tiles.into_iter().flatten().map(|tile| tile.rows)
    }

    /// The rows of `block`, whose first is in `panel`, in tiles: panels, or the parts of panels that lie in it.
    pub(crate) fn row_tiles(
        &self,
        block: Range<usize>,
        mut panel: (usize, usize),
    ) -> impl Iterator<Item = RowTile> {
        let high = self.higher * (self.low + 1);
        let mut start = block.start;
        std::iter::from_fn(move || {
            if start >= block.end {
                return None;
            }
            let next = panel.0 + panel.1;
            let rows = start..next.min(block.end);
            let tile = RowTile { rows, panel };
            panel = (next, self.low + usize::from(next < high));
            start = next;
            Some(tile)
        })
    }

    /// The engine it runs with.
    pub(crate) fn engine<T: HasEngine>(&self) -> &'static Engine<T> {
        T::engine(self.isa, self.rows.signed)
    }

    /// The columns or the rows, and how many elements they have when they are packed: those of one batch, and all.
    pub(crate) fn side(&self, columns: bool) -> (&Side, usize, usize) {
        let (side, one) = match columns {
            true => (&self.columns, self.packed_columns()),
            false => (&self.rows, self.packed_rows()),
        };
        match side.needed {
            0 => (side, 0, 0),
            _ => (side, one, one * side.copies),
        }
    }

    /// How many elements the packed columns of one batch have.
    pub(crate) fn packed_columns(&self) -> usize {
        self.packed.vectors.len() * self.lanes * self.k
    }

    /// How many elements the packed rows of one batch have.
    pub(crate) fn packed_rows(&self) -> usize {
        self.rows.points.len() * self.k
    }
}

/// The tiles that a contraction is computed in.
struct Tiling {
    isa: Isa,
    registers: Registers,
    groups: Groups,
    shape: PanelShape,
}

impl Tiling {
    /// Chooses between the tiles of `isa` and, where the machine runs 512-bit instructions as two halves, those of 256 bits: these
    /// if they are estimated to take less than `PAYS` of the cycles, as fewer of their lanes are empty. Of columns that are packed
    /// once only the number of columns decides, so that their layout serves any number of rows.
    fn suited(contraction: &Contraction, isa: Isa, forms: [Form; 2]) -> Result<Tiling, Refused> {
        /// Tiles of 256 bits load more for each multiply-add.
        const PAYS: f64 = 0.97;
        /// Of shorter sums matrix registers only have more stores wait at a time.
        const LEAST_MATRIX_TERMS: usize = 64;
        let extents = contraction.k.iter().map(|dim| dim.extent);
        let terms = extents.fold(1, usize::saturating_mul);
        let isa = match isa {
            Isa::AvxVnni if !contraction.element.is_byte() => Isa::Avx2,
            Isa::Amx if !contraction.element.is_byte() || terms < LEAST_MATRIX_TERMS => Isa::Avx512,
            isa => isa,
        };
        let wide = Tiling::of(contraction, isa, forms)?;
        if isa != Isa::Avx512Halves || contraction.element.is_byte() {
            return Ok(wide);
        }
        let narrow = Tiling::of(contraction, Isa::Avx2, forms)?;
        match narrow.shape.cycles < PAYS * wide.shape.cycles {
            true => Ok(narrow),
            false => Ok(wide),
        }
    }

    fn of(contraction: &Contraction, isa: Isa, forms: [Form; 2]) -> Result<Tiling, Refused> {
        let mut registers = Registers::new(isa, contraction.element);
        let lanes = registers.lanes;
        // Tiles that decode have vectors along the operand they decode anyway.
        let packed = forms.map(|form| form == Form::Packed);
        let groups = Groups::new(contraction, packed, (lanes, registers.group))?;
        let (rows, vectors) = (
            groups.rows.points(),
            groups.columns.points().div_ceil(lanes),
        );
        let [row_form, column_form] = match groups.exchanged {
            true => [forms[1], forms[0]],
            false => forms,
        };
        if row_form == Form::Plain && column_form != Form::Plain && groups.rows_together {
            registers.limit_to_addresses();
        }
        let shape = match column_form {
            Form::Plain => shape(rows, vectors, &registers.tiles),
            Form::Packed | Form::Coded => shared_shape(rows, vectors, &registers.tiles),
        };
        Ok(Tiling {
            isa,
            registers,
            groups,
            shape,
        })
    }
}

/// The tile sizes that the registers of an engine have room for.
struct Registers {
    /// The lanes of a vector.
    lanes: usize,
    /// How many `k` a step takes.
    group: usize,
    /// If these are bytes of a word: whether words are of bytes widened to 16 bits.
    words: Option<bool>,
    /// Whether there are tiles that make elements of coded columns themselves.
    has_coded_tiles: bool,
    /// For each number of rows how many packed panels a tile takes at once.
    spread: Vec<usize>,
    /// The most rows of tiles that lay columns across.
    across: usize,
    tiles: Tiles,
}

impl Registers {
    fn new(isa: Isa, element: Element) -> Registers {
        match element {
            Element::F32 => Registers::of::<f32>(isa),
            Element::F64 => Registers::of::<f64>(isa),
            Element::U8I8 | Element::I8U8 => Registers::of::<i32>(isa),
        }
    }

    /// Leaves out the tiles of one vector that have more rows than there are registers for addresses: others read rows where they
    /// are. Tiles of 16 lanes have the time to load addresses.
    fn limit_to_addresses(&mut self) {
        if self.lanes < 16 {
            let tallest = &mut self.tiles.tallest[0];
            *tallest = ADDRESSED_ROWS.min(*tallest);
        }
    }

    fn of<T: HasEngine>(isa: Isa) -> Registers {
        let engine = T::engine(isa, false);
        Registers {
            lanes: engine.lanes,
            group: engine.group,
            words: match engine.packing {
                Packing::Words { widen_bytes, .. } => Some(widen_bytes.is_some()),
                Packing::Elements { .. } => None,
            },
            has_coded_tiles: engine.coded.is_some(),
            spread: engine.spread.iter().map(|(panels, _)| *panels).collect(),
            across: engine.across.len(),
            tiles: Tiles {
                tallest: engine.packed.iter().map(|tiles| tiles.len()).collect(),
                per_cycle: isa.vectors_per_cycle(),
                least_matrix_rows: engine.least_matrix_rows,
            },
        }
    }
}

/// Rows of a tile.
pub(crate) struct RowTile {
    pub(crate) rows: Range<usize>,
    /// The panel that they are of: where it starts, and its height.
    pub(crate) panel: (usize, usize),
}
