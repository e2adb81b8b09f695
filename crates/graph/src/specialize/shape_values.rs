//! Values that later segments get from this one beside tensors: integers that follow from the shapes alone.
//!
//! A target of `Reshape` or `Broadcast` may be computed once, from the shapes of inputs, and be read by every layer of a model. A later
//! segment that had it as a tensor only would have to wait for its contents, although they are known.

use super::walk::Walk;
use crate::model::{NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use vinelift_tensor::{ElementType, Formula, Tensor};

/// The most elements of a [`ShapeValue`].
const MOST_ELEMENTS: usize = 16;

/// A tensor of integers that follow from the shapes that a segment is specialised to.
#[derive(Clone, Debug)]
pub struct ShapeValue {
    /// The tensor.
    pub tensor: TensorId,
    /// Its elements at the example.
    pub example: Tensor,
    /// Its elements; empty if none has a symbol.
    elements: Vec<Formula>,
}

impl ShapeValue {
    /// Whether a tensor may be one: its elements are a few integers, of which each can be a formula.
    pub fn may_be(tensor: &Tensor) -> bool {
        let is_integer = matches!(tensor.element_type(), ElementType::I32 | ElementType::I64);
        is_integer && tensor.element_count() <= MOST_ELEMENTS
    }

    /// The tensor where the symbol of number `k` is `values[k]`; `None` if an element is no number of its type then.
    pub fn at(&self, values: &[usize]) -> Option<Tensor> {
        if self.elements.is_empty() {
            return Some(self.example.clone());
        }
        let elements = self.elements.iter().map(|f| f.evaluate(values));
        let elements: Vec<i64> = elements.collect::<Option<_>>()?;
        integers(self.example.element_type(), self.example.shape(), &elements)
    }
}

/// A tensor of `i64` or `i32`; `None` for another type, or if an element is out of its range.
pub(super) fn integers(element: ElementType, shape: &[usize], elements: &[i64]) -> Option<Tensor> {
    match element {
        ElementType::I64 => Tensor::from_slice(shape, elements).ok(),
        ElementType::I32 => {
            let narrow = elements.iter().map(|n| i32::try_from(*n).ok());
            let narrow: Vec<i32> = narrow.collect::<Option<_>>()?;
            Tensor::from_slice(shape, &narrow).ok()
        }
        _ => None,
    }
}

impl Walk<'_> {
    /// The values, found in this walk, that the nodes which `wait` for a later segment read, in order.
    pub(super) fn shape_values(&self, waits: impl Fn(NodeIndex) -> bool) -> Vec<ShapeValue> {
        let is_new = |t: &TensorId| {
            let is_computed = matches!(self.model.node(t.node).kind, NodeKind::Operator { .. });
            is_computed && !self.known.has_value(*t) && !self.is_folded_for_all_shapes(*t)
        };
        let found = self.values.iter().chain(&self.examples);
        let found = found.filter(|(t, example)| {
            is_new(t) && ShapeValue::may_be(example) && self.model.readers(**t).any(&waits)
        });
        let values = found.map(|(tensor, example)| ShapeValue {
            tensor: *tensor,
            example: example.clone(),
            elements: self.formulas(*tensor).unwrap_or_default(),
        });
        let mut values: Vec<ShapeValue> = values.collect();
        values.sort_unstable_by_key(|value| value.tensor);
        values
    }

    /// Whether every walk takes this value from the types that are inferred for all shapes.
    fn is_folded_for_all_shapes(&self, tensor: TensorId) -> bool {
        let inferred = self.inferred;
        inferred.is_some_and(|types| types.folded.contains_key(&tensor))
    }
}
