//! A graph with what its inputs hold.

use super::fill::Fill;
use crate::graph::{self, Graph};
use std::fmt::Write;
use vinelift::{ElementType, Tensor};

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) node: usize,
    pub(crate) output: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) inputs: Vec<Port>,
    /// The types and shapes that the operators' specifications give it.
    pub(crate) outputs: Vec<(ElementType, Vec<usize>)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Parameter(Fill),
    Constant(Fill, u64),
    Operator {
        ty: &'static str,
        version: &'static str,
        attributes: String,
        bodies: Vec<Body>,
    },
}

/// A graph inside of a node.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The elements around it: `body`, or `then_body`.
    pub(crate) tag: &'static str,
    /// The port map and the back edges. Layers are numbered as nodes are, with the results behind them.
    pub(crate) map: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) results: Vec<Port>,
}

/// The first dim of inputs that is not known before they are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Inputs whose first dim is this number have any.
    pub(crate) extent: usize,
    /// Its value in the second inputs.
    pub(crate) second: usize,
}

/// A graph with large tensors, and what is special about it.
#[derive(Clone, Debug)]
pub struct Case {
    pub(crate) family: &'static str,
    pub(crate) nodes: Vec<Node>,
    pub(crate) results: Vec<Port>,
    /// The nodes that set variables.
    pub(crate) sinks: Vec<usize>,
    /// The seed of what the inputs hold.
    pub(crate) seed: u64,
    pub(crate) batch: Option<Batch>,
    /// About how many operations an inference takes.
    pub(crate) work: usize,
}

/// The values of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    First,
    Second,
    /// The first with some indices of the last input that has any out of range.
    Bad,
}

