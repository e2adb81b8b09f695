//! The threads that share the work of a run: the caller's own and those that wait for it.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::OnceLock;

/// Threads for the parts of kernels; they are started when the first part is for them.
pub(crate) struct Pool {
    threads: usize,
    /// One thread less than `threads`; nothing if the system has none to give.
    workers: OnceLock<Option<rayon::ThreadPool>>,
}

impl Pool {
    /// `threads` in all, or one for each processor.
    pub(crate) fn new(threads: Option<NonZeroUsize>) -> Pool {
        // A caller may ask for any number.
        const MOST: usize = 256;
        let all = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Pool {
            threads: threads.map_or_else(all, NonZeroUsize::get).min(MOST),
            workers: OnceLock::new(),
        }
    }

    /// How many parts can run at the same time.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `f` on every part, and gives the error of the first part that has one.
    pub(crate) fn run<E: Send>(
        &self,
        parts: &[Range<usize>],
        f: impl Fn(Range<usize>) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let ([first, others @ ..], Some(workers)) = (parts, self.workers()) else {
            return parts.iter().cloned().try_for_each(f);
        };
        let mut ends: Vec<Result<(), E>> = Vec::new();
        ends.resize_with(others.len(), || Ok(()));
        let own = workers.in_place_scope(|scope| {
            for (part, end) in others.iter().zip(&mut ends) {
                let f = &f;
                scope.spawn(move |_| *end = f(part.clone()));
            }
            f(first.clone())
        });
        own.and_then(|()| ends.into_iter().collect())
    }

    fn workers(&self) -> Option<&rayon::ThreadPool> {
        let start = || {
            let others = self.threads.checked_sub(1).filter(|n| *n > 0)?;
            let builder = rayon::ThreadPoolBuilder::new().num_threads(others);
            builder
                .thread_name(|k| format!("vinelift {k}"))
                .build()
                .ok()
        };
        self.workers.get_or_init(start).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_first_part_that_fails_is_told_of() {
        for threads in [1, 2, 3] {
            let pool = Pool::new(NonZeroUsize::new(threads));
            let done = AtomicUsize::new(0);
            let parts = [0..3, 3..5, 5..9, 9..10];
            let sum = |part: Range<usize>| {
                done.fetch_add(part.len(), Ordering::Relaxed);
                Ok::<(), usize>(())
            };
            assert_eq!(pool.run(&parts, sum), Ok(()));
            assert_eq!(done.into_inner(), 10);
            let fail = |part: Range<usize>| match part.start {
                0 => Ok(()),
                start => Err(start),
            };
            assert_eq!(pool.run(&parts, fail), Err(3));
        }
    }
}
