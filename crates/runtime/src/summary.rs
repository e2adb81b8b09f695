//! Summaries: inputs, layers and variables of a model, for programs that look at it before it runs.

use crate::{Model, Port};
use std::collections::BTreeMap;
use vinelift_graph::{self as graph, NodeKind};
use vinelift_tensor::{Dim, ElementType, PartialShape};

/// The parts of a model; those of its sub-graphs are counted, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The outputs, in order; where the types cannot be inferred, as the file declares them.
    pub outputs: Vec<Port>,
    /// How many layers there are of each type and version.
    pub layers: BTreeMap<(String, String), usize>,
    /// The variables that are kept from one run to the next.
    pub variables: Vec<String>,
    /// The sub-graphs.
    pub sub_graphs: Vec<SubGraph>,
    /// Bytes of constants.
    pub weight_bytes: u64,
    /// Every reason why the model does not run, by layer.
    pub problems: Vec<String>,
}

/// A sub-graph of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubGraph {
    /// The layer.
    pub layer: String,
    /// The name of the element that holds it: `body`, `then_body`, `else_body`.
    pub kind: &'static str,
    /// How many layers it has, without those of sub-graphs in it.
    pub layers: usize,
}

impl Model {
    /// The parts of the model, which need not be one that can run.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            outputs: self.declared_outputs(),
            layers: BTreeMap::new(),
            variables: Vec::new(),
            sub_graphs: Vec::new(),
            weight_bytes: 0,
            problems: Vec::new(),
        };
        summary.add(&self.graph, "");
        if let Err(graph::Error::Layers(errors)) = self.inferred() {
            summary
                .problems
                .extend(errors.iter().map(ToString::to_string));
        }
        summary
    }

    fn declared_outputs(&self) -> Vec<Port> {
        let types = self.inferred().unwrap_or_default();
        let port = |&result: &_| {
            let inferred = self
                .graph
                .inputs(result)
                .first()
                .and_then(|t| types.get(*t))
                .cloned();
            let names = self.graph.result_names(result);
            if let Some(ty) = inferred {
                return Some(Port {
                    names,
                    element_type: ty.element,
                    shape: ty.shape,
                });
            }
            let declared = self.graph.node(result).layer.inputs.first()?;
            let element_type = ElementType::from_precision(declared.precision.as_deref()?)?;
            let dim = |n: &i64| usize::try_from(*n).map_or(Dim::ANY, Dim::fixed);
            let shape = PartialShape::ranked(declared.dims.iter().map(dim).collect());
            Some(Port {
                names,
                element_type,
                shape,
            })
        };
        self.graph.results.iter().filter_map(port).collect()
    }
}

impl Summary {
    /// Adds a graph. `place` precedes its problems.
    fn add(&mut self, model: &graph::Model, place: &str) {
        if let Err(graph::Error::Layers(errors)) = model.check() {
            self.problems
                .extend(errors.iter().map(|e| format!("{place}{e}")));
        }
        for node in model.graph.node_weights() {
            let layer = &node.layer;
            *self
                .layers
                .entry((layer.type_.clone(), layer.version.clone()))
                .or_default() += 1;
            if let Some(variable) = layer.attribute("variable_id")
                && !self.variables.iter().any(|known| known == variable)
            {
                self.variables.push(variable.to_owned());
            }
            if let NodeKind::Constant(tensor) = &node.kind {
                let texts = tensor.strings().unwrap_or_default();
                self.weight_bytes +=
                    (tensor.bytes().len() + texts.iter().map(String::len).sum::<usize>()) as u64;
            }
            for (kind, body) in &node.bodies {
                let kind = kind.element();
                self.sub_graphs.push(SubGraph {
                    layer: layer.name.clone(),
                    kind,
                    layers: body.graph.node_count(),
                });
                self.add(body, &format!("{place}{kind} of '{}': ", layer.name));
            }
        }
    }
}
