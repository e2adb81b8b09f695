//! Products of rows with constant columns of integer codes, whose sums are scaled group by group.
//!
//! The codes of 16 columns are a *panel*, in *lines* of 64 bytes: 8 `k` of codes of 4 bits, 4 of those of 8 bits. The lines of
//! four panels, a *strip*, take turns, and their zero points and scales lie before them, so that a strip is read from end to
//! end. A tile takes a few rows, where they are, by one panel of a strip or several. Of more than two rows of floats, elements
//! are made of the codes of a group for all of them.

mod floats;
mod operands;
mod pack;
mod partition;
mod run;

use crate::axes::{Axes, Axis};
use crate::grouped_tile::{GroupedRows, PANEL, Shape, Tiles, depth};
use crate::layout::Layout;
use crate::prepared::next_number;
use crate::{Code, Isa, Refused, simd};
use vinelift_tensor::is_injective;

pub use partition::GroupedPartition;
pub use run::GroupedBuffers;

/// Sums of products with codes, over groups `g` of [`group`](Grouped::group) `k`, in order.
///
/// Of rows of [bytes](GroupedRows::Bytes), which were quantised by groups:
///
/// > `out[m, n] = Σ_g row_scale[m, g] · (s[m, g, n] as f32 · scale[n, g])`, where
/// > `s[m, g, n] = Σ_{k in g} rows[m, k] · (code[n, k] - zero[n, g])`
///
/// The sum of a group is exact; it is rounded to `f32`, multiplied by the scale, and added by one fused multiply-add:
/// `acc = fma(row_scale, s as f32 · scale, acc)`, from `acc = 0` on.
///
/// Of rows of [floats](GroupedRows::Floats):
///
/// > `out[m, n] = Σ_g scale[n, g] · (s[m, g, n] - zero[n, g] · row_sum[m, g])`, where
/// > `s[m, g, n] = Σ_{k in g} rows[m, k] · code[n, k]`
///
/// `s` takes each `k` by a fused multiply-add, from 0 on; the product and the difference are rounded, and nothing is subtracted
/// where there are no zero points; `acc = fma(scale, s - zero · row_sum, acc)`, from `acc = 0` on.
///
/// A NaN's payload is not specified. Zero points and scales are those of a [`Coding`](crate::Coding), for groups of as many `k`
/// or more; a scale that is not there is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// The type of the rows.
    pub rows: GroupedRows,
    /// Dims of the rows, outermost first.
    pub m: Vec<GroupedDim>,
    /// How many columns there are.
    pub n: usize,
    /// How many columns lie side by side in `out`: a multiple of 16 that divides `n`, or all.
    pub block: usize,
    /// How far it is in `out` from such a block of columns to the next.
    pub block_out: usize,
    /// How many `k` there are. Those of a row lie side by side, and so do the scales or sums of its groups.
    pub k: usize,
    /// How many consecutive `k` a group has: a multiple of 8 that divides `coding_group`.
    pub group: usize,
    /// The type of the codes: integers.
    pub code: Code,
    /// The stride of the columns among the codes, in elements.
    pub column_step: usize,
    /// The stride of `k` among the codes.
    pub k_step: usize,
    /// How many consecutive `k` share zero points and scales, [`Coding::group`](crate::Coding::group): it divides `k`, and
    /// is `k` where there are neither.
    pub coding_group: usize,
}

/// A dim of the rows: how many steps it has, and how far a step moves in each operand, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedDim {
    /// How many steps.
    pub extent: usize,
    /// The stride in the rows.
    pub rows: usize,
    /// The stride among the scales or the sums of the rows' groups.
    pub points: usize,
    /// The stride in `out`.
    pub out: usize,
}

/// A [`Grouped`] product prepared for this machine. It never changes, and any number of threads may run it at once.
#[derive(Debug)]
pub struct GroupedProduct {
    /// Which kernel this is: plans belong to one.
    number: u64,
    code: Code,
    /// The shape of the packed codes.
    shape: Shape,
    column_step: usize,
    k_step: usize,
    /// How many codes the operand must have.
    codes_needed: usize,
    /// How many `k` a group has.
    group: usize,
    /// [`Grouped::block`] and [`Grouped::block_out`].
    block: usize,
    block_out: usize,
    /// Strides in the rows, among the scales or sums of their groups, and in `out`.
    rows: Axes<3>,
    /// How many elements of the rows, of the scales or sums of their groups and of `out` there must be.
    needed: [usize; 3],
    tiles: RowTiles,
    name: String,
}

