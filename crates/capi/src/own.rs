//! Functions beyond OpenVINO's C API, for features that its other interfaces have: all names of a port, reading
//! strings, variables, and how a run ended that a callback is called for. Their names begin with `vinelift_`.

use crate::buffer::{Buffer, Memory};
use crate::common::give_text;
use crate::ffi::{In, Out, Required, free, handle};
use crate::infer_request::InferRequest;
use crate::memory;
use crate::node::Port;
use crate::status::{Failure, Result, Status, guard};
use crate::tensor::{Tensor, give};
use libc::{c_char, c_void};

fn at<'a, T>(items: &'a [T], index: usize, what: &str) -> Result<&'a T> {
    items.get(index).ok_or_else(|| {
        let text = format!("there is no {what} {index}, there are {}", items.len());
        Failure::new(Status::OutOfBounds, text)
    })
}

/// How many names a port answers to: those of its tensor, then that of the layer, or of the layer that makes an output and of
/// the result.
#[unsafe(no_mangle)]
extern "C" fn vinelift_port_names_size(port: In<'_, Port>, size: Out<'_, usize>) -> Status {
    guard(|| {
        let out = size.required("size")?;
        out.write(port.required("port")?.look(|port| Ok(port.names.len()))?);
        Ok(())
    })
}

/// The name of a port at this position, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn vinelift_port_name_by_index(
    port: In<'_, Port>,
    index: usize,
    name: Out<'_, *mut c_char>,
) -> Status {
    guard(|| {
        port.required("port")?
            .look(|port| give_text(name, "name", at(&port.names, index, "name")?))
    })
}

/// A handle that keeps the elements of a tensor where they are now: `data` stays good until it is freed with
/// `vinelift_memory_free`, whatever becomes of the tensor and its shape. `NULL` if the memory is the program's own.
#[unsafe(no_mangle)]
extern "C" fn vinelift_tensor_hold(
    tensor: In<'_, Tensor>,
    data: Out<'_, *mut c_void>,
    memory: Out<'_, *mut Memory>,
) -> Status {
    guard(|| {
        let (data, out) = (data.required("data")?, memory.required("memory")?);
        let (address, memory) = tensor.required("tensor")?.0.hold()?;
        data.write(address.cast());
        out.write(memory.map_or(std::ptr::null_mut(), handle));
        Ok(())
    })
}

/// Lets go of the memory of a tensor.
#[unsafe(no_mangle)]
extern "C" fn vinelift_memory_free(memory: Option<Box<Memory>>) {
    free(memory);
}

/// A copy of an element of a tensor of strings, in the order of memory, and its bytes, among which NUL may be. It is
/// to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn vinelift_tensor_get_string(
    tensor: In<'_, Tensor>,
    index: usize,
    data: Out<'_, *mut c_char>,
    size: Out<'_, usize>,
) -> Status {
    guard(|| {
        let (data, size) = (data.required("data")?, size.required("size")?);
        tensor.required("tensor")?.0.look_at_strings(|strings| {
            let text = at(strings, index, "string")?;
            data.write(memory::copy_items(text.as_bytes())?.cast());
            size.write(text.len());
            Ok(())
        })
    })
}

/// How many variables the model of a request has.
#[unsafe(no_mangle)]
extern "C" fn vinelift_infer_request_variables_size(
    infer_request: In<'_, InferRequest>,
    size: Out<'_, usize>,
) -> Status {
    guard(|| {
        let (request, out) = (
            infer_request.required("infer_request")?,
            size.required("size")?,
        );
        out.write(request.variables().len());
        Ok(())
    })
}

/// The name of the variable at this position, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn vinelift_infer_request_variable_name(
    infer_request: In<'_, InferRequest>,
    index: usize,
    name: Out<'_, *mut c_char>,
) -> Status {
    guard(|| {
        let variables = infer_request.required("infer_request")?.variables();
        give_text(name, "name", at(&variables, index, "variable")?)
    })
}

/// A tensor with a copy of what a variable holds; of zeros, if it holds nothing.
#[unsafe(no_mangle)]
extern "C" fn vinelift_infer_request_get_variable(
    infer_request: In<'_, InferRequest>,
    index: usize,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let variables = request.variables();
        give(
            tensor,
            request.variable(at(&variables, index, "variable")?)?,
        )
    })
}

/// Has a variable hold a copy of a tensor.
#[unsafe(no_mangle)]
extern "C" fn vinelift_infer_request_set_variable(
    infer_request: In<'_, InferRequest>,
    index: usize,
    tensor: In<'_, Tensor>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let value: &Buffer = &tensor.required("tensor")?.0;
        let variables = request.variables();
        request.set_variable(at(&variables, index, "variable")?, value.copied()?)
    })
}

/// Has a variable hold nothing: the next run starts with its initial value.
#[unsafe(no_mangle)]
extern "C" fn vinelift_infer_request_reset_variable(
    infer_request: In<'_, InferRequest>,
    index: usize,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let variables = request.variables();
        request.reset_variable(at(&variables, index, "variable")?)
    })
}

/// How the last run ended, also in the callback that is called for it, which cannot wait for it.
#[unsafe(no_mangle)]
extern "C" fn vinelift_infer_request_outcome(infer_request: In<'_, InferRequest>) -> Status {
    guard(|| infer_request.required("infer_request")?.outcome())
}
