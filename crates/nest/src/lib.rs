//! The loop-nest IR: what a model computes, as assignments over rectangular domains.
//!
//! > A nest is a list of stages. A stage means: for every point of `domain`, in row-major order,
//! > `target[at] (op)= value`.
//!
//! Every operator family is a choice of `at` and `value`: a layout operator is a [`Kind::Load`]
//! through an index map, a gather a load whose index is a [`Kind::Wrap`] of another load, a scatter a
//! stage whose `at` is one, a reduction a [`Kind::Reduce`]. Stages may take turns along their outermost
//! axis ([`Stage::group`]): the parts of a recurrent step do. Long folds along memory are partial folds that run side
//! by side ([`partial_folds`]), and sums of products of quantised values are sums of bytes
//! ([`quantized_products`]). Fusion is substitution ([`fuse`]), and sums of
//! products become stages of their own ([`contract`]), which a kernel made for them may run. Indices that are
//! constant become tables of offsets ([`constant_indices`]), and updates of memory that a failing run must leave as it
//! was keep journals ([`keep_journals`]). What may be merged, shared or repeated follows from what stages read and
//! write ([`Effects`]).
//!
//! Invariants:
//! * a nest is pure data: it can be printed, parsed, verified and interpreted without a code
//!   generator, and knows neither files, operators, nor machine instructions;
//! * every axis is bound exactly once in a nest, so that substitution cannot capture it;
//! * every access is proven to lie inside its buffer ([`verify`]): by interval arithmetic over the
//!   axes, by the guard of a [`Kind::Select`] around it, or because it is checked at run time by a
//!   [`Kind::Wrap`]. Nothing may run a nest that has not passed;
//! * arithmetic is exact in its type: integers wrap, 64-bit integers and `f64` are never computed in
//!   anything narrower. The formats with fewer bits (`f16`, `u4`, …) only store: a scalar of such a
//!   type can be loaded, selected, cast and stored, nothing else.

mod analysis;
pub mod compiler_threads;
mod interpret;
mod ir;
mod math;
mod passes;

pub use analysis::{
    Aliases, Coding, Contraction, Effects, Factor, Footprint, Interval, ParallelChunks, Points,
    Ranges, Scan, Stride, Strided, ValueRange, VerifyError, kernel_ranges, value_ranges, verify,
};
pub use interpret::{BufferBytes, InterpretError, interpret, interpret_until};
pub use ir::{
    Axis, AxisId, Binary, Buffer, BufferId, Const, Fault, Kind, Layer, LayerId, MAX_RANK, Mode,
    Nest, ParseError, Policy, Role, Scalar, Site, SiteId, Stage, SubNest, Unary, Wrap, build,
    parse, row_major,
};
pub use math::{legalize, legalize_with_halves};
pub use passes::{
    Journal, Kept, Reason, constant_indices, contract, fuse, keep_journals, partial_folds,
    quantized_products, schedule, simplify,
};
