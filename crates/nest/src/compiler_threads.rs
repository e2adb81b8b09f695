//! The threads that compile.
//!
//! Each process starts its own when it first compiles. Where it has none, because the system gives none or
//! because there is one processor, the thread that compiles does all of the work. The results are the same.

use rayon_core::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Each recurses into one kernel at a time, which may be as deep as a model.
const STACK: usize = 16 << 20;

/// The threads of one process.
#[derive(Clone, Copy)]
struct Threads {
    process: u32,
    /// `None` if the one that compiles is to be alone.
    pool: Option<&'static ThreadPool>,
}

static THREADS: Mutex<Option<Threads>> = Mutex::new(None);

/// Starts `count` threads, or one for each processor. They take the place of those that there are.
///
/// # Errors
/// If the system gives no threads.
pub fn start(count: Option<NonZeroUsize>) -> io::Result<()> {
    let threads = Threads::start(count).map_err(io::Error::other)?;
    *THREADS.lock().unwrap_or_else(PoisonError::into_inner) = Some(threads);
    Ok(())
}

/// How many threads compile.
pub fn count() -> usize {
    pool().map_or(1, ThreadPool::current_num_threads)
}

/// The results of `f` for the items, in their order.
pub fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    map_apart(items, || (), |(), item| f(item))
}

/// As [`map`]; the first items are begun first, each by itself, since they may differ much in how long they take. A thread calls `init` once and hands the result to `f` for one item after the other.
pub fn map_apart<T: Send, S, R: Send>(
    items: Vec<T>,
    init: impl Fn() -> S + Send + Sync,
    f: impl Fn(&mut S, T) -> R + Send + Sync,
) -> Vec<R> {
    let Some(pool) = pool_for(items.len()) else {
        let mut state = init();
        return items.into_iter().map(|item| f(&mut state, item)).collect();
    };
    let count = pool.current_num_threads().min(items.len());
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let left = Mutex::new(items.into_iter().zip(&mut results));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut state = init();
        while let Some((item, place)) = next() {
            *place = Some(f(&mut state, item));
        }
    };
    pool.scope(|scope| (0..count).for_each(|_| scope.spawn(|_| work())));
    results.into_iter().flatten().collect()
}

/// Calls `f` with each of the items.
pub fn for_each<T: Send>(items: &mut [T], f: impl Fn(&mut T) + Send + Sync) {
    map(items.iter_mut().collect(), f);
}

fn pool_for(items: usize) -> Option<&'static ThreadPool> {
    if items > 1 { pool() } else { None }
}

/// The threads of this process, which are started if it has none.
fn pool() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    // Nobody waits for the lock: in a child that was forked, it may be held by a thread of the parent.
    let mut threads = match THREADS.try_lock() {
        Ok(threads) => threads,
        Err(TryLockError::Poisoned(threads)) => threads.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    // The threads of a parent are not in a child, which has a copy of what they share.
    let own = threads.filter(|threads| threads.process == process);
    // The system may have more to give the next time.
    let own = own.or_else(|| Threads::start(None).ok());
    *threads = own.or(*threads);
    own?.pool
}

impl Threads {
    fn start(count: Option<NonZeroUsize>) -> Result<Threads, ThreadPoolBuildError> {
        let count = count.or_else(|| std::thread::available_parallelism().ok());
        let count = count.map_or(1, NonZeroUsize::get);
        let start = || {
            let pool = ThreadPoolBuilder::new().num_threads(count);
            let name = |k| format!("vinelift compiler {k}");
            pool.stack_size(STACK).thread_name(name).build()
        };
        // They live as long as the process.
        let pool = (count > 1).then(start).transpose()?;
        Ok(Threads {
            process: std::process::id(),
            pool: pool.map(|pool| &*Box::leak(Box::new(pool))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_are_used_once() {
        let count = NonZeroUsize::new(3);
        start(count).unwrap();
        for len in [0, 1, 2, 100] {
            let items: Vec<usize> = (0..len).collect();
            let twice: Vec<usize> = items.iter().map(|k| 2 * k).collect();
            assert_eq!(map(items.clone(), |k| 2 * k), twice);
            let apart = map_apart(items.clone(), || 2, |two, k| *two * k);
            assert_eq!(apart, twice);
            let mut changed = items;
            for_each(&mut changed, |k| *k *= 2);
            assert_eq!(changed, twice);
        }
    }

    #[test]
    fn work_within_work_ends() {
        let inner = |k: usize| {
            map((0..k).collect(), |j: usize| j)
                .into_iter()
                .sum::<usize>()
        };
        let sums = map((0..50).collect(), inner);
        let expected: Vec<usize> = (0..50usize).map(|k| k * k.saturating_sub(1) / 2).collect();
        assert_eq!(sums, expected);
    }
}
