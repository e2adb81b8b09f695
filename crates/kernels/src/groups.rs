//! The dims of a contraction by groups, joined, with one operand as the row side.

use crate::axes::{Axes, Axis};
use crate::{Contraction, Dim, Refused};
use std::cmp::Reverse;
use vinelift_tensor::is_injective;

/// The dims of each group.
pub(crate) struct Groups {
    /// Whether the left operand is the column side.
    pub(crate) exchanged: bool,
    /// Whether as many `k` of a row as a vector has lanes lie beside each other.
    pub(crate) rows_together: bool,
    /// Strides in the rows, the columns, `out`, and the numbers of the packed rows and columns.
    pub(crate) batch: Axes<5>,
    /// Strides in the row side and `out`.
    pub(crate) rows: Axes<2>,
    /// Strides in the column side and `out`.
    pub(crate) columns: Axes<2>,
    /// Strides in the rows and the columns.
    pub(crate) sum: Axes<2>,
    /// The bytes of an element of the operands.
    operand_bytes: usize,
}

/// One operand.
#[derive(Debug)]
pub(crate) struct Side {
    /// The offset of each point, and whether they never decrease.
    pub(crate) points: Box<[u32]>,
    pub(crate) ordered_points: bool,
    /// Whether its bytes have signs.
    pub(crate) signed: bool,
    /// The offset of each `k`.
    pub(crate) offsets: Box<[u32]>,
    pub(crate) spacing: Spacing,
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

impl Side {
    /// Whether all points are vectors of `lanes`, each of which is every element from its first one on, or every second.
    pub(crate) fn has_whole_vectors(&self, lanes: usize) -> bool {
        let is_whole = |points: &[u32]| {
            let step = points[1].wrapping_sub(points[0]);
            let mut pairs = points.windows(2);
            (1..=2).contains(&step) && pairs.all(|pair| pair[1].wrapping_sub(pair[0]) == step)
        };
        let mut vectors = self.points.chunks_exact(lanes);
        lanes > 1 && vectors.all(is_whole) && vectors.remainder().is_empty()
    }

    /// Whether the elements of a point lie beside each other, from every `length`-th `k` on as many.
    pub(crate) fn lies_in_runs(&self, length: usize) -> bool {
        let mut runs = self.offsets.chunks(length);
        runs.all(|run| {
            run.windows(2)
                .all(|pair| pair[1].checked_sub(pair[0]) == Some(1))
        })
    }
}

/// How the elements of a point lie in memory, in the order of `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Most of them are in a line of the cache that one of the elements shortly before was in.
    Runs,
    Apart,
    /// As far apart as crowds a few sets of the first cache.
    Crowded,
}

impl Spacing {
    /// Of `offsets` of elements of `bytes`.
    fn of(offsets: &[u32], bytes: usize) -> Spacing {
        /// A quarter of what all sets of the first cache span.
        const CROWDING: usize = 1 << 10;
        /// The bytes of a line.
        const LINE: usize = 64;
        /// How many elements before one are shortly before it: those of a window, of which each may have a line of its own.
        const SHORTLY: usize = 32;
        let most = |count: usize| 2 * count >= offsets.len();
        let line = |offset: u32| offset as usize * bytes / LINE;
        let is_near = |at: &usize| {
            let before = &offsets[at.saturating_sub(SHORTLY)..*at];
            before.iter().rev().any(|o| line(*o) == line(offsets[*at]))
        };
        if most((0..offsets.len()).filter(is_near).count()) {
            return Spacing::Runs;
        }
        let steps = offsets.windows(2).map(|w| w[1].wrapping_sub(w[0]) as usize);
        let crowds = steps.filter(|step| (step * bytes).is_multiple_of(CROWDING));
        match most(crowds.count()) {
            true => Spacing::Crowded,
            false => Spacing::Apart,
        }
    }
}

