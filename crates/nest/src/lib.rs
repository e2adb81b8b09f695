//! The loop-nest IR: what a model computes, as assignments over rectangular domains.
//!
//! > A nest is a list of stages. A stage means: for every point of `domain`, in row-major order,
//! > `target[at] (op)= value`.
//!
//! Every operator family is a choice of `at` and `value`: a layout operator is a [`Kind::Load`] through an index map, a
//! gather a load whose index is a [`Kind::Wrap`] of another load, a scatter a stage whose `at` is one, a reduction a
//! [`Kind::Reduce`]. The stages of a recurrent step take turns along their outermost axis ([`Stage::group`]).
//!
//! | folder | holds | knows |
//! |---|---|---|
//! | `ir` | nests, stages, scalars; the builder, walks and rewrites; text, printed and parsed | nothing above |
//! | `analysis` | ranges, linear forms, effects, chunks, contractions, the verifier | `ir` |
//! | `math` | functions as polynomials over scalars, [`legalize()`] | `ir` |
//! | `interpret` | the reference semantics | `ir`, `math`, effects |
//! | `passes` | rewrites that keep the meaning, in their order | `ir`, `analysis` |
//!
//! Extents are numbers or formulas over symbols ([`Extent`](vinelift_tensor::Extent)): a nest with symbols stands for one
//! nest for each of their values ([`Nest::bound_to`]). Text, verifier and code generators know both, as the interpreter
//! does at the example; what a pass decides
//! about them, a recorder writes down ([`symbols`](vinelift_tensor::symbols)).
//!
//! The terms are listed in [`glossary`].
//!
//! Invariants:
//! * a nest is pure data: it can be printed, parsed, verified and interpreted without a code
//!   generator, and knows neither files, operators, nor machine instructions;
//! * every axis is bound exactly once in a nest, so that substitution cannot capture it;
//! * every access is proven to lie inside its buffer ([`verify`]): by interval arithmetic over the
//!   axes, by the guard of a [`Kind::Select`] around it, or because it is checked at run time by a
//!   [`Kind::Wrap`]. Nothing may run a nest that has not passed;
//! * arithmetic is exact in its type: integers wrap, 64-bit integers and `f64` are never computed in
//!   anything narrower. The formats with fewer bits (`f16`, `u4`, …) only store: a scalar of one of these
//!   types can be loaded, selected, cast and stored, nothing else.

mod analysis;
pub mod compiler_threads;
pub mod glossary;
mod interpret;
mod ir;
mod math;
mod passes;

pub use analysis::{
    Aliases, Border, BoundChunks, BoundFootprint, Coding, Contraction, Effects, Factor, Footprint,
    GroupRows, Groups, Interval, ParallelChunks, Points, Ranges, Scan, Stride, Strided, ValueRange,
    VerifyError, Work, are_finite, kernel_ranges, value_ranges, verify,
};
pub use interpret::{BufferBytes, InterpretError, interpret, interpret_until};
pub use ir::{
    Axis, AxisId, Binary, Buffer, BufferId, Const, Fault, FoldBounds, Kind, Layer, LayerId,
    MAX_RANK, Mode, Nest, ParseError, Policy, Role, Scalar, Seen, Site, SiteId, Stage, SubNest,
    Unary, Wrap, build, parse, part_of, row_major,
};
pub use math::{Rounding, legalize, legalize_with_halves, rounded_down};
pub use passes::{
    Batch, BatchBytes, Journal, Kept, LEAST_CODED, Order, Reason, channels_last, constant_indices,
    contract, dead_points, dead_taps, dynamic_quantization, fuse, gathered_channels_last,
    hoist_operands, hoist_scales, keep_journals, partial_folds, quantized_products,
    repeat_operands, schedule, simplify, unordered_partial_folds,
};
