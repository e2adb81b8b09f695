//! The petgraph of layers.

use crate::control::Control;
use crate::error::Problem;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use vinelift_nest::Layer;
use vinelift_ops::{Instance, OpDef, OpError, ParameterAttributes, TensorType, VariableAttributes};
use vinelift_tensor::{ElementType, PartialShape, Tensor};
use vinelift_xml as xml;

/// A model: layers and the tensors between them.
#[derive(Clone, Debug)]
pub struct Model {
    /// The model's name; empty if the file gives none.
    pub name: String,
    /// The layers, in the order of the file, with an edge for each use of a tensor.
    pub graph: DiGraph<Node, Edge>,
    /// The inputs, in order.
    pub parameters: Vec<NodeIndex>,
    /// The outputs, in order.
    pub results: Vec<NodeIndex>,
    /// The nodes that set variables.
    pub assigns: Vec<NodeIndex>,
    /// All nodes, every one after those that feed it.
    pub order: Vec<NodeIndex>,
    /// `<rt_info>` of the file.
    pub rt_info: Option<xml::Element>,
}

/// A layer.
#[derive(Clone, Debug)]
pub struct Node {
    /// The layer as the file has it, without its bodies.
    pub layer: xml::Layer,
    /// Its meaning.
    pub kind: NodeKind,
    /// Its sub-graphs.
    pub bodies: Vec<(xml::BodyKind, Arc<Model>)>,
}

/// The meaning of a layer.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// An input of the model.
    Parameter(ParameterAttributes),
    /// A constant.
    Constant(Tensor),
    /// An output of the model.
    Result,
    /// An operator.
    Operator {
        /// Its declaration.
        def: &'static OpDef,
        /// The instance, with its attributes.
        op: Instance,
    },
    /// The value of a variable when a run starts.
    ReadValue(VariableAttributes),
    /// The value of a variable when a run has ended.
    Assign(VariableAttributes),
    /// It runs sub-graphs.
    Control(Control),
    /// It cannot run, with the reason; `None` if the type and version are not known at all.
    Refused(Option<OpError>),
}

/// The use of a tensor, by positions among the ports of the two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Which output of the source.
    pub output: usize,
    /// Which input of the target.
    pub input: usize,
}

/// One output of one node: a tensor of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId {
    /// The node that computes it.
    pub node: NodeIndex,
    /// Which of its outputs.
    pub output: usize,
}

/// An input or output of a model, for its users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its names: of the tensor, then of the layer.
    pub names: Vec<String>,
    /// Type and partial shape.
    pub ty: TensorType,
}

impl Node {
    /// The layer's name, operator and version, for messages.
    pub fn label(&self) -> Layer {
        let xml::Layer {
            name,
            type_,
            version,
            ..
        } = &self.layer;
        Layer {
            name: name.clone(),
            op: format!("{type_}, {version}"),
        }
    }

    /// The sub-graph of this kind.
    pub fn body(&self, kind: xml::BodyKind) -> Result<&Arc<Model>, Problem> {
        let body = self.bodies.iter().find(|(k, _)| *k == kind);
        let missing = || Problem::Graph(format!("it has no {}", kind.element()));
        body.map(|(_, body)| body).ok_or_else(missing)
    }
}

