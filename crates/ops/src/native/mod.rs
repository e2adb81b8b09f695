//! Operators whose outputs no loop nest gives, because their size or the control flow depends on data:
//! selections, sorts, searches with early exits.
//!
//! Each is a Rust function from tensors to tensors. It runs between two nests, on inputs that `infer`
//! has accepted with their exact types and values.

mod evaluate;
pub(crate) mod non_zero;

pub use evaluate::Evaluate;
