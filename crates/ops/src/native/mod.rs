//! Operators whose outputs no loop nest gives, because their size or the control flow depends on data:
//! selections, sorts, searches with early exits.
//!
//! Each is a Rust function from tensors to tensors. It runs between two nests, on inputs that `infer`
//! has accepted with their exact types and values.

mod boxes;
mod class_boxes;
pub(crate) mod ctc_greedy_decoder;
pub(crate) mod ctc_loss;
mod decay;
pub(crate) mod detection_output;
pub(crate) mod detectron_detection_output;
pub(crate) mod detectron_top_k_rois;
pub(crate) mod dft;
mod fourier;
mod frames;
pub(crate) mod generate_proposals;
mod grid;
pub(crate) mod inverse;
pub(crate) mod irdft;
pub(crate) mod istft;
pub(crate) mod matrix_nms;
pub(crate) mod multiclass_nms;
pub(crate) mod multinomial;
pub(crate) mod nms_rotated;
pub(crate) mod non_max_suppression;
pub(crate) mod non_zero;
mod prior_boxes;
pub(crate) mod proposal;
mod proposals;
mod random;
pub(crate) mod random_uniform;
pub(crate) mod rdft;
mod real;
mod rotated_box;
mod selection;
pub(crate) mod sparse_fill_empty_rows;
pub(crate) mod stft;
pub(crate) mod string_tensor;
mod suppression;
mod tensors;
pub(crate) mod top_k;
pub(crate) mod unique;
