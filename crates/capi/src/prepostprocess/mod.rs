//! `ov_prepostprocess.h`: what is done to tensors before and after a model, as layers of it.
//!
//! A processor keeps what it is told, for each input and output, and makes layers of it when it
//! builds; the model that it was made from stays as it is. Handles to its parts share it.

mod steps;
mod tensor_info;

use crate::common::{ElementCode, element_type};
use crate::ffi::{In, Out, Required, Text, free, handle};
use crate::model::Model;
use crate::port_choice::{Side, Which, find};
use crate::status::{Failure, Result, Status, guard};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift::{Color, InputSteps, Preprocessor};

/// `ov_preprocess_prepostprocessor_t`. Clones are the same.
#[derive(Clone)]
pub(crate) struct Processor(Arc<Mutex<Preprocessor>>);

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
    fn plan(&self) -> MutexGuard<'_, Preprocessor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of an input or output.
    fn find(&self, side: Side, which: Which<'_>) -> Result<usize> {
        let model = Model::new(self.plan().model().clone());
        model.look(side, |ports| find(ports, side, which))
    }
}

impl InputPart {
    fn change(&self, change: impl FnOnce(&mut InputSteps)) -> Result<()> {
        let mut plan = self.processor.plan();
        change(plan.input_at(self.index)?);
        Ok(())
    }
}

/// The colour format with this number of `ov_color_format_e`; `None` is none.
fn color(number: u32) -> Result<Option<Color>> {
    let Some(position) = (number as usize).checked_sub(1) else {
        return Ok(None);
    };
    let found = Color::ALL.get(position).copied();
    let fail = || Failure::argument(format!("there is no colour format {number}"));
    found.map(Some).ok_or_else(fail)
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
        let plan = Preprocessor::new(&model);
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
        let plan = preprocess.required("preprocess")?.plan();
        let built = plan.build().map_err(|error| match plan.lacks_color() {
            true => Failure::argument(error),
            false => error.into(),
        })?;
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
        plan.convert_output(info.index, element_type)?;
        Ok(())
    })
}
