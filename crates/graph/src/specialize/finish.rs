//! The end of a walk: the outputs of the nest, and the nodes that are left for later segments.

use super::walk::Walk;
use super::{Live, Segment, Source};
use crate::error::{Error, LayerError};
use crate::model::TensorId;
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashSet;
use std::cell::LazyCell;
use vinelift_nest::{BufferId, Role};
use vinelift_tensor::Extent;

impl Walk<'_> {
    /// The segment, after a walk over the nodes that are `live`.
    pub(super) fn finish(mut self, live: &FxHashSet<NodeIndex>) -> Result<Segment, Error> {
        let sinks = self.model.results.iter().chain(&self.model.assigns);
        let sinks: Vec<TensorId> = sinks.flat_map(|r| self.model.inputs(*r)).collect();
        let complete = sinks.iter().all(|t| self.available.contains(t));
        if complete {
            self.wanted.clear();
        } else if self.wanted.is_empty() && self.calls.is_empty() {
            let stuck: Vec<String> = sinks
                .iter()
                .filter(|t| !self.available.contains(t))
                .map(|t| self.model.node(t.node).label().to_string())
                .collect();
            return Err(Error::Internal(format!(
                "no shape can be found for the output of {}",
                stuck.join(", ")
            )));
        }
        self.call_one_of_unknown_extents();
        let waits = |walk: &Self, node: NodeIndex| {
            live.contains(&node) && !walk.available.contains(&TensorId { node, output: 0 })
        };
        let shape_values = self.shape_values(|node| waits(&self, node));
        let with_known_value: FxHashSet<TensorId> =
            shape_values.iter().map(|value| value.tensor).collect();
        let is_output = |walk: &Self, tensor: TensorId| {
            // Weights that stay codes are decompressed where they are read.
            let is_kept = !walk.of_codes.contains(&tensor) && !with_known_value.contains(&tensor);
            sinks.contains(&tensor)
                || walk.wanted.contains(&tensor)
                || is_kept && walk.model.readers(tensor).any(|node| waits(walk, node))
        };
        let formulas = self.examples.keys().copied();
        let mut formulas: Vec<TensorId> = formulas.filter(|t| is_output(&self, *t)).collect();
        formulas.sort_unstable();
        for tensor in formulas {
            self.input_buffer(tensor).map_err(|problem| {
                let layer = self.model.node(tensor.node).label();
                Error::Layers(vec![LayerError { layer, problem }])
            })?;
        }
        let mut outputs = Vec::new();
        let mut computed: Vec<(TensorId, BufferId)> =
            self.buffers.iter().map(|(t, b)| (*t, *b)).collect();
        computed.sort_unstable();
        for (tensor, buffer) in computed {
            if self.nest.buf(buffer).role == Role::Temporary && is_output(&self, tensor) {
                self.nest.buffers[buffer.0 as usize].role = Role::Output;
                outputs.push((buffer, tensor));
            }
        }
        let forgotten = self.forgotten(&outputs, &with_known_value);
        let of_shapes = self.sources_of_shapes();
        let room = self.room();
        Ok(Segment {
            nest: self.nest,
            sources: self.sources,
            of_shapes,
            outputs,
            forgotten,
            room,
            constants: self.values,
            wanted: self.wanted.into_iter().collect(),
            shape_values,
            calls: self.calls,
            types: self.types,
        })
    }

    /// Of the calls whose results have extents that nobody knows before, keeps the first alone. What depends on it comes in the next
    /// segment, before another is called, so that no plan depends on more than one of these counts where the model computes with
    /// each by itself: a mixture of experts, of which each gets no token, one or several, would need a plan for every combination.
    fn call_one_of_unknown_extents(&mut self) {
        let (model, types) = (self.model, &self.types);
        let mut is_first = true;
        self.calls.retain(|&node| {
            let mut outputs = 0..model.node(node).layer.outputs.len();
            let is_known = outputs.all(|output| types.shape(TensorId { node, output }).is_some());
            is_known || std::mem::take(&mut is_first)
        });
    }

    /// The input buffers whose contents depend on constants and shapes alone.
    fn sources_of_shapes(&self) -> FxHashSet<BufferId> {
        let nodes = LazyCell::new(|| self.model.of_shapes());
        let sources = self.sources.iter().filter(|(_, source)| match source {
            Source::Constant(_) => true,
            Source::Kept(tensor) => nodes.contains(&tensor.node),
            Source::Parameter(_) => false,
        });
        sources.map(|(buffer, _)| *buffer).collect()
    }

    /// The tensors of variables in memory with room for more, with the extent that each takes along its axis, in order.
    fn room(&self) -> Vec<(TensorId, Extent)> {
        let room = self.known.room.iter();
        let mut room: Vec<(TensorId, Extent)> = room.map(|(t, n)| (*t, *n)).collect();
        room.sort_unstable_by_key(|(tensor, _)| *tensor);
        room
    }

    /// The tensors, among those known by then, that nobody reads once these outputs and values are there and the calls are done.
    fn forgotten(
        &self,
        outputs: &[(BufferId, TensorId)],
        with_known_value: &FxHashSet<TensorId>,
    ) -> Vec<TensorId> {
        let is_over = self.wanted.is_empty() && self.calls.is_empty();
        if is_over {
            return Vec::new();
        }
        let count = |node: NodeIndex| self.model.node(node).layer.outputs.len();
        let called = self.calls.iter();
        let called =
            called.flat_map(|&node| (0..count(node)).map(move |output| TensorId { node, output }));
        let mut known: FxHashSet<TensorId> = self.known.tensors().collect();
        known.extend(outputs.iter().map(|(_, tensor)| *tensor));
        known.extend(with_known_value);
        known.extend(called);
        let next = Live::of(self.model, |tensor| known.contains(&tensor));
        let mut forgotten: Vec<TensorId> = known.difference(&next.read).copied().collect();
        forgotten.sort_unstable();
        forgotten
    }
}
