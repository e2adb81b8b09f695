//! IR version 10: the types at a model's border change when it is read.
//!
//! Inputs of `f16` become `f32`; outputs of `i32`, `i64`, `u32` and `u64` become `i32`, all others `f32`.

use crate::edit::set_attribute;
use crate::error::{Error, LayerError, Problem};
use crate::model::{Edge, Model, Node, NodeKind, TensorId};
use crate::specialize::infer;
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use vinelift_ops::{Attributes, OpError};
use vinelift_tensor::ElementType;
use vinelift_xml as xml;

/// Applies the rules of version 10 to a model that was read from it.
pub(crate) fn convert(model: &mut Model, pre_process: Option<&xml::Element>) -> Result<(), Error> {
    if let Some(input) = pre_process.and_then(|p| p.attribute("reference-layer-name")) {
        return Err(Error::Structure(format!(
            "unsupported: pre-process of input '{input}' in IR version 10"
        )));
    }
    for parameter in model.parameters.clone() {
        if let NodeKind::Parameter(attributes) = &mut model.graph[parameter].kind
            && attributes.element_type == ElementType::F16
        {
            attributes.element_type = ElementType::F32;
            set_attribute(
                &mut model.graph[parameter].layer,
                "element_type",
                "f32".to_owned(),
            );
            insert_after(
                model,
                TensorId {
                    node: parameter,
                    output: 0,
                },
                ElementType::F16,
            )?;
        }
    }
    // What cannot be inferred is reported when the model is compiled.
    let Ok(types) = infer(model) else {
        return Ok(());
    };
    for result in model.results.clone() {
        let Some(source) = model.inputs(result).first().copied() else {
            continue;
        };
        let Some(found) = types.get(source).map(|t| t.element) else {
            continue;
        };
        let wanted = match found {
            ElementType::I32 | ElementType::I64 | ElementType::U32 | ElementType::U64 => {
                ElementType::I32
            }
            _ => ElementType::F32,
        };
        if found != wanted {
            insert_before(model, result, wanted)?;
        }
    }
    reorder(model)
}

/// All readers of `tensor` read it converted to `ty` instead.
fn insert_after(model: &mut Model, tensor: TensorId, ty: ElementType) -> Result<(), Error> {
    let readers: Vec<_> = model
        .graph
        .edges_directed(tensor.node, Direction::Outgoing)
        .filter(|e| e.weight().output == tensor.output)
        .map(|e| (e.id(), e.target(), e.weight().input))
        .collect();
    let node = add_convert(model, tensor.node, ty)?;
    model.graph.add_edge(
        tensor.node,
        node,
        Edge {
            output: tensor.output,
            input: 0,
        },
    );
    for (edge, target, input) in readers {
        model
            .graph
            .add_edge(node, target, Edge { output: 0, input });
        // Removing moves the last edge here; the new one is the last, and the others keep their ids.
        model.graph.remove_edge(edge);
    }
    Ok(())
}

/// `result` gets its tensor converted to `ty`.
fn insert_before(model: &mut Model, result: NodeIndex, ty: ElementType) -> Result<(), Error> {
    let Some((edge, source, output)) = model
        .graph
        .edges_directed(result, Direction::Incoming)
        .next()
        .map(|e| (e.id(), e.source(), e.weight().output))
    else {
        return Ok(());
    };
    let node = add_convert(model, result, ty)?;
    model.graph.remove_edge(edge);
    model
        .graph
        .add_edge(source, node, Edge { output, input: 0 });
    model.graph.add_edge(
        node,
        result,
        Edge {
            output: 0,
            input: 0,
        },
    );
    Ok(())
}

fn add_convert(model: &mut Model, near: NodeIndex, ty: ElementType) -> Result<NodeIndex, Error> {
    let id = model
        .graph
        .node_weights()
        .map(|n| n.layer.id)
        .max()
        .unwrap_or(0)
        .saturating_add(1);
    let data = vec![("destination_type".to_owned(), ty.name().to_owned())];
    let port = |id| xml::Port {
        id,
        ..xml::Port::default()
    };
    let layer = xml::Layer {
        id,
        name: format!("{}/convert_{ty}", model.node(near).layer.name),
        type_: "Convert".to_owned(),
        version: "opset1".to_owned(),
        inputs: vec![port(0)],
        outputs: vec![port(1)],
        data: data.clone(),
        ..xml::Layer::default()
    };
    let mut node = Node {
        layer,
        kind: NodeKind::Refused(None),
        bodies: Vec::new(),
    };
    if let Some(def) = vinelift_ops::find("Convert", "opset1") {
        let op = def.instantiate(&Attributes(&data));
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
    Ok(model.graph.add_node(node))
}

fn reorder(model: &mut Model) -> Result<(), Error> {
    let order = petgraph::algo::toposort(&model.graph, None);
    model.order = order.map_err(|c| Error::Cycle(model.graph[c.node_id()].label()))?;
    Ok(())
}
