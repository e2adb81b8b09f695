//! Runs of a request, one at a time: on the caller's thread, or on one of their own.

use crate::buffer::Buffer;
use crate::compiled_model::CompiledModel;
use crate::settings::PROFILING;
use crate::stack::{start, with_large_stack};
use crate::status::{Failure, Result, Status, caught};
use libc::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};
use vinelift::{KernelTime, Tensor};

/// A request, which its handle and a run share.
pub(crate) struct Job {
    pub(crate) compiled: CompiledModel,
    state: Mutex<State>,
    /// Locked by the run, of which there is one at a time.
    engine: Mutex<vinelift::InferRequest>,
}

struct State {
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    callback: Option<Callback>,
    /// What a run is to be told, while there is one.
    running: Option<Running>,
    /// The last run.
    last: Option<Arc<Ticket>>,
    /// The thread of the last run that had its own.
    thread: Option<JoinHandle<()>>,
    times: Vec<KernelTime>,
}

#[derive(Default)]
struct Running {
    is_cancelled: bool,
}

/// What becomes of one run.
#[derive(Default)]
struct Ticket {
    result: Mutex<Option<Result<()>>>,
    is_there: Condvar,
    /// The thread of the run, if it has its own.
    worker: OnceLock<ThreadId>,
}

/// `ov_callback_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Callback {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    arguments: *mut c_void,
}

// SAFETY: the arguments are only passed to the function, which a program gives to be called from
// another thread.
unsafe impl Send for Callback {}

impl Callback {
    pub(crate) fn is_null(&self) -> bool {
        self.function.is_none()
    }

    fn call(self) {
        if let Some(function) = self.function {
            // SAFETY: the program gave function and arguments to be called after a run.
            unsafe { function(self.arguments) }
        }
    }
}

/// One of the tensors of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Input(usize),
    Output(usize),
}

