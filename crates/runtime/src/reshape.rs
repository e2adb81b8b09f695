//! Other shapes for the inputs of a model.

use crate::{Error, Model};
use std::sync::Arc;
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
        let mut graph = vinelift_graph::Model::clone(&self.graph);
        let inputs = self.inputs();
        for (position, shape) in shapes {
            let Some(port) = inputs.get(*position) else {
                let count = inputs.len();
                let text = format!("the model has no input {position}, it has {count}");
                return Err(Error::Input(text));
            };
            let ty = TensorType::new(port.element_type, shape.clone());
            graph
                .set_parameter(*position, ty)
                .map_err(|e| self.error(e))?;
        }
        let model = Model {
            graph: Arc::new(graph),
            ..self.clone()
        };
        model.infer()?;
        Ok(model)
    }
}
