//! `ov_prepostprocess.h`: what is done to tensors before and after a model, as layers of it.
//!
//! A processor keeps what it is told, for each input and output, and makes layers of it when it
//! builds; the model that it was made from stays as it is. Handles to its parts share it.

mod color;
mod convert_color;
mod layers;
mod steps;
mod tensor_info;

use crate::common::{ElementCode, element_type};
use crate::ffi::{In, Out, Required, Text, free, handle};
use crate::layout::Layout;
use crate::model::Model;
use crate::port_choice::{Side, Which, find};
use crate::status::{Failure, Result, Status, guard};
use color::Color;
use layers::{Expected, convert_output, insert};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift::{ElementType, PartialShape, Shape};
use vinelift_graph::TensorId;

/// `ov_preprocess_prepostprocessor_t`. Clones are the same.
#[derive(Clone)]
pub(crate) struct Processor(Arc<Mutex<Plan>>);

/// All that the program has said about a model's inputs and outputs.
struct Plan {
    model: vinelift::Model,
    inputs: Vec<Input>,
    /// The element types of the outputs, where they are to be others.
    outputs: Vec<Option<ElementType>>,
}

/// All that the program has said about an input.
#[derive(Clone, Debug, Default)]
struct Input {
    element_type: Option<ElementType>,
    layout: Option<Layout>,
    model_layout: Option<Layout>,
    shape: Option<Shape>,
    /// Height and width.
    spatial: Option<(usize, usize)>,
    color: Option<Color>,
    /// The endings of the names of planes.
    sub_names: Vec<String>,
    steps: Vec<Step>,
}

/// One thing that is done to an input; they are done in the order in which the program adds them.
#[derive(Clone, Debug)]
enum Step {
    ElementType(ElementType),
    Layout(Layout),
    Mean(Vec<f32>),
    Scale(Vec<f32>),
    Resize(&'static str),
    Crop {
        begin: Vec<i64>,
        end: Vec<i64>,
    },
    Pad {
        begin: Vec<i64>,
        end: Vec<i64>,
        value: f32,
        mode: &'static str,
    },
    ReverseChannels,
    Color(Color),
}

/// `ov_preprocess_input_info_t`, and the handles to its parts: an input of a processor.
#[derive(Clone)]
pub(crate) struct InputPart {
    processor: Processor,
    index: usize,
}

/// `ov_preprocess_output_info_t`, and the handle to its part: an output of a processor.
#[derive(Clone)]
pub(crate) struct OutputPart {
    processor: Processor,
    index: usize,
}

impl Processor {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of an input or output.
    fn find(&self, side: Side, which: Which<'_>) -> Result<usize> {
        let model = Model::new(self.plan().model.clone());
        model.look(side, |ports| find(ports, side, which))
    }
}

impl InputPart {
    fn change(&self, change: impl FnOnce(&mut Input)) -> Result<()> {
        let mut plan = self.processor.plan();
        let missing = || Failure::new(Status::OutOfBounds, "the input is there no more");
        change(plan.inputs.get_mut(self.index).ok_or_else(missing)?);
        Ok(())
    }
}

impl Plan {
    /// The model with layers for what was told.
    fn build(&self) -> Result<vinelift::Model> {
        let mut failure = None;
        let mut expected = Vec::new();
        let built = self.model.edit(|graph| {
            let done = self.edit(graph, &mut expected);
            done.map_err(|error| {
                let text = error.message.clone();
                failure = Some(error);
                vinelift_graph::Error::Input(text)
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let built = built?;
        for expected in &expected {
            check(&built, expected)?;
        }
        Ok(built)
    }

    fn edit(&self, graph: &mut vinelift_graph::Model, expected: &mut Vec<Expected>) -> Result<()> {
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
    }
}

/// Checks that the steps end with a shape that the model takes.
fn check(model: &vinelift::Model, expected: &Expected) -> Result<()> {
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
            Err(Failure::new(Status::ParameterMismatch, text))
        }
        _ => Ok(()),
    }
}

/// Makes a processor for a model.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_create(
    model: In<'_, Model>,
    preprocess: Out<'_, *mut Processor>,
) -> Status {
    guard(|| {
        let out = preprocess.required("preprocess")?;
        let model = model.required("model")?.current();
        let plan = Plan {
            inputs: vec![Input::default(); model.graph().parameters.len()],
            outputs: vec![None; model.graph().results.len()],
            model,
        };
        out.write(handle(Processor(Arc::new(Mutex::new(plan)))));
        Ok(())
    })
}

/// Frees a processor. Handles to its parts stay.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_free(preprocess: Option<Box<Processor>>) {
    free(preprocess);
}

/// Makes the model with layers for what the processor was told.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_build(
    preprocess: In<'_, Processor>,
    model: Out<'_, *mut Model>,
) -> Status {
    guard(|| {
        let out = model.required("model")?;
        let built = preprocess.required("preprocess")?.plan().build()?;
        out.write(handle(Model::new(built)));
        Ok(())
    })
}

fn give_input(
    processor: In<'_, Processor>,
    which: Which<'_>,
    out: Out<'_, *mut InputPart>,
) -> Status {
    guard(|| {
        let out = out.required("preprocess_input_info")?;
        let processor = processor.required("preprocess")?.clone();
        let index = processor.find(Side::Input, which)?;
        out.write(handle(InputPart { processor, index }));
        Ok(())
    })
}