impl Groups {
    /// Chooses the sides: of a contraction for vectors of `lanes` and steps of `group` `k`, whose left operand, or right one, is
    /// `packed` once for many runs.
    pub(crate) fn new(
        contraction: &Contraction,
        packed: [bool; 2],
        (lanes, group): (usize, usize),
    ) -> Result<Groups, Refused> {
        check_groups(contraction)?;
        check_overlap(contraction)?;
        let Contraction {
            mut batch,
            mut m,
            mut n,
            mut k,
            element,
        } = contraction.clone();
        for dims in [&mut batch, &mut m, &mut n] {
            dims.retain(|dim| dim.extent != 1);
        }
        move_batch_dims(&mut batch, &mut m, &mut n);
        let left = Axes::new(m.iter().map(|dim| axis(dim, [dim.left, dim.out])))?;
        let right = Axes::new(n.iter().map(|dim| axis(dim, [dim.right, dim.out])))?;
        let operands = Operands {
            points: [&left, &right],
            last: [m.last(), n.last()].map(|dim| dim.copied()),
            k: &k,
            lanes,
            group,
        };
        let exchanged = operands.are_exchanged(packed);
        let packed_rows = packed[usize::from(exchanged)];
        let rows_together = operands.lie_together(!exchanged);
        let steps = |dim: &Dim| match exchanged {
            true => [dim.right, dim.left],
            false => [dim.left, dim.right],
        };
        let (rows, columns) = match exchanged {
            true => (right, left),
            false => (left, right),
        };
        if element.is_byte() {
            // Any order gives the same sum: words of bytes that follow each other in an operand that each run packs.
            let varying = usize::from(packed_rows);
            k.sort_by_key(|dim| Reverse(steps(dim)[varying]));
        }
        Ok(Groups {
            exchanged,
            rows_together,
            operand_bytes: contraction.element.operand_bytes(),
            batch: batch_axes(&batch, exchanged)?,
            rows,
            columns,
            sum: Axes::new(k.iter().map(|dim| axis(dim, steps(dim))))?,
        })
    }

    /// The row side (0) or the column side (1), whose bytes are `signed` or not.
    pub(crate) fn side(&self, which: usize, signed: bool) -> Result<Side, Refused> {
        let axes = [&self.rows, &self.columns][which];
        let last = axes.last(0) + self.sum.last(which) + self.batch.last(which);
        let (points, offsets) = (axes.table(0)?, self.sum.table(which)?);
        Ok(Side {
            signed,
            ordered_points: points.is_sorted(),
            points,
            largest: self.sum.last(which) as u32,
            ordered: offsets.is_sorted(),
            spacing: Spacing::of(&offsets, self.operand_bytes),
            offsets,
            k_line: self.sum.line(which),
            line: axes.line(0),
            needed: match self.is_empty() || self.sum.points() == 0 {
                true => 0,
                false => last + 1,
            },
            copies: self.batch.last(3 + which) + 1,
        })
    }

    /// How many elements of `out` there must be.
    pub(crate) fn out_needed(&self) -> usize {
        match self.is_empty() {
            true => 0,
            false => self.rows.last(1) + self.columns.last(1) + self.batch.last(2) + 1,
        }
    }

    /// How many elements each row of the row side has, if it has the batch, the rows and the sum in row-major order, without
    /// gaps.
    pub(crate) fn row_length(&self) -> Option<usize> {
        let outer = self.batch.axes().iter().map(|a| (a.extent, a.strides[0]));
        let rows = self.rows.axes().iter().map(|a| (a.extent, a.strides[0]));
        let sum = self.sum.axes().iter().map(|a| (a.extent, a.strides[0]));
        is_row_major(outer.chain(rows).chain(sum).collect()).then(|| self.sum.points())
    }

    /// Whether `out` has no elements.
    fn is_empty(&self) -> bool {
        [
            self.batch.points(),
            self.rows.points(),
            self.columns.points(),
        ]
        .contains(&0)
    }

    /// How far apart batches, and rows, are in `out`, if the columns of a row lie together there, and rows and batches
    /// follow each other in order: maybe with gaps, but equal ones.
    pub(crate) fn out_pitches(&self) -> Option<[usize; 2]> {
        let of = |axes: &Axes<2>| {
            axes.axes()
                .iter()
                .map(|a| (a.extent, a.strides[1]))
                .collect()
        };
        let (rows, columns): (Vec<_>, Vec<_>) = (of(&self.rows), of(&self.columns));
        let batch = self.batch.axes().iter().map(|a| (a.extent, a.strides[2]));
        let row = pitch(&rows, self.columns.points())?;
        let batch = pitch(
            &batch.collect::<Vec<_>>(),
            row.checked_mul(self.rows.points())?,
        )?;
        is_row_major(columns).then_some([batch, row])
    }
}

