//! Models as texts that grow layer by layer.

use std::fmt::Write;
use vinelift::{Core, ElementType, Model};

/// A tensor of a graph.
#[derive(Clone, Debug)]
pub struct Value {
    /// The layer that it comes from, and the port.
    pub layer: usize,
    /// As above.
    pub port: usize,
    /// Its type, as far as that is known.
    pub ty: ElementType,
    /// Its shape, as far as that is known.
    pub shape: Vec<usize>,
}

impl Value {
    /// The number of its elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.ty.byte_len(self.elements()).unwrap_or(usize::MAX)
    }
}

/// A graph under construction, as the text of its layers.
#[derive(Clone, Default)]
pub struct Graph {
    layers: Vec<String>,
    edges: String,
    weights: Vec<u8>,
}

/// A graph as it was once, to go back to.
#[derive(Clone, Copy)]
pub struct Mark([usize; 3]);

impl Graph {
    /// The graph as it is now.
    pub fn mark(&self) -> Mark {
        Mark([self.layers.len(), self.edges.len(), self.weights.len()])
    }

    /// Takes away what was added since.
    pub fn go_back(&mut self, Mark([layers, edges, weights]): Mark) {
        self.layers.truncate(layers);
        self.edges.truncate(edges);
        self.weights.truncate(weights);
    }

    /// Adds an input.
    pub fn parameter(&mut self, name: &str, ty: ElementType, shape: &[usize]) -> Value {
        let attributes = format!("shape=\"{}\" element_type=\"{ty}\"", dims(shape));
        self.source(name, "Parameter", &attributes, ty, shape)
    }

    /// Adds a constant of these bytes.
    pub fn constant(&mut self, ty: ElementType, shape: &[usize], bytes: &[u8]) -> Value {
        let (offset, size) = (self.weights.len(), bytes.len());
        self.weights.extend(bytes);
        let attributes = format!(
            "element_type=\"{ty}\" shape=\"{}\" offset=\"{offset}\" size=\"{size}\"",
            dims(shape)
        );
        let name = format!("constant_{}", self.layers.len());
        self.source(&name, "Const", &attributes, ty, shape)
    }

    /// Adds a constant of `f32`.
    pub fn floats(&mut self, shape: &[usize], values: &[f32]) -> Value {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(ElementType::F32, shape, &bytes)
    }

    /// A constant list of integers.
    pub fn list(&mut self, values: &[i64]) -> Value {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(ElementType::I64, &[values.len()], &bytes)
    }

    /// A constant integer without dims.
    pub fn number(&mut self, value: i64) -> Value {
        self.constant(ElementType::I64, &[], &value.to_le_bytes())
    }

    fn source(
        &mut self,
        name: &str,
        kind: &str,
        attributes: &str,
        ty: ElementType,
        shape: &[usize],
    ) -> Value {
        Value {
            layer: self.layer(name, kind, "opset1", attributes, &[], 1),
            port: 0,
            ty,
            shape: shape.to_vec(),
        }
    }

    /// Adds a layer and gives its number.
    pub fn layer(
        &mut self,
        name: &str,
        ty: &str,
        version: &str,
        attributes: &str,
        inputs: &[&Value],
        outputs: usize,
    ) -> usize {
        self.layer_around(name, ty, version, attributes, inputs, outputs, "")
    }

