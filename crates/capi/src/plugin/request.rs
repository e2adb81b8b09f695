//! Runs on tensors of a program.

use super::ffi::{Failure, Outcome, Slice, Text, View, guard, make};
use super::view::{Seen, is_apart, with_view};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift::stack::with_room;
use vinelift::{CompiledModel, InferRequest, KernelTime, RunOptions};

/// A request. One run of it goes on at a time; another thread may cancel it.
pub(crate) struct Request {
    /// Whether the run that goes on, or is about to, is to end early.
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) request: InferRequest,
    /// The inputs of the last run, which are used again where nothing but their elements has changed.
    inputs: Vec<Option<Seen>>,
    /// The times of the last run, if runs are timed.
    times: Option<Vec<KernelTime>>,
}

/// Takes an output: its position, and where it is. False if it cannot.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Sink {
    context: *mut c_void,
    take: unsafe extern "C" fn(*mut c_void, usize, &View) -> bool,
}

/// Is called with each of some things. False if it cannot take one.
#[repr(C)]
pub(crate) struct Each<T> {
    context: *mut c_void,
    take: unsafe extern "C" fn(*mut c_void, &T) -> bool,
}

impl<T> Each<T> {
    /// # Safety
    /// It may be called.
    pub(crate) unsafe fn call(&self, item: &T) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        match unsafe { (self.take)(self.context, item) } {
            true => Ok(()),
            false => Err(Failure::Caller),
        }
    }
}

/// The time of a kernel.
#[repr(C)]
pub(crate) struct TimeOfKernel {
    name: Text,
    how: Text,
    nanoseconds: u64,
}

/// Makes a request, whose runs are timed or not.
///
/// # Safety
/// `request` can be written.
pub(crate) unsafe extern "C" fn create(
    compiled: &CompiledModel,
    is_timed: bool,
    request: *mut *mut Request,
) -> Outcome {
    guard(|| {
        let state = State {
            request: compiled.create_request(),
            inputs: compiled.inputs().iter().map(|_| None).collect(),
            times: is_timed.then(Vec::new),
        };
        let made = Request {
            stop: Arc::default(),
            state: Mutex::new(state),
        };
        // SAFETY: the caller's promise.
        unsafe { *request = make(made) };
        Ok(())
    })
}

/// Runs the request. Outputs are written to `outputs` where they are of that shape, and each is given to `sink`,
/// wherever it is.
///
/// # Safety
/// There is a view for each input and output; all memory is there during the call, and nobody else writes it. The sink
/// may be called.
pub(crate) unsafe extern "C" fn infer(
    request: &Request,
    inputs: Slice<View>,
    outputs: Slice<View>,
    sink: Sink,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let (inputs, outputs) = unsafe { (inputs.items(), outputs.items()) };
        let mut state = request.state();
        // SAFETY: the caller's promise.
        with_room(|| unsafe { state.run(&request.stop, inputs, outputs, sink) })
    })
}

/// Says whether the run that goes on, or is about to, ends early.
pub(crate) extern "C" fn set_cancelled(request: &Request, is_cancelled: bool) {
    request.stop.store(is_cancelled, Ordering::Relaxed);
}

/// Gives the time of each kernel of the last run.
///
/// # Safety
/// `each` may be called.
pub(crate) unsafe extern "C" fn times(request: &Request, each: Each<TimeOfKernel>) -> Outcome {
    guard(|| {
        let state = request.state();
        state.times.iter().flatten().try_for_each(|kernel| {
            let time = TimeOfKernel {
                name: Text::of_text(&kernel.name),
                how: Text::of_text(&kernel.how),
                nanoseconds: u64::try_from(kernel.time.as_nanos()).unwrap_or(u64::MAX),
            };
            // SAFETY: the caller's promise.
            unsafe { each.call(&time) }
        })
    })
}

impl Request {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// # Safety
    /// As [`infer`].
    unsafe fn run(
        &mut self,
        stop: &Arc<AtomicBool>,
        inputs: &[View],
        outputs: &[View],
        sink: Sink,
    ) -> Result<(), Failure> {
        let run = ForOneRun(&mut self.request);
        let request = &mut *run.0;
        for (position, view) in inputs.iter().enumerate() {
            // SAFETY: the caller's promise.
            let tensor = unsafe { view.input(&mut self.inputs, position, request)? };
            request.set_input_at(position, tensor)?;
        }
        for (position, view) in outputs.iter().enumerate() {
            if is_apart(position, inputs, outputs) {
                // SAFETY: the caller's promise, and no other tensor is there.
                if let Some(memory) = unsafe { view.memory(position, request)? } {
                    request.lend_output(position, memory)?;
                }
            }
        }
        let mut times = self.times.as_mut();
        if let Some(times) = &mut times {
            times.clear();
        }
        request.infer_with(RunOptions {
            stop: Some(stop),
            times,
        })?;
        request.own_variables()?;
        for position in 0..outputs.len() {
            let give = |view: &View| {
                // SAFETY: the caller's promise.
                match unsafe { (sink.take)(sink.context, position, view) } {
                    true => Ok(()),
                    false => Err(Failure::Caller),
                }
            };
            with_view(request.output(position)?, give)?;
        }
        Ok(())
    }
}

/// A request for one run. After it, even if it panics, the memory of a program is its own again, and may be gone.
struct ForOneRun<'a>(&'a mut InferRequest);

impl Drop for ForOneRun<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}
