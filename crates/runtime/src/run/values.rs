//! The tensors of a run, and the border at which strings become numbers.
//!
//! A nest has a string as its number in a table ([`Strings`]). Whoever meets tensors elsewhere, be it a request, a
//! variable, a called layer or a sub-graph, has strings: tensors get their other form when they enter and leave
//! [`Values`], and nowhere else.

use crate::compile::interface::Interface;
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::{Error, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_graph::{Known, Strings, TensorId};
use vinelift_ops::TensorType;
use vinelift_tensor::ElementType;

/// The table of a run's strings: that of the model, copied only once a run adds its own.
pub(crate) struct Texts<'a> {
    base: &'a Strings,
    own: Option<Strings>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(base: &'a Strings) -> Texts<'a> {
        Texts { base, own: None }
    }

    fn encode(&mut self, tensor: &Tensor) -> Result<Tensor, Error> {
        let strings = self.own.get_or_insert_with(|| self.base.clone());
        Ok(strings.encode(tensor)?)
    }

    fn decode(&self, numbers: &Tensor) -> Result<Tensor, Error> {
        let strings = self.own.as_ref().unwrap_or(self.base);
        Ok(strings.decode(numbers.shape(), numbers.bytes())?)
    }
}

/// The tensors of one run of a unit, as nests have them.
pub(super) struct Values<'a> {
    interface: &'a Interface,
    pub(super) inputs: Vec<Tensor>,
    /// The tensors that segments, calls and variables gave.
    pub(super) kept: FxHashMap<TensorId, Tensor>,
    /// The inputs and kept tensors that hold numbers of strings.
    strings: FxHashSet<TensorId>,
    /// The shapes and values that the next segment is specialised to.
    pub(super) known: Known,
}

impl<'a> Values<'a> {
    /// The values of a run on `inputs`, before its first segment.
    pub(super) fn new(
        interface: &'a Interface,
        mut inputs: Vec<Tensor>,
        texts: &mut Texts<'_>,
    ) -> Result<Values<'a>, Error> {
        let mut strings = FxHashSet::default();
        for (input, node) in inputs.iter_mut().zip(&interface.graph.parameters) {
            if input.strings().is_some() {
                *input = texts.encode(input)?;
                let (node, output) = (*node, 0);
                strings.insert(TensorId { node, output });
            }
        }
        Ok(Values {
            interface,
            inputs,
            kept: FxHashMap::default(),
            strings,
            known: Known::default(),
        })
    }

    /// Keeps a tensor that comes from elsewhere, and its type.
    pub(super) fn set(
        &mut self,
        id: TensorId,
        value: Tensor,
        texts: &mut Texts<'_>,
    ) -> Result<(), Error> {
        let ty = TensorType::new(value.element_type(), value.shape().into());
        self.known.computed.insert(id, ty);
        let value = match value.strings() {
            Some(_) => {
                self.strings.insert(id);
                texts.encode(&value)?
            }
            None => value,
        };
        self.kept.insert(id, value);
        Ok(())
    }

    /// Has the shape of a tensor be known that is kept later.
    pub(super) fn declare(&mut self, id: TensorId, element: ElementType, shape: &[usize]) {
        let ty = TensorType::new(element, shape.into());
        self.known.computed.insert(id, ty);
    }

    /// Whether the tensor in a slot is known and holds 0, 1, 2 ….
    pub(super) fn is_in_order(&self, slot: &Slot) -> bool {
        let tensor = match slot {
            Slot::Parameter(k) => self.inputs.get(*k),
            Slot::Constant(tensor) => Some(&**tensor),
            Slot::Kept(id) => self.kept.get(id),
            Slot::Output(_) | Slot::Arena(_) | Slot::Absent => None,
        };
        let indices = tensor.and_then(|tensor| tensor.to_i64_vec().ok());
        indices.is_some_and(|indices| (0..).zip(indices).all(|(k, index)| k == index))
    }

    /// The tensors that hold what variables held.
    pub(super) fn reads(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.interface.reads.iter().map(|(tensor, _)| *tensor)
    }

    /// Lets go of tensors that nobody reads any more, and gives those that were kept.
    pub(super) fn forget(
        &mut self,
        tensors: &[TensorId],
    ) -> impl Iterator<Item = (TensorId, Tensor)> {
        self.known.forget(tensors);
        let kept = tensors.iter();
        kept.filter_map(|tensor| Some((*tensor, self.kept.remove(tensor)?)))
    }

    /// Keeps the outputs of a plan.
    pub(super) fn keep(&mut self, plan: &Plan, outputs: Vec<Tensor>) {
        for ((id, element, _), value) in plan.outputs.iter().zip(outputs) {
            if *element == ElementType::String {
                self.strings.insert(*id);
            }
            self.kept.insert(*id, value);
        }
    }

    /// A tensor that has been computed, is constant in `plan`, follows from the shapes, or is an input, for use elsewhere.
    pub(super) fn get(
        &self,
        id: TensorId,
        plan: &Plan,
        texts: &Texts<'_>,
    ) -> Result<Tensor, Error> {
        let input = || {
            let mut parameters = self.interface.graph.parameters.iter();
            self.inputs.get(parameters.position(|p| *p == id.node)?)
        };
        let known = || self.known.values.get(&id);
        let value = match (self.kept.get(&id), plan.constants.get(&id).or_else(known)) {
            (Some(value), _) => value,
            (None, Some(constant)) => return Ok(constant.clone()),
            (None, None) => {
                input().ok_or_else(|| Error::internal(format!("tensor {id:?} was not computed")))?
            }
        };
        match self.strings.contains(&id) {
            true => texts.decode(value),
            false => Ok(value.clone()),
        }
    }
}
