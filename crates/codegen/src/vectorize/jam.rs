//! The state of [unroll-and-jam](super::unroll_and_jam): the rows that are built side by side, and the loads that they share.

use crate::vector_ir::ops::Op;
use crate::vector_ir::program::Value;
use std::ops::Range;
use vinelift_nest::{Axis, Scalar};
use vinelift_tensor::ElementType;

/// An axis of which several points are done side by side.
pub(super) struct Jam<'n> {
    pub(super) axis: Axis,
    /// How many of them in each turn.
    pub(super) each: usize,
    /// The loop of these turns, by its number; if it is outside of the program, a block without a loop.
    pub(super) block: usize,
    /// The rows that are being built: the first `each`, which stand for each turn of the loop, or the rows left after
    /// its last turn.
    pub(super) rows: Range<usize>,
    /// The one of them that is being built.
    pub(super) row: usize,
    /// The folds that rows share loads in, in groups that are done side by side.
    pub(super) folds: Vec<FoldGroup<'n>>,
    /// The most loads that stay in registers; others are repeated for each use.
    pub(super) most_kept: usize,
    /// Loads that rows may share while they fold.
    pub(super) loads: Option<Vec<SharedLoad>>,
    /// The step of the folds that is being built: in it, row `r` takes in point `time - r·behind`.
    pub(super) time: usize,
}

/// Folds of equally many points, each row of which is equally far behind the one before.
#[derive(Clone)]
pub(super) struct FoldGroup<'n> {
    pub(super) folds: Vec<&'n Scalar>,
    pub(super) points: usize,
    /// By how many points.
    pub(super) behind: usize,
}

/// A load that rows of a fold may share.
pub(super) struct SharedLoad {
    /// How deep inside loops it stands.
    pub(super) depth: usize,
    pub(super) load: Load,
    pub(super) value: Value,
    /// The step in which it was loaded.
    pub(super) time: usize,
}

/// A load, and the type of its elements.
pub(super) type Load = (Op, ElementType);

impl Jam<'_> {
    /// For how many steps of [`Jam::time`] a load stays in its register. An element of the image is read by all rows in the same
    /// step. A weight that differs along the lanes is read by one row after the other, by the last row `last_row` steps after the
    /// first. If there are registers for `last_row + 1` weights, each is loaded once, else once for each row.
    pub(super) fn times_kept(&self, last_row: usize) -> usize {
        match last_row < self.most_kept {
            true => last_row,
            false => 0,
        }
    }
}
