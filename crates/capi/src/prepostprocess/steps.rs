//! The steps that a program adds.

use super::color::Color;
use super::{InputPart, Step};
use crate::common::ElementCode;
use crate::ffi::{Array, In, Required};
use crate::layout::Layout;
use crate::status::{Failure, Result, Status, guard};

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
        Ok(Step::ElementType(crate::common::element_type(
            element_type,
        )?))
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

/// Adds a step, once its arguments have been read.
fn add(steps: In<'_, InputPart>, step: impl FnOnce() -> Result<Step>) -> Status {
    guard(|| {
        let steps = steps.required("preprocess_input_process_steps")?;
        let step = step()?;
        steps.change(|input| input.steps.push(step))
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
