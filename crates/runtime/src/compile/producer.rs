//! The code that makes the rows of a contraction, run with the tasks of that (Halide's `compute_at`): each task first makes the
//! rows that it takes, in memory of its thread, so that they never leave the cache. A depthwise convolution before a pointwise
//! one is such code.

use std::ops::Range;

/// The parts of the code by the tasks of the contraction for which it makes rows. Together they are the whole.
#[derive(Debug)]
pub(crate) struct Producer {
    /// How many steps before the contraction the code is.
    pub(crate) distance: usize,
    /// For each task, the part that makes its rows.
    pub(crate) parts: Vec<Range<usize>>,
}
