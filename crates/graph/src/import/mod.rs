//! From the structs of a file to a [`Model`].

mod control;

use crate::control::Control;
use crate::error::{Error, LayerError, Problem};
use crate::legacy;
use crate::model::{Edge, Model, Node, NodeKind};
use crate::specialize::infer;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vinelift_ops::{Attributes, ConstAttributes, OpError, ParameterAttributes, VariableAttributes};
use vinelift_tensor::{ElementType, Tensor, TensorError, element_count};
use vinelift_xml as xml;

/// How deep sub-graphs may nest.
const MAX_DEPTH: usize = 8;

impl Model {
    /// The model in `document`, whose constants are in `weights`.
    ///
    /// Layers that cannot run are no error here: they are [`NodeKind::Refused`], so that a model can
    /// be looked at and saved. [`Model::check`] lists them.
    pub fn import(document: xml::Document, weights: &xml::Weights) -> Result<Model, Error> {
        let xml::Document {
            name,
            version,
            pre_process,
            layers,
            edges,
            rt_info,
        } = document;
        if !(10..=11).contains(&version) {
            return Err(Error::Version(version));
        }
        let mut model = build(name, layers, &edges, rt_info, weights, 0)?;
        if version == 10 {
            legacy::convert(&mut model, pre_process.as_ref())?;
        }
        settle_types(&mut model);
        Ok(model)
    }

    /// An error that lists every layer that cannot run, if there are any.
    pub fn check(&self) -> Result<(), Error> {
        let refused = |node: &Node| {
            let body = |(kind, body): &(xml::BodyKind, Arc<Model>)| {
                Some(Problem::body(*kind, body.check().err()?))
            };
            let problem = match &node.kind {
                NodeKind::Refused(None) => Problem::Unsupported(known_versions(&node.layer.type_)),
                NodeKind::Refused(Some(reason)) => Problem::Op(reason.clone()),
                _ => node.bodies.iter().find_map(body)?,
            };
            Some(LayerError {
                layer: node.label(),
                problem,
            })
        };
        let errors: Vec<LayerError> = self.graph.node_weights().filter_map(refused).collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Error::Layers(errors))
        }
    }
}

/// Gives the parameters of sub-graphs that declare no element type that of what they get. Where it cannot be
/// found, something is wrong with what feeds them, and is reported when the model is inferred.
pub(crate) fn settle_types(model: &mut Model) {
    if !has_open_types(model) {
        return;
    }
    let Ok(types) = infer(model) else { return };
    for index in model.graph.node_indices() {
        let fed = model.body_types(index, &types, &FxHashMap::default());
        for (kind, fed) in fed.unwrap_or_default() {
            let bodies = model.graph[index].bodies.iter_mut();
            for (_, body) in bodies.filter(|(k, _)| *k == kind) {
                let body = Arc::make_mut(body);
                for (parameter, ty) in body.parameters.iter().zip(&fed) {
                    if let NodeKind::Parameter(attributes) = &mut body.graph[*parameter].kind {
                        attributes.element_type.get_or_insert(ty.element);
                    }
                }
                settle_types(body);
            }
        }
    }
}

/// Whether a parameter of a sub-graph declares no element type.
fn has_open_types(model: &Model) -> bool {
    let bodies = model.graph.node_weights().flat_map(|node| &node.bodies);
    let is_open = |node: &Node| match &node.kind {
        NodeKind::Parameter(attributes) => attributes.element_type.is_none(),
        _ => false,
    };
    bodies
        .map(|(_, body)| body)
        .any(|body| body.graph.node_weights().any(is_open) || has_open_types(body))
}

/// A hint on a type that is not known: the versions of it that are, or else a type of a similar name, if there is one.
fn known_versions(type_: &str) -> String {
    let versions: Vec<&str> = vinelift_ops::all()
        .filter(|d| d.name.eq_ignore_ascii_case(type_))
        .flat_map(|d| d.versions.iter().copied())
        .collect();
    if !versions.is_empty() {
        return format!(" version, known are {}", versions.join(", "));
    }
    let lower = type_.to_ascii_lowercase();
    let alike = |name: &str| strsim::jaro_winkler(&lower, &name.to_ascii_lowercase());
    // Where one is more than twice as long as the other they are less alike than this, and comparing what is very long takes long.
    let comparable = |name: &str| lower.len() <= 2 * name.len() && name.len() <= 2 * lower.len();
    let known = vinelift_ops::all().filter(|d| comparable(d.name));
    let scores = known.map(|d| (alike(d.name), d.name));
    match scores.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, name)) if score > ALIKE => format!(" (did you mean {name}?)"),
        _ => String::new(),
    }
}

