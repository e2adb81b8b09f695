//! `ov_remote_context.h`: memory of other devices. There are none, so every function fails.

use crate::common::ElementCode;
use crate::ffi::{Array, In, Out, Required, Text};
use crate::property::Property;
use crate::shape::Shape;
use crate::status::{Failure, Result, Status, guard};
use crate::tensor::Tensor;
use libc::c_char;

/// `ov_remote_context_t`, of which there is none.
#[derive(Debug)]
pub(crate) struct RemoteContext(());

pub(crate) fn no_contexts() -> Failure {
    Failure::unsupported(
        "there are no remote contexts: the device is the processor, whose memory is the program's",
    )
}

/// The error of every function that takes a context.
fn fail(context: In<'_, RemoteContext>) -> Result<()> {
    context.required("context")?;
    Err(no_contexts())
}

fn not_remote(tensor: In<'_, Tensor>) -> Result<()> {
    tensor.required("tensor")?;
    Err(Failure::unsupported(
        "the tensor is not a remote one: there are no remote contexts",
    ))
}

/// Fails: there are no contexts. It looks at no variable argument.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_context_create_tensor(
    context: In<'_, RemoteContext>,
    _type: ElementCode,
    _shape: Shape<'_>,
    _object_args_size: usize,
    _remote_tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| fail(context))
}

/// Fails: there are no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_context_create_tensor_props(
    context: In<'_, RemoteContext>,
    _type: ElementCode,
    _shape: Shape<'_>,
    _num_properties: usize,
    _properties: Array<'_, Property<'_>>,
    _remote_tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| fail(context))
}

/// Fails: there are no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_context_get_device_name(
    context: In<'_, RemoteContext>,
    _device_name: Out<'_, *mut c_char>,
) -> Status {
    guard(|| fail(context))
}

/// Fails: there are no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_context_get_params(
    context: In<'_, RemoteContext>,
    _size: Out<'_, usize>,
    _params: Out<'_, *mut c_char>,
) -> Status {
    guard(|| fail(context))
}

/// Fails: there are no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_context_create_host_tensor(
    context: In<'_, RemoteContext>,
    _type: ElementCode,
    _shape: Shape<'_>,
    _tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| fail(context))
}

/// Does nothing: a context that is not `NULL` is none of this library's.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_context_free(_context: In<'_, RemoteContext>) {}

/// Fails: no tensor is a remote one.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_tensor_get_params(
    tensor: In<'_, Tensor>,
    _size: Out<'_, usize>,
    _params: Out<'_, *mut c_char>,
) -> Status {
    guard(|| not_remote(tensor))
}

/// Fails: no tensor is a remote one.
#[unsafe(no_mangle)]
extern "C" fn ov_remote_tensor_get_device_name(
    remote_tensor: In<'_, Tensor>,
    _device_name: Out<'_, *mut c_char>,
) -> Status {
    guard(|| not_remote(remote_tensor))
}

/// Says that no context is made for this device.
pub(crate) fn refuse(device: Text<'_>, context: Out<'_, *mut RemoteContext>) -> Result<()> {
    context.required("context")?;
    crate::device::check(Some(device.required("device_name")?))?;
    Err(no_contexts())
}
