//! The graph of a model: layers as nodes, tensors as edges.
//!
//! [`Model::import`] builds it from the plain structs of a file and checks its structure,
//! [`Model::export`] goes back. [`infer`] gives every tensor a type and a partial shape;
//! [`specialize`] fixes the shapes of the inputs and lowers the graph to one loop nest, folding what
//! is constant. Where a shape depends on a value that only a run can give, it lowers what it can and
//! says which values it is waiting for; likewise at an operator that is a function of its own or runs
//! sub-graphs, and so stands between two nests.
//!
//! Invariants:
//! * the graph of a [`Model`] is acyclic, and every input port of every node has exactly one edge;
//! * no tensor has more than [`MAX_RANK`](vinelift_nest::MAX_RANK) dims or more bytes than can be counted, so
//!   that what works on shapes may take its time for each two dims;
//! * errors are collected over all layers, not just the first: every unsupported layer is named;
//! * what is kept of the file (ids, names, attributes, `rt_info`, bodies) survives export, so that a
//!   model that was exported reads as equal;
//! * no operator is known by name here, except those that are the graph itself: `Parameter`, `Const`
//!   and `Result`, the variables `ReadValue` and `Assign`, and those that run sub-graphs; `ShapeOf`, which reads no
//!   contents; the conversions of IR version 10 (`legacy`); and what is recognised around compressed and quantised constants
//!   (`specialize::decompression`, `specialize::codes`) and caches (`caches`).

mod caches;
mod control;
mod edit;
mod error;
mod export;
mod import;
mod legacy;
mod model;
mod specialize;
mod strings;
mod text;

pub use caches::{Storage, StoredCache};
pub use control::{Body, Control, ControlError};
pub use edit::Use;
pub use error::{Error, LayerError, Problem};
pub use model::{Edge, Model, Node, NodeKind, Output, TensorId};
pub use petgraph::graph::NodeIndex;
pub use specialize::{
    Given, Known, Segment, ShapeValue, Source, Types, infer, infer_until, specialize,
};
pub use strings::Strings;
pub use vinelift_ops::Stop;
