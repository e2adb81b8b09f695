//! Operators that move elements by indices found in tensors.

mod embedding;
pub(crate) mod embedding_bag_offsets;
pub(crate) mod embedding_bag_packed;
pub(crate) mod embedding_segments_sum;
pub(crate) mod gather;
pub(crate) mod gather_elements;
pub(crate) mod gather_nd;
pub(crate) mod gather_tree;
pub(crate) mod one_hot;
mod scatter;
pub(crate) mod scatter_elements_update;
pub(crate) mod scatter_nd_update;
pub(crate) mod scatter_update;
mod search;
pub(crate) mod search_sorted;
pub(crate) mod segment_max;
mod segments;
