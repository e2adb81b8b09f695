//! How a graph meets whoever runs it.

use std::sync::Arc;
use vinelift_graph::{self as graph, NodeKind, TensorId};

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
