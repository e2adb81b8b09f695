//! Nests with numbers in place of their extents.

use crate::ir::{BufferId, Nest};
use vinelift_tensor::{Extent, Shape};

/// A nest whose symbols have some values, without a copy of it.
#[derive(Clone, Copy)]
pub(crate) struct Numbered<'a> {
    nest: &'a Nest,
    /// The values of the symbols; `None` stands for those of the example.
    values: Option<&'a [usize]>,
}

impl<'a> Numbered<'a> {
    /// With the numbers of the example.
    pub(crate) fn example(nest: &'a Nest) -> Numbered<'a> {
        Numbered { nest, values: None }
    }

    /// Where the symbol of number `k` is `values[k]`.
    pub(crate) fn at(nest: &'a Nest, values: &'a [usize]) -> Numbered<'a> {
        let values = Some(values);
        Numbered { nest, values }
    }

    /// The number that an extent is; `None` if it is none.
    pub(crate) fn number(self, extent: Extent) -> Option<usize> {
        match self.values {
            Some(values) => extent.at(values),
            None => Some(extent.example()),
        }
    }

    /// The shape of a buffer.
    pub(super) fn shape(self, buffer: BufferId) -> Option<Shape> {
        let shape = &self.nest.buf(buffer).shape;
        shape.iter().map(|extent| self.number(*extent)).collect()
    }
}
