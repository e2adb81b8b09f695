//! Operators that fold over a window that slides over the spatial dims, which are those after the
//! first two.
//!
//! Arithmetic is done in the type that `ElementType::compute` gives and rounded once, at the end.

pub(crate) mod adaptive_pool;
pub(crate) mod avg_pool;
pub(crate) mod binary_convolution;
pub(crate) mod col2im;
pub(crate) mod convolution;
pub(crate) mod convolution_backprop;
pub(crate) mod deformable_convolution;
mod dim_windows;
pub(crate) mod extract_image_patches;
mod first;
pub(crate) mod grid_sample;
pub(crate) mod interpolate;
pub(crate) mod max_pool;
mod mixing;
mod row_folds;
mod slide;
