//! The result of a run, and the threads that wait for it.

use crate::status::{Failure, Result, Status};
use crate::workers;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The result of one run, once there is one.
#[derive(Default)]
pub(crate) struct Ticket {
    end: Mutex<End>,
    is_there: Condvar,
    /// The thread of the run, if the program waits for it.
    worker: OnceLock<Thread>,
}

/// A thread that has not ended. Rust's own numbers are gone when a thread calls a program's last functions.
pub(crate) type Thread = libc::pthread_t;

pub(crate) fn this_thread() -> Thread {
    // SAFETY: this may be called at any time.
    unsafe { libc::pthread_self() }
}

/// How a run ended.
#[derive(Default)]
struct End {
    result: Option<Result<()>>,
    /// How many threads wait for it.
    waiting: usize,
}

impl Ticket {
    /// The run ended so.
    pub(crate) fn set(&self, result: Result<()>) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.result = Some(result);
        // To tell them asks the system, even if there are none.
        if end.waiting > 0 {
            self.is_there.notify_all();
        }
    }

    /// The run, which has not begun, is that of this thread, and its callback is called here.
    pub(crate) fn is_run_here(&self) {
        // Nothing else sets it.
        let _ = self.worker.set(this_thread());
    }

    /// Whether this is called by the callback of the run, or by what the run calls.
    fn is_of_this_thread(&self) -> bool {
        self.worker.get() == Some(&this_thread())
    }

    /// Waits for the end of the run, until `deadline` if there is one.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<()> {
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
            drop(end);
            let has_helped = workers::help();
            end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
            if has_helped || end.result.is_some() {
                continue;
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

pub(crate) fn not_ready() -> Failure {
    Failure::new(Status::ResultNotReady, "the result is not there yet")
}
