//! Operators that move elements by an index map that is known when compiling.

pub(crate) mod batch_to_space;
mod bounds;
pub(crate) mod broadcast;
pub(crate) mod concat;
pub(crate) mod depth_to_space;
pub(crate) mod extent;
pub(crate) mod eye;
pub(crate) mod index_map;
pub(crate) mod pad;
pub(crate) mod range;
pub(crate) mod reorg_yolo;
pub(crate) mod reshape;
pub(crate) mod reverse;
pub(crate) mod reverse_sequence;
pub(crate) mod roll;
pub(crate) mod shape_of;
pub(crate) mod shuffle_channels;
pub(crate) mod slice;
pub(crate) mod slice_scatter;
pub(crate) mod split;
pub(crate) mod squeeze;
pub(crate) mod strided_slice;
pub(crate) mod tile;
pub(crate) mod transpose;
pub(crate) mod unsqueeze;
