//! Operators of several steps, with values in between.
//!
//! Arithmetic is done in the type that `ElementType::compute` gives, values in between are kept in
//! it, and the result is rounded once, at the end.

pub(crate) mod cum_sum;
pub(crate) mod log_softmax;
pub(crate) mod matmul;
mod slices;
pub(crate) mod softmax;
