//! The graph as text, and as Graphviz DOT.

use crate::model::{Model, Node, NodeKind, TensorId};
use crate::specialize::Types;
use petgraph::graph::NodeIndex;
use std::fmt::Write;

impl Model {
    /// One line a layer: `name: outputs = Type(inputs) attributes`.
    pub fn to_text(&self, types: &Types) -> String {
        self.to_text_of(types, |_| true)
    }

    /// As [`Model::to_text`], of the nodes that are wanted.
    pub fn to_text_of(&self, types: &Types, wanted: impl Fn(&Node) -> bool) -> String {
        let nodes = self.order.iter().filter(|n| wanted(self.node(**n)));
        nodes.map(|n| self.line(*n, types)).collect()
    }

    fn line(&self, node: NodeIndex, types: &Types) -> String {
        let layer = &self.node(node).layer;
        let inputs: Vec<String> = self
            .inputs(node)
            .into_iter()
            .map(|t| self.tensor_name(t))
            .collect();
        let outputs: Vec<String> = (0..layer.outputs.len())
            .map(|output| type_text(types, TensorId { node, output }))
            .collect();
        let attributes: Vec<String> = self
            .attributes(node)
            .iter()
            .map(|(k, v)| format!(" {k}=\"{v}\""))
            .collect();
        let outputs = if outputs.is_empty() {
            String::new()
        } else {
            format!(": {}", outputs.join(", "))
        };
        format!(
            "{}{outputs} = {}.{}({}){}\n",
            layer.name,
            layer.type_,
            layer.version,
            inputs.join(", "),
            attributes.concat()
        )
    }

    /// The graph in the language of Graphviz.
    pub fn to_dot(&self, types: &Types) -> String {
        let mut text =
            String::from("digraph model {\n  node [shape=box, fontname=\"monospace\"];\n");
        for &node in &self.order {
            let layer = &self.node(node).layer;
            let attributes: Vec<String> = self
                .attributes(node)
                .iter()
                .map(|(k, v)| format!("\n{k}={v}"))
                .collect();
            let label = format!(
                "{}\n{} {}{}",
                layer.name,
                layer.type_,
                layer.version,
                attributes.concat()
            );
            let shape = match self.node(node).kind {
                NodeKind::Parameter(_) | NodeKind::Result => ", style=bold",
                NodeKind::Constant(_) => ", style=dashed",
                _ => "",
            };
            let _ = writeln!(
                text,
                "  n{} [label={}{shape}];",
                node.index(),
                quoted(&label)
            );
            for (input, tensor) in self.inputs(node).into_iter().enumerate() {
                let label = quoted(&format!("{input}: {}", type_text(types, tensor)));
                let _ = writeln!(
                    text,
                    "  n{} -> n{} [label={label}];",
                    tensor.node.index(),
                    node.index()
                );
            }
        }
        text + "}\n"
    }

    /// The name of a tensor in texts: its layer's, with the output's number if there are several.
    pub fn tensor_name(&self, tensor: TensorId) -> String {
        let layer = &self.node(tensor.node).layer;
        if layer.outputs.len() > 1 {
            format!("{}.{}", layer.name, tensor.output)
        } else {
            layer.name.clone()
        }
    }

    /// The attributes worth showing: where a constant lies in the weights is not.
    pub fn attributes(&self, node: NodeIndex) -> Vec<(&str, &str)> {
        let constant = matches!(self.node(node).kind, NodeKind::Constant(_));
        let hidden =
            |name: &str| constant && matches!(name, "offset" | "size" | "shape" | "element_type");
        let data = self.node(node).layer.data.iter();
        data.filter(|(k, _)| !hidden(k))
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect()
    }
}

fn type_text(types: &Types, tensor: TensorId) -> String {
    types
        .get(tensor)
        .map_or_else(|| "?".to_owned(), ToString::to_string)
}

fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}
