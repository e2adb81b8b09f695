//! The threads of runs that a program does not wait for at once.
//!
//! There are as many as run at a time: work waits for no other work, which may in turn wait for it. A
//! thread that has nothing to do stays for a while, since starting one takes longer than most runs.
//!
//! Where the system gives no thread, the one that asks for it does the work, before it goes on. If it is just
//! doing other work, it does so after that; whoever waits for something meanwhile helps.

use crate::fork::PerProcess;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

type Work = Box<dyn FnOnce() + Send>;

/// The threads of one process, and what they have to do.
#[derive(Default)]
struct Workers {
    state: Mutex<State>,
    is_more: Condvar,
    /// How much of the work in the queue is left to whoever has time.
    left: AtomicUsize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Item>,
    next: u64,
    /// How many threads wait for something to do.
    idle: usize,
}

/// Something to be done.
struct Item {
    number: u64,
    work: Work,
    /// Whether no thread could be started for it.
    is_left: bool,
}

static WORKERS: PerProcess<Workers> = PerProcess::new();

thread_local! {
    /// Whether this thread does some work.
    static IS_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// How long a thread stays that has nothing to do.
const PATIENCE: Duration = Duration::from_secs(10);
/// The stack of a thread in bytes: as much as programs expect for their callbacks. A run that needs more takes a
/// stack of its own.
const STACK: usize = 8 << 20;

/// Does `work`, which does not panic, on a thread that does nothing else meanwhile: one of its own, or this
/// one if there is none.
pub fn start(work: impl FnOnce() + Send + 'static) {
    let workers = WORKERS.get(Workers::default);
    let number = {
        let mut state = workers.state();
        let number = state.next;
        state.next += 1;
        state.queue.push_back(Item {
            number,
            work: Box::new(work),
            is_left: false,
        });
        if state.queue.len() <= state.idle {
            workers.is_more.notify_one();
            return;
        }
        number
    };
    let thread = thread::Builder::new().name("vinelift".to_owned());
    let thread = thread.stack_size(STACK);
    if thread.spawn(|| workers.serve()).is_ok() {
        return;
    }
    workers.leave(number);
    if !IS_AT_WORK.get() {
        help();
    }
}

/// Does some of the work that no thread could be started for; false if there is none.
pub fn help() -> bool {
    let workers = WORKERS.get(Workers::default);
    let was_at_work = IS_AT_WORK.get();
    let mut has_helped = false;
    while let Some(work) = workers.take_left() {
        has_helped = true;
        IS_AT_WORK.set(true);
        work();
        IS_AT_WORK.set(was_at_work);
        // Work that `work` has left behind is done here, too. Not if this call is made by other work, which waits
        // to go on.
        if was_at_work {
            break;
        }
    }
    has_helped
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves work to whoever has time, unless a thread that was done meanwhile has taken it.
    fn leave(&self, number: u64) {
        let mut state = self.state();
        if let Some(item) = state.queue.iter_mut().find(|item| item.number == number) {
            item.is_left = true;
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_left(&self) -> Option<Work> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut state = self.state();
        let position = state.queue.iter().position(|item| item.is_left)?;
        self.take(&mut state, position)
    }

    fn take(&self, state: &mut State, position: usize) -> Option<Work> {
        let item = state.queue.remove(position)?;
        if item.is_left {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        Some(item.work)
    }

    /// The main loop of a thread: takes work until it has waited for some too long.
    fn serve(&self) {
        IS_AT_WORK.set(true);
        let mut state = self.state();
        loop {
            if let Some(work) = self.take(&mut state, 0) {
                drop(state);
                work();
                state = self.state();
                continue;
            }
            state.idle += 1;
            let waited = self.is_more.wait_timeout(state, PATIENCE);
            let (after, time) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            if time.timed_out() && state.queue.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier, mpsc};
    use std::thread;

    #[test]
    fn work_that_waits_for_other_work_ends() {
        let all = Arc::new(Barrier::new(9));
        for _ in 0..8 {
            let all = all.clone();
            start(move || {
                all.wait();
            });
        }
        all.wait();
    }

    #[test]
    fn threads_are_used_again() {
        let (sender, receiver) = mpsc::channel();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            let sender = sender.clone();
            start(move || sender.send(thread::current().id()).unwrap());
            seen.insert(receiver.recv().unwrap());
            // The thread looks for more before long.
            thread::sleep(Duration::from_millis(1));
        }
        assert!(seen.len() < 50, "{} threads", seen.len());
    }
}
