//! The result of a run, and the threads that wait for it.

use crate::workers;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The result of one run, once there is one.
pub struct Ticket<T> {
    end: Mutex<End<T>>,
    is_there: Condvar,
    /// The thread of the run, if its result is waited for.
    worker: OnceLock<Thread>,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResult {
    /// The time is over.
    NotReady,
    /// The thread that waits is that of the run.
    OwnRun,
}

/// The identity of a thread that has not ended: the address of a variable of its own. `std::thread::current` is not to be had any more
/// when a program's exit handlers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(usize);

/// The thread that asks.
pub fn this_thread() -> Thread {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| Thread(std::ptr::from_ref(place).addr()))
}

/// How a run ended.
struct End<T> {
    result: Option<T>,
    is_over: bool,
    /// How many threads wait for it.
    waiting: usize,
}

impl<T> Default for Ticket<T> {
    fn default() -> Ticket<T> {
        let end = End {
            result: None,
            is_over: false,
            waiting: 0,
        };
        Ticket {
            end: Mutex::new(end),
            is_there: Condvar::new(),
            worker: OnceLock::new(),
        }
    }
}

impl<T> Ticket<T> {
    fn end(&self) -> MutexGuard<'_, End<T>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run ended so.
    pub fn set(&self, result: T) {
        let mut end = self.end();
        end.result = Some(result);
        end.is_over = true;
        // Notifying is a system call even if nobody waits.
        if end.waiting > 0 {
            self.is_there.notify_all();
        }
    }

    /// The run, which has not begun, is that of this thread, and its callback is called here.
    pub fn is_run_here(&self) {
        // Nothing else sets it.
        let _ = self.worker.set(this_thread());
    }

    /// Whether this is called by the callback of the run, or by what the run calls.
    fn is_of_this_thread(&self) -> bool {
        self.worker.get() == Some(&this_thread())
    }

    /// Whether the run has ended.
    pub fn is_over(&self) -> bool {
        self.end().is_over
    }

    /// Waits for the end of the run, until `deadline` if there is one, and reads its result: `None` if it was taken
    /// before.
    ///
    /// # Errors
    /// If it does not end in time, or never while this thread waits.
    pub fn wait<R>(
        &self,
        deadline: Option<Instant>,
        read: impl FnOnce(&mut Option<T>) -> R,
    ) -> Result<R, NoResult> {
        let mut end = self.end();
        loop {
            if end.is_over {
                return Ok(read(&mut end.result));
            }
            if self.is_of_this_thread() {
                return Err(NoResult::OwnRun);
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(NoResult::NotReady);
            }
            drop(end);
            let has_helped = workers::help();
            end = self.end();
            if has_helped || end.is_over {
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
