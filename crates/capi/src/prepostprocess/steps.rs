//! The steps that a program adds.

use super::{InputPart, color};
use crate::common::ElementCode;
use crate::ffi::{Array, In, Required};
use crate::status::{Failure, Result, Status, guard};
use vinelift::{InputSteps, Layout, Padding, Resize};

/// A step: resizes images to the height and width that the model takes.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_resize(
    preprocess_input_process_steps: In<'_, InputPart>,
    resize_algorithm: u32,
) -> Status {
    add(
        preprocess_input_process_steps,
        || {
            Ok(match resize_algorithm {
                0 => Resize::Linear,
                1 => Resize::Cubic,
                2 => Resize::Nearest,
                _ => {
                    let text = format!("there is no resize algorithm {resize_algorithm}");
                    return Err(Failure::argument(text));
                }
            })
        },
        |input, how| input.resize(how),
    )
}

/// A step: divides by a number.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_scale(
    preprocess_input_process_steps: In<'_, InputPart>,
    value: f32,
) -> Status {
    add(
        preprocess_input_process_steps,
        || Ok([value]),
        |input, values| input.scale(values),
    )
}

/// A step: divides by a number for each channel.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_scale_multi_channels(
    preprocess_input_process_steps: In<'_, InputPart>,
    values: Array<'_, f32>,
    value_size: i32,
) -> Status {
    add(
        preprocess_input_process_steps,
        || numbers(values, value_size),
        |input, values| input.scale(values),
    )
}

/// A step: subtracts a number.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_mean(
    preprocess_input_process_steps: In<'_, InputPart>,
    value: f32,
) -> Status {
    add(
        preprocess_input_process_steps,
        || Ok([value]),
        |input, values| input.mean(values),
    )
}

/// A step: subtracts a number for each channel.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_mean_multi_channels(
    preprocess_input_process_steps: In<'_, InputPart>,
    values: Array<'_, f32>,
    value_size: i32,
) -> Status {
    add(
        preprocess_input_process_steps,
        || numbers(values, value_size),
        |input, values| input.mean(values),
    )
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
    add(
        preprocess_input_process_steps,
        || {
            let begin = positions(begin, begin_size.into(), "begin")?;
            Ok((begin, positions(end, end_size.into(), "end")?))
        },
        |input, (begin, end)| input.crop(begin, end),
    )
}

/// A step: to another layout.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_convert_layout(
    preprocess_input_process_steps: In<'_, InputPart>,
    layout: In<'_, Layout>,
) -> Status {
    add(
        preprocess_input_process_steps,
        || Ok(layout.required("layout")?.clone()),
        |input, layout| input.convert_layout(layout),
    )
}

/// A step: puts the channels in reverse order.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_reverse_channels(
    preprocess_input_process_steps: In<'_, InputPart>,
) -> Status {
    add(
        preprocess_input_process_steps,
        || Ok(()),
        |input, ()| input.reverse_channels(),
    )
}

/// A step: to another element type.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_convert_element_type(
    preprocess_input_process_steps: In<'_, InputPart>,
    element_type: ElementCode,
) -> Status {
    add(
        preprocess_input_process_steps,
        || crate::common::element_type(element_type),
        |input, ty| input.convert_element_type(ty),
    )
}

/// A step: to another format of colours.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_preprocess_steps_convert_color(
    preprocess_input_process_steps: In<'_, InputPart>,
    color_format: u32,
) -> Status {
    add(
        preprocess_input_process_steps,
        || {
            let none = || Failure::argument("there is no colour format 0 to convert to");
            color(color_format)?.ok_or_else(none)
        },
        |input, color| input.convert_color(color),
    )
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
    add(
        preprocess_input_process_steps,
        || {
            let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
            let begin = positions(pads_begin, count(pads_begin_size), "pads_begin")?;
            let end = positions(pads_end, count(pads_end_size), "pads_end")?;
            let mode = match mode {
                0 => Padding::Constant,
                1 => Padding::Edge,
                2 => Padding::Reflect,
                3 => Padding::Symmetric,
                _ => {
                    let text = format!("there is no padding mode {mode}");
                    return Err(Failure::argument(text));
                }
            };
            Ok((begin, end, mode))
        },
        |input, (begin, end, mode)| input.pad(begin, end, value, mode),
    )
}

/// Adds a step, once its arguments have been read.
fn add<T>(
    steps: In<'_, InputPart>,
    arguments: impl FnOnce() -> Result<T>,
    step: impl FnOnce(&mut InputSteps, T) -> &mut InputSteps,
) -> Status {
    guard(|| {
        let steps = steps.required("preprocess_input_process_steps")?;
        let arguments = arguments()?;
        steps.change(|input| {
            step(input, arguments);
        })
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
