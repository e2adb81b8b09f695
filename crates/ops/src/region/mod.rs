//! Operators that sample regions of feature maps whose places are data.
//!
//! Coordinates are computed in the type that `ElementType::compute` gives, whatever they hold: a
//! coordinate that is NaN, infinite or far away becomes an index by [`sample::bounded`], and what
//! is loaded there is left out where the operator says so.

mod align;
pub(crate) mod counted;
pub(crate) mod deformable_psroi_pooling;
pub(crate) mod psroi_pooling;
mod regions;
pub(crate) mod roi_align;
pub(crate) mod roi_align_rotated;
pub(crate) mod roi_feature_extractor;
pub(crate) mod roi_pooling;
pub(crate) mod sample;
