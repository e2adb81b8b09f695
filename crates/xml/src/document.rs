//! The structs that mirror the `.xml` file.

use serde::Deserialize;

/// A whole file: `<net>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The model's name; empty if the file gives none.
    pub name: String,
    /// The version of the format, 10 or 11.
    pub version: u64,
    /// `<pre-process>` of version 10.
    pub pre_process: Option<Element>,
    /// `<layers>`, in the order of the file.
    pub layers: Vec<Layer>,
    /// `<edges>`, in the order of the file.
    pub edges: Vec<Edge>,
    /// `<rt_info>`.
    pub rt_info: Option<Element>,
}

/// A `<layer>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// The number that edges refer to.
    pub id: u64,
    /// The layer's name, which may hold any characters.
    pub name: String,
    /// The operator's type.
    pub type_: String,
    /// The operator's version, such as `opset1`.
    pub version: String,
    /// Names of a `Result`'s tensor, unescaped.
    pub output_names: Vec<String>,
    /// The attributes of `<data>`, as they are written and in that order.
    pub data: Vec<(String, String)>,
    /// `<rt_info>`.
    pub rt_info: Option<Element>,
    /// `<port_map>` of a loop; `<then_port_map>` and `<else_port_map>` of an `If`.
    pub port_maps: Vec<(BodyKind, PortMap)>,
    /// `<back_edges>` of a loop.
    pub back_edges: Vec<BackEdge>,
    /// The ports of `<input>`.
    pub inputs: Vec<Port>,
    /// The ports of `<output>`.
    pub outputs: Vec<Port>,
    /// `<body>` of a loop; `<then_body>` and `<else_body>` of an `If`.
    pub bodies: Vec<(BodyKind, Body)>,
}

impl Layer {
    /// The value of an attribute in `<data>`, as it is written.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.data
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body of this kind.
    pub fn body(&self, kind: BodyKind) -> Option<&Body> {
        self.bodies
            .iter()
            .find(|(k, _)| *k == kind)
            .map(|(_, body)| body)
    }

    /// The port map of the body of this kind.
    pub fn port_map(&self, kind: BodyKind) -> Option<&PortMap> {
        self.port_maps
            .iter()
            .find(|(k, _)| *k == kind)
            .map(|(_, map)| map)
    }
}

/// A `<port>` of a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// The number that edges refer to.
    pub id: u64,
    /// The element type, in upper case.
    pub precision: Option<String>,
    /// The extents, -1 where one is dynamic. A scalar and a tensor of unknown rank both have none.
    pub dims: Vec<i64>,
    /// Names of the tensor, unescaped.
    pub names: Vec<String>,
    /// `<rt_info>`.
    pub rt_info: Option<Element>,
}

/// An `<edge>` between two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Edge {
    /// The id of the layer it comes from.
    pub from_layer: u64,
    /// The id of that layer's output port.
    pub from_port: u64,
    /// The id of the layer it goes to.
    pub to_layer: u64,
    /// The id of that layer's input port.
    pub to_port: u64,
}

/// An `<edge>` in `<back_edges>`: what a body's result is in one iteration, its parameter is in the
/// next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BackEdge {
    /// The id of a `Result` in the body.
    pub from_layer: u64,
    /// The id of a `Parameter` in the body.
    pub to_layer: u64,
}

/// Which sub-graph of a layer something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// The body of a loop.
    Body,
    /// The branch taken if the condition holds.
    Then,
    /// The branch taken if it does not.
    Else,
}

impl BodyKind {
    /// All of them.
    pub const ALL: [BodyKind; 3] = [BodyKind::Body, BodyKind::Then, BodyKind::Else];

    /// The name of the element that holds the sub-graph.
    pub const fn element(self) -> &'static str {
        match self {
            BodyKind::Body => "body",
            BodyKind::Then => "then_body",
            BodyKind::Else => "else_body",
        }
    }

    /// The name of the element that holds its port map.
    pub const fn port_map_element(self) -> &'static str {
        match self {
            BodyKind::Body => "port_map",
            BodyKind::Then => "then_port_map",
            BodyKind::Else => "else_port_map",
        }
    }
}

/// A sub-graph of a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// `<layers>`, in the order of the file.
    pub layers: Vec<Layer>,
    /// `<edges>`, in the order of the file.
    pub edges: Vec<Edge>,
    /// `<rt_info>`.
    pub rt_info: Option<Element>,
}

/// How the ports of a layer and the layers of its body belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortMap {
    /// Its `<input>`s.
    pub inputs: Vec<MappedPort>,
    /// Its `<output>`s.
    pub outputs: Vec<MappedPort>,
}

/// An `<input>` or `<output>` of a port map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct MappedPort {
    /// The id of the layer's port, or -1 if there is none.
    pub external_port_id: i64,
    /// The id of a `Parameter` or `Result` in the body.
    pub internal_layer_id: u64,
    /// The axis along which the tensor is sliced or concatenated; if there is one.
    pub axis: Option<i64>,
    /// Where slicing starts.
    pub start: Option<i64>,
    /// Where slicing ends.
    pub end: Option<i64>,
    /// The distance of two slices.
    pub stride: Option<i64>,
    /// The extent of a slice.
    pub part_size: Option<i64>,
    /// `current_iteration` or `execution_condition`.
    pub purpose: Option<String>,
}

/// Any XML element, such as `<rt_info>`, kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The name of the tag.
    pub name: String,
    /// Names and values, in the order of the file.
    pub attributes: Vec<(String, String)>,
    /// The text in it, without white space around; all in one if children divide it.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Element>,
}

impl Element {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }
}
