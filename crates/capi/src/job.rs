//! Runs of a request, one at a time: on the caller's thread, or on another.

use crate::buffer::Buffer;
use crate::compiled_model::CompiledModel;
use crate::settings::PROFILING;
use crate::stack::with_large_stack;
use crate::status::{Failure, Result, Status, caught};
use crate::workers;
use libc::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use vinelift::{KernelTime, RunOptions, Tensor};

/// A request, which its handle and a run share.
pub(crate) struct Job {
    pub(crate) compiled: CompiledModel,
    state: Mutex<State>,
    /// Locked by the run, of which there is one at a time.
    engine: Mutex<Engine>,
    /// Whether the run that there is, if any, is to end early.
    stop: Arc<AtomicBool>,
}

/// What a run works with.
struct Engine {
    request: vinelift::InferRequest,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
}

struct State {
    callback: Option<Callback>,
    is_running: bool,
    /// The last run.
    last: Option<Arc<Ticket>>,
    times: Vec<KernelTime>,
}

/// What becomes of one run.
#[derive(Default)]
struct Ticket {
    end: Mutex<End>,
    is_there: Condvar,
    /// The thread of the run, if it has its own.
    worker: OnceLock<ThreadId>,
}

/// How a run ended.
#[derive(Default)]
struct End {
    result: Option<Result<()>>,
    /// How many threads wait for it.
    waiting: usize,
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
        let engine = Engine {
            request: compiled.model.create_request(),
            inputs: buffers(compiled.model.inputs())?,
            outputs: buffers(compiled.model.outputs())?,
        };
        let state = State {
            callback: None,
            is_running: false,
            last: None,
            times: Vec::new(),
        };
        Ok(Arc::new(Job {
            state: Mutex::new(state),
            engine: Mutex::new(engine),
            stop: Arc::default(),
            compiled,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if there is no run.
    fn idle(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        match state.is_running {
            false => Ok(state),
            true => Err(Failure::new(Status::RequestBusy, "the request is running")),
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensor in a slot that there is.
    pub(crate) fn tensor(&self, slot: Slot) -> Result<Buffer> {
        let _idle = self.idle()?;
        Ok(self.engine().slot(slot)?.clone())
    }

    pub(crate) fn set_tensor(&self, slot: Slot, tensor: Buffer) -> Result<()> {
        let _idle = self.idle()?;
        *self.engine().slot(slot)? = tensor;
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

    /// Runs on another thread.
    pub(crate) fn start(self: &Arc<Job>) -> Result<()> {
        let ticket = self.begin()?;
        let (job, of_run) = (self.clone(), ticket.clone());
        let started = workers::start(move || {
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
        started.or_else(|failure| {
            let result = self.end(Err(failure));
            ticket.set(result.clone());
            result
        })
    }

    /// Has the run that there is, if any, end early and as cancelled.
    pub(crate) fn cancel(&self) {
        let state = self.state();
        if state.is_running {
            self.stop.store(true, Ordering::Relaxed);
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
        let last = {
            let mut state = self.state();
            state.callback = None;
            state.last.take()
        };
        if let Some(ticket) = last.filter(|ticket| !ticket.is_of_this_thread()) {
            let _ = ticket.wait(None); // How it ended is of no interest any more.
        }
    }

    fn begin(&self) -> Result<Arc<Ticket>> {
        let ticket = Arc::new(Ticket::default());
        let mut state = self.idle()?;
        state.is_running = true;
        self.stop.store(false, Ordering::Relaxed);
        state.last = Some(ticket.clone());
        Ok(ticket)
    }

    fn end(&self, result: Result<()>) -> Result<()> {
        let mut state = self.state();
        state.is_running = false;
        match self.stop.load(Ordering::Relaxed) {
            true => Err(vinelift::Error::Cancelled.into()),
            false => result,
        }
    }

    fn run(&self) -> Result<()> {
        let mut times = self.is_timed().then(Vec::new);
        let mut engine = self.engine();
        let done = engine.run(RunOptions {
            stop: Some(&self.stop),
            times: times.as_mut(),
        });
        // The memory of a program is its own again, and may be gone.
        engine.request.clear();
        drop(engine);
        if let Some(times) = times {
            self.state().times = times;
        }
        done
    }
}

impl Engine {
    fn slot(&mut self, slot: Slot) -> Result<&mut Buffer> {
        let found = match slot {
            Slot::Input(position) => self.inputs.get_mut(position),
            Slot::Output(position) => self.outputs.get_mut(position),
        };
        let missing = || Failure::new(Status::OutOfBounds, format!("there is no {slot:?}"));
        found.ok_or_else(missing)
    }

    fn run(&mut self, options: RunOptions<'_>) -> Result<()> {
        let request = &mut self.request;
        for (position, input) in self.inputs.iter().enumerate() {
            request.set_input_at(position, input.view()?)?;
        }
        for (position, output) in self.outputs.iter().enumerate() {
            let used = |used: &Buffer| used.overlaps(output);
            let is_apart =
                !self.inputs.iter().any(used) && !self.outputs[..position].iter().any(used);
            if is_apart && let Some(memory) = output.lend()? {
                request.lend_output(position, memory)?;
            }
        }
        request.infer_with(options)?;
        if let Err(failure) = keep_variables(request) {
            request.reset();
            return Err(failure);
        }
        for (position, output) in self.outputs.iter().enumerate() {
            output.store(request.output(position)?)?;
        }
        Ok(())
    }
}

impl Ticket {
    fn set(&self, result: Result<()>) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.result = Some(result);
        // To tell them asks the system, even if there are none.
        if end.waiting > 0 {
            self.is_there.notify_all();
        }
    }

    /// Whether this is called by the callback of the run, or by what the run calls.
    fn is_of_this_thread(&self) -> bool {
        let worker = self.worker.get();
        worker.is_some_and(|worker| *worker == thread::current().id())
    }

    fn wait(&self, deadline: Option<Instant>) -> Result<()> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = &end.result {
                return result.clone();
            }
            if self.is_of_this_thread() {
                let text = "a callback cannot wait for the run that it is called for";
                return Err(Failure::new(Status::RequestBusy, text));
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(not_ready());
            }
            end.waiting += 1;
            end = match left {
                None => {
                    let waited = self.is_there.wait(end);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(left) => {
                    let waited = self.is_there.wait_timeout(end, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            end.waiting -= 1;
        }
    }
}

fn not_ready() -> Failure {
    Failure::new(Status::ResultNotReady, "the result is not there yet")
}

/// Gives variables memory of their own where they are inputs or outputs: those are the program's again
/// after a run, and may change.
fn keep_variables(request: &mut vinelift::InferRequest) -> Result<()> {
    let shared = |value: &Tensor| {
        let count = request.compiled_model().inputs().len();
        let inputs = (0..count).filter_map(|k| request.input(k));
        let mut tensors = inputs.chain(request.outputs());
        tensors.any(|tensor| {
            tensor
                .bytes()
                .as_ptr_range()
                .contains(&value.bytes().as_ptr())
        })
    };
    let variables = request.variables().filter(|(_, value)| shared(value));
    let variables: Vec<(String, Tensor)> =
        variables.map(|(n, v)| (n.to_owned(), v.clone())).collect();
    for (name, value) in variables {
        let own = Tensor::from_bytes(value.element_type(), value.shape(), value.bytes())?;
        request.set_variable(&name, own)?;
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
