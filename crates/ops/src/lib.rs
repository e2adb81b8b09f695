//! The operators: one declaration each.
//!
//! An operator is a small file (or a row of a table) with a documented formula, its attributes, and
//! two methods of [`Op`]: `infer`, which gives output types and partial shapes, and `lower`, which
//! appends the loop nest that computes them; those that turn shapes into values have a third, `bounds`. Everything else is read off the nest: the reference
//! implementation and constant folding interpret it, fusion rewrites it, native code is emitted from it.
//!
//! Where the size of an output or the control flow depends on data, there is no loop nest: such an
//! operator is a [`Native`], with a Rust function from tensors to tensors in place of `lower`. It runs
//! between two nests.
//!
//! The folders are kinds of lowering: `elementwise`, `reduction`, `layout`, `index`, `window`,
//! `compose`, `recurrent`, `region`, `native`, `structure`.
//!
//! Invariants:
//! * an operator sees neither a file nor a machine instruction: attributes come in as text, tensors
//!   as types, shapes and (where asked for) constant values;
//! * `lower` only runs after `infer` succeeded with every output shape static, and repeats none of
//!   its checks;
//! * defaults, ranges and edge rules are those of the operator's specification in the OpenVINO
//!   documentation; where that is silent, the file says what was chosen;
//! * a type or version that has no [`OpDef`] is refused by name.
//!
//! # Adding an operator
//! 1. Copy the nearest file in the folder of its kind of lowering.
//! 2. Write the formula, the attributes, `infer` and `lower`.
//! 3. Add its `mod` line, and its row in `FILES`, which [`all`] lists.
//! 4. Add a sample model with inputs and expected outputs, from the specification, and run the tests.

mod attrs;
mod compose;
mod elementwise;
mod error;
mod evaluate;
mod index;
mod infer;
mod layout;
mod lower;
mod native;
mod op;
mod recurrent;
mod reduction;
mod region;
mod signature;
mod stop;
mod structure;
#[cfg(test)]
mod testing;
mod window;

pub use attrs::{AttrError, Attributes};
pub use error::OpError;
pub use evaluate::Evaluate;
pub use infer::{Infer, TensorType};
pub use lower::{IndexPolicy, Lower, chosen};
pub use op::{Build, Family, Instance, Native, Op, OpDef};
pub use signature::Signature;
pub use stop::Stop;
pub use structure::{ConstAttributes, ParameterAttributes, VariableAttributes, format_shape};

