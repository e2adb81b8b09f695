//! Runs that go on while their caller does something else.

use crate::stop::outcome;
use crate::ticket::Ticket;
use crate::{CompiledModel, Error, InferRequest, RunOptions};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A run on a thread of its own. It can be waited for, asked about, awaited and cancelled; who drops it lets the run go
/// on to its end, which nobody learns of.
///
/// A child of `fork` has none of its parent's threads: what it waits for there never ends.
///
/// ```
/// use vinelift::{Core, Tensor};
///
/// let core = Core::new()?;
/// let model = core.read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())?;
/// let mut request = core.compile_model(&model)?.create_request();
/// request.set_input("data", Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
/// request.set_input("indices", Tensor::from_slice(&[1, 2], &[1i32, 0])?)?;
/// let pending = request.start_async();
/// // Meanwhile this thread is free.
/// let (request, done) = pending.wait();
/// done?;
/// assert_eq!(*request.output(0)?.as_slice::<f32>()?, [3.0, 2.0]);
/// # Ok::<(), vinelift::Error>(())
/// ```
#[must_use = "the request comes back from it"]
pub struct Pending(Arc<PendingRun>);

/// A request after a run, and how that ended.
pub type Done = (InferRequest, Result<(), Error>);

struct PendingRun {
    ticket: Ticket<Done>,
    stop: Arc<AtomicBool>,
    /// Whom to wake when it has ended.
    waker: Mutex<Option<Waker>>,
}

impl PendingRun {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InferRequest {
    /// Runs the model on the inputs, as [`InferRequest::infer`] does, on another thread. As many runs of a model as it
    /// has [streams](crate::Config::streams) go on at a time, in the order in which they were started.
    pub fn start_async(self) -> Pending {
        let run = Arc::new(PendingRun {
            ticket: Ticket::default(),
            stop: Arc::default(),
            waker: Mutex::default(),
        });
        let of_thread = run.clone();
        self.start(run.stop.clone(), move |done| {
            of_thread.ticket.set(done);
            let mut waker = of_thread.waker();
            let taken = waker.take();
            // Whom it wakes may ask for the lock at once.
            drop(waker);
            if let Some(waker) = taken {
                waker.wake();
            }
        });
        Pending(run)
    }

    /// As [`InferRequest::start_async`], and calls `then` on that thread with the request and how the run ended. It may
    /// start the next run, and wait for other ones; a panic in it ends there.
    pub fn start_async_then(
        self,
        then: impl FnOnce(InferRequest, Result<(), Error>) + Send + 'static,
    ) {
        self.start(Arc::default(), |(request, result)| then(request, result));
    }

    fn start(mut self, stop: Arc<AtomicBool>, then: impl FnOnce(Done) + Send + 'static) {
        let compiled = self.compiled_model().clone();
        let streams = compiled.clone();
        streams.0.streams.start(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(|| self.run_deep(&stop)));
            let result = result.unwrap_or_else(|panic| Err(Error::internal(text_of(&*panic))));
            let result = outcome(result, &stop);
            // By now another run may begin: what follows may wait for it.
            compiled.0.streams.end_one();
            // Whoever gave it has let it panic.
            let _ = catch_unwind(AssertUnwindSafe(|| then((self, result))));
        }));
    }

    fn run_deep(&mut self, stop: &Arc<AtomicBool>) -> Result<(), Error> {
        let depth = self.compiled_model().depth();
        depth.run(|| {
            self.infer_with(RunOptions {
                stop: Some(stop),
                times: None,
            })
        })
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("a panic")
}

impl Pending {
    /// Waits for the end of the run.
    pub fn wait(self) -> Done {
        self.wait_until(None)
            .unwrap_or_else(|_| unreachable!("without a deadline there is a result"))
    }

    /// Waits for the end of the run for this long at most.
    ///
    /// # Errors
    /// If it has not ended by then: `self`.
    pub fn wait_timeout(self, time: Duration) -> Result<Done, Pending> {
        self.wait_until(Instant::now().checked_add(time))
    }

    fn wait_until(self, deadline: Option<Instant>) -> Result<Done, Pending> {
        // Only who owns `self` takes the result, and the thread of the run has none of it.
        match self.0.ticket.wait(deadline, Option::take) {
            Ok(Some(done)) => Ok(done),
            _ => Err(self),
        }
    }

    /// Whether the run has ended.
    pub fn is_done(&self) -> bool {
        self.0.ticket.is_over()
    }