/// The left and the right operand of a contraction, of which one becomes the row side.
struct Operands<'a> {
    /// Strides in the operand and `out`.
    points: [&'a Axes<2>; 2],
    /// The innermost dim of each.
    last: [Option<Dim>; 2],
    k: &'a [Dim],
    lanes: usize,
    group: usize,
}

impl Operands<'_> {
    /// Whether the left operand is the column side: if `out` is contiguous along it alone, or is so along the right one, but
    /// vectors along the left one, which is then `packed` once for many runs, take less time although results lie apart.
    fn are_exchanged(&self, packed: [bool; 2]) -> bool {
        let [left, right] = self.points.map(innermost);
        let exchanged = right != Some(1) && left == Some(1);
        let (row_side, column_side) = (usize::from(exchanged), usize::from(!exchanged));
        if !packed[row_side] {
            return exchanged;
        }
        let [rows, columns] = [row_side, column_side].map(|side| self.points[side].points());
        let step = self.last[column_side].map(|dim| [dim.left, dim.right][column_side]);
        let are_apart = self.lie_together(exchanged) && step.is_some_and(|step| step > 1);
        let pays = few_columns(rows, columns, self.k, self.lanes)
            || are_apart && self.packing_costs_more(rows, columns);
        exchanged != pays
    }

    /// Whether columns that lie apart, whose `k` lie beside each other, are better read as rows where they are than packed, although
    /// vectors along the rows are emptier, and results lie apart.
    fn packing_costs_more(&self, rows: usize, columns: usize) -> bool {
        // The cost of packing one step of a vector of columns, in multiply-adds of a vector: each element of a window anew, and of
        // bytes a word at a time.
        let packing = match self.group {
            1 => 20,
            group => 2 * group,
        };
        let is_window = self.k.iter().filter(|dim| dim.extent > 1).count() > 1;
        let as_columns = columns
            .div_ceil(self.lanes)
            .saturating_mul(rows.saturating_add(packing));
        let as_rows = columns.saturating_mul(rows.div_ceil(self.lanes));
        let k = self.k.iter().map(|dim| dim.extent);
        let points = k.fold(1, usize::saturating_mul);
        let saved = as_columns.saturating_sub(as_rows);
        is_window && saved.saturating_mul(points) >= rows.saturating_mul(columns)
    }

    /// Whether as many `k` of a point of the left operand, or of the right one, as a vector has lanes lie beside each other.
    fn lie_together(&self, left: bool) -> bool {
        let step = |dim: &Dim| if left { dim.left } else { dim.right };
        let mut k = self.k.iter();
        k.any(|dim| step(dim) == 1 && dim.extent >= self.lanes)
    }
}

/// The step from each point of some dims to the next, if it is the same for all, at least `least`; that for a single point.
fn pitch(dims: &[(usize, usize)], least: usize) -> Option<usize> {
    let Some(&(_, pitch)) = dims.last() else {
        return Some(least);
    };
    let is_even = dims
        .windows(2)
        .all(|pair| pair[1].0.checked_mul(pair[1].1) == Some(pair[0].1));
    (is_even && pitch >= least).then_some(pitch)
}

/// Whether dims of these extents and strides follow each other without gaps.
fn is_row_major(dims: Vec<(usize, usize)>) -> bool {
    let mut step = 1usize;
    dims.iter().rev().all(|&(extent, stride)| {
        let follows = stride == step;
        step = step.saturating_mul(extent);
        follows
    })
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

/// Whether vectors along the columns would be so much emptier than vectors along the rows that exchanging the sides
/// pays, although results then lie apart and the columns have to be packed as rows.
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

/// No dim moves in an operand that its group is not part of.
pub(crate) fn check_groups(contraction: &Contraction) -> Result<(), Refused> {
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
pub(crate) fn check_overlap(contraction: &Contraction) -> Result<(), Refused> {
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