impl Case {
    /// The name of the kind of graphs that it is one of.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// Which nodes the results and the variables need.
    pub(crate) fn needed(&self, results: &[Port]) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        for port in results {
            needed[port.node] = true;
        }
        for &sink in &self.sinks {
            needed[sink] = true;
        }
        for k in (0..self.nodes.len()).rev() {
            if needed[k] {
                for input in &self.nodes[k].inputs {
                    needed[input.node] = true;
                }
            }
        }
        needed
    }

    /// All values that operators compute and the results need.
    pub(crate) fn values(&self) -> Vec<Port> {
        let needed = self.needed(&self.results);
        let nodes = self.nodes.iter().enumerate().filter(|(k, node)| {
            needed[*k] && matches!(node.kind, Kind::Operator { .. }) && !self.sinks.contains(k)
        });
        let ports = |(k, node): (usize, &Node)| {
            (0..node.outputs.len()).map(move |output| Port { node: k, output })
        };
        nodes.flat_map(ports).collect()
    }

    /// The text and the weights of the model that has these results.
    pub(crate) fn text(&self, results: &[Port]) -> (String, Vec<u8>) {
        let needed = self.needed(results);
        let mut graph = Graph::default();
        let values = self.write(&mut graph, &self.nodes, Some(&needed));
        let results: Vec<graph::Value> = results.iter().map(|r| pick(&values, *r)).collect();
        graph.text(&results)
    }

    /// The values of the inputs of the model with these results.
    pub(crate) fn inputs(&self, results: &[Port], set: Set) -> Vec<Tensor> {
        let needed = self.needed(results);
        let spoiled = self.indices(&needed).last().copied();
        let parameters = self.parameters(&needed).map(|(k, fill)| {
            let (ty, shape) = &self.nodes[k].outputs[0];
            let mut shape = shape.clone();
            let seed = self.seed ^ (k as u64) << 20;
            match set {
                Set::First | Set::Bad => {
                    let tensor = fill.tensor(*ty, &shape, seed);
                    let spoils = set == Set::Bad && spoiled == Some(k);
                    if spoils {
                        fill.spoil(&tensor, seed)
                    } else {
                        tensor
                    }
                }
                Set::Second => {
                    if let (Some(batch), true) = (self.batch, self.is_batched(&shape)) {
                        shape[0] = batch.second;
                    }
                    fill.tensor(*ty, &shape, !seed)
                }
            }
        });
        parameters.collect()
    }

    /// The same at other shapes: those that `change` makes of the inputs' own.
    pub(crate) fn inputs_with(
        &self,
        results: &[Port],
        change: impl Fn(&[usize]) -> Vec<usize>,
    ) -> Vec<Tensor> {
        let needed = self.needed(results);
        let parameters = self.parameters(&needed).map(|(k, fill)| {
            let (ty, shape) = &self.nodes[k].outputs[0];
            fill.tensor(*ty, &change(shape), self.seed ^ (k as u64) << 20)
        });
        parameters.collect()
    }

    /// Whether there is an input of indices that the results need.
    pub(crate) fn has_indices(&self) -> bool {
        !self.indices(&self.needed(&self.results)).is_empty()
    }

    fn indices(&self, needed: &[bool]) -> Vec<usize> {
        let of_indices = |(_, fill): &(usize, &Fill)| matches!(fill, Fill::Indices { .. });
        let parameters = self.parameters(needed).filter(of_indices);
        parameters.map(|(k, _)| k).collect()
    }

    fn parameters(&self, needed: &[bool]) -> impl Iterator<Item = (usize, &Fill)> {
        let nodes = self.nodes.iter().zip(needed).enumerate();
        nodes.filter_map(|(k, (node, needed))| match &node.kind {
            Kind::Parameter(fill) if *needed => Some((k, fill)),
            _ => None,
        })
    }

    fn is_batched(&self, shape: &[usize]) -> bool {
        let extent = self.batch.map(|batch| batch.extent);
        extent.is_some() && shape.first().copied() == extent
    }

    /// Adds the nodes to `graph`, and gives what they are there.
    fn write(
        &self,
        graph: &mut Graph,
        nodes: &[Node],
        needed: Option<&[bool]>,
    ) -> Vec<Vec<graph::Value>> {
        let mut values: Vec<Vec<graph::Value>> = Vec::new();
        for (k, node) in nodes.iter().enumerate() {
            if needed.is_some_and(|needed| !needed[k]) {
                values.push(Vec::new());
                continue;
            }
            let inputs: Vec<graph::Value> = node.inputs.iter().map(|i| pick(&values, *i)).collect();
            let inputs: Vec<&graph::Value> = inputs.iter().collect();
            let (ty, shape) = &node.outputs[0];
            let layer = match &node.kind {
                Kind::Constant(fill, seed) => {
                    let bytes = fill.tensor(*ty, shape, *seed);
                    graph.constant(*ty, shape, bytes.bytes()).layer
                }
                Kind::Parameter(_) => {
                    let attributes =
                        format!("shape=\"{}\" element_type=\"{ty}\"", self.dims(shape));
                    graph.layer(&format!("p{k}"), "Parameter", "opset1", &attributes, &[], 1)
                }
                Kind::Operator {
                    ty,
                    version,
                    attributes,
                    bodies,
                } => {
                    let mut inner = String::new();
                    for body in bodies {
                        let text = graph.inside(|graph| {
                            let values = self.write(graph, &body.nodes, None);
                            body.results.iter().map(|r| pick(&values, *r)).collect()
                        });
                        let (tag, map) = (body.tag, &body.map);
                        let _ = write!(inner, "{map}<{tag}>{text}</{tag}>");
                    }
                    let (name, count) = (format!("n{k}"), node.outputs.len());
                    graph.layer_around(&name, ty, version, attributes, &inputs, count, &inner)
                }
            };
            let outputs = node.outputs.iter().enumerate();
            values.push(
                outputs
                    .map(|(port, (ty, shape))| graph::Value {
                        layer,
                        port: inputs.len() + port,
                        ty: *ty,
                        shape: shape.clone(),
                    })
                    .collect(),
            );
        }
        values
    }

    /// Dims as an attribute of an input has them.
    fn dims(&self, shape: &[usize]) -> String {
        let mut dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
        if self.is_batched(shape) {
            dims[0] = "?".to_owned();
        }
        dims.join(",")
    }
}

fn pick(values: &[Vec<graph::Value>], port: Port) -> graph::Value {
    values[port.node][port.output].clone()
}
