//! A plan: everything that a run of a segment needs but its tensors. Plain data.

use crate::compile::kernels::Native;
use crate::compile::variables::InPlaceUpdate;
use crate::{Shape, Tensor};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vinelift_graph::{self as graph, NodeIndex, NodeKind, Segment, Source, TensorId};
use vinelift_nest::Nest;
use vinelift_ops::TensorType;
use vinelift_tensor::ElementType;

/// A segment of a model, specialised to shapes and ready to run.
pub(crate) struct Plan {
    /// The nest that runs.
    pub(crate) nest: Nest,
    /// Where each buffer of the nest is found.
    pub(crate) slots: Vec<Slot>,
    /// Native code, unless the nest is interpreted.
    pub(crate) native: Option<Native>,
    /// The tensors that it computes for others, with their types.
    pub(crate) outputs: Vec<Output>,
    /// The types of the journals, which are outputs after [`Plan::outputs`]: what an in-place update has overwritten.
    pub(crate) journals: Vec<(ElementType, Shape)>,
    /// The variables that it can update in place.
    pub(crate) updates: Vec<InPlaceUpdate>,
    /// The tensors that turned out constant.
    pub(crate) constants: FxHashMap<TensorId, Tensor>,
    /// The nodes to call after it, in order.
    pub(crate) calls: Vec<NodeCall>,
    /// The tensors whose values the next segment is specialised to.
    pub(crate) wanted: Vec<TensorId>,
    /// Bytes of temporaries and scratch memory.
    pub(crate) arena: usize,
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

/// Where a buffer of a nest is found when it runs.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// The input at this position.
    Parameter(usize),
    /// A constant.
    Constant(Tensor),
    /// A tensor that an earlier segment computed.
    Kept(TensorId),
    /// The output at this position in [`Plan::outputs`], or the journal after these.
    Output(usize),
    /// In the arena, from this offset on, in bytes.
    Arena(usize),
    /// Nowhere: no step uses it, or the code holds it.
    Absent,
}

impl Plan {
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

    /// Bytes of packed constants, which it holds beside those of the model.
    pub(crate) fn packed_bytes(&self) -> usize {
        self.native.as_ref().map_or(0, Native::packed_bytes)
    }
}

/// The slots of a segment's inputs, constants and outputs; temporaries are [`Slot::Absent`] until they get a place in
/// the arena.
pub(crate) fn slots(segment: &Segment) -> Vec<Slot> {
    let mut slots = vec![Slot::Absent; segment.nest.buffers.len()];
    for (buffer, source) in &segment.sources {
        slots[buffer.0 as usize] = match source {
            Source::Parameter(k) => Slot::Parameter(*k),
            Source::Constant(tensor) => Slot::Constant(tensor.clone()),
            Source::Kept(tensor) => Slot::Kept(*tensor),
        };
    }
    for (k, (buffer, _)) in segment.outputs.iter().enumerate() {
        slots[buffer.0 as usize] = Slot::Output(k);
    }
    slots
}

/// A graph, with the tensors by which it meets whoever runs it.
pub(crate) struct Interface {
    /// The layers.
    pub(crate) graph: Arc<graph::Model>,
    /// The tensors that hold what variables held before a run.
    pub(crate) reads: Vec<(TensorId, String)>,
    /// The tensors that it computes, in order.
    pub(crate) results: Vec<TensorId>,
    /// The tensors that variables are set to after a run.
    pub(crate) assigns: Vec<(TensorId, String)>,
}

impl Interface {
    /// Of a model or a sub-graph.
    pub(crate) fn of(graph: &Arc<graph::Model>) -> Interface {
        let (mut reads, mut assigns) = (Vec::new(), Vec::new());
        for node in graph.graph.node_indices() {
            match &graph.node(node).kind {
                NodeKind::ReadValue(variable) => {
                    reads.push((TensorId { node, output: 0 }, variable.id.clone()));
                }
                NodeKind::Assign(variable) => {
                    let sources = graph.inputs(node).into_iter();
                    assigns.extend(sources.map(|t| (t, variable.id.clone())));
                }
                _ => {}
            }
        }
        let results = graph.results.iter().flat_map(|r| graph.inputs(*r));
        Interface {
            results: results.collect(),
            graph: graph.clone(),
            reads,
            assigns,
        }
    }
}
