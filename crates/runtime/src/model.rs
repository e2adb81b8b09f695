//! A model as the file has it.

use crate::Error;
use crate::weights::MappedFile;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use vinelift_graph as graph;
use vinelift_ops::TensorType;
use vinelift_tensor::{ElementType, PartialShape};
use vinelift_xml as xml;

/// A model: what a file says, not yet compiled. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) file: Arc<str>,
    pub(crate) graph: Arc<graph::Model>,
    /// The types that [`Model::infer`] has found, once it has run.
    pub(crate) types: Arc<OnceLock<Arc<graph::Types>>>,
    /// The file in memory that the constants are in, if they are.
    pub(crate) mapped: Option<MappedFile>,
}

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its names, the tensor's before the layer's. Never empty.
    pub names: Vec<String>,
    /// Its element type.
    pub element_type: ElementType,
    /// Its shape, as far as it is known.
    pub shape: PartialShape,
}

impl Port {
    /// The first of its names.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    pub(crate) fn answers_to(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }
}

impl Model {
    /// `file` is for messages.
    pub(crate) fn build(
        file: &str,
        document: xml::Document,
        weights: &xml::Weights,
    ) -> Result<Model, Error> {
        let graph = graph::Model::import(document, weights);
        let graph = graph.map_err(|source| Error::Model {
            file: file.to_owned(),
            source,
        })?;
        Ok(Model {
            file: file.into(),
            graph: Arc::new(graph),
            types: Arc::default(),
            mapped: None,
        })
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.graph.name
    }

    /// The file that it was read from, for messages; `model` if it was read from memory.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// The graph of layers.
    pub fn graph(&self) -> &graph::Model {
        &self.graph
    }

    /// An error that names every layer that is unsupported, if there are any.
    pub fn check(&self) -> Result<(), Error> {
        self.graph.check().map_err(|e| self.error(e))
    }

    /// The types of all tensors, as far as the declared shapes of the inputs determine them.
    pub fn infer(&self) -> Result<Arc<graph::Types>, Error> {
        self.inferred().map_err(|e| self.error(e))
    }

    pub(crate) fn inferred(&self) -> Result<Arc<graph::Types>, graph::Error> {
        if let Some(types) = self.types.get() {
            return Ok(types.clone());
        }
        let types = Arc::new(graph::infer(&self.graph)?);
        Ok(self.types.get_or_init(|| types).clone())
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> Vec<Port> {
        let port = |node| {
            let graph::NodeKind::Parameter(attributes) = &self.graph.node(node).kind else {
                return None;
            };
            Some(Port {
                names: self.graph.parameter_names(node),
                element_type: attributes.element_type?,
                shape: attributes.shape.clone(),
            })
        };
        self.graph
            .parameters
            .iter()
            .filter_map(|p| port(*p))
            .collect()
    }

    /// The outputs, in order. Fails where the types of the layers do not fit.
    pub fn outputs(&self) -> Result<Vec<Port>, Error> {
        Ok(self.ports_of_results(&*self.infer()?))
    }

    pub(crate) fn ports_of_results(&self, types: &graph::Types) -> Vec<Port> {
        let port = |node| {
            let source = self.graph.inputs(node).first().copied()?;
            let TensorType { element, shape } = types.get(source)?.clone();
            Some(Port {
                names: self.graph.result_names(node),
                element_type: element,
                shape,
            })
        };
        self.graph.results.iter().filter_map(|r| port(*r)).collect()
    }

    /// Writes the model as IR: `path`, an `.xml` file, and the weights beside it.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let (text, weights) = self.to_ir()?;
        let write = |path: &Path, bytes: &[u8]| {
            std::fs::write(path, bytes).map_err(|source| Error::Io {
                path: path.to_owned(),
                source,
            })
        };
        write(path, text.as_bytes())?;
        write(&path.with_extension("bin"), &weights)
    }

    /// The text and the weights of the model as IR.
    pub fn to_ir(&self) -> Result<(String, Vec<u8>), Error> {
        // Ports of what cannot be inferred keep what the file had.
        let types = self.inferred().unwrap_or_default();
        let (document, weights) = self.graph.export(&types)?;
        Ok((xml::write(&document), weights))
    }

    pub(crate) fn error(&self, source: graph::Error) -> Error {
        match source {
            graph::Error::Cancelled => Error::Cancelled,
            graph::Error::Internal(text) => Error::internal(format!("{}: {text}", self.file)),
            source => Error::Model {
                file: self.file.to_string(),
                source,
            },
        }
    }
}

/// Equal if the graphs are; where they were read from does not matter.
impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.graph == other.graph
    }
}
