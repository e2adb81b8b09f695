//! A plan: everything that a run of a segment needs but its tensors. Plain data.

use crate::compile::binding::Binding;
use crate::compile::micro_batches::MicroBatches;
use crate::compile::slot::Slot;
use crate::compile::variables::{Growth, InPlaceUpdate};
use crate::hotness::Hotness;
use crate::{Shape, Tensor};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;
use vinelift_graph::{NodeIndex, Segment, TensorId};
use vinelift_kernels::Packed;
use vinelift_nest::Nest;
use vinelift_ops::TensorType;
use vinelift_tensor::ElementType;

/// A segment of a model, specialised to shapes and ready to run.
pub(crate) struct Plan {
    /// The nest that runs; its extents may have symbols.
    pub(crate) nest: Arc<Nest>,
    /// Its sizes, slots and steps, for the values that its symbols have.
    pub(crate) binding: Arc<Binding>,
    /// The tensors that it computes for others, with their types.
    pub(crate) outputs: Vec<Output>,
    /// The types of the journals, which are outputs after [`Plan::outputs`]: what an in-place update has overwritten.
    pub(crate) journals: Vec<(ElementType, Shape)>,
    /// The variables that it can update in place.
    pub(crate) updates: Vec<InPlaceUpdate>,
    /// The tensors that turned out constant.
    pub(crate) constants: Arc<FxHashMap<TensorId, Tensor>>,
    /// The nodes to call after it, in order.
    pub(crate) calls: Vec<NodeCall>,
    /// The tensors whose values the next segment is specialised to.
    pub(crate) wanted: Vec<TensorId>,
    /// The values that the next segments are specialised to as well, which follow from the shapes.
    pub(crate) shape_values: Vec<(TensorId, Tensor)>,
    /// The tensors that nobody reads once the calls are done.
    pub(crate) forgotten: Arc<[TensorId]>,
    /// How it computes a batch, if not at once: it then runs several times.
    pub(crate) micro_batches: Option<Arc<MicroBatches>>,
    /// How long it has run, if its shapes may get a plan of their own.
    pub(crate) hotness: Option<Hotness>,
}

/// A tensor that is computed for others, with its type.
pub(crate) type Output = (TensorId, ElementType, Shape);

/// A node to call between two segments.
#[derive(Clone)]
pub(crate) struct NodeCall {
    pub(crate) node: NodeIndex,
    /// Its outputs, with what is known of their types.
    pub(crate) outputs: Vec<(TensorId, TensorType)>,
}

impl Plan {
    /// The nest that runs, in numbers.
    pub(crate) fn nest(&self) -> Cow<'_, Nest> {
        match self.nest.is_symbolic() {
            true => {
                let bound = self.nest.bound_to(&self.binding.values);
                bound.map_or(Cow::Borrowed(&self.nest), Cow::Owned)
            }
            false => Cow::Borrowed(&self.nest),
        }
    }

    /// Whether it gives tensors of the types that a segment does and, if both go on in the same way, forgets what the segment does.
    /// They go on in other ways where one knows more. A segment, whose extents are numbers, knows values and extents that a plan
    /// for a class waits for; from bounds, which only symbols have, the plan may know what the segment waits for.
    pub(crate) fn agrees_with(&self, segment: &Segment) -> bool {
        let is_same = |(tensor, ty): (TensorId, TensorType)| {
            let found = segment.types.get(tensor);
            found.is_none_or(|found| {
                found.element == ty.element && found.shape.intersect(&ty.shape).is_some()
            })
        };
        let calls: Vec<NodeIndex> = self.calls.iter().map(|call| call.node).collect();
        let gives = |tensor: &TensorId| self.computed().any(|(own, _)| own == *tensor);
        let goes_on_alike = || {
            calls == segment.calls
                && self.wanted == segment.wanted
                && segment.outputs.iter().all(|(_, tensor)| gives(tensor))
        };
        // A tensor that the plan computes from symbols may be a constant of the segment, which is never forgotten.
        let forgets = || segment.forgotten.iter().all(|t| self.forgotten.contains(t));
        self.computed().all(is_same) && (!goes_on_alike() || forgets())
    }

    /// Whether there is more to do for the unit after it.
    pub(crate) fn is_followed(&self) -> bool {
        !self.calls.is_empty() || !self.wanted.is_empty()
    }

    /// The types of the tensors that it computes for others.
    pub(crate) fn computed(&self) -> impl Iterator<Item = (TensorId, TensorType)> + '_ {
        let ty = |e, shape: &Shape| TensorType::new(e, shape.as_slice().into());
        self.outputs
            .iter()
            .map(move |(t, e, shape)| (*t, ty(*e, shape)))
    }

    /// How an output grows, if it is what a variable that grows is set to.
    pub(crate) fn growth(&self, output: TensorId) -> Option<&Growth> {
        let mut updates = self.updates.iter();
        updates
            .find(|update| self.outputs[update.output].0 == output)
            .and_then(|update| update.growth.as_ref())
    }

    /// How often it runs, each time for another micro-batch.
    pub(crate) fn micro_batches(&self) -> usize {
        self.micro_batches
            .as_ref()
            .map_or(1, |batches| batches.count)
    }

    /// How many slices the tensor in a slot has, one for each micro-batch; 1 if it is the same for all.
    pub(crate) fn slices(&self, slot: &Slot) -> usize {
        let batches = self.micro_batches.as_ref();
        batches.map_or(1, |batches| batches.slices(slot))
    }

    /// Packed constants, which it holds beside those of the model.
    pub(crate) fn packed(&self) -> impl Iterator<Item = &Arc<Packed>> {
        self.binding.steps().iter().flat_map(|step| step.packed())
    }
}
