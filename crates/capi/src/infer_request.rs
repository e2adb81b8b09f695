//! `ov_infer_request.h`: runs of a compiled model.

use crate::buffer::Buffer;
use crate::compiled_model::CompiledModel;
use crate::engine::{Slot, first_shape};
use crate::ffi::{In, Out, Required, Text, free, handle};
use crate::job::{Callback, Job};
use crate::node::Port;
use crate::port_choice::{Side, Which, find};
use crate::profiling::ProfilingInfos;
use crate::status::{Failure, Result, Status, guard};
use crate::tensor::{Tensor, give};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `ov_infer_request_t`.
pub(crate) struct InferRequest(Arc<Job>);

impl InferRequest {
    pub(crate) fn new(compiled: CompiledModel) -> Result<InferRequest> {
        Job::new(compiled).map(InferRequest)
    }

    fn ports(&self, side: Side) -> &[vinelift::Port] {
        let model = &self.0.compiled.model;
        match side {
            Side::Input => model.inputs(),
            Side::Output => model.outputs(),
        }
    }

    fn slot(&self, side: Side, which: Which<'_>) -> Result<Slot> {
        let position = find(self.ports(side), side, which)?;
        Ok(match side {
            Side::Input => Slot::Input(position),
            Side::Output => Slot::Output(position),
        })
    }

    /// The input of this name, or else the output.
    fn slot_named(&self, name: &str) -> Result<Slot> {
        let [inputs, outputs] = &*self.0.compiled.names;
        let input = inputs.get(name).copied().map(Slot::Input);
        let output = || outputs.get(name).copied().map(Slot::Output);
        input.or_else(output).ok_or_else(|| {
            let text = format!("the model has no input or output '{name}'");
            Failure::new(Status::NotFound, text)
        })
    }

    /// The tensor of a port of this model, or of the one that it was compiled from.
    fn slot_of_port(&self, port: In<'_, Port>) -> Result<Slot> {
        let port = port.required("port")?;
        let own = self.ports(port.side).get(port.index);
        port.look(|described| {
            if own.is_some_and(|own| own.name() == described.name()) {
                return Ok(());
            }
            let (side, name) = (port.side.name(), described.name());
            let text = format!("{side} {} '{name}' is of another model", port.index);
            Err(Failure::new(Status::ParameterMismatch, text))
        })?;
        self.slot(port.side, Which::Index(port.index))
    }

    /// Sets a tensor. Its type and shape must be what the model takes; the shape of an output that is
    /// dynamic becomes what a run gives.
    fn set(&self, slot: Slot, tensor: In<'_, Tensor>) -> Result<()> {
        let tensor = tensor.required("tensor")?.0.clone();
        let (element_type, shape) = (tensor.element_type(), tensor.shape());
        let (side, position) = match slot {
            Slot::Input(position) => (Side::Input, position),
            Slot::Output(position) => (Side::Output, position),
        };
        let missing = || Failure::new(Status::OutOfBounds, format!("there is no {slot:?}"));
        let port = self.ports(side).get(position).ok_or_else(missing)?;
        let fits = match side {
            Side::Input => port.shape.contains(&shape),
            Side::Output => !port.shape.is_static() || port.shape.contains(&shape),
        };
        if element_type != port.element_type || !fits {
            let text = format!(
                "{} '{}' must be {}{}, found {element_type}{shape:?}",
                side.name(),
                port.name(),
                port.element_type,
                port.shape
            );
            return Err(Failure::new(Status::ParameterMismatch, text));
        }
        self.0.set_tensor(slot, tensor)
    }

    /// The names of the variables of the model.
    pub(crate) fn variables(&self) -> Vec<String> {
        self.0.compiled.model.model().summary().variables
    }