/// The input, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_get_input_info(
    preprocess: In<'_, Processor>,
    preprocess_input_info: Out<'_, *mut InputPart>,
) -> Status {
    give_input(preprocess, Which::Only, preprocess_input_info)
}

/// The input of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_get_input_info_by_name(
    preprocess: In<'_, Processor>,
    tensor_name: Text<'_>,
    preprocess_input_info: Out<'_, *mut InputPart>,
) -> Status {
    give_input(preprocess, Which::Name(tensor_name), preprocess_input_info)
}

/// The input at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_get_input_info_by_index(
    preprocess: In<'_, Processor>,
    tensor_index: usize,
    preprocess_input_info: Out<'_, *mut InputPart>,
) -> Status {
    give_input(
        preprocess,
        Which::Index(tensor_index),
        preprocess_input_info,
    )
}

fn give_part<T: Clone>(part: In<'_, T>, out: Out<'_, *mut T>) -> Status {
    guard(|| {
        let part = part.required("preprocess_info")?.clone();
        out.required("part")?.write(handle(part));
        Ok(())
    })
}

/// Frees a handle to an input.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_info_free(preprocess_input_info: Option<Box<InputPart>>) {
    free(preprocess_input_info);
}

/// A handle to describe the tensor that the program will give for an input.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_info_get_tensor_info(
    preprocess_input_info: In<'_, InputPart>,
    preprocess_input_tensor_info: Out<'_, *mut InputPart>,
) -> Status {
    give_part(preprocess_input_info, preprocess_input_tensor_info)
}

/// Frees a handle to what a tensor is like.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_free(
    preprocess_input_tensor_info: Option<Box<InputPart>>,
) {
    free(preprocess_input_tensor_info);
}

/// The steps of an input.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_info_get_preprocess_steps(
    preprocess_input_info: In<'_, InputPart>,
    preprocess_input_steps: Out<'_, *mut InputPart>,
) -> Status {
    give_part(preprocess_input_info, preprocess_input_steps)
}

/// Frees a handle to steps.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_free(
    preprocess_input_process_steps: Option<Box<InputPart>>,
) {
    free(preprocess_input_process_steps);
}

/// A handle to describe the tensor that the model takes for an input.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_info_get_model_info(
    preprocess_input_info: In<'_, InputPart>,
    preprocess_input_model_info: Out<'_, *mut InputPart>,
) -> Status {
    give_part(preprocess_input_info, preprocess_input_model_info)
}

/// Frees a handle to what a model takes.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_model_info_free(
    preprocess_input_model_info: Option<Box<InputPart>>,
) {
    free(preprocess_input_model_info);
}

fn give_output(
    processor: In<'_, Processor>,
    which: Which<'_>,
    out: Out<'_, *mut OutputPart>,
) -> Status {
    guard(|| {
        let out = out.required("preprocess_output_info")?;
        let processor = processor.required("preprocess")?.clone();
        let index = processor.find(Side::Output, which)?;
        out.write(handle(OutputPart { processor, index }));
        Ok(())
    })
}

/// The output, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_get_output_info(
    preprocess: In<'_, Processor>,
    preprocess_output_info: Out<'_, *mut OutputPart>,
) -> Status {
    give_output(preprocess, Which::Only, preprocess_output_info)
}

/// The output at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_get_output_info_by_index(
    preprocess: In<'_, Processor>,
    tensor_index: usize,
    preprocess_output_info: Out<'_, *mut OutputPart>,
) -> Status {
    give_output(
        preprocess,
        Which::Index(tensor_index),
        preprocess_output_info,
    )
}

/// The output of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_prepostprocessor_get_output_info_by_name(
    preprocess: In<'_, Processor>,
    tensor_name: Text<'_>,
    preprocess_output_info: Out<'_, *mut OutputPart>,
) -> Status {
    give_output(preprocess, Which::Name(tensor_name), preprocess_output_info)
}

/// Frees a handle to an output.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_output_info_free(preprocess_output_info: Option<Box<OutputPart>>) {
    free(preprocess_output_info);
}

/// A handle to describe the tensor that the program wants for an output.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_output_info_get_tensor_info(
    preprocess_output_info: In<'_, OutputPart>,
    preprocess_output_tensor_info: Out<'_, *mut OutputPart>,
) -> Status {
    give_part(preprocess_output_info, preprocess_output_tensor_info)
}

/// Frees a handle to what a tensor is to be like.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_output_tensor_info_free(
    preprocess_output_tensor_info: Option<Box<OutputPart>>,
) {
    free(preprocess_output_tensor_info);
}

/// The element type that the program wants.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_output_set_element_type(
    preprocess_output_tensor_info: In<'_, OutputPart>,
    element_type: ElementCode,
) -> Status {
    guard(|| {
        let info = preprocess_output_tensor_info.required("preprocess_output_tensor_info")?;
        let element_type = self::element_type(element_type)?;
        let mut plan = info.processor.plan();
        let missing = || Failure::new(Status::OutOfBounds, "the output is there no more");
        *plan.outputs.get_mut(info.index).ok_or_else(missing)? = Some(element_type);
        Ok(())
    })
}
