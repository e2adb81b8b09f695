//! Steps before and after a model, as layers of it: so they are compiled and fused with the model.

mod color;
mod convert_color;
mod input;
mod layers;
mod layout;
mod steps;
mod tensor_shapes;

use crate::{Error, Model, PartialShape};
pub use color::Color;
pub use input::{InputSteps, Padding, Resize};
use layers::{Expected, convert_output, insert};
pub use layout::Layout;
use vinelift_graph::TensorId;
use vinelift_tensor::ElementType;

type Result<T> = std::result::Result<T, Error>;

/// Makes another model of a model, which takes tensors as a program has them, such as pictures in bytes.
///
/// ```
/// use vinelift::{Core, ElementType, Preprocessor, Tensor};
///
/// let core = Core::new()?;
/// let model = core.read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())?;
/// let mut steps = Preprocessor::new(&model);
/// // The program has bytes, the model takes `f32`: (x − 1) / 2.
/// let data = steps.input("data")?.element_type(ElementType::U8);
/// data.convert_element_type(ElementType::F32).mean([1.0]).scale([2.0]);
/// let outputs = core.compile_model(&steps.build()?)?.run([
///     ("data", Tensor::from_slice(&[2, 2], &[1u8, 3, 5, 7])?),
///     ("indices", Tensor::from_slice(&[1, 2], &[1i32, 0])?),
/// ])?;
/// assert_eq!(*outputs["gathered"].as_slice::<f32>()?, [2.0, 1.0]);
/// # Ok::<(), vinelift::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Preprocessor {
    model: Model,
    inputs: Vec<InputSteps>,
    /// The element types of the outputs, where they are to be others.
    outputs: Vec<Option<ElementType>>,
}

impl Preprocessor {
    /// One that does nothing yet to what `model` takes and gives.
    pub fn new(model: &Model) -> Preprocessor {
        Preprocessor {
            inputs: vec![InputSteps::default(); model.graph().parameters.len()],
            outputs: vec![None; model.graph().results.len()],
            model: model.clone(),
        }
    }

    /// The model that it was made from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The steps of the input called `name`, to add to.
    ///
    /// # Errors
    /// If there is none.
    pub fn input(&mut self, name: &str) -> Result<&mut InputSteps> {
        let ports = self.model.inputs();
        self.input_at(crate::compiled::find(&ports, "input", name)?)
    }

    /// The steps of the input at `position`, to add to.
    ///
    /// # Errors
    /// If there is none.
    pub fn input_at(&mut self, position: usize) -> Result<&mut InputSteps> {
        let count = self.inputs.len();
        let missing = || Error::Input(format!("the model has no input {position}, it has {count}"));
        self.inputs.get_mut(position).ok_or_else(missing)
    }

    /// Has the output at `position` be of this element type.
    ///
    /// # Errors
    /// If there is none.
    pub fn convert_output(&mut self, position: usize, element_type: ElementType) -> Result<()> {
        let count = self.outputs.len();
        let missing = || {
            Error::Input(format!(
                "the model has no output {position}, it has {count}"
            ))
        };
        *self.outputs.get_mut(position).ok_or_else(missing)? = Some(element_type);
        Ok(())
    }

    /// Whether there is an input whose colours are to be converted and not known.
    #[doc(hidden)]
    pub fn lacks_color(&self) -> bool {
        self.inputs.iter().any(InputSteps::lacks_color)
    }

    /// The model with layers for all steps.
    ///
    /// # Errors
    /// If a step does not fit what is before it, or the steps end with what the model does not take.
    pub fn build(&self) -> Result<Model> {
        let mut expected = Vec::new();
        let built = self.model.edit_or(|graph| {
            // From the last, since planes move the inputs after them.
            for (position, input) in self.inputs.iter().enumerate().rev() {
                expected.push(insert(graph, position, input)?);
            }
            for (position, element_type) in self.outputs.iter().enumerate() {
                if let Some(element_type) = element_type {
                    convert_output(graph, position, *element_type)?;
                }
            }
            Ok(())
        })?;
        for expected in &expected {
            check(&built, expected)?;
        }
        Ok(built)
    }
}

/// Checks that the steps end with a shape that the model takes.
fn check(model: &Model, expected: &Expected) -> Result<()> {
    let (graph, types) = (model.graph(), model.infer()?);
    let has_name =
        |node: &&vinelift_graph::NodeIndex| graph.node(**node).layer.name == expected.layer;
    let found = graph.order.iter().find(has_name);
    let found = found.and_then(|node| {
        types.get(TensorId {
            node: *node,
            output: 0,
        })
    });
    let fits = |shape: &PartialShape| shape.intersect(&expected.shape).is_some();
    match found {
        Some(ty) if !fits(&ty.shape) => {
            let (layer, found, shape) = (&expected.layer, &ty.shape, &expected.shape);
            let text = format!("'{layer}' has the shape {found}, and the model takes {shape}");
            Err(Error::Input(text))
        }
        _ => Ok(()),
    }
}
