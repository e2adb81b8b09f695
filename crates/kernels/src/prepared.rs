//! A contraction prepared for this machine.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::axes::{Axes, Axis};
use crate::geometry::{ColumnVectors, shape, width};
use crate::simd::Number;
use crate::tile::Engine;
use crate::{Contraction, Dim, Element, Isa, Refused};
use vinelift_tensor::is_injective;

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
    /// How many steps the sums take, and how many `k` each has.
    pub(crate) k: usize,
    pub(crate) group: usize,
    /// The height of the highest row panel.
    pub(crate) height: usize,
    /// How many row panels there are; how many of them are one row higher than the others, and how
    /// high those are.
    pub(crate) row_panels: usize,
    pub(crate) higher: usize,
    pub(crate) low: usize,
    pub(crate) lanes: usize,
    /// The most vectors of a tile that makes elements of coded columns itself.
    pub(crate) coded_vectors: usize,
    pub(crate) packed: ColumnVectors,
    pub(crate) plain: ColumnVectors,
    /// The offsets in `out` of all columns, if vectors of columns are not contiguous there.
    pub(crate) scatter: Option<Box<[u32]>>,
    /// The offsets in `out` of all rows.
    pub(crate) row_out: Box<[u32]>,
    /// How many elements of `out` there must be.
    pub(crate) out_needed: usize,
    /// Whether they lie in the order of the batch, the rows and the columns, without gaps.
    pub(crate) dense: bool,
    /// The extents of the caller's `m` and `n`.
    pub(crate) m: usize,
    pub(crate) n: usize,
}

/// One operand.
#[derive(Debug)]
pub(crate) struct Side {
    /// The offset of each point.
    pub(crate) points: Box<[u32]>,
    /// Whether its bytes have signs.
    pub(crate) signed: bool,
    /// The offset of each `k`.
    pub(crate) offsets: Box<[u32]>,
    /// The largest of them, and whether they never decrease.
    pub(crate) largest: u32,
    pub(crate) ordered: bool,
    /// The stride of `k`, and of the points, if they lie on a line.
    pub(crate) k_line: Option<usize>,
    pub(crate) line: Option<usize>,
    /// How many elements there must be.
    pub(crate) needed: usize,
    /// How many different ones the batch has.
    pub(crate) copies: usize,
}

