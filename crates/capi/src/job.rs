//! Runs of a request, one at a time: on the caller's thread, or on another.

use crate::buffer::Buffer;
use crate::compiled_model::CompiledModel;
use crate::engine::{Engine, Slot};
use crate::settings::PROFILING;
use crate::status::{Failure, Result, Status, caught};
use libc::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use vinelift::stop::outcome;
use vinelift::ticket::{NoResult, Thread, Ticket, this_thread};
use vinelift::{KernelTime, RunOptions, fork, workers};

/// A request, which its handle and a run share.
pub(crate) struct Job {
    pub(crate) compiled: CompiledModel,
    state: Mutex<State>,
    /// Notified when a run and its callback are over, for [`Job::close`] to wait on.
    is_over: Condvar,
    /// The process that has runs, as its fork generation plus one; 0 if there are no runs.
    busy_in: AtomicU32,
    /// Locked by the run, of which there is one at a time.
    engine: Mutex<Engine>,
    /// Tells the current run to end early.
    stop: Arc<AtomicBool>,
}

struct State {
    callback: Option<Callback>,
    is_running: bool,
    /// Whether the request is freed: no run and no callback begins any more.
    is_closed: bool,
    /// The runs that are not over. The callback of one may still be at work when the next is running.
    open: usize,
    /// The threads that are in a callback.
    in_callback: Vec<Thread>,
    /// The last run.
    last: Option<Arc<Ticket<Result<()>>>>,
    /// How that has ended, once it has.
    outcome: Option<Result<()>>,
    times: Vec<KernelTime>,
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

impl Job {
    /// A request with tensors for all inputs and outputs. What is not known of a shape is 0.
    pub(crate) fn new(compiled: CompiledModel) -> Result<Arc<Job>> {
        let engine = Engine::new(&compiled.model)?;
        let state = State {
            callback: None,
            is_running: false,
            is_closed: false,
            open: 0,
            in_callback: Vec::new(),
            last: None,
            outcome: None,
            times: Vec::new(),
        };
        Ok(Arc::new(Job {
            state: Mutex::new(state),
            is_over: Condvar::new(),
            busy_in: AtomicU32::new(0),
            engine: Mutex::new(engine),
            stop: Arc::default(),
            compiled,
        }))
    }

    /// For a thread that has a run here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless it is that of runs whose threads are not in this process, which has been forked: they
    /// may hold locks, and will not end.
    fn living(&self) -> Result<MutexGuard<'_, State>> {
        match self.busy_in.load(Ordering::Relaxed) {
            0 => Ok(self.state()),
            process if process == this_process() => Ok(self.state()),
            _ => {
                let text = "the request was running when this process was forked, and runs on in its parent only";
                Err(Failure::new(Status::GeneralError, text))
            }
        }
    }

