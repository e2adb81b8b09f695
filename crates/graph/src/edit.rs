//! Changes to a model: other inputs, layers put in between.
//!
//! After the last change, [`Model::finish`] puts the nodes in order again.

use crate::error::{Error, LayerError, Problem};
use crate::import::settle_types;
use crate::model::{Edge, Model, Node, NodeKind, TensorId};
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use vinelift_ops::{Attributes, OpError, ParameterAttributes, TensorType, format_shape};
use vinelift_tensor::Tensor;
use vinelift_xml as xml;

/// One use of a tensor: by which node, and at which of its inputs.
pub type Use = (NodeIndex, usize);

impl Model {
    /// Has the parameter at `position` take tensors of type `ty`. What reads it is not checked.
    pub fn set_parameter(&mut self, position: usize, ty: TensorType) -> Result<(), Error> {
        let node = self.parameter(position)?;
        let node = &mut self.graph[node];
        set_attribute(&mut node.layer, "shape", format_shape(&ty.shape));
        set_attribute(
            &mut node.layer,
            "element_type",
            ty.element.name().to_owned(),
        );
        node.kind = parameter_kind(ty);
        Ok(())
    }

    /// Sets the names of the tensor of the parameter at `position`.
    pub fn set_parameter_names(
        &mut self,
        position: usize,
        names: Vec<String>,
    ) -> Result<(), Error> {
        let node = self.parameter(position)?;
        if let Some(port) = self.graph[node].layer.outputs.first_mut() {
            port.names = names;
        }
        Ok(())
    }

    /// The node of the parameter at `position`.
    pub fn parameter(&self, position: usize) -> Result<NodeIndex, Error> {
        let count = self.parameters.len();
        self.parameters.get(position).copied().ok_or_else(|| {
            Error::Input(format!("the model has no input {position}, it has {count}"))
        })
    }

    /// Adds a parameter, which becomes the one at `position`.
    pub fn add_parameter(
        &mut self,
        position: usize,
        name: &str,
        names: Vec<String>,
        ty: TensorType,
    ) -> TensorId {
        let mut layer = self.new_layer(name, "Parameter", "opset1", 0, 1);
        set_attribute(&mut layer, "shape", format_shape(&ty.shape));
        set_attribute(&mut layer, "element_type", ty.element.name().to_owned());
        layer.outputs[0].names = names;
        let node = self.graph.add_node(Node {
            layer,
            kind: parameter_kind(ty),
            bodies: Vec::new(),
        });
        let position = position.min(self.parameters.len());
        self.parameters.insert(position, node);
        TensorId { node, output: 0 }
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, name: &str, value: Tensor) -> TensorId {
        let mut layer = self.new_layer(name, "Const", "opset1", 0, 1);
        let shape: Vec<String> = value.shape().iter().map(ToString::to_string).collect();
        set_attribute(
            &mut layer,
            "element_type",
            value.element_type().name().to_owned(),
        );
        set_attribute(&mut layer, "shape", shape.join(", "));
        // Where it lies is known once the model is exported.
        set_attribute(&mut layer, "offset", "0".to_owned());
        set_attribute(&mut layer, "size", "0".to_owned());
        let node = self.graph.add_node(Node {
            layer,
            kind: NodeKind::Constant(value),
            bodies: Vec::new(),
        });
        TensorId { node, output: 0 }
    }

    /// Adds an operator with one output, which reads `inputs`.
    ///
    /// # Errors
    /// If its attributes are wrong. An operator that is not known is reported by [`Model::check`].
    pub fn add_operator(
        &mut self,
        name: &str,
        (type_, version): (&str, &str),
        attributes: &[(&str, &str)],
        inputs: &[TensorId],
    ) -> Result<TensorId, Error> {
        let mut layer = self.new_layer(name, type_, version, inputs.len(), 1);
        for (name, value) in attributes {
            set_attribute(&mut layer, name, (*value).to_owned());
        }
        let mut node = Node {
            layer,
            kind: NodeKind::Refused(None),
            bodies: Vec::new(),
        };
        if let Some(def) = vinelift_ops::find(type_, version) {
            let op = def.instantiate(&Attributes(&node.layer.data));
            let fail = |e: OpError| {
                Error::Layers(vec![LayerError {
                    layer: node.label(),
                    problem: Problem::Op(e),
                }])
            };
            if let Some(op) = op.map_err(fail)? {
                node.kind = NodeKind::Operator { def, op };
            }
        }
        let node = self.graph.add_node(node);
        for (input, tensor) in inputs.iter().enumerate() {
            let output = tensor.output;
            self.graph
                .add_edge(tensor.node, node, Edge { output, input });
        }
        Ok(TensorId { node, output: 0 })
    }