    /// As [`Graph::layer`], with `inner` in it besides: graphs of its own, and how they are connected.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a layer, most of them texts"
    )]
    pub fn layer_around(
        &mut self,
        name: &str,
        ty: &str,
        version: &str,
        attributes: &str,
        inputs: &[&Value],
        outputs: usize,
        inner: &str,
    ) -> usize {
        let id = self.layers.len();
        let mut text =
            format!("<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\" version=\"{version}\">");
        let _ = write!(text, "<data {attributes}/><input>");
        for (k, input) in inputs.iter().enumerate() {
            let _ = write!(text, "<port id=\"{k}\"/>");
            let (from, port) = (input.layer, input.port);
            let _ = write!(
                self.edges,
                "<edge from-layer=\"{from}\" from-port=\"{port}\" to-layer=\"{id}\" to-port=\"{k}\"/>"
            );
        }
        text += "</input><output>";
        for k in 0..outputs {
            let _ = write!(text, "<port id=\"{}\"/>", inputs.len() + k);
        }
        self.layers.push(text + "</output>" + inner + "</layer>");
        id
    }

    /// The text of a graph inside of a layer of this one, of what `grow` adds and gives as results. The constants
    /// of both are in the same weights.
    pub fn inside(&mut self, grow: impl FnOnce(&mut Graph) -> Vec<Value>) -> String {
        let mut inner = Graph {
            weights: std::mem::take(&mut self.weights),
            ..Graph::default()
        };
        let results = grow(&mut inner);
        inner.results(&results);
        let text = inner.parts();
        self.weights = inner.weights;
        text
    }

    /// Adds a layer of the given outputs' number, and infers the types and shapes of these. The graph is as before
    /// if the model does not accept it, or a shape is not known.
    pub fn node(
        &mut self,
        core: &Core,
        ty: &str,
        version: &str,
        attributes: &str,
        inputs: &[&Value],
        outputs: usize,
    ) -> Option<Vec<Value>> {
        let before = self.mark();
        let name = format!("n{}", self.layers.len());
        let layer = self.layer(&name, ty, version, attributes, inputs, outputs);
        let mut added: Vec<Value> = (0..outputs)
            .map(|port| Value {
                layer,
                port: inputs.len() + port,
                ty: ElementType::F32,
                shape: Vec::new(),
            })
            .collect();
        let ports = self.model(core, &added).and_then(|m| m.outputs().ok());
        let known = ports.is_some_and(|ports| {
            added.iter_mut().zip(&ports).all(|(value, port)| {
                value.ty = port.element_type;
                value.shape = port.shape.to_static().unwrap_or_default();
                port.shape.to_static().is_some()
            })
        });
        if !known {
            self.go_back(before);
        }
        known.then_some(added)
    }

    /// As [`node`](Graph::node), of one output, which the model must accept.
    pub fn single(
        &mut self,
        core: &Core,
        ty: &str,
        version: &str,
        attributes: &str,
        inputs: &[&Value],
    ) -> Value {
        let added = self.node(core, ty, version, attributes, inputs, 1);
        added.unwrap().swap_remove(0)
    }

    /// Adds a layer of one output, of which only the type of its elements is known.
    pub fn open(
        &mut self,
        ty: &str,
        version: &str,
        attributes: &str,
        inputs: &[&Value],
        element: ElementType,
    ) -> Value {
        let name = format!("n{}", self.layers.len());
        Value {
            layer: self.layer(&name, ty, version, attributes, inputs, 1),
            port: inputs.len(),
            ty: element,
            shape: Vec::new(),
        }
    }

    /// The text and the weights of the model whose results are `results`.
    pub fn text(&self, results: &[Value]) -> (String, Vec<u8>) {
        let mut graph = self.clone();
        graph.results(results);
        let text = format!("<net name=\"g\" version=\"11\">{}</net>", graph.parts());
        (text, graph.weights)
    }

    fn results(&mut self, results: &[Value]) {
        for (k, value) in results.iter().enumerate() {
            self.layer(&format!("result_{k}"), "Result", "opset1", "", &[value], 0);
        }
    }

    /// The text of the layers and the edges.
    fn parts(&self) -> String {
        let (layers, edges) = (self.layers.concat(), &self.edges);
        format!("<layers>{layers}</layers><edges>{edges}</edges>")
    }

    /// The model whose results are `results`, if it is one.
    pub fn model(&self, core: &Core, results: &[Value]) -> Option<Model> {
        let (text, weights) = self.text(results);
        let model = core.read_model_from_memory(text.as_bytes(), weights);
        model.ok().filter(|m| m.check().is_ok())
    }
}

fn dims(shape: &[usize]) -> String {
    let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
    dims.join(",")
}