/// The files, by folder and then by name. The tables have their rows themselves.
static FILES: &[&OpDef] = &[
    &structure::ASSIGN,
    &structure::CONST,
    &structure::IF,
    &structure::LOOP,
    &structure::PARAMETER,
    &structure::READ_VALUE,
    &structure::RESULT,
    &structure::TENSOR_ITERATOR,
    &compose::batch_norm::V1,
    &compose::batch_norm::V5,
    &compose::bucketize::DEF,
    &compose::cum_sum::DEF,
    &compose::einsum::DEF,
    &compose::fake_convert::DEF,
    &compose::fake_quantize::DEF,
    &compose::group_normalization::DEF,
    &compose::grouped_matmul::DEF,
    &compose::log_softmax::DEF,
    &compose::lrn::DEF,
    &compose::matmul::DEF,
    &compose::mvn::V2,
    &compose::mvn::V6,
    &compose::normalize_l2::DEF,
    &compose::normalize_l2::GRN,
    &compose::prior_box::V1,
    &compose::prior_box::V8,
    &compose::prior_box_clustered::DEF,
    &compose::prior_grid_generator::DEF,
    &compose::region_yolo::DEF,
    &compose::rgb_to_nv12::BGR,
    &compose::rgb_to_nv12::RGB,
    &compose::scaled_dot_product_attention::DEF,
    &compose::softmax::V1,
    &compose::softmax::V8,
    &compose::yuv_to_rgb::I420_TO_BGR,
    &compose::yuv_to_rgb::I420_TO_RGB,
    &compose::yuv_to_rgb::NV12_TO_BGR,
    &compose::yuv_to_rgb::NV12_TO_RGB,
    &elementwise::clamp::DEF,
    &elementwise::convert::DEF,
    &elementwise::convert_like::DEF,
    &elementwise::convert_promote_types::DEF,
    &elementwise::divide::DEF,
    &elementwise::elu::DEF,
    &elementwise::gelu::V2,
    &elementwise::gelu::V7,
    &elementwise::hard_sigmoid::DEF,
    &elementwise::identity::DEF,
    &elementwise::is_inf::DEF,
    &elementwise::prelu::DEF,
    &elementwise::round::DEF,
    &elementwise::select::DEF,
    &elementwise::selu::DEF,
    &elementwise::swish::DEF,
    &index::embedding_bag_offsets::DEF,
    &index::embedding_bag_offsets::SUM,
    &index::embedding_bag_packed::DEF,
    &index::embedding_bag_packed::SUM,
    &index::embedding_segments_sum::DEF,
    &index::gather::V1,
    &index::gather::V7,
    &index::gather::V8,
    &index::gather_elements::DEF,
    &index::gather_nd::V5,
    &index::gather_nd::V8,
    &index::gather_tree::DEF,
    &index::one_hot::V1,
    &index::one_hot::V16,
    &index::scatter_elements_update::V12,
    &index::scatter_elements_update::V3,
    &index::scatter_nd_update::V15,
    &index::scatter_nd_update::V3,
    &index::scatter_update::DEF,
    &index::search_sorted::DEF,
    &index::segment_max::DEF,
    &layout::batch_to_space::BATCH_TO_SPACE,
    &layout::batch_to_space::SPACE_TO_BATCH,
    &layout::broadcast::V1,
    &layout::broadcast::V3,
    &layout::concat::DEF,
    &layout::depth_to_space::DEPTH_TO_SPACE,
    &layout::depth_to_space::SPACE_TO_DEPTH,
    &layout::eye::DEF,
    &layout::pad::V1,
    &layout::pad::V12,
    &layout::range::V1,
    &layout::range::V4,
    &layout::reorg_yolo::DEF,
    &layout::reshape::DEF,
    &layout::reverse::DEF,
    &layout::reverse_sequence::DEF,
    &layout::roll::DEF,
    &layout::shape_of::V1,
    &layout::shape_of::V3,
    &layout::shuffle_channels::DEF,
    &layout::slice::DEF,
    &layout::slice_scatter::DEF,
    &layout::split::DEF,
    &layout::split::VARIADIC,
    &layout::squeeze::V1,
    &layout::squeeze::V15,
    &layout::strided_slice::DEF,
    &layout::tile::DEF,
    &layout::transpose::DEF,
    &layout::unsqueeze::DEF,
    &native::ctc_greedy_decoder::DEF,
    &native::ctc_greedy_decoder::SEQ_LEN,
    &native::ctc_loss::DEF,
    &native::detection_output::V1,
    &native::detection_output::V8,
    &native::detectron_detection_output::DEF,
    &native::detectron_top_k_rois::DEF,
    &native::dft::DFT,
    &native::dft::IDFT,
    &native::generate_proposals::DEF,
    &native::generate_proposals::SINGLE_IMAGE,
    &native::inverse::DEF,
    &native::irdft::DEF,
    &native::istft::DEF,
    &native::matrix_nms::DEF,
    &native::multiclass_nms::V8,
    &native::multiclass_nms::V9,
    &native::multinomial::DEF,
    &native::nms_rotated::DEF,
    &native::non_max_suppression::V1,
    &native::non_max_suppression::V3,
    &native::non_max_suppression::V4,
    &native::non_max_suppression::V5,
    &native::non_max_suppression::V9,
    &native::non_zero::DEF,
    &native::proposal::V1,
    &native::proposal::V4,
    &native::random_uniform::DEF,
    &native::rdft::DEF,
    &native::sparse_fill_empty_rows::DEF,
    &native::stft::DEF,
    &native::string_tensor::PACK,
    &native::string_tensor::UNPACK,
    &native::top_k::V1,
    &native::top_k::V11,
    &native::top_k::V3,
    &native::unique::DEF,
    &recurrent::gru_cell::DEF,
    &recurrent::gru_sequence::DEF,
    &recurrent::lstm_cell::V1,
    &recurrent::lstm_cell::V4,
    &recurrent::lstm_sequence::DEF,
    &recurrent::rnn_cell::DEF,
    &recurrent::rnn_sequence::DEF,
    &region::deformable_psroi_pooling::DEF,
    &region::psroi_pooling::DEF,
    &region::roi_align::V3,
    &region::roi_align::V9,
    &region::roi_align_rotated::DEF,
    &region::roi_feature_extractor::DEF,
    &region::roi_pooling::DEF,
    &window::adaptive_pool::AVG,
    &window::adaptive_pool::MAX,
    &window::avg_pool::V1,
    &window::avg_pool::V14,
    &window::avg_pool::V16,
    &window::binary_convolution::DEF,
    &window::col2im::DEF,
    &window::convolution::CONVOLUTION,
    &window::convolution::GROUP,
    &window::convolution_backprop::CONVOLUTION,
    &window::convolution_backprop::GROUP,
    &window::deformable_convolution::V1,
    &window::deformable_convolution::V8,
    &window::extract_image_patches::DEF,
    &window::grid_sample::DEF,
    &window::interpolate::V1,
    &window::interpolate::V11,
    &window::interpolate::V4,
    &window::max_pool::V1,
    &window::max_pool::V14,
    &window::max_pool::V8,
];

/// Every operator.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FILES
        .iter()
        .copied()
        .chain(elementwise::ROWS)
        .chain(reduction::ROWS)
}

/// The declaration of a type and version. Types are compared without case, as OpenVINO does.
pub fn find(name: &str, version: &str) -> Option<&'static OpDef> {
    all().find(|def| def.name.eq_ignore_ascii_case(name) && def.versions.contains(&version))
}