/// The least similarity of two types, from 0 to 1, for one to be suggested for the other: typing errors stay above it.
const ALIKE: f64 = 0.9;

fn build(
    name: String,
    layers: Vec<xml::Layer>,
    edges: &[xml::Edge],
    rt_info: Option<xml::Element>,
    weights: &xml::Weights,
    depth: usize,
) -> Result<Model, Error> {
    if depth > MAX_DEPTH {
        let text = format!("sub-graphs nest deeper than {MAX_DEPTH}");
        return Err(Error::Structure(text));
    }
    let mut graph = DiGraph::new();
    let mut by_id: FxHashMap<u64, NodeIndex> = FxHashMap::default();
    let mut errors = Vec::new();
    for mut layer in layers {
        let bodies = import_bodies(std::mem::take(&mut layer.bodies), weights, depth)?;
        let id = layer.id;
        let mut node = Node {
            layer,
            kind: NodeKind::Result,
            bodies,
        };
        match meaning(&node.layer, &node.bodies, weights, depth) {
            Ok(kind) => node.kind = kind,
            Err(problem) => errors.push(LayerError {
                layer: node.label(),
                problem,
            }),
        }
        let label = node.label();
        let index = graph.add_node(node);
        if by_id.insert(id, index).is_some() {
            let text = format!("{label}: another layer has the id {id} too");
            return Err(Error::Structure(text));
        }
    }
    connect(&mut graph, &by_id, edges)?;
    errors.extend(graph.node_indices().filter_map(|i| unconnected(&graph, i)));
    if !errors.is_empty() {
        return Err(Error::Layers(errors));
    }
    let order = petgraph::algo::toposort(&graph, None)
        .map_err(|c| Error::Cycle(graph[c.node_id()].label()))?;
    let of_kind = |wanted: fn(&NodeKind) -> bool| {
        graph
            .node_indices()
            .filter(|i| wanted(&graph[*i].kind))
            .collect()
    };
    Ok(Model {
        name,
        parameters: of_kind(|k| matches!(k, NodeKind::Parameter(_))),
        results: of_kind(|k| matches!(k, NodeKind::Result)),
        assigns: of_kind(|k| matches!(k, NodeKind::Assign(_))),
        order,
        graph,
        rt_info,
    })
}

/// The sub-graphs of a layer that is `depth` sub-graphs deep.
fn import_bodies(
    bodies: Vec<(xml::BodyKind, xml::Body)>,
    weights: &xml::Weights,
    depth: usize,
) -> Result<Vec<(xml::BodyKind, Arc<Model>)>, Error> {
    let bodies = bodies.into_iter().map(|(kind, body)| {
        let xml::Body {
            layers,
            edges,
            rt_info,
        } = body;
        let body = build(String::new(), layers, &edges, rt_info, weights, depth + 1)?;
        Ok((kind, Arc::new(body)))
    });
    bodies.collect()
}

fn connect(
    graph: &mut DiGraph<Node, Edge>,
    by_id: &FxHashMap<u64, NodeIndex>,
    edges: &[xml::Edge],
) -> Result<(), Error> {
    for e in edges {
        let text = format!(
            "edge from layer {} port {} to layer {} port {}",
            e.from_layer, e.from_port, e.to_layer, e.to_port
        );
        let find = |id: u64| {
            by_id
                .get(&id)
                .copied()
                .ok_or_else(|| Error::Structure(format!("{text}: there is no layer {id}")))
        };
        let (from, to) = (find(e.from_layer)?, find(e.to_layer)?);
        if graph[from].layer.type_ == "Result" {
            let label = graph[from].label();
            let text = format!("{text}: {label} has nothing for other layers");
            return Err(Error::Structure(text));
        }
        let output = graph[from]
            .layer
            .outputs
            .iter()
            .position(|p| p.id == e.from_port);
        let input = graph[to]
            .layer
            .inputs
            .iter()
            .position(|p| p.id == e.to_port);
        let missing = |node: NodeIndex, kind: &str, port: u64| {
            Error::Structure(format!(
                "{text}: {} has no {kind} port {port}",
                graph[node].label()
            ))
        };
        let output = output.ok_or_else(|| missing(from, "output", e.from_port))?;
        let input = input.ok_or_else(|| missing(to, "input", e.to_port))?;
        graph.add_edge(from, to, Edge { output, input });
    }
    Ok(())
}

/// The error in the edges into a node, if there is one.
fn unconnected(graph: &DiGraph<Node, Edge>, index: NodeIndex) -> Option<LayerError> {
    let node = &graph[index];
    let mut uses = vec![0usize; node.layer.inputs.len()];
    graph
        .edges_directed(index, Direction::Incoming)
        .for_each(|e| uses[e.weight().input] += 1);
    let (bad, count) = uses.iter().enumerate().find(|(_, n)| **n != 1)?;
    let port = node.layer.inputs[bad].id;
    let problem = Problem::Graph(format!("{count} edges to input port {port}, expected 1"));
    Some(LayerError {
        layer: node.label(),
        problem,
    })
}