    /// Ends the run with [`Error::Cancelled`], within a tenth of a second of its beginning or of now, unless it comes to
    /// its own end by then.
    pub fn cancel(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Needs no particular executor: the thread of the run wakes the task.
///
/// # Panics
/// If it is polled after it was ready.
impl Future for Pending {
    type Output = Done;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done> {
        let run = &self.0;
        // In this order: a run that ends between the two finds the waker.
        *run.waker() = Some(context.waker().clone());
        match run.ticket.is_over() {
            false => Poll::Pending,
            true => match run.ticket.wait(None, Option::take) {
                Ok(Some(done)) => Poll::Ready(done),
                _ => panic!("polled after it was ready"),
            },
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("is_done", &self.is_done())
            .finish_non_exhaustive()
    }
}

/// Requests for all streams.
impl CompiledModel {
    /// A request for each of the streams, so that all are busy when these run.
    pub fn create_requests(&self) -> Vec<InferRequest> {
        let streams = self.config().streams.get();
        (0..streams).map(|_| self.create_request()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Core, Tensor};
    use std::sync::mpsc;

    fn request(streams: usize) -> InferRequest {
        let core = Core::new().unwrap();
        let model = core.read_model_from_memory(crate::doc::GATHER.as_bytes(), Vec::new());
        let config = Config::new().streams(streams);
        let compiled = core.compile_model_with(&model.unwrap(), config).unwrap();
        with_inputs(compiled.create_request())
    }

    fn with_inputs(mut request: InferRequest) -> InferRequest {
        let data = Tensor::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
        request.set_input("data", data).unwrap();
        let indices = Tensor::from_slice(&[1, 2], &[1i32, 0]).unwrap();
        request.set_input("indices", indices).unwrap();
        request
    }

    fn value(request: &InferRequest) -> Vec<f32> {
        let output = request.output(0).unwrap();
        output.as_slice::<f32>().unwrap().into_owned()
    }

    #[test]
    fn requests_come_back_from_runs() {
        let mut request = request(1);
        for _ in 0..3 {
            let (back, done) = request.start_async().wait();
            done.unwrap();
            assert_eq!(value(&back), [3.0, 2.0]);
            request = back;
        }
        request.clear();
        let (_, done) = request.start_async().wait();
        assert!(matches!(done, Err(Error::Input(_))), "{done:?}");
    }

    #[test]
    fn a_callback_starts_the_next_run_and_waits_for_others() {
        let request = request(1);
        let other = with_inputs(request.compiled_model().create_request());
        let (sender, receiver) = mpsc::channel();
        request.start_async_then(move |request, done| {
            done.unwrap();
            let (other, done) = other.start_async().wait();
            done.unwrap();
            request.start_async_then(move |request, done| {
                sender
                    .send((done.is_ok(), value(&request), value(&other)))
                    .unwrap();
                panic!("nobody minds");
            });
        });
        let expected = vec![3.0, 2.0];
        assert_eq!(receiver.recv().unwrap(), (true, expected.clone(), expected));
    }

    #[test]
    fn more_runs_than_streams_wait_for_their_turn() {
        let first = request(2);
        let compiled = first.compiled_model().clone();
        assert_eq!(compiled.create_requests().len(), 2);
        let requests = (0..40).map(|_| with_inputs(compiled.create_request()));
        let pending: Vec<Pending> = requests.map(InferRequest::start_async).collect();
        for run in pending {
            let (request, done) = run.wait();
            done.unwrap();
            assert_eq!(value(&request), [3.0, 2.0]);
        }
    }

    #[test]
    fn a_run_can_be_awaited() {
        struct Unpark(std::thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut run = std::pin::pin!(async {
            let (request, done) = request(1).start_async().await;
            done.map(|()| value(&request))
        });
        let done = loop {
            match run.as_mut().poll(&mut context) {
                Poll::Ready(done) => break done,
                Poll::Pending => std::thread::park(),
            }
        };
        assert_eq!(done.unwrap(), [3.0, 2.0]);
    }

    #[test]
    fn a_cancelled_run_gives_its_request_back() {
        let pending = request(1).start_async();
        pending.cancel();
        // It may have ended before.
        let (request, done) = pending.wait();
        assert!(matches!(done, Ok(()) | Err(Error::Cancelled)), "{done:?}");
        let (_, done) = request.start_async().wait();
        done.unwrap();
    }
}