/// The tiles for the type of the rows.
#[derive(Debug)]
enum RowTiles {
    Bytes(&'static Tiles),
    Floats(floats::Tiling),
}

/// No sum of a group has terms that are larger: a row's 127 by a difference of a code of 8 bits and a zero point.
const LARGEST_TERM: usize = 127 * 512;

impl GroupedProduct {
    /// Prepares a product for the given instructions. The results are the same for all.
    ///
    /// # Errors
    /// [`Refused::NoInstructions`], [`Refused::Groups`] and [`Refused::Columns`] if groups or blocks of columns are not as
    /// [`Grouped`] says, [`Refused::NotInteger`], [`Refused::Overlap`], or [`Refused::TooLarge`], of groups too whose sums an `i32` may not hold.
    pub fn new(problem: &Grouped, isa: Isa) -> Result<GroupedProduct, Refused> {
        if !isa.available() {
            return Err(Refused::NoInstructions { isa });
        }
        let &Grouped {
            n,
            block,
            block_out,
            k,
            group,
            code,
            coding_group,
            column_step,
            k_step,
            ..
        } = problem;
        let Some(depth) = depth(code) else {
            return Err(Refused::NotInteger { code });
        };
        let are_whole = group.is_multiple_of(8) && coding_group.is_multiple_of(group);
        if !are_whole || !k.is_multiple_of(coding_group) {
            return Err(Refused::Groups {
                k,
                group,
                coding_group,
            });
        }
        let are_panels = block.is_multiple_of(PANEL) && block > 0 && n.is_multiple_of(block);
        if block != n && !are_panels {
            return Err(Refused::Columns { n, block });
        }
        let are_bytes = problem.rows == GroupedRows::Bytes;
        if are_bytes && group > i32::MAX as usize / LARGEST_TERM {
            return Err(Refused::TooLarge);
        }
        let shape = Shape {
            rows: problem.rows,
            n,
            k,
            depth,
            group: coding_group,
        };
        let rows = rows(problem)?;
        let needed = needed(problem, &rows).ok_or(Refused::TooLarge)?;
        let tiles = match problem.rows {
            GroupedRows::Bytes => RowTiles::Bytes(simd::grouped_tiles(isa, depth)),
            GroupedRows::Floats => {
                RowTiles::Floats(floats::Tiling::new(isa, group, &rows, needed[2] > 0))
            }
        };
        Ok(GroupedProduct {
            number: next_number(),
            code,
            column_step,
            k_step,
            codes_needed: codes_needed(problem).ok_or(Refused::TooLarge)?,
            group,
            block,
            block_out,
            needed,
            rows,
            name: format!(
                "{} groups of {group}, codes of {} bits",
                tiles.name(),
                32 / depth
            ),
            tiles,
            // Whatever is said of zero points and scales, it can be packed.
            shape: shape
                .is_addressable()
                .then_some(shape)
                .ok_or(Refused::TooLarge)?,
        })
    }

    /// The layout of the codes when they are packed. It does not depend on the rows.
    pub fn layout(&self) -> Layout {
        Layout::grouped(self.shape, self.code, [self.column_step, self.k_step])
    }

    /// How many operations a run does: two for each product of a row's element with a code.
    pub fn flops(&self) -> u64 {
        [self.rows.points(), self.shape.n, self.shape.k]
            .iter()
            .fold(2, |flops: u64, &extent| flops.saturating_mul(extent as u64))
    }

    /// A description in a few words: instructions, groups and codes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many groups a row has.
    fn groups(&self) -> usize {
        self.shape.k.checked_div(self.group).unwrap_or(0)
    }
}

impl RowTiles {
    /// The name of the instruction set, and of the rows if they are not bytes.
    fn name(&self) -> String {
        match self {
            RowTiles::Bytes(tiles) => tiles.name.to_owned(),
            RowTiles::Floats(tiling) => format!("{} f32", tiling.tiles.name),
        }
    }

    /// How many panels are taken at once where there are as many rows: those of the tile of the most of these.
    fn panels_of(&self, code: Code, rows: usize) -> usize {
        match self {
            RowTiles::Bytes(tiles) => tiles.panels_of(rows),
            RowTiles::Floats(tiling) => tiling.panels_of(code, rows),
        }
    }
}

impl Grouped {
    /// How many blocks of columns there are.
    fn blocks(&self) -> usize {
        self.n.checked_div(self.block).unwrap_or(0)
    }
}

/// The dims of the rows, of which no two write the same element.
fn rows(problem: &Grouped) -> Result<Axes<3>, Refused> {
    let dims = || problem.m.iter();
    let rows = Axes::new(dims().map(|dim| Axis {
        extent: dim.extent,
        strides: [dim.rows, dim.points, dim.out],
    }))?;
    let columns = [(1, problem.block), (problem.block_out, problem.blocks())];
    let all = dims().map(|dim| (dim.out, dim.extent)).chain(columns);
    match rows.points() == 0 || problem.n == 0 || is_injective(all) {
        true => Ok(rows),
        false => Err(Refused::Overlap),
    }
}

/// How many codes the operand must have; `None` if the number overflows.
fn codes_needed(problem: &Grouped) -> Option<usize> {
    if problem.n == 0 || problem.k == 0 {
        return Some(0);
    }
    let columns = (problem.n - 1).checked_mul(problem.column_step)?;
    let ks = (problem.k - 1).checked_mul(problem.k_step)?;
    columns.checked_add(ks)?.checked_add(1)
}

/// How many elements of the rows, of the scales or sums of their groups and of `out` there must be, if their bytes can be counted.
fn needed(problem: &Grouped, rows: &Axes<3>) -> Option<[usize; 3]> {
    if rows.points() == 0 || problem.n == 0 {
        return Some([0; 3]);
    }
    let groups = problem.k.checked_div(problem.group).unwrap_or(0);
    let columns = (problem.blocks() - 1)
        .checked_mul(problem.block_out)?
        .checked_add(problem.block)?;
    let mut needed = [problem.k, groups, columns];
    for (operand, needed) in needed.iter_mut().enumerate() {
        if *needed > 0 {
            *needed = needed.checked_add(rows.last(operand))?;
            needed.checked_mul(size_of::<f32>())?;
        }
    }
    Some(needed)
}