    /// The uses of a tensor.
    pub fn uses(&self, tensor: TensorId) -> Vec<Use> {
        let edges = self.graph.edges_directed(tensor.node, Direction::Outgoing);
        edges
            .filter(|e| e.weight().output == tensor.output)
            .map(|e| (e.target(), e.weight().input))
            .collect()
    }

    /// Has `uses` read `tensor` instead of what they read.
    pub fn redirect(&mut self, uses: &[Use], tensor: TensorId) {
        self.graph.retain_edges(|graph, edge| {
            let target = graph.edge_endpoints(edge).map(|(_, target)| target);
            !uses
                .iter()
                .any(|(node, input)| target == Some(*node) && graph[edge].input == *input)
        });
        for (node, input) in uses {
            let edge = Edge {
                output: tensor.output,
                input: *input,
            };
            self.graph.add_edge(tensor.node, *node, edge);
        }
    }

    /// The names of a tensor become those of another.
    pub fn move_names(&mut self, from: TensorId, to: TensorId) {
        let port = self.graph[from.node].layer.outputs.get_mut(from.output);
        let names = port.map(|p| std::mem::take(&mut p.names));
        let target = self.graph[to.node].layer.outputs.get_mut(to.output);
        if let (Some(names), Some(target)) = (names, target) {
            target.names = names;
        }
    }

    /// Puts the nodes in order after changes, and finds the element types that sub-graphs leave open. Nodes may get other
    /// indices: where parameters were added, so that a file has them in the right order.
    ///
    /// # Errors
    /// If layers feed themselves.
    pub fn finish(&mut self) -> Result<(), Error> {
        if !self.parameters.is_sorted() {
            self.put_parameters_first();
        }
        let order = petgraph::algo::toposort(&self.graph, None);
        self.order = order.map_err(|c| Error::Cycle(self.graph[c.node_id()].label()))?;
        // Where the model was wrong before the changes, they may still be open.
        settle_types(self);
        Ok(())
    }

    fn put_parameters_first(&mut self) {
        let others = self.graph.node_indices();
        let others = others.filter(|node| !self.parameters.contains(node));
        let sequence: Vec<NodeIndex> = self.parameters.iter().copied().chain(others).collect();
        let mut moved = vec![NodeIndex::end(); sequence.len()];
        let mut graph = DiGraph::with_capacity(sequence.len(), self.graph.edge_count());
        for node in sequence {
            moved[node.index()] = graph.add_node(self.graph[node].clone());
        }
        for edge in self.graph.edge_references() {
            let (from, to) = (moved[edge.source().index()], moved[edge.target().index()]);
            graph.add_edge(from, to, *edge.weight());
        }
        self.graph = graph;
        for list in [&mut self.parameters, &mut self.results, &mut self.assigns] {
            list.iter_mut().for_each(|node| *node = moved[node.index()]);
        }
    }

    /// A number that no layer has.
    pub(crate) fn next_id(&self) -> u64 {
        let last = self.graph.node_weights().map(|n| n.layer.id).max();
        last.unwrap_or(0).saturating_add(1)
    }

    fn new_layer(
        &self,
        name: &str,
        type_: &str,
        version: &str,
        inputs: usize,
        outputs: usize,
    ) -> xml::Layer {
        let port = |id: usize| xml::Port {
            id: id as u64,
            ..xml::Port::default()
        };
        xml::Layer {
            id: self.next_id(),
            name: name.to_owned(),
            type_: type_.to_owned(),
            version: version.to_owned(),
            inputs: (0..inputs).map(port).collect(),
            outputs: (inputs..inputs + outputs).map(port).collect(),
            ..xml::Layer::default()
        }
    }
}

fn parameter_kind(ty: TensorType) -> NodeKind {
    NodeKind::Parameter(ParameterAttributes {
        shape: ty.shape,
        element_type: Some(ty.element),
    })
}

/// Sets an attribute of a layer.
pub(crate) fn set_attribute(layer: &mut xml::Layer, name: &str, value: String) {
    match layer.data.iter_mut().find(|(n, _)| n == name) {
        Some((_, text)) => *text = value,
        None => layer.data.push((name.to_owned(), value)),
    }
}
