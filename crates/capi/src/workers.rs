//! The threads of runs that a program does not wait for at once.
//!
//! There are as many as run at a time: work waits for no other work, which may in turn wait for it. A
//! thread that has nothing to do stays for a while, since starting one takes longer than most runs.

use crate::stack;
use crate::status::Result;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Work = Box<dyn FnOnce() + Send>;

struct Workers {
    /// What is to be done, each with a number.
    queue: VecDeque<(u64, Work)>,
    next: u64,
    /// How many threads wait for something to do.
    idle: usize,
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers {
    queue: VecDeque::new(),
    next: 0,
    idle: 0,
});
static IS_MORE: Condvar = Condvar::new();

/// How long a thread stays that has nothing to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does `work`, which does not panic, on a thread that does nothing else meanwhile.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let number = {
        let mut workers = lock();
        let number = workers.next;
        workers.next += 1;
        workers.queue.push_back((number, Box::new(work)));
        if workers.queue.len() <= workers.idle {
            IS_MORE.notify_one();
            return Ok(());
        }
        number
    };
    stack::start(serve).or_else(|failure| {
        let mut workers = lock();
        let position = workers.queue.iter().position(|(k, _)| *k == number);
        match position {
            Some(position) => {
                workers.queue.remove(position);
                Err(failure)
            }
            None => Ok(()), // Another thread was done meanwhile, and took it.
        }
    })
}

fn lock() -> MutexGuard<'static, Workers> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what there is to do.
fn serve() {
    let mut workers = lock();
    loop {
        if let Some((_, work)) = workers.queue.pop_front() {
            drop(workers);
            work();
            workers = lock();
            continue;
        }
        workers.idle += 1;
        let waited = IS_MORE.wait_timeout(workers, PATIENCE);
        let (after, time) = waited.unwrap_or_else(PoisonError::into_inner);
        workers = after;
        workers.idle -= 1;
        if time.timed_out() && workers.queue.is_empty() {
            return;
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
            let together = move || {
                all.wait();
            };
            start(together).unwrap();
        }
        all.wait();
    }

    #[test]
    fn threads_are_used_again() {
        let (sender, receiver) = mpsc::channel();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            let sender = sender.clone();
            start(move || sender.send(thread::current().id()).unwrap()).unwrap();
            seen.insert(receiver.recv().unwrap());
            // The thread looks for more before long.
            thread::sleep(Duration::from_millis(1));
        }
        assert!(seen.len() < 50, "{} threads", seen.len());
    }
}
