//! The files of OpenVINO IR, version 10 and later: `.xml` as plain structs that mirror it, `.bin`
//! as a view on bytes. Both directions.
//!
//! This crate knows how the files are built, and nothing of what they mean: it never interprets an
//! attribute of a layer, and must not know of operators, element types or graphs. Nor does it map
//! files into memory; who does hands the bytes to [`Weights`].
//!
//! Invariants:
//! * any bytes given to [`read`] make a [`Document`] or an [`Error`] with line and column, never a
//!   panic; in time linear in their length, and within the limits [`MAX_TEXT`], [`MAX_DEPTH`],
//!   [`MAX_ITEMS`] and [`MAX_ATTRIBUTES`];
//! * `read(write(d)) == d` for every document that was read, and for every other within the limits
//!   that XML and the format can express (see [`write()`]);
//! * a range of the weights is inside the file, or an error.
//!
//! Elements that IR does not have are skipped wherever the format has a list of elements, as
//! OpenVINO does; `<rt_info>` and `<pre-process>` are kept whatever they hold. DOCTYPE and entity
//! declarations are refused: no IR file needs them, and they can make a small file huge.

mod attributes;
mod document;
mod error;
mod names;
mod read;
mod tree;
mod weights;
mod write;

pub use document::{
    BackEdge, Body, BodyKind, Document, Edge, Element, Layer, MappedPort, Port, PortMap,
};
pub use error::Error;
pub use read::{read, read_file};
pub use tree::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_ITEMS, MAX_TEXT};
pub use weights::{Placed, Weights, WeightsBuilder};
pub use write::write;