fn meaning(
    layer: &xml::Layer,
    bodies: &[(xml::BodyKind, Arc<Model>)],
    weights: &xml::Weights,
    depth: usize,
) -> Result<NodeKind, Problem> {
    let attributes = Attributes(&layer.data);
    let expect_ports = |inputs: usize, outputs: Option<usize>| {
        let found = (layer.inputs.len(), layer.outputs.len());
        if found.0 == inputs && outputs.is_none_or(|n| n == found.1) {
            return Ok(());
        }
        let outputs = outputs.map_or(String::new(), |n| format!(" and {n} outputs"));
        Err(Problem::Graph(format!(
            "{} inputs and {} outputs, expected {inputs} inputs{outputs}",
            found.0, found.1
        )))
    };
    match (layer.type_.as_str(), layer.version.as_str()) {
        ("Parameter", "opset1") => {
            expect_ports(0, Some(1))?;
            let parameter = ParameterAttributes::parse(&attributes).map_err(OpError::from)?;
            if parameter.element_type.is_none() && depth == 0 {
                let text = "`element_type` must be known but in sub-graphs, found `dynamic`";
                return Err(Problem::Graph(text.to_owned()));
            }
            Ok(NodeKind::Parameter(parameter))
        }
        ("Const" | "Constant", "opset1") => {
            expect_ports(0, Some(1))?;
            let at = ConstAttributes::parse(&attributes).map_err(OpError::from)?;
            Ok(NodeKind::Constant(constant(&at, weights)?))
        }
        ("Result", "opset1") => {
            expect_ports(1, None)?;
            Ok(NodeKind::Result)
        }
        ("ReadValue", "opset3" | "opset6") => {
            expect_ports(layer.inputs.len().min(1), Some(1))?;
            let variable = VariableAttributes::parse(&attributes).map_err(OpError::from)?;
            if layer.inputs.is_empty() && variable.declared.is_none() {
                let text = "neither an input nor the type and shape of its variable";
                return Err(Problem::Graph(text.to_owned()));
            }
            Ok(NodeKind::ReadValue(variable))
        }
        ("Assign", "opset3" | "opset6") => {
            expect_ports(1, Some(layer.outputs.len().min(1)))?;
            let variable = VariableAttributes::parse(&attributes).map_err(OpError::from)?;
            Ok(NodeKind::Assign(variable))
        }
        (type_, version) => match Control::import(layer, bodies)? {
            Some(control) => Ok(NodeKind::Control(control)),
            None => Ok(operator(type_, version, &attributes)),
        },
    }
}

/// An operator, or why there is none with this type, version and attributes.
fn operator(type_: &str, version: &str, attributes: &Attributes<'_>) -> NodeKind {
    let Some(def) = vinelift_ops::find(type_, version) else {
        return NodeKind::Refused(None);
    };
    match def.instantiate(attributes) {
        Ok(Some(op)) => NodeKind::Operator { def, op },
        Ok(None) => NodeKind::Refused(None),
        Err(reason) => NodeKind::Refused(Some(reason)),
    }
}

/// The tensor that `at` describes. Its bytes stay where they are in `weights`.
fn constant(at: &ConstAttributes, weights: &xml::Weights) -> Result<Tensor, Problem> {
    let ConstAttributes {
        element_type,
        shape,
        offset,
        size,
    } = at;
    let bytes = weights.slice(*offset, *size)?;
    if *element_type == ElementType::String {
        return Ok(Tensor::decode_strings(shape, &bytes)?);
    }
    let too_large = || TensorError::TooLarge {
        element_type: *element_type,
        shape: shape.clone(),
    };
    let count = element_count(shape).ok_or_else(too_large)?;
    let need = element_type.byte_len(count).ok_or_else(too_large)?;
    if need > bytes.len() {
        let text = format!("{element_type}{shape:?} needs {need} bytes, but its size is {size}");
        return Err(Problem::Graph(text));
    }
    Ok(Tensor::from_shared(
        *element_type,
        shape,
        bytes.slice(..need),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn types_of_any_length_are_compared_with_those_that_are_known() {
        assert_eq!(known_versions("Gathre"), " (did you mean Gather?)");
        assert_eq!(known_versions("relu"), " version, known are opset1");
        let start = Instant::now();
        assert_eq!(known_versions(&"aeiontr".repeat(5_000_000)), "");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
