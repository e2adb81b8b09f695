//! `ov_prepostprocess.h`: what is done to tensors before and after a model, as layers of it.
//!
//! A processor keeps what it is told, for each input and output, and makes layers of it when it
//! builds; the model that it was made from stays as it is. Handles to its parts share it.

mod color;
mod layers;

use crate::common::{ElementCode, element_type};
use crate::ffi::{Array, In, Out, Required, Text, free, handle};
use crate::layout::Layout;
use crate::model::Model;
use crate::node::{Owner, Side, Which, find};
use crate::property::{arguments, variadic};
use crate::status::{Failure, Result, Status, guard};
use crate::tensor::Tensor;
use color::Color;
use layers::{Expected, convert_output, insert};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift::{ElementType, PartialShape, Shape};
use vinelift_graph::TensorId;

/// `ov_preprocess_prepostprocessor_t`. Clones are the same.
#[derive(Clone)]
pub(crate) struct Processor(Arc<Mutex<Plan>>);

/// What is told of a model.
struct Plan {
    model: vinelift::Model,
    inputs: Vec<Input>,
    /// The element types of the outputs, where they are to be others.
    outputs: Vec<Option<ElementType>>,
}

/// What is told of an input.
#[derive(Clone, Debug, Default)]
struct Input {
    element_type: Option<ElementType>,
    layout: Option<Layout>,
    model_layout: Option<Layout>,
    shape: Option<Shape>,
    /// Height and width.
    spatial: Option<(usize, usize)>,
    color: Option<Color>,
    /// What the names of planes end in.
    sub_names: Vec<String>,
    steps: Vec<Step>,
}

/// What is done to an input, in order.
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
        find(&Owner::Model(model).ports(side)?, side, which)
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

/// What the tensor of an input is like.
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

/// What the model takes for an input.
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

/// Adds a step, once its arguments have been read.
fn add(steps: In<'_, InputPart>, step: impl FnOnce() -> Result<Step>) -> Status {
    guard(|| {
        let steps = steps.required("preprocess_input_process_steps")?;
        let step = step()?;
        steps.change(|input| input.steps.push(step))
    })
}

/// A step: resizes images to the height and width that the model takes.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_resize(
    preprocess_input_process_steps: In<'_, InputPart>,
    resize_algorithm: u32,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Resize(match resize_algorithm {
            0 => "linear",
            1 => "cubic",
            2 => "nearest",
            _ => {
                let text = format!("there is no resize algorithm {resize_algorithm}");
                return Err(Failure::argument(text));
            }
        }))
    })
}

/// A step: divides by a number.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_scale(
    preprocess_input_process_steps: In<'_, InputPart>,
    value: f32,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Scale(vec![value]))
    })
}

/// A step: divides by a number for each channel.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_scale_multi_channels(
    preprocess_input_process_steps: In<'_, InputPart>,
    values: Array<'_, f32>,
    value_size: i32,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Scale(numbers(values, value_size)?))
    })
}

/// A step: subtracts a number.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_mean(
    preprocess_input_process_steps: In<'_, InputPart>,
    value: f32,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Mean(vec![value]))
    })
}

/// A step: subtracts a number for each channel.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_mean_multi_channels(
    preprocess_input_process_steps: In<'_, InputPart>,
    values: Array<'_, f32>,
    value_size: i32,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Mean(numbers(values, value_size)?))
    })
}

fn numbers(values: Array<'_, f32>, count: i32) -> Result<Vec<f32>> {
    let count = usize::try_from(count).ok().filter(|n| *n > 0);
    let count = count.ok_or_else(|| Failure::argument("`value_size` must be 1 at least"))?;
    Ok(values.items(count, "values")?.to_vec())
}

fn positions(values: Array<'_, i32>, count: i64, name: &str) -> Result<Vec<i64>> {
    let count = crate::shape::rank(count)?;
    let values = values.items(count, name)?;
    Ok(values.iter().map(|n| i64::from(*n)).collect())
}

/// A step: cuts out what lies from `begin` up to `end`, in each dimension.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_crop(
    preprocess_input_process_steps: In<'_, InputPart>,
    begin: Array<'_, i32>,
    begin_size: i32,
    end: Array<'_, i32>,
    end_size: i32,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Crop {
            begin: positions(begin, begin_size.into(), "begin")?,
            end: positions(end, end_size.into(), "end")?,
        })
    })
}

/// A step: to another layout.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_convert_layout(
    preprocess_input_process_steps: In<'_, InputPart>,
    layout: In<'_, Layout>,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::Layout(layout.required("layout")?.clone()))
    })
}

/// A step: puts the channels in reverse order.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_reverse_channels(
    preprocess_input_process_steps: In<'_, InputPart>,
) -> Status {
    add(preprocess_input_process_steps, || Ok(Step::ReverseChannels))
}

/// A step: to another element type.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_convert_element_type(
    preprocess_input_process_steps: In<'_, InputPart>,
    element_type: ElementCode,
) -> Status {
    add(preprocess_input_process_steps, || {
        Ok(Step::ElementType(self::element_type(element_type)?))
    })
}

/// A step: to another format of colours.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_convert_color(
    preprocess_input_process_steps: In<'_, InputPart>,
    color_format: u32,
) -> Status {
    add(preprocess_input_process_steps, || {
        let none = || Failure::argument("there is no colour format 0 to convert to");
        Ok(Step::Color(
            Color::of_number(color_format)?.ok_or_else(none)?,
        ))
    })
}

