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
//! constant become tables of offsets ([`known_indices`]), and updates of memory that a failing run must leave as it
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

mod bound;
pub mod build;
mod contract;
mod effects;
mod fault;
mod fuse;
mod groups;
mod interior;
mod interpret;
mod journal;
mod known;
mod legalize;
mod linear;
mod math;
mod nest;
mod pad;
pub mod parallel;
mod parse;
mod partial;
mod parts;
mod print;
mod quantized;
mod range;
mod reuse;
mod rewrite;
mod scalar;
mod scan;
mod schedule;
mod simplify;
mod skip;
mod split;
mod trim;
mod verify;

pub use bound::{Bound, bound};
pub use contract::{Coding, Contraction, Factor, Points, Stride, Strided, contract};
pub use effects::{Aliases, Effects};
pub use fault::{Fault, MAX_RANK};
pub use fuse::{Kept, Reason, fuse};
pub use interpret::{BufferBytes, InterpretError, interpret, interpret_until};
pub use journal::{Journal, keep_journals};
pub use known::known_indices;
pub use legalize::{legalize, legalize_with_halves};
pub use nest::{
    Axis, Buffer, BufferId, Layer, LayerId, Mode, Nest, Role, Site, SiteId, Stage, row_major,
};
pub use parse::{ParseError, parse};
pub use partial::partial_folds;
pub use parts::{Parts, Reach};
pub use quantized::quantized_products;
pub use range::{Interval, Ranges};
pub use scalar::{AxisId, Binary, Const, Kind, Policy, Scalar, Unary, Wrap};
pub use scan::Scan;
pub use schedule::schedule;
pub use simplify::simplify;
pub use split::{Kernel, split};
pub use verify::{VerifyError, verify};
