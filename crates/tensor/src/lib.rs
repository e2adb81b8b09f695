//! Element types, shapes, partial shapes and host tensors, with the files they are kept in.
//!
//! This crate says what a tensor *is*; it depends on no other crate of Vinelift, and must not know
//! of files in IR format, graphs, operators or generated code.
//!
//! Extents that are not known while a plan is made are formulas over symbols ([`Extent`], [`Formula`]); what is decided
//! by their numbers at an example is written down ([`symbols`]).
//!
//! Invariants:
//! * a [`Tensor`]'s bytes are exactly as long as its shape and element type need
//!   ([`ElementType::byte_len`]), in the packing that the IR format uses;
//! * the bytes of a `boolean` tensor are 0 or 1, whatever bytes it was made from;
//! * size arithmetic is checked: an element count or byte length that does not fit is an error,
//!   never a wrapped number, and so is memory that cannot be had;
//! * any bytes given as a file ([`read_npy`], `read_json`) make a tensor or an error, never a
//!   panic, and never an allocation larger than the file itself calls for.

#[cfg(target_endian = "big")]
compile_error!("tensors are kept as the little-endian bytes of the files they come from");

#[cfg(feature = "ndarray")]
mod arrays;
mod cast;
mod element;
mod error;
mod extent;
mod file;
pub mod float8;
mod formula;
#[cfg(feature = "image")]
mod images;
#[cfg(feature = "json")]
mod json;
pub mod memory;
mod non_zero;
mod npy;
pub mod order;
pub mod packed;
mod shape;
mod storage;
mod strings;
mod symbol_set;
pub mod symbols;
mod take;
mod tensor;
mod view;

/// The Rust types of elements of 16 bits.
pub use half;
#[cfg(feature = "image")]
pub use image;
#[cfg(feature = "ndarray")]
pub use ndarray;

pub use element::{ElementType, UnknownElementType};
pub use error::{FileError, TensorError};
pub use extent::{Extent, example, extents, numbers};
pub use formula::{Formula, Symbol, gcd};
#[cfg(feature = "json")]
pub use json::{read_json, write_json};
pub use npy::{read_npy, read_npy_cast, write_npy};
pub use shape::{Dim, PartialShape, Shape, count_of, element_count, is_injective};
pub use storage::{AlignedBytes, Memory};
pub use symbol_set::SymbolSet;
pub use tensor::{Element, Tensor};