/// A step: puts something around, in each dimension.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_pad(
    preprocess_input_process_steps: In<'_, InputPart>,
    pads_begin: Array<'_, i32>,
    pads_begin_size: usize,
    pads_end: Array<'_, i32>,
    pads_end_size: usize,
    value: f32,
    mode: u32,
) -> Status {
    add(preprocess_input_process_steps, || {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        Ok(Step::Pad {
            begin: positions(pads_begin, count(pads_begin_size), "pads_begin")?,
            end: positions(pads_end, count(pads_end_size), "pads_end")?,
            value,
            mode: match mode {
                0 => "constant",
                1 => "edge",
                2 => "reflect",
                3 => "symmetric",
                _ => {
                    return Err(Failure::argument(format!(
                        "there is no padding mode {mode}"
                    )));
                }
            },
        })
    })
}

/// Changes what is known of a tensor, once the arguments have been read.
fn tell<T>(
    info: In<'_, InputPart>,
    value: impl FnOnce() -> Result<T>,
    change: impl FnOnce(&mut Input, T),
) -> Status {
    guard(|| {
        let info = info.required("preprocess_info")?;
        let value = value()?;
        info.change(|input| change(input, value))
    })
}

/// The element type of the tensors that the program will give.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_element_type(
    preprocess_input_tensor_info: In<'_, InputPart>,
    element_type: ElementCode,
) -> Status {
    tell(
        preprocess_input_tensor_info,
        || self::element_type(element_type),
        |input, element_type| input.element_type = Some(element_type),
    )
}

fn set_color(info: In<'_, InputPart>, format: u32, names: &[Text<'_>]) -> Result<()> {
    let info = info.required("preprocess_input_tensor_info")?;
    let name = |text: &Text<'_>| Ok(text.required("sub_names[…]")?.to_owned());
    let names = names.iter().map(name).collect::<Result<Vec<String>>>()?;
    let color = Color::of_number(format)?;
    info.change(|input| {
        input.color = color;
        input.sub_names = names;
    })
}

/// The colours of the tensors that the program will give.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_color_format(
    preprocess_input_tensor_info: In<'_, InputPart>,
    color_format: u32,
) -> Status {
    guard(|| set_color(preprocess_input_tensor_info, color_format, &[]))
}

variadic! {
    /// The colours of the tensors that the program will give, and what the names of their planes end in.
    fn ov_preprocess_input_tensor_info_set_color_format_with_subname(
        preprocess_input_tensor_info: In<'_, InputPart>,
        color_format: u32,
        sub_names_size: usize;
        names
    ) {
        let names = arguments(names, sub_names_size)?;
        set_color(preprocess_input_tensor_info, color_format, names)
    }
}

/// The colours of the tensors that the program will give, and what the names of their planes end in.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_color_format_with_subnames(
    preprocess_input_tensor_info: In<'_, InputPart>,
    color_format: u32,
    sub_names_size: usize,
    sub_names: Array<'_, Text<'_>>,
) -> Status {
    guard(|| {
        let names = sub_names.items(sub_names_size, "sub_names")?;
        set_color(preprocess_input_tensor_info, color_format, names)
    })
}

/// The height and width of the tensors that the program will give.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_spatial_static_shape(
    preprocess_input_tensor_info: In<'_, InputPart>,
    input_height: usize,
    input_width: usize,
) -> Status {
    tell(
        preprocess_input_tensor_info,
        || Ok((input_height, input_width)),
        |input, spatial| input.spatial = Some(spatial),
    )
}

/// Fails: memory is the program's own.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_memory_type(
    preprocess_input_tensor_info: In<'_, InputPart>,
    mem_type: Text<'_>,
) -> Status {
    guard(|| {
        preprocess_input_tensor_info.required("preprocess_input_tensor_info")?;
        match mem_type.required("mem_type")? {
            "" => Ok(()),
            other => Err(Failure::unsupported(format!(
                "there is no memory of type '{other}': the device is the processor"
            ))),
        }
    })
}

/// Element type and shape of the tensors that the program will give, those of this one.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_from(
    preprocess_input_tensor_info: In<'_, InputPart>,
    tensor: In<'_, Tensor>,
) -> Status {
    tell(
        preprocess_input_tensor_info,
        || {
            let tensor = &tensor.required("tensor")?.0;
            Ok((tensor.element_type(), tensor.shape()))
        },
        |input, (element_type, shape)| {
            input.element_type = Some(element_type);
            input.shape = Some(shape);
        },
    )
}

/// The layout of the tensors that the program will give.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_layout(
    preprocess_input_tensor_info: In<'_, InputPart>,
    layout: In<'_, Layout>,
) -> Status {
    tell(
        preprocess_input_tensor_info,
        || Ok(layout.required("layout")?.clone()),
        |input, layout| input.layout = Some(layout),
    )
}

/// The layout that the model takes.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_model_info_set_layout(
    preprocess_input_model_info: In<'_, InputPart>,
    layout: In<'_, Layout>,
) -> Status {
    tell(
        preprocess_input_model_info,
        || Ok(layout.required("layout")?.clone()),
        |input, layout| input.model_layout = Some(layout),
    )
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

/// What the tensor of an output is to be like.
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