impl Job {
    /// A request with tensors for all inputs and outputs. What is not known of a shape is 0.
    pub(crate) fn new(compiled: CompiledModel) -> Result<Arc<Job>> {
        let buffers = |ports: &[vinelift::Port]| -> Result<Vec<Buffer>> {
            let buffer = |p: &vinelift::Port| Buffer::zeros(p.element_type, first_shape(&p.shape));
            ports.iter().map(buffer).collect()
        };
        let state = State {
            inputs: buffers(compiled.model.inputs())?,
            outputs: buffers(compiled.model.outputs())?,
            callback: None,
            running: None,
            last: None,
            thread: None,
            times: Vec::new(),
        };
        Ok(Arc::new(Job {
            state: Mutex::new(state),
            engine: Mutex::new(compiled.model.create_request()),
            compiled,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if there is no run.
    fn idle(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        match state.running {
            None => Ok(state),
            Some(_) => Err(Failure::new(Status::RequestBusy, "the request is running")),
        }
    }

    /// The tensor in a slot that there is.
    pub(crate) fn tensor(&self, slot: Slot) -> Result<Buffer> {
        Ok(self.idle()?.slot(slot)?.clone())
    }

    pub(crate) fn set_tensor(&self, slot: Slot, tensor: Buffer) -> Result<()> {
        *self.idle()?.slot(slot)? = tensor;
        Ok(())
    }

    /// Has `callback` called after each run that has its own thread.
    pub(crate) fn set_callback(&self, callback: Callback) -> Result<()> {
        self.idle()?.callback = Some(callback).filter(|c| !c.is_null());
        Ok(())
    }

    /// Whether runs are timed.
    pub(crate) fn is_timed(&self) -> bool {
        self.compiled.settings.is_on(PROFILING)
    }

    /// The times of the last run; `None` if there was none.
    pub(crate) fn times(&self) -> Result<Option<Vec<KernelTime>>> {
        let state = self.idle()?;
        Ok(state.last.is_some().then(|| state.times.clone()))
    }

    /// Runs on this thread.
    pub(crate) fn infer(&self) -> Result<()> {
        let ticket = self.begin()?;
        let result = match self.compiled.is_complete {
            true => caught(|| self.run()),
            // Code is made for shapes that are new.
            false => with_large_stack(|| self.run()),
        };
        let result = self.end(result);
        ticket.set(result.clone());
        result
    }

    /// Runs on a thread of its own.
    pub(crate) fn start(self: &Arc<Job>) -> Result<()> {
        let ticket = self.begin()?;
        let (job, of_run) = (self.clone(), ticket.clone());
        let thread = start(move || {
            // Nothing else sets it.
            let _ = of_run.worker.set(thread::current().id());
            let result = job.end(caught(|| job.run()));
            // As the request is idle again, the callback can look at it and start the next run.
            let callback = job.state().callback;
            if let Some(callback) = callback {
                callback.call();
            }
            drop(job);
            of_run.set(result);
        });
        match thread {
            Ok(thread) => {
                self.state().thread = Some(thread);
                Ok(())
            }
            Err(failure) => {
                let result = self.end(Err(failure));
                ticket.set(result.clone());
                result
            }
        }
    }

    /// Has the run that there is, if any, end as cancelled. It is not cut short.
    pub(crate) fn cancel(&self) {
        if let Some(running) = &mut self.state().running {
            running.is_cancelled = true;
        }
    }

    /// Waits for the last run, if there was one.
    pub(crate) fn wait(&self) -> Result<()> {
        let last = self.state().last.clone();
        last.map_or(Ok(()), |ticket| ticket.wait(None))
    }

    /// Waits for the last run until `deadline`. No run is as one that does not end in time.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Result<()> {
        let last = self.state().last.clone();
        last.map_or_else(|| Err(not_ready()), |ticket| ticket.wait(deadline))
    }

    /// Waits for the run that there is, whose callback is called no more if it was not yet.
    pub(crate) fn stop(&self) {
        let (last, thread) = {
            let mut state = self.state();
            state.callback = None;
            (state.last.take(), state.thread.take())
        };
        let is_self = |worker: &ThreadId| *worker == thread::current().id();
        if last
            .as_ref()
            .is_some_and(|t| t.worker.get().is_some_and(is_self))
        {
            return; // In the callback.
        }
        if let Some(ticket) = last {
            let _ = ticket.wait(None); // How it ended is of no interest any more.
        }
        if let Some(thread) = thread {
            let _ = thread.join(); // It catches panics itself.
        }
    }

    fn begin(&self) -> Result<Arc<Ticket>> {
        let ticket = Arc::new(Ticket::default());
        let mut state = self.idle()?;
        state.running = Some(Running::default());
        state.last = Some(ticket.clone());
        Ok(ticket)
    }

    fn end(&self, result: Result<()>) -> Result<()> {
        let running = self.state().running.take();
        if running.is_some_and(|running| running.is_cancelled) {
            let text = "the inference was cancelled";
            return Err(Failure::new(Status::InferCancelled, text));
        }
        result
    }

    fn run(&self) -> Result<()> {
        let (inputs, outputs) = {
            let state = self.state();
            (state.inputs.clone(), state.outputs.clone())
        };
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        for (position, input) in inputs.iter().enumerate() {
            engine.set_input_at(position, input.view()?)?;
        }
        if self.is_timed() {
            let times = engine.infer_profiled()?;
            self.state().times = times;
        } else {
            engine.infer()?;
        }
        for (position, output) in outputs.iter().enumerate() {
            output.store(engine.output(position)?)?;
        }
        keep_variables(&mut engine)
    }
}

impl State {
    fn slot(&mut self, slot: Slot) -> Result<&mut Buffer> {
        let found = match slot {
            Slot::Input(position) => self.inputs.get_mut(position),
            Slot::Output(position) => self.outputs.get_mut(position),
        };
        let missing = || Failure::new(Status::OutOfBounds, format!("there is no {slot:?}"));
        found.ok_or_else(missing)
    }
}

impl Ticket {
    fn set(&self, result: Result<()>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_there.notify_all();
    }

    fn wait(&self, deadline: Option<Instant>) -> Result<()> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            if self
                .worker
                .get()
                .is_some_and(|w| *w == thread::current().id())
            {
                let text = "a callback cannot wait for the run that it is called for";
                return Err(Failure::new(Status::RequestBusy, text));
            }
            result = match deadline {
                None => self
                    .is_there
                    .wait(result)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left == Duration::ZERO {
                        return Err(not_ready());
                    }
                    let waited = self.is_there.wait_timeout(result, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn not_ready() -> Failure {
    Failure::new(Status::ResultNotReady, "the result is not there yet")
}

/// Gives variables memory of their own where they are inputs: those are the program's again after a
/// run, and may change.
fn keep_variables(engine: &mut vinelift::InferRequest) -> Result<()> {
    let count = engine.compiled_model().inputs().len();
    let inputs = (0..count).filter_map(|k| engine.input(k).map(|t| t.bytes().as_ptr_range()));
    let inputs: Vec<_> = inputs.collect();
    let is_input = |tensor: &Tensor| {
        let start = tensor.bytes().as_ptr();
        inputs.iter().any(|range| range.contains(&start))
    };
    let shared = engine.variables().filter(|(_, value)| is_input(value));
    let shared: Vec<(String, Tensor)> = shared.map(|(n, v)| (n.to_owned(), v.clone())).collect();
    for (name, value) in shared {
        let own = Tensor::from_bytes(value.element_type(), value.shape(), value.bytes())?;
        engine.set_variable(&name, own)?;
    }
    Ok(())
}

/// The shape of a tensor before a run: 0 where an extent is not known.
fn first_shape(shape: &vinelift::PartialShape) -> vinelift::Shape {
    match shape.dims() {
        Some(dims) => dims.iter().map(|d| d.get().unwrap_or(0)).collect(),
        None => vec![0],
    }
}
