//! From a [`Model`] back to the structs of a file.

use crate::model::{Model, Node, NodeKind};
use crate::specialize::Types;
use petgraph::visit::EdgeRef;
use vinelift_ops::TensorType;
use vinelift_tensor::{Tensor, TensorError};
use vinelift_xml as xml;

impl Model {
    /// The document, version 11, and the weights that go with it. `types` give the ports their
    /// element types and extents; where they lack a tensor, its port keeps what the file had.
    pub fn export(&self, types: &Types) -> Result<(xml::Document, Vec<u8>), TensorError> {
        let mut weights = xml::WeightsBuilder::new();
        let body = self.body(Some(types), &mut weights)?;
        let xml::Body {
            layers,
            edges,
            rt_info,
        } = body;
        let document = xml::Document {
            name: self.name.clone(),
            version: 11,
            pre_process: None,
            layers,
            edges,
            rt_info,
        };
        Ok((document, weights.into_bytes()))
    }

    fn body(
        &self,
        types: Option<&Types>,
        weights: &mut xml::WeightsBuilder,
    ) -> Result<xml::Body, TensorError> {
        let mut layers = Vec::with_capacity(self.graph.node_count());
        for index in self.graph.node_indices() {
            let node = self.node(index);
            let mut layer = layer(node, weights)?;
            for (kind, body) in &node.bodies {
                layer.bodies.push((*kind, body.body(None, weights)?));
            }
            for (k, tensor) in self.inputs(index).into_iter().enumerate() {
                declare(&mut layer.inputs[k], types.and_then(|t| t.get(tensor)));
            }
            for (output, port) in layer.outputs.iter_mut().enumerate() {
                declare(
                    port,
                    types.and_then(|t| {
                        t.get(crate::TensorId {
                            node: index,
                            output,
                        })
                    }),
                );
            }
            layers.push(layer);
        }
        let edge = |e: petgraph::graph::EdgeReference<'_, crate::Edge>| {
            let (from, to) = (&self.node(e.source()).layer, &self.node(e.target()).layer);
            xml::Edge {
                from_layer: from.id,
                from_port: from.outputs[e.weight().output].id,
                to_layer: to.id,
                to_port: to.inputs[e.weight().input].id,
            }
        };
        Ok(xml::Body {
            layers,
            edges: self.graph.edge_references().map(edge).collect(),
            rt_info: self.rt_info.clone(),
        })
    }
}

fn layer(node: &Node, weights: &mut xml::WeightsBuilder) -> Result<xml::Layer, TensorError> {
    let mut layer = node.layer.clone();
    if let NodeKind::Constant(tensor) = &node.kind {
        let placed = weights.add(&bytes(tensor)?);
        for (name, value) in &mut layer.data {
            match name.as_str() {
                "offset" => *value = placed.offset.to_string(),
                "size" => *value = placed.size.to_string(),
                _ => {}
            }
        }
    }
    Ok(layer)
}

fn bytes(tensor: &Tensor) -> Result<std::borrow::Cow<'_, [u8]>, TensorError> {
    match tensor.strings() {
        Some(_) => tensor.encode_strings().map(Into::into),
        None => Ok(tensor.bytes().into()),
    }
}

fn declare(port: &mut xml::Port, ty: Option<&TensorType>) {
    let Some(ty) = ty else { return };
    port.precision = Some(ty.element.precision().to_owned());
    let extent =
        |d: &vinelift_tensor::Dim| d.get().and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
    port.dims = ty
        .shape
        .dims()
        .unwrap_or_default()
        .iter()
        .map(extent)
        .collect();
}
