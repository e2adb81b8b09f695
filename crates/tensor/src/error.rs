//! Why there is no tensor, or no file of one.

use crate::{ElementType, PartialShape, Shape};
use std::io;
use std::path::PathBuf;

/// Why a tensor cannot be made, or not be read in the way asked for.
///
/// All of these are the fault of whoever supplied the tensor's type, shape or bytes, except
/// [`OutOfMemory`](TensorError::OutOfMemory), which is nobody's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The number of elements or bytes does not fit an `isize`.
    #[error("{element_type}{shape:?} is too large")]
    TooLarge {
        /// The element type asked for.
        element_type: ElementType,
        /// The shape asked for.
        shape: Shape,
    },
    /// The memory cannot be had.
    #[error("out of memory: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// How many were asked for.
        bytes: usize,
    },
    /// There are more or fewer bytes than type and shape need.
    #[error("{element_type}{shape:?} needs {expected} bytes, found {found}")]
    ByteLength {
        /// The element type asked for.
        element_type: ElementType,
        /// The shape asked for.
        shape: Shape,
        /// How many bytes they need.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// There are more or fewer elements than the shape needs.
    #[error("shape {shape:?} needs {expected} elements, found {found}")]
    ElementCount {
        /// The shape asked for.
        shape: Shape,
        /// How many elements it needs.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The elements are of another type than asked for.
    #[error("expected elements of type {expected}, found {found}")]
    ElementType {
        /// A type, or a description of several.
        expected: &'static str,
        /// The tensor's type.
        found: ElementType,
    },
    /// An element has no counterpart in another type.
    #[error("{value} of type {from} is no {to}")]
    Cast {
        /// The element.
        value: String,
        /// Its type.
        from: ElementType,
        /// The type that it was to have.
        to: ElementType,
    },
    /// Type and shape are not those of something else.
    #[error("{element_type}{shape:?} is not {to}")]
    Conversion {
        /// The tensor's type.
        element_type: ElementType,
        /// The tensor's shape.
        shape: Shape,
        /// The type that it was to become.
        to: &'static str,
    },
    /// The serialised form of a string tensor is broken.
    #[error("encoded strings: {0}")]
    EncodedStrings(String),
}

/// Why a file gives no tensor, or a tensor no file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system cannot read or write the file.
    #[error("cannot access `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not in the format that the element type calls for.
    #[error("{0}")]
    Format(String),
    /// The file holds elements of another type than the model's.
    #[error("expected elements of type {expected}, which is stored as {storage}, found {found}")]
    ElementType {
        /// The type that the model has.
        expected: ElementType,
        /// How a file holds that type.
        storage: &'static str,
        /// How this file holds its elements.
        found: String,
    },
    /// The file holds a tensor of another shape than the model's.
    #[error("expected shape {expected}, found {found:?}")]
    Shape {
        /// The shape that the model has.
        expected: PartialShape,
        /// The shape in the file.
        found: Vec<u64>,
    },
    /// The bytes in the file do not make a tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An error in a file, with the file's name.
    #[error("`{path}`: {source}")]
    In {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Box<FileError>,
    },
}
