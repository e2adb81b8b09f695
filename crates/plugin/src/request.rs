//! Runs on tensors of a program, and the variables that are kept from run to run.

use crate::ffi::{Failure, Outcome, Slice, Text, View, guard, make};
use bytes::Bytes;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift::stack::with_room;
use vinelift::{CompiledModel, ElementType, Error, InferRequest, KernelTime, RunOptions, Tensor};

/// A request. One run of it goes on at a time; another thread may cancel it.
pub(crate) struct Request {
    /// Whether the run that goes on, or is about to, is to end early.
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
}

struct State {
    request: InferRequest,
    /// The inputs of the last run, which are used again where nothing but their elements has changed.
    inputs: Vec<Option<Seen>>,
    /// The times of the last run, if runs are timed.
    times: Option<Vec<KernelTime>>,
}

/// An input in the memory of the program.
struct Seen {
    bytes: *mut u8,
    tensor: Tensor,
}

// SAFETY: the pointer is only compared; the tensor may go to another thread.
unsafe impl Send for Seen {}

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
    unsafe fn call(&self, item: &T) -> Result<(), Failure> {
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

/// Gives what a variable holds, if it holds something.
///
/// # Safety
/// The text is there; `give` may be called.
pub(crate) unsafe extern "C" fn get_variable(
    request: &Request,
    name: Text,
    give: Each<View>,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { name.to_text() };
        let state = request.state();
        match state.request.variable(&name) {
            // SAFETY: the caller's promise.
            Some(value) => with_view(value, |view| unsafe { give.call(view) }),
            None => Ok(()),
        }
    })
}

/// Sets what a variable holds, to a copy.
///
/// # Safety
/// The texts and the value are there.
pub(crate) unsafe extern "C" fn set_variable(
    request: &Request,
    name: Text,
    element_type: Text,
    value: &View,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let (name, ty) = unsafe { (name.to_text(), element_type.to_text()) };
        let unknown = |error| Error::Input(format!("variable '{name}': {error}"));
        let ty: ElementType = ty.parse().map_err(unknown)?;
        // SAFETY: the caller's promise.
        let own = unsafe { value.copied(ty)? };
        Ok(request.state().request.set_variable(&name, own)?)
    })
}

/// Has a variable hold nothing.
///
/// # Safety
/// The text is there.
pub(crate) unsafe extern "C" fn reset_variable(request: &Request, name: Text) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { name.to_text() };
        request.state().request.reset_variable(&name);
        Ok(())
    })
}

impl Request {
    fn state(&self) -> MutexGuard<'_, State> {
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

/// Whether output `position` shares no byte with another tensor.
fn is_apart(position: usize, inputs: &[View], outputs: &[View]) -> bool {
    let own = outputs[position].addresses();
    let others = outputs.iter().enumerate().filter(|(k, _)| *k != position);
    let mut others = inputs.iter().chain(others.map(|(_, view)| view));
    others.all(|view| {
        let other = view.addresses();
        other.end <= own.start || own.end <= other.start
    })
}

/// Calls `give` with where a tensor is.
fn with_view<T>(tensor: &Tensor, give: impl FnOnce(&View) -> T) -> T {
    let texts: Vec<Text> = tensor
        .strings()
        .unwrap_or_default()
        .iter()
        .map(|s| Text::of_text(s))
        .collect();
    give(&View {
        dims: Slice::of(tensor.shape()),
        bytes: tensor.bytes().as_ptr().cast_mut(),
        byte_len: tensor.bytes().len(),
        texts: Slice::of(&texts),
    })
}

/// Bytes of a program for the time of a run.
struct Lent(View);

// SAFETY: these are plain bytes, which the contract of a run keeps from others.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        match self.0.byte_len {
            0 => &[],
            // SAFETY: there are as many bytes during a run, and nobody else writes them. After it, nothing asks for them
            // before the next run, which has checked that they are there.
            len => unsafe { std::slice::from_raw_parts(self.0.bytes, len) },
        }
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        match self.0.byte_len {
            0 => &mut [],
            // SAFETY: as above, and no other tensor of the run is there.
            len => unsafe { std::slice::from_raw_parts_mut(self.0.bytes, len) },
        }
    }
}

impl View {
    fn addresses(&self) -> Range<usize> {
        let start = self.bytes.addr();
        start..start.saturating_add(self.byte_len)
    }

    /// The tensor of an input, in place.
    ///
    /// # Safety
    /// What it points at is there during the run.
    unsafe fn input(
        &self,
        seen: &mut [Option<Seen>],
        position: usize,
        request: &InferRequest,
    ) -> Result<Tensor, Failure> {
        // SAFETY: the caller's promise.
        let dims = unsafe { self.dims.items() };
        let ports = request.compiled_model().inputs();
        let missing = || Error::Input(format!("the model has no input {position}"));
        let ty = ports.get(position).ok_or_else(missing)?.element_type;
        if ty == ElementType::String {
            // SAFETY: the caller's promise.
            return unsafe { self.copied(ty) };
        }
        if let Some(Some(seen)) = seen.get(position)
            && seen.bytes == self.bytes
            && seen.tensor.shape() == dims
        {
            return Ok(seen.tensor.clone());
        }
        let tensor = Tensor::from_shared(ty, dims, Bytes::from_owner(Lent(*self)))?;
        // Of booleans it may be a copy, in which all are 0 or 1.
        if let Some(place) = seen.get_mut(position)
            && ty != ElementType::Boolean
        {
            *place = Some(Seen {
                bytes: self.bytes,
                tensor: tensor.clone(),
            });
        }
        Ok(tensor)
    }

    /// The memory for an output, if it may be written before the run has ended well.
    ///
    /// # Safety
    /// As [`View::input`], and no other tensor is there.
    unsafe fn memory(
        &self,
        position: usize,
        request: &InferRequest,
    ) -> Result<Option<Tensor>, Failure> {
        let ports = request.compiled_model().outputs();
        let missing = || Error::Input(format!("the model has no output {position}"));
        let ty = ports.get(position).ok_or_else(missing)?.element_type;
        // Of booleans, a run that fails could leave others than 0 and 1.
        if matches!(ty, ElementType::String | ElementType::Boolean) || self.byte_len == 0 {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        let dims = unsafe { self.dims.items() };
        Ok(Some(Tensor::from_memory(ty, dims, Lent(*self))?))
    }

    /// A tensor of a copy.
    ///
    /// # Safety
    /// What it points at is there.
    unsafe fn copied(&self, ty: ElementType) -> Result<Tensor, Failure> {
        // SAFETY: the caller's promise.
        let (dims, texts) = unsafe { (self.dims.items(), self.texts.items()) };
        if ty == ElementType::String {
            // SAFETY: as above.
            let strings = texts.iter().map(|text| unsafe { text.to_text() });
            return Ok(Tensor::from_strings(dims, strings.collect())?);
        }
        Ok(Tensor::from_bytes(ty, dims, Lent(*self))?)
    }
}
