//! Changes to a model: other shapes for its inputs, and whatever else can be done to its layers.

use crate::{Error, Model};
use std::sync::Arc;
use vinelift_graph as graph;
use vinelift_ops::TensorType;
use vinelift_tensor::PartialShape;

impl Model {
    /// The model with other shapes for some of its inputs, given by position.
    ///
    /// ```
    /// use vinelift::{Core, PartialShape};
    ///
    /// let core = Core::new()?;
    /// let model = core.read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())?;
    /// let shape = |extents: &[usize]| PartialShape::from(extents);
    /// let wider = model.reshape(&[(0, shape(&[2, 7])), (1, shape(&[5, 7]))])?;
    /// assert_eq!(wider.outputs()?[0].shape, shape(&[5, 7]));
    /// assert!(model.reshape(&[(0, shape(&[2]))]).is_err());
    /// # Ok::<(), vinelift::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such input, or if the layers do not fit the shapes.
    pub fn reshape(&self, shapes: &[(usize, PartialShape)]) -> Result<Model, Error> {
        self.edit(|graph| {
            for (position, shape) in shapes {
                let element = graph.declared_type(graph.parameter(*position)?).element;
                graph.set_parameter(*position, TensorType::new(element, shape.clone()))?;
            }
            Ok(())
        })
    }

    /// The model with changes to its layers.
    ///
    /// # Errors
    /// The error of `change`, or one that says what is wrong with the layers afterwards.
    pub fn edit(
        &self,
        change: impl FnOnce(&mut graph::Model) -> Result<(), graph::Error>,
    ) -> Result<Model, Error> {
        self.edit_or(|graph| change(graph).map_err(|e| self.error(e)))
    }

    /// As [`Model::edit`], where `change` has errors of its own.
    pub(crate) fn edit_or(
        &self,
        change: impl FnOnce(&mut graph::Model) -> Result<(), Error>,
    ) -> Result<Model, Error> {
        let mut graph = graph::Model::clone(&self.graph);
        change(&mut graph)?;
        graph.finish().map_err(|e| self.error(e))?;
        let model = Model {
            graph: Arc::new(graph),
            types: Arc::default(),
            ..self.clone()
        };
        model.infer()?;
        Ok(model)
    }
}