impl Model {
    /// The node behind an index.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.graph[index]
    }

    /// The tensors that a node reads, in the order of its ports.
    pub fn inputs(&self, node: NodeIndex) -> Vec<TensorId> {
        let edges = self.graph.edges_directed(node, Direction::Incoming);
        let mut inputs: Vec<(usize, TensorId)> = edges
            .map(|e| {
                (
                    e.weight().input,
                    TensorId {
                        node: e.source(),
                        output: e.weight().output,
                    },
                )
            })
            .collect();
        inputs.sort_unstable();
        inputs.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The type that the parameter at `node` declares.
    pub fn declared_type(&self, node: NodeIndex) -> TensorType {
        match &self.node(node).kind {
            NodeKind::Parameter(ParameterAttributes {
                element_type: Some(element),
                shape,
            }) => TensorType::new(*element, shape.clone()),
            _ => TensorType::new(ElementType::F32, PartialShape::DYNAMIC),
        }
    }

    /// The nodes that read a tensor, each as often as it reads it.
    pub fn readers(&self, tensor: TensorId) -> impl Iterator<Item = NodeIndex> + '_ {
        let edges = self.graph.edges_directed(tensor.node, Direction::Outgoing);
        edges
            .filter(move |e| e.weight().output == tensor.output)
            .map(|e| e.target())
    }

    /// Whether a node is an operator of this name.
    pub(crate) fn has_operator(&self, name: &str) -> bool {
        let mut kinds = self.graph.node_weights().map(|node| &node.kind);
        kinds.any(|kind| matches!(kind, NodeKind::Operator { def, .. } if def.name == name))
    }

    /// The nodes whose outputs depend on constants and shapes alone: as soon as shapes are numbers, they are constant.
    pub(crate) fn of_shapes(&self) -> FxHashSet<NodeIndex> {
        let mut found = FxHashSet::default();
        for &node in &self.order {
            let is_of_shapes = match &self.node(node).kind {
                NodeKind::Constant(_) => true,
                NodeKind::Operator { def, op } => {
                    let reads_shapes = def.name == "ShapeOf";
                    let mut inputs = self.inputs(node).into_iter();
                    op.is_function() && (reads_shapes || inputs.all(|t| found.contains(&t.node)))
                }
                _ => false,
            };
            if is_of_shapes {
                found.insert(node);
            }
        }
        found
    }

    /// The names by which the input of the model at `node` can be addressed.
    pub fn parameter_names(&self, node: NodeIndex) -> Vec<String> {
        let layer = &self.node(node).layer;
        let mut names: Vec<String> = layer
            .outputs
            .first()
            .map(|p| p.names.clone())
            .unwrap_or_default();
        names.push(layer.name.clone());
        names
    }

    /// The names by which the output of the model at `node`, a `Result`, can be addressed.
    pub fn result_names(&self, node: NodeIndex) -> Vec<String> {
        let layer = &self.node(node).layer;
        let mut names = layer.output_names.clone();
        if let Some(source) = self.inputs(node).first() {
            let from = &self.node(source.node).layer;
            let more = from
                .outputs
                .get(source.output)
                .map(|p| p.names.as_slice())
                .unwrap_or_default();
            names.extend(
                more.iter()
                    .filter(|n| !layer.output_names.contains(n))
                    .cloned(),
            );
            names.push(from.name.clone());
        }
        names.push(layer.name.clone());
        names
    }
}

/// Equal as models: the same layers with the same attributes, constants and connections. Where a
/// constant lies in the weights does not matter, nor do the extents that the file repeats on ports.
impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        let edges = |m: &Model| {
            let mut all: Vec<_> = m
                .graph
                .edge_references()
                .map(|e| (e.source(), e.target(), *e.weight()))
                .collect();
            all.sort_unstable_by_key(|(a, b, e)| (*a, *b, e.output, e.input));
            all
        };
        self.name == other.name
            && self.rt_info == other.rt_info
            && self.parameters == other.parameters
            && self.results == other.results
            && self.graph.node_weights().eq(other.graph.node_weights())
            && edges(self) == edges(other)
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        let names = |l: &xml::Layer| {
            (
                l.id,
                l.name.clone(),
                l.type_.clone(),
                l.version.clone(),
                l.output_names.clone(),
            )
        };
        let port_names = |l: &xml::Layer| {
            l.outputs
                .iter()
                .map(|p| (p.id, p.names.clone()))
                .collect::<Vec<_>>()
        };
        let same_value = match (&self.kind, &other.kind) {
            (NodeKind::Constant(a), NodeKind::Constant(b)) => a == b,
            _ => self.layer.data == other.layer.data,
        };
        same_value
            && names(&self.layer) == names(&other.layer)
            && port_names(&self.layer) == port_names(&other.layer)
            && self.layer.rt_info == other.layer.rt_info
            && self.layer.port_maps == other.layer.port_maps
            && self.layer.back_edges == other.layer.back_edges
            && self.bodies == other.bodies
    }
}