    /// The state, if there is no run.
    fn idle(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.living()?;
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

    /// Does something with the request of the library, while there is no run.
    pub(crate) fn with_request<T>(
        &self,
        change: impl FnOnce(&mut vinelift::InferRequest) -> Result<T>,
    ) -> Result<T> {
        let _idle = self.idle()?;
        change(self.engine().request())
    }

    /// How the last run ended.
    pub(crate) fn outcome(&self) -> Result<()> {
        let outcome = self.living()?.outcome.clone();
        outcome.unwrap_or_else(|| Err(not_ready()))
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
        let result = self.run();
        let mut state = self.state();
        let result = self.end(&mut state, result);
        self.leave(&mut state);
        drop(state);
        ticket.set(result.clone());
        result
    }

    /// Runs on another thread.
    pub(crate) fn start(self: &Arc<Job>) -> Result<()> {
        let ticket = self.begin()?;
        let job = self.clone();
        workers::start(move || {
            ticket.is_run_here();
            let result = job.run();
            let mut state = job.state();
            let result = job.end(&mut state, result);
            // As the request is idle again, the callback can look at it and start the next run.
            if let Some(callback) = state.callback {
                state.in_callback.push(this_thread());
                drop(state);
                callback.call();
                state = job.state();
                let is_this = |thread: &Thread| *thread == this_thread();
                if let Some(position) = state.in_callback.iter().position(is_this) {
                    state.in_callback.swap_remove(position);
                }
            }
            job.leave(&mut state);
            drop(state);
            drop(job);
            ticket.set(result);
        });
        Ok(())
    }

    /// Cancels the current run, if there is one.
    pub(crate) fn cancel(&self) {
        if self.living().is_ok_and(|state| state.is_running) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Waits for the last run, if there was one.
    pub(crate) fn wait(&self) -> Result<()> {
        let last = self.living()?.last.clone();
        last.map_or(Ok(()), |ticket| wait(&ticket, None))
    }

    /// Waits for the last run until `deadline`. If there was none, this is as if it did not end in time.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Result<()> {
        let last = self.living()?.last.clone();
        last.map_or_else(|| Err(not_ready()), |ticket| wait(&ticket, deadline))
    }

    /// Lets no further run or callback begin, and waits until all are over, except for callbacks that this
    /// thread is in: they cannot return before this does.
    pub(crate) fn close(&self) {
        let Ok(mut state) = self.living() else { return };
        state.is_closed = true;
        state.callback = None;
        let this = this_thread();
        let own = state.in_callback.iter().filter(|t| **t == this).count();
        while state.open > own {
            drop(state);
            let has_helped = workers::help();
            state = self.state();
            if !has_helped && state.open > own {
                let waited = self.is_over.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn begin(&self) -> Result<Arc<Ticket<Result<()>>>> {
        let ticket = Arc::new(Ticket::default());
        let mut state = self.idle()?;
        if state.is_closed {
            let text = "the request is being freed";
            return Err(Failure::new(Status::InferCancelled, text));
        }
        state.is_running = true;
        state.open += 1;
        self.busy_in.store(this_process(), Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
        state.last = Some(ticket.clone());
        state.outcome = None;
        Ok(ticket)
    }

    /// Makes the request idle after a run. Returns how that has ended.
    fn end(&self, state: &mut State, result: Result<()>) -> Result<()> {
        state.is_running = false;
        let result = outcome(result, &self.stop);
        state.outcome = Some(result.clone());
        result
    }

    /// Takes this thread's run off the count of open ones: the run and its callback are over.
    fn leave(&self, state: &mut State) {
        state.open -= 1;
        if state.open == 0 {
            self.busy_in.store(0, Ordering::Relaxed);
        }
        if state.is_closed {
            self.is_over.notify_all();
        }
    }

    fn run(&self) -> Result<()> {
        caught(|| self.compiled.depth.run(|| self.run_here()))
    }

    fn run_here(&self) -> Result<()> {
        let mut times = self.is_timed().then(Vec::new);
        let mut engine = self.engine();
        let done = engine.run(RunOptions {
            stop: Some(&self.stop),
            times: times.as_mut(),
        });
        drop(engine);
        if let Some(times) = times {
            self.state().times = times;
        }
        done
    }
}

/// Waits for the result of a run until `deadline`, if there is one.
fn wait(ticket: &Ticket<Result<()>>, deadline: Option<Instant>) -> Result<()> {
    match ticket.wait(deadline, |result| result.clone()) {
        Ok(result) => result.unwrap_or(Ok(())),
        Err(NoResult::NotReady) => Err(not_ready()),
        Err(NoResult::OwnRun) => {
            let text = "a callback cannot wait for the run that it is called for";
            Err(Failure::new(Status::RequestBusy, text))
        }
    }
}

fn not_ready() -> Failure {
    Failure::new(Status::ResultNotReady, "the result is not there yet")
}

/// As [`Job::busy_in`] has it.
fn this_process() -> u32 {
    fork::generation().wrapping_add(1).max(1)
}
