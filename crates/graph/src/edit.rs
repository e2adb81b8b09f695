//! Changes to a model: other shapes and types of its inputs.

use crate::error::Error;
use crate::model::{Model, NodeKind};
use vinelift_ops::{TensorType, format_shape};
use vinelift_xml as xml;

impl Model {
    /// Has the parameter at `position` take tensors of type `ty`. What reads it is not checked.
    pub fn set_parameter(&mut self, position: usize, ty: TensorType) -> Result<(), Error> {
        let count = self.parameters.len();
        let node = self.parameters.get(position).copied().ok_or_else(|| {
            Error::Input(format!("the model has no input {position}, it has {count}"))
        })?;
        let node = &mut self.graph[node];
        if let NodeKind::Parameter(attributes) = &mut node.kind {
            set_attribute(&mut node.layer, "shape", format_shape(&ty.shape));
            set_attribute(
                &mut node.layer,
                "element_type",
                ty.element.name().to_owned(),
            );
            attributes.shape = ty.shape;
            attributes.element_type = ty.element;
        }
        Ok(())
    }
}

/// Sets an attribute of a layer.
pub(crate) fn set_attribute(layer: &mut xml::Layer, name: &str, value: String) {
    match layer.data.iter_mut().find(|(n, _)| n == name) {
        Some((_, text)) => *text = value,
        None => layer.data.push((name.to_owned(), value)),
    }
}