    /// A copy of the value of a variable; zeros of its type before it is set.
    pub(crate) fn variable(&self, name: &str) -> Result<Buffer> {
        self.0.with_request(|request| match request.variable(name) {
            Some(value) => {
                let buffer = Buffer::zeros(value.element_type(), value.shape().to_vec())?;
                buffer.store(value)?;
                Ok(buffer)
            }
            None => match self.0.compiled.model.model().graph().variable(name) {
                Some(ty) => Buffer::zeros(ty.element, first_shape(&ty.shape)),
                None => {
                    let text = format!("the variable '{name}' holds nothing yet, and has no type");
                    Err(Failure::new(Status::ResultNotReady, text))
                }
            },
        })
    }

    pub(crate) fn set_variable(&self, name: &str, value: vinelift::Tensor) -> Result<()> {
        self.0
            .with_request(|request| Ok(request.set_variable(name, value)?))
    }

    pub(crate) fn reset_variable(&self, name: &str) -> Result<()> {
        self.0.with_request(|request| {
            request.reset_variable(name);
            Ok(())
        })
    }

    /// How the last run ended.
    pub(crate) fn outcome(&self) -> Result<()> {
        self.0.outcome()
    }

    /// Gives the caller a handle of its own to a tensor.
    fn give(&self, slot: Slot, out: Out<'_, *mut Tensor>) -> Result<()> {
        give(out, self.0.tensor(slot)?)
    }
}

/// Waits for runs and callbacks: what they use is the program's, and may be gone after this.
impl Drop for InferRequest {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Makes a request, with tensors for all inputs and outputs.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_create_infer_request(
    compiled_model: In<'_, CompiledModel>,
    infer_request: Out<'_, *mut InferRequest>,
) -> Status {
    guard(|| {
        let compiled = compiled_model.required("compiled_model")?;
        let request = infer_request.required("infer_request")?;
        request.write(handle(InferRequest::new(compiled.clone())?));
        Ok(())
    })
}

/// Sets the input or output of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_tensor(
    infer_request: In<'_, InferRequest>,
    tensor_name: Text<'_>,
    tensor: In<'_, Tensor>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let name = tensor_name.required("tensor_name")?;
        request.set(request.slot_named(name)?, tensor)
    })
}

/// Sets the input or output that a port is.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_tensor_by_port(
    infer_request: In<'_, InferRequest>,
    port: In<'_, Port>,
    tensor: In<'_, Tensor>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        request.set(request.slot_of_port(port)?, tensor)
    })
}

/// Sets the input or output that a port is.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_tensor_by_const_port(
    infer_request: In<'_, InferRequest>,
    port: In<'_, Port>,
    tensor: In<'_, Tensor>,
) -> Status {
    ov_infer_request_set_tensor_by_port(infer_request, port, tensor)
}

fn set(
    request: In<'_, InferRequest>,
    side: Side,
    which: Which<'_>,
    tensor: In<'_, Tensor>,
) -> Status {
    guard(|| {
        let request = request.required("infer_request")?;
        request.set(request.slot(side, which)?, tensor)
    })
}

fn get(
    request: In<'_, InferRequest>,
    side: Side,
    which: Which<'_>,
    out: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        let request = request.required("infer_request")?;
        request.give(request.slot(side, which)?, out)
    })
}

/// Sets the input at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_input_tensor_by_index(
    infer_request: In<'_, InferRequest>,
    idx: usize,
    tensor: In<'_, Tensor>,
) -> Status {
    set(infer_request, Side::Input, Which::Index(idx), tensor)
}

/// Sets the input, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_input_tensor(
    infer_request: In<'_, InferRequest>,
    tensor: In<'_, Tensor>,
) -> Status {
    set(infer_request, Side::Input, Which::Only, tensor)
}

/// Sets the output at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_output_tensor_by_index(
    infer_request: In<'_, InferRequest>,
    idx: usize,
    tensor: In<'_, Tensor>,
) -> Status {
    set(infer_request, Side::Output, Which::Index(idx), tensor)
}

/// Sets the output, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_output_tensor(
    infer_request: In<'_, InferRequest>,
    tensor: In<'_, Tensor>,
) -> Status {
    set(infer_request, Side::Output, Which::Only, tensor)
}