/// The number of the next kernel.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl PreparedContraction {
    /// Prepares a contraction for the best instructions of this machine.
    pub fn new(contraction: &Contraction) -> Result<PreparedContraction, Refused> {
        PreparedContraction::with_isa(contraction, Isa::best())
    }

    /// As [`PreparedContraction::new`], for operands of which the left one, or the right one, is packed once for many
    /// runs. Where there are only a few points of the other, lanes run along those of the packed one,
    /// although `out` does not. The results are the same.
    pub fn with_packed(
        contraction: &Contraction,
        packed: [bool; 2],
    ) -> Result<PreparedContraction, Refused> {
        PreparedContraction::prepare(contraction, Isa::best(), packed)
    }

    /// Prepares a contraction for the given instructions. The results are the same for all.
    pub fn with_isa(contraction: &Contraction, isa: Isa) -> Result<PreparedContraction, Refused> {
        PreparedContraction::prepare(contraction, isa, [false; 2])
    }

    fn prepare(
        contraction: &Contraction,
        isa: Isa,
        packed: [bool; 2],
    ) -> Result<PreparedContraction, Refused> {
        if !isa.available() {
            return Err(Refused::NoInstructions { isa });
        }
        check_groups(contraction)?;
        check_overlap(contraction)?;
        let Registers {
            lanes,
            group,
            coded_vectors,
            tallest,
        } = match contraction.element {
            Element::F32 => Registers::of::<f32>(isa),
            Element::F64 => Registers::of::<f64>(isa),
            Element::U8I8 | Element::I8U8 => Registers::of::<i32>(isa),
        };
        let Contraction {
            element,
            mut batch,
            mut m,
            mut n,
            k,
        } = contraction.clone();
        for dims in [&mut batch, &mut m, &mut n] {
            dims.retain(|dim| dim.extent != 1);
        }
        move_batch_dims(&mut batch, &mut m, &mut n);
        let left = Axes::new(m.iter().map(|dim| axis(dim, [dim.left, dim.out])))?;
        let right = Axes::new(n.iter().map(|dim| axis(dim, [dim.right, dim.out])))?;
        let mut exchanged = innermost(&right) != Some(1) && innermost(&left) == Some(1);
        let (packed_rows, rows, columns) = match exchanged {
            false => (packed[0], left.points(), right.points()),
            true => (packed[1], right.points(), left.points()),
        };
        exchanged ^= packed_rows && few_columns(rows, columns, &k, lanes);
        let batch = batch_axes(&batch, exchanged)?;
        let steps = |dim: &Dim| match exchanged {
            true => [dim.right, dim.left],
            false => [dim.left, dim.right],
        };
        let sum = Axes::new(k.iter().map(|dim| axis(dim, steps(dim))))?;
        let (rows, columns) = match exchanged {
            true => (&right, &left),
            false => (&left, &right),
        };
        let (row_out, column_out) = (rows.table(1)?, columns.table(1)?);
        let empty = batch.points() == 0 || rows.points() == 0 || columns.points() == 0;
        let signed_rows = exchanged == (element == Element::U8I8);
        let side = |axes: &Axes<2>, which: usize| -> Result<Side, Refused> {
            let last = axes.last(0) + sum.last(which) + batch.last(which);
            let offsets = sum.table(which)?;
            Ok(Side {
                signed: signed_rows == (which == 0),
                points: axes.table(0)?,
                largest: sum.last(which) as u32,
                ordered: offsets.is_sorted(),
                offsets,
                k_line: sum.line(which),
                line: axes.line(0),
                needed: if empty || sum.points() == 0 {
                    0
                } else {
                    last + 1
                },
                copies: batch.last(3 + which) + 1,
            })
        };
        let (row_side, column_side) = (side(rows, 0)?, side(columns, 1)?);
        let (height, most) = shape(rows.points(), columns.points().div_ceil(lanes), &tallest);
        let row_panels = rows.points().div_ceil(height);
        let (packed, contiguous) = ColumnVectors::packed(&column_out, lanes, most);
        let plain = match group {
            1 => ColumnVectors::plain(&column_side.points, &column_out, lanes, |vectors| {
                width(height, vectors, &tallest)
            }),
            _ => ColumnVectors::default(),
        };
        let out_last = rows.last(1) + columns.last(1) + batch.last(2);
        let dense = is_dense(&batch, rows, columns);
        Ok(PreparedContraction {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            element,
            isa,
            exchanged,
            batch,
            k: sum.points().div_ceil(group),
            group,
            height,
            row_panels,
            higher: rows.points() % row_panels.max(1),
            low: rows.points() / row_panels.max(1),
            lanes,
            coded_vectors,
            packed,
            plain,
            scatter: (!contiguous).then_some(column_out),
            row_out,
            dense,
            out_needed: if empty { 0 } else { out_last + 1 },
            m: left.points(),
            n: right.points(),
            rows: row_side,
            columns: column_side,
        })
    }

    /// How many operations a run does: two for each multiply-add.
    pub fn flops(&self) -> u64 {
        [self.batch.points(), self.m, self.n, self.rows.offsets.len()]
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

    /// The engine it runs with.
    pub(crate) fn engine<T: Number>(&self) -> &'static Engine<T> {
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

/// The tile sizes that the registers of an engine have room for.
struct Registers {
    /// The lanes of a vector.
    lanes: usize,
    /// How many `k` a step takes.
    group: usize,
    /// The most vectors of a tile that makes elements of coded columns itself.
    coded_vectors: usize,
    /// The tallest tile of each number of vectors.
    tallest: Vec<usize>,
}

impl Registers {
    fn of<T: Number>(isa: Isa) -> Registers {
        let engine = T::engine(isa, false);
        Registers {
            lanes: engine.lanes,
            group: engine.group,
            coded_vectors: engine.coded.first().map_or(0, |tiles| tiles.len()),
            tallest: engine.packed.iter().map(|tiles| tiles.len()).collect(),
        }
    }
}

fn axis<const N: usize>(dim: &Dim, strides: [usize; N]) -> Axis<N> {
    Axis {
        extent: dim.extent,
        strides,
    }
}

/// The stride of the innermost dim in `out`.
fn innermost(axes: &Axes<2>) -> Option<usize> {
    axes.axes().last().map(|axis| axis.strides[1])
}

/// Whether lanes along the columns would do more than lanes along the rows, so much that it makes up for results that
/// lie apart and for columns that have to be packed as rows.
fn few_columns(rows: usize, columns: usize, k: &[Dim], lanes: usize) -> bool {
    /// Sums that are shorter are not worth it.
    const LONG: usize = 64;
    /// The cost of packing one `k` of a column, in multiply-adds of a vector.
    const PACKING: usize = 4;
    let vectors = |rows: usize, columns: usize| rows.saturating_mul(columns.div_ceil(lanes));
    let k = k
        .iter()
        .fold(1, |k: usize, dim| k.saturating_mul(dim.extent));
    let fewer = vectors(rows, columns).saturating_sub(vectors(columns, rows));
    k >= LONG
        && fewer.saturating_mul(PACKING) >= columns
        && fewer.saturating_mul(k) >= rows.saturating_mul(columns)
}

/// The batch dims with two more strides each: those of the number of the packed operand.
fn batch_axes(batch: &[Dim], exchanged: bool) -> Result<Axes<5>, Refused> {
    let mut axes = Vec::with_capacity(batch.len());
    let mut copies = [1usize; 2];
    for dim in batch.iter().rev() {
        let operands = if exchanged {
            [dim.right, dim.left]
        } else {
            [dim.left, dim.right]
        };
        let mut numbers = [0; 2];
        for ((number, copies), stride) in numbers.iter_mut().zip(&mut copies).zip(operands) {
            if stride != 0 {
                *number = *copies;
                *copies = copies.checked_mul(dim.extent).ok_or(Refused::TooLarge)?;
            }
        }
        axes.push(axis(
            dim,
            [operands[0], operands[1], dim.out, numbers[0], numbers[1]],
        ));
    }
    axes.reverse();
    Axes::new(axes)
}

/// Whether `out` has the points of the batch, the rows and the columns in row-major order, without gaps.
fn is_dense(batch: &Axes<5>, rows: &Axes<2>, columns: &Axes<2>) -> bool {
    let sides = rows.axes().iter().chain(columns.axes());
    let outer = batch.axes().iter().map(|a| (a.extent, a.strides[2]));
    let dims: Vec<(usize, usize)> = outer
        .chain(sides.map(|a| (a.extent, a.strides[1])))
        .collect();
    let mut step = 1usize;
    dims.iter().rev().all(|&(extent, stride)| {
        let follows = stride == step;
        step = step.saturating_mul(extent);
        follows
    })
}

/// No dim moves in an operand that its group is not part of.
fn check_groups(contraction: &Contraction) -> Result<(), Refused> {
    let check = |group, dims: &[Dim], stride: fn(&Dim) -> usize| match dims
        .iter()
        .any(|dim| dim.extent > 1 && stride(dim) != 0)
    {
        true => Err(Refused::WrongGroup { group }),
        false => Ok(()),
    };
    check("m", &contraction.m, |dim| dim.right)?;
    check("n", &contraction.n, |dim| dim.left)?;
    check("k", &contraction.k, |dim| dim.out)
}

/// Moves batch dims that one side does not have into the other side, which they only make larger, where that keeps
/// the order of the dims.
fn move_batch_dims(batch: &mut Vec<Dim>, m: &mut Vec<Dim>, n: &mut Vec<Dim>) {
    while let Some(&dim) = batch.last() {
        if dim.right == 0 {
            m.insert(0, dim);
        } else if dim.left == 0 && m.is_empty() {
            n.insert(0, dim);
        } else {
            break;
        }
        batch.pop();
    }
}

/// No two points have the same place in `out`: each dim steps over all the smaller ones.
fn check_overlap(contraction: &Contraction) -> Result<(), Refused> {
    let Contraction { batch, m, n, .. } = contraction;
    let dims = || [batch, m, n].into_iter().flatten();
    if dims().any(|dim| dim.extent == 0) {
        return Ok(());
    }
    if !is_injective(dims().map(|dim| (dim.out, dim.extent))) {
        return Err(Refused::Overlap);
    }
    let mut reach = 0usize;
    for dim in dims() {
        let length = (dim.extent - 1).checked_mul(dim.out);
        let sum = length.and_then(|length| reach.checked_add(length));
        reach = sum.ok_or(Refused::TooLarge)?;
    }
    Ok(())
}
