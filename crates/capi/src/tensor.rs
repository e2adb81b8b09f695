//! `ov_tensor.h`: tensors.

use crate::buffer::Buffer;
use crate::common::{ElementCode, element_code, element_type};
use crate::ffi::{Array, In, Out, Required, Text, free, handle};
use crate::shape::{OwnShape, Shape};
use crate::status::{Result, Status, guard};
use libc::c_void;
use std::ptr::NonNull;
use vinelift_tensor::element_count;

/// `ov_tensor_t`: a handle to a tensor, one of perhaps several.
#[derive(Debug)]
pub(crate) struct Tensor(pub(crate) Buffer);

/// Gives the caller a handle of its own to `buffer`.
pub(crate) fn give(tensor: Out<'_, *mut Tensor>, buffer: Buffer) -> Result<()> {
    tensor.required("tensor")?.write(handle(Tensor(buffer)));
    Ok(())
}

/// Makes a tensor of the memory of the program, which stays where it is, and must outlive it.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_create_from_host_ptr(
    type_: ElementCode,
    shape: Shape<'_>,
    host_ptr: Option<NonNull<c_void>>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        let start = host_ptr.required("host_ptr")?.cast();
        let buffer = Buffer::host(element_type(type_)?, shape.extents()?, start)?;
        give(tensor, buffer)
    })
}

/// Makes a tensor of zeros, or of empty strings.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_create(
    type_: ElementCode,
    shape: Shape<'_>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        give(
            tensor,
            Buffer::zeros(element_type(type_)?, shape.extents()?)?,
        )
    })
}

/// Gives a tensor another shape.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_set_shape(tensor: In<'_, Tensor>, shape: Shape<'_>) -> Status {
    guard(|| tensor.required("tensor")?.0.set_shape(shape.extents()?))
}

/// Makes a tensor of copies of these strings.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_create_from_string_array(
    string_array: Array<'_, Text<'_>>,
    array_size: usize,
    shape: Shape<'_>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        let strings = strings(string_array, array_size)?;
        give(tensor, Buffer::strings(shape.extents()?, strings)?)
    })
}

/// The extents of a tensor, to be freed with `ov_shape_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_get_shape(tensor: In<'_, Tensor>, shape: Out<'_, OwnShape>) -> Status {
    guard(|| {
        let extents = tensor.required("tensor")?.0.shape();
        shape
            .required("shape")?
            .write(OwnShape::of_extents(&extents)?);
        Ok(())
    })
}

/// The element type of a tensor.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_get_element_type(
    tensor: In<'_, Tensor>,
    type_: Out<'_, ElementCode>,
) -> Status {
    guard(|| {
        let code = element_code(tensor.required("tensor")?.0.element_type());
        type_.required("type")?.write(code);
        Ok(())
    })
}

/// Sets the elements of a tensor of strings.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_set_string_data(
    tensor: In<'_, Tensor>,
    string_array: Array<'_, Text<'_>>,
    array_size: usize,
) -> Status {
    guard(|| {
        let tensor = tensor.required("tensor")?;
        tensor.0.set_strings(strings(string_array, array_size)?)
    })
}

fn strings(array: Array<'_, Text<'_>>, count: usize) -> Result<Vec<String>> {
    let texts = array.items(count, "string_array")?;
    let text = |text: &Text<'_>| Ok(text.required("string_array[…]")?.to_owned());
    texts.iter().map(text).collect()
}

/// The number of elements.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_get_size(tensor: In<'_, Tensor>, elements_size: Out<'_, usize>) -> Status {
    guard(|| {
        let shape = tensor.required("tensor")?.0.shape();
        // The tensor was made with this shape, so its size has been checked.
        let count = element_count(&shape).unwrap_or(0);
        elements_size.required("elements_size")?.write(count);
        Ok(())
    })
}

/// The bytes that the elements take; 0 if they are strings, which have no layout in C.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_get_byte_size(tensor: In<'_, Tensor>, byte_size: Out<'_, usize>) -> Status {
    guard(|| {
        let len = tensor.required("tensor")?.0.byte_len()?;
        byte_size.required("byte_size")?.write(len);
        Ok(())
    })
}

/// Where the elements are. The pointer is the tensor's, and stays until its shape is changed.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_data(tensor: In<'_, Tensor>, data: Out<'_, *mut c_void>) -> Status {
    guard(|| {
        let address = tensor.required("tensor")?.0.address()?;
        data.required("data")?.write(address.cast());
        Ok(())
    })
}

/// Frees a handle. The tensor itself goes with the last of them.
#[unsafe(no_mangle)]
extern "C" fn ov_tensor_free(tensor: Option<Box<Tensor>>) {
    free(tensor);
}
