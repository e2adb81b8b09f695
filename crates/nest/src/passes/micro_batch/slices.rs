//! The slices that the images of a batch have of a buffer.

use crate::ir::BufferId;

/// A buffer has a slice for each image: `length` neighbours along `dim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slices {
    pub(super) dim: usize,
    pub(super) length: i64,
    /// Whether they are all the same, as they depend on constants alone. The buffer then stays as long as it is.
    pub(super) are_equal: bool,
}

impl Slices {
    /// The slices of `buffer`, if it has slices and they differ; `all` has those of each buffer.
    pub(super) fn differing(all: &[Option<Slices>], buffer: BufferId) -> Option<Slices> {
        all[buffer.0 as usize].filter(|slices| !slices.are_equal)
    }

    /// Whether an index along [`Slices::dim`] that moves by `k` goes on to the next slice, or to one that is equal.
    pub(super) fn reaches(&self, k: i64) -> bool {
        match self.are_equal {
            true => k % self.length == 0,
            false => k == self.length,
        }
    }
}
