//! Passes: rewrites of a nest that keep its meaning.
//!
//! In the order in which a plan runs them. Those up to `partial_folds` define how sums are rounded, so they run at every level;
//! what follows changes no result.
//!
//! | pass | module | rewrites |
//! |---|---|---|
//! | [`quantized_products()`] | `quantized_products` | sums of products of quantised values, or of bytes less zero points → sums of products of bytes |
//! | [`dynamic_quantization()`], if asked for | `dynamic_quantization` | sums of products with constants of few bits → sums of groups of rows that are quantised |
//! | [`hoist_scales()`] | `hoist_scales` | sums of products with constants of few bits → sums of groups, less zero points and scaled afterwards |
//! | [`partial_folds()`] | `partial_folds` | long folds → partial folds that are combined at the end |
//! | [`Nest::make_room`](crate::Nest::make_room) | `room` | buffers of variables that grow → buffers of some capacity |
//! | [`Batch::split`] | `micro_batch` | the nest of a batch → that of a few of its images, run once for each few |
//! | [`dead_points()`] | `dead_points` | temporaries of which some points are never read → the other points alone |
//! | [`fuse()`] | `fuse` | loads of a temporary → the expression that defines it |
//! | [`dead_taps()`] | `dead_taps` | windows over a guarded operand → the points of them that see more than padding |
//! | [`contract()`] | `contract` | sums of products → stages of their own, with an epilogue |
//! | [`hoist_operands()`] | `hoist_operands` | an operand of a product whose other operand is made of another product → computed before both |
//! | [`constant_indices()`] | `constant_indices` | checked indices that are constants → tables of offsets |
//! | [`channels_last()`] | `channels_last` | temporaries with channels, of which sums of products are made → with the channels last |
//! | [`gathered_channels_last()`] | `channels_last` | data that a stage reads in several places chosen by other values, the same for all channels → with the channels last |
//! | [`unordered_partial_folds()`] | `partial_folds` | long folds that are the same in any order → partial folds, where their points are neighbours in memory |
//! | [`repeat_operands()`] | `repeat_operands` | small operands that keep the two innermost axes from being one → stored for all points of both |
//! | [`schedule()`], which consists of | `schedule` | |
//! | … in-place | `in_place` | a copy of a temporary that dies → the temporary is written there at once |
//! | … halos | `halo` | guarded copies of temporaries → these with their borders around them |
//! | … array padding | `array_padding` | temporaries whose channels or pixels crowd a few sets of the cache → with unused rows or lines between them |
//! | … simplify | `simplify` | index arithmetic and conditions → their simplest form |
//! | … clamp | `clamp` | values rounded to a grid between two ends → the same of a clamped number, without a division |
//! | … guard to index | `guard_to_index` | a select around a load that may read zero → its index |
//! | … loop peeling | `peel` | a domain → its interior without guards, and its borders |
//! | … trimming | `trim_folds` | a fold → the points at which its guard holds |
//! | … filling | `fill` | a guarded copy over axes with symbols → a fill of all its points, and a copy of those inside |
//! | … padding | `pad_windows` | large windows, or windows multiplied by weights, over a guarded operand → windows over a padded copy |
//! | … planes | `planes` | values of a few neighbours for each point → planes of them, which are then interleaved |
//! | … flatten | `flatten` | neighbouring dims of a buffer → one dim |
//! | … split | `split` | an innermost axis of which quotients or remainders are taken → two loops |
//! | … collapse | `collapse` | neighbouring axes of a domain that occur in proportion everywhere, or of which the inner one is short → one axis |
//! | … coalesce | `coalesce` | the two outermost loops of a stage → one loop, as in the other stages of its kernel |
//! | … strip-mining | `strip_mine` | the only loop around the lanes of a window → two loops, of which the inner one is short |
//! | [`keep_journals()`] | `journal` | updates of carried memory → updates that can be undone |
//!
//! `operand`, which stores a factor or a padded input as a tensor, is shared by `contract` and `pad_windows`;
//! `guard_box`, the box of a domain in which a guard holds, by `fill` and `halo`;
//! `rearrangeable`, the temporaries whose elements may lie elsewhere, by `channels_last` and `halo`; `constants`, the buffers
//! whose contents do not depend on a run, by `channels_last` and `dead_points`; `definitions`, the stages that buffers can be
//! replaced by, by `coded_products` and `quantized_products`; `coded_products`, the sums of products with constants of few bits, by
//! `dynamic_quantization` and `hoist_scales`.

mod array_padding;
mod channels_last;
mod clamp;
mod coalesce;
mod coded_products;
mod collapse;
mod constant_indices;
mod constants;
mod contract;
mod dead_points;
mod dead_taps;
mod definitions;
mod dynamic_quantization;
mod fill;
mod flatten;
mod fuse;
mod guard_box;
mod guard_to_index;
mod halo;
mod hoist_operands;
mod hoist_scales;
mod in_place;
mod journal;
mod micro_batch;
mod operand;
mod pad_windows;
mod partial_folds;
mod peel;
mod planes;
mod quantized_products;
mod rearrangeable;
mod repeat_operands;
mod room;
mod schedule;
mod simplify;
mod split;
mod strip_mine;
mod trim_folds;

pub use channels_last::{channels_last, gathered_channels_last};
pub use coded_products::LEAST_CODED;
pub use constant_indices::constant_indices;
pub use contract::contract;
pub use dead_points::dead_points;
pub use dead_taps::dead_taps;
pub use dynamic_quantization::dynamic_quantization;
pub use fuse::{Kept, Reason, fuse};
pub use hoist_operands::hoist_operands;
pub use hoist_scales::hoist_scales;
pub use journal::{Journal, keep_journals};
pub use micro_batch::{Batch, BatchBytes};
pub use partial_folds::{partial_folds, unordered_partial_folds};
pub use quantized_products::quantized_products;
pub use repeat_operands::repeat_operands;
pub use room::Order;
pub use schedule::schedule;
pub use simplify::simplify;