/// The input or output of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_tensor(
    infer_request: In<'_, InferRequest>,
    tensor_name: Text<'_>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let name = tensor_name.required("tensor_name")?;
        request.give(request.slot_named(name)?, tensor)
    })
}

/// The input or output that a port is.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_tensor_by_const_port(
    infer_request: In<'_, InferRequest>,
    port: In<'_, Port>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    ov_infer_request_get_tensor_by_port(infer_request, port, tensor)
}

/// The input or output that a port is.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_tensor_by_port(
    infer_request: In<'_, InferRequest>,
    port: In<'_, Port>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        request.give(request.slot_of_port(port)?, tensor)
    })
}

/// The input at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_input_tensor_by_index(
    infer_request: In<'_, InferRequest>,
    idx: usize,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    get(infer_request, Side::Input, Which::Index(idx), tensor)
}

/// The input, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_input_tensor(
    infer_request: In<'_, InferRequest>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    get(infer_request, Side::Input, Which::Only, tensor)
}

/// The output at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_output_tensor_by_index(
    infer_request: In<'_, InferRequest>,
    idx: usize,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    get(infer_request, Side::Output, Which::Index(idx), tensor)
}

/// The output, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_output_tensor(
    infer_request: In<'_, InferRequest>,
    tensor: Out<'_, *mut Tensor>,
) -> Status {
    get(infer_request, Side::Output, Which::Only, tensor)
}

/// Runs the model, on this thread.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_infer(infer_request: In<'_, InferRequest>) -> Status {
    guard(|| infer_request.required("infer_request")?.0.infer())
}

/// Cancels the current run, which ends before its next kernel or the next iteration of a loop.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_cancel(infer_request: In<'_, InferRequest>) -> Status {
    guard(|| {
        infer_request.required("infer_request")?.0.cancel();
        Ok(())
    })
}

/// Runs the model, on another thread; on this one, if the system has no other to give.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_start_async(infer_request: In<'_, InferRequest>) -> Status {
    guard(|| infer_request.required("infer_request")?.0.start())
}

/// Waits for the current run, and for its callback. Returns how it ended.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_wait(infer_request: In<'_, InferRequest>) -> Status {
    guard(|| infer_request.required("infer_request")?.0.wait())
}

/// As `ov_infer_request_wait`, for at most `timeout` milliseconds.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_wait_for(
    infer_request: In<'_, InferRequest>,
    timeout: i64,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let timeout = Duration::from_millis(u64::try_from(timeout).unwrap_or(0));
        // A deadline that the clock cannot represent means to wait without one.
        request.0.wait_until(Instant::now().checked_add(timeout))
    })
}

/// Has a function called after each run that was started with `ov_infer_request_start_async`, on the
/// thread of the run; none if the function is `NULL`.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_set_callback(
    infer_request: In<'_, InferRequest>,
    callback: In<'_, Callback>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        request.0.set_callback(*callback.required("callback")?)
    })
}

/// Frees a request, once its runs have ended and its callbacks have returned: but for the one that calls this,
/// if one does. No run and no callback begins after this.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_free(infer_request: Option<Box<InferRequest>>) {
    free(infer_request);
}

/// How long the layers took in the last run, to be freed with `ov_profiling_info_list_free`. The time
/// of a kernel is that of the last layer in it.
#[unsafe(no_mangle)]
extern "C" fn ov_infer_request_get_profiling_info(
    infer_request: In<'_, InferRequest>,
    profiling_infos: Out<'_, ProfilingInfos>,
) -> Status {
    guard(|| {
        let request = infer_request.required("infer_request")?;
        let out = profiling_infos.required("profiling_infos")?;
        if !request.0.is_timed() {
            let text =
                "nothing was measured: property PERF_COUNT must be YES when the model is compiled";
            return Err(Failure::new(Status::GeneralError, text));
        }
        let times = request.0.times()?;
        let model = request.0.compiled.model.model();
        out.write(ProfilingInfos::of(model, times.as_deref())?);
        Ok(())
    })
}
