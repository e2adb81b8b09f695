//! How a program describes the tensors that it will give, and those that the model takes.

use super::{InputPart, color};
use crate::common::{ElementCode, element_type};
use crate::ffi::{Array, In, Required, Text};
use crate::status::{Failure, Result, Status, guard};
use crate::tensor::Tensor;
use crate::variadic::variadic;
use vinelift::{InputSteps, Layout};

/// The element type of the tensors that the program will give.
#[unsafe(no_mangle)]
extern "C" fn ov_preprocess_input_tensor_info_set_element_type(
    preprocess_input_tensor_info: In<'_, InputPart>,
    element_type: ElementCode,
) -> Status {
    tell(
        preprocess_input_tensor_info,
        || self::element_type(element_type),
        |input, element_type| input.element_type(element_type),
    )
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
        let names = names.texts(sub_names_size)?;
        set_color(preprocess_input_tensor_info, color_format, &names)
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
        |input, (height, width)| input.spatial(height, width),
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
        |input, (element_type, shape)| input.element_type(element_type).shape(shape),
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
        |input, layout| input.layout(layout),
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
        |input, layout| input.model_layout(layout),
    )
}

/// Changes what is known of a tensor, once the arguments have been read.
fn tell<T>(
    info: In<'_, InputPart>,
    value: impl FnOnce() -> Result<T>,
    change: impl FnOnce(&mut InputSteps, T) -> &mut InputSteps,
) -> Status {
    guard(|| {
        let info = info.required("preprocess_info")?;
        let value = value()?;
        info.change(|input| {
            change(input, value);
        })
    })
}

fn set_color(info: In<'_, InputPart>, format: u32, names: &[Text<'_>]) -> Result<()> {
    let info = info.required("preprocess_input_tensor_info")?;
    let name = |text: &Text<'_>| Ok(text.required("sub_names[…]")?.to_owned());
    let names = names.iter().map(name).collect::<Result<Vec<String>>>()?;
    let color = color(format)?;
    info.change(|input| {
        input.color(color, names);
    })
}
