//! Analyses: facts about a nest, which they do not change.
//!
//! An analysis knows the data ([`crate::ir`]) and other analyses, and no pass.

mod bound_chunks;
mod contraction;
mod cost;
mod delinearized;
mod digits;
mod dim_groups;
mod effects;
mod finite;
mod footprint;
mod formula_bounds;
mod interval;
mod kernel_ranges;
mod linear;
mod operations;
mod parallel_chunks;
mod quotients;
mod ranges;
mod scan;
mod simplest;
mod spans;
mod symbolic_ranges;
mod value_ranges;
mod verify;
mod window_overlap;

pub use bound_chunks::BoundChunks;
pub use contraction::{
    Border, Coding, Contraction, Factor, GroupRows, Groups, Points, Stride, Strided,
};
pub(crate) use contraction::{
    CodedLoad, Numbered, byte, factor, is_coded, is_grouped, is_integer_code, is_sum_of_terms,
    narrow_step, offset, strided_load, sum_of_products, sums, sums_that,
};
pub use cost::Work;
pub(crate) use delinearized::{delinearized, divided, joined_digits};
pub(crate) use dim_groups::{GroupedOffset, grouped_offset, multiple_of_extent};
pub use effects::{Aliases, Effects};
pub use finite::are_finite;
pub use footprint::{BoundFootprint, Footprint};
pub(crate) use formula_bounds::least_of;
pub use interval::Interval;
pub use kernel_ranges::kernel_ranges;
pub(crate) use kernel_ranges::layer_ranges;
pub(crate) use linear::{Linear, narrow};
pub use parallel_chunks::ParallelChunks;
pub(crate) use parallel_chunks::{dim_apart, may_collide};
pub(crate) use quotients::{divide, flat_offset, remainder};
pub use ranges::Ranges;
pub(crate) use ranges::ranges_of;
pub use scan::Scan;
pub use value_ranges::{ValueRange, value_ranges};
pub(crate) use verify::is_proven;
pub use verify::{VerifyError, verify};
pub(crate) use window_overlap::window_overlap;
