//! How a graph meets whoever runs it.

use std::sync::Arc;
use vinelift_graph::{self as graph, Control, NodeKind, TensorId};
use vinelift_tensor::ElementType;

/// A graph, with the tensors by which it meets whoever runs it.
pub(crate) struct Interface {
    /// The layers.
    pub(crate) graph: Arc<graph::Model>,
    /// The tensors that hold what variables held before a run.
    pub(crate) reads: Vec<(TensorId, String)>,
    /// The tensors that it computes, in order, but for those that are carried.
    pub(crate) results: Vec<TensorId>,
    /// The tensors that variables are set to after a run.
    pub(crate) assigns: Vec<(TensorId, String)>,
    /// Tensors that a loop carries from one iteration to the next in variables of its own, in the order of results.
    pub(crate) carried: Vec<Carried>,
}

/// A parameter of the body of a loop that is a variable while the loop runs.
pub(crate) struct Carried {
    /// Its position among the parameters.
    pub(crate) parameter: usize,
    /// The position of what it is set to among the results.
    pub(crate) result: usize,
    pub(crate) variable: String,
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
            carried: Vec::new(),
        }
    }

    /// Of the body of a loop, the unit of this number, which carries tensors that change their shape in variables, so
    /// that they may grow where they are.
    pub(crate) fn of_loop(
        graph: &Arc<graph::Model>,
        control: &Control,
        number: usize,
    ) -> Interface {
        let mut interface = Interface::of(graph);
        let Control::Repeat(repeat) = control else {
            return interface;
        };
        for (parameter, result) in repeat.carries() {
            let node = graph.parameters[parameter];
            let ty = graph.declared_type(node);
            let (read, source) = (TensorId { node, output: 0 }, interface.results[result]);
            let sources = interface.results.iter().filter(|other| **other == source);
            let is_result = interface.results.contains(&read);
            let is_string = ty.element == ElementType::String;
            if ty.shape.is_static() || is_string || is_result || sources.count() > 1 {
                continue;
            }
            // No variable of a model has such a name.
            let variable = format!("\0{number}.{parameter}");
            interface.reads.push((read, variable.clone()));
            interface.assigns.push((source, variable.clone()));
            interface.carried.push(Carried {
                parameter,
                result,
                variable,
            });
        }
        interface.carried.sort_by_key(|carried| carried.result);
        for carried in interface.carried.iter().rev() {
            interface.results.remove(carried.result);
        }
        interface
    }
}
