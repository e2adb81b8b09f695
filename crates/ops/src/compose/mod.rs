//! Operators of several steps, with values in between.
//!
//! Arithmetic is done in the type that `ElementType::compute` gives, values in between are kept in
//! it, and the result is rounded once, at the end.

pub(crate) mod batch_norm;
pub(crate) mod bucketize;
pub(crate) mod cum_sum;
pub(crate) mod einsum;
pub(crate) mod fake_convert;
pub(crate) mod fake_quantize;
pub(crate) mod group_normalization;
pub(crate) mod grouped_matmul;
pub(crate) mod log_softmax;
pub(crate) mod lrn;
pub(crate) mod matmul;
pub(crate) mod mvn;
pub(crate) mod normalize_l2;
pub(crate) mod prior_box;
pub(crate) mod prior_box_clustered;
pub(crate) mod prior_grid_generator;
mod priors;
pub(crate) mod region_yolo;
pub(crate) mod rgb_to_nv12;
pub(crate) mod scaled_dot_product_attention;
mod slices;
pub(crate) mod softmax;
pub(crate) mod yuv_to_rgb;
