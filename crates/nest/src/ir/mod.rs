//! The data: nests, stages, scalars and their text form.
//!
//! Nothing here knows of an analysis or a pass.

mod axis;
mod bound;
pub mod build;
mod definition;
mod equality;
mod fault;
mod fold_bounds;
mod ids;
mod nest;
mod operators;
mod parse;
mod patterns;
mod print;
mod reciprocal;
mod rewrite;
mod scalar;
mod seen;
mod stage;
mod sub_nest;
mod unused_buffers;
mod visit;

pub use axis::{Axis, AxisId};
pub(crate) use definition::Definition;
pub use fault::{Fault, MAX_RANK};
pub use fold_bounds::FoldBounds;
pub(crate) use fold_bounds::GuardedFold;
pub use ids::{BufferId, LayerId, SiteId};
pub(crate) use nest::one_line;
pub use nest::{Buffer, Layer, Nest, Role, Site, row_major};
pub use operators::{Binary, Unary};
pub use parse::{ParseError, parse};
pub(crate) use patterns::{as_binary, as_select, float};
pub(crate) use print::{binary_name, indexed_load, infix, unary_name};
pub use reciprocal::part_of;
pub(crate) use reciprocal::reciprocal;
pub(crate) use rewrite::{
    rebound, replace_axes, rewrite, rewrite_stage, rewrite_those, substitute,
};
pub use scalar::{Const, Kind, Policy, Scalar, Wrap};
pub use seen::Seen;
pub use stage::{Mode, Stage};
pub use sub_nest::SubNest;
pub(crate) use visit::{
    computes_with, extents_of_axes, free_axes, loaded_by, visit, visit_accesses, visit_folds,
    visit_stage, visit_those,
};
