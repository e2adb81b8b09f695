//! The threads that share the work of a run: the caller's own and those that wait for it.
//!
//! Kernels are short, so handing one out must cost less than a microsecond. Work comes in rounds of numbered
//! tasks. Each thread has a share of the numbers, the same one whenever there are as many tasks: neighbouring tasks of one
//! kernel and of the next use neighbouring elements, which are then in the thread's own cache. Whoever is done with its
//! share steals from the others' ([`crew`]). The thread that runs the model takes numbers like the others and never waits for
//! one that has not come yet: only for tasks that others are at. Threads that have nothing to do spin for a while, and only
//! then sleep.

mod crew;

use crew::{Crew, SPIN};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Work in rounds of tasks, which threads share out.
pub(crate) trait Tasks: Send + Sync {
    /// Does the task of a round. No two tasks run under one number of `worker` at the same time.
    fn task(&self, round: Round, task: usize, worker: usize);
}

/// The subject of a round of tasks: [`Tasks::task`] gives the numbers their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// The step of a plan.
    pub(crate) step: usize,
    /// Its turn.
    pub(crate) turn: usize,
    /// Its phase.
    pub(crate) phase: usize,
}

/// Threads for the tasks of kernels; they are started when the first is for them.
pub(crate) struct Pool {
    threads: usize,
    /// One thread less than `threads`; nothing if the system has none to give. Those of a parent are not in a
    /// child, which goes on alone.
    crew: OnceLock<Option<Crew>>,
    start: Instant,
    /// When there was last too little work to wake a thread for, in nanoseconds after `start`.
    little: AtomicU64,
}

/// The nanoseconds of work that are worth the waking of a thread that sleeps.
pub(crate) const WORTH_WAKING: u64 = 16_000;

impl Pool {
    /// `threads` in all, or one for each processor.
    pub(crate) fn new(threads: Option<NonZeroUsize>) -> Pool {
        // A caller may ask for any number.
        const MOST: usize = 256;
        Pool {
            threads: threads.map_or_else(processors, NonZeroUsize::get).min(MOST),
            crew: OnceLock::new(),
            start: Instant::now(),
            little: AtomicU64::new(0),
        }
    }

    /// How many tasks can run at the same time.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Has sleeping threads look for work, as there will soon be some.
    pub(crate) fn wake(&self) {
        if let Some(crew) = self.crew()
            && crew.is_asleep()
        {
            crew.wake();
        }
    }

    /// Whether work that takes `cost` nanoseconds is to be shared out. No thread is woken for little work, unless it comes in such
    /// short intervals that the thread then stays awake.
    pub(crate) fn is_worth(&self, cost: u64) -> bool {
        if cost >= WORTH_WAKING || !self.is_asleep() {
            return true;
        }
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let now = nanoseconds(self.start.elapsed());
        let before = self.little.swap(now, Ordering::Relaxed);
        before != 0 && now.saturating_sub(before) < nanoseconds(SPIN)
    }

    /// Whether a thread would have to be woken for the next round.
    fn is_asleep(&self) -> bool {
        let crew = self.crew.get().and_then(Option::as_ref);
        let crew = crew.filter(|crew| crew.is_here());
        crew.is_none_or(Crew::is_asleep)
    }

    /// Does the tasks `0..tasks` of a round of `work`, on up to `workers` threads.
    pub(crate) fn run<T: Tasks + 'static>(
        &self,
        work: &Arc<T>,
        round: Round,
        tasks: usize,
        workers: usize,
    ) {
        let are_several = workers.min(tasks) > 1 && u32::try_from(tasks).is_ok();
        let crew = are_several.then(|| self.crew()).flatten();
        // Another run that has the threads keeps them: this one goes on alone.
        if !crew.is_some_and(|crew| crew.run(work.clone(), round, tasks, workers)) {
            (0..tasks).for_each(|task| work.task(round, task, 0));
        }
    }

    fn crew(&self) -> Option<&Crew> {
        let start = || {
            let others = self.threads.checked_sub(1).filter(|n| *n > 0)?;
            Crew::new(others, self.threads <= processors())
        };
        let crew = self.crew.get_or_init(start).as_ref();
        crew.filter(|crew| crew.is_here())
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    /// Adds the number of each task to the sum of its round.
    #[derive(Default)]
    struct Sums([AtomicUsize; 3]);

    impl Tasks for Sums {
        fn task(&self, round: Round, task: usize, worker: usize) {
            assert!(worker < 3, "worker {worker}");
            assert!(round.phase != 2, "told to");
            self.0[round.phase].fetch_add(task, Ordering::Relaxed);
        }
    }

    #[test]
    fn every_task_is_done_once() {
        for threads in [1, 2, 3, 5] {
            let pool = Pool::new(NonZeroUsize::new(threads));
            let sums = Arc::new(Sums::default());
            let rounds = 2000;
            for number in 0..rounds {
                let phase = number % 2;
                let round = Round {
                    phase,
                    ..Round::default()
                };
                pool.run(&sums, round, 11, 3);
                // It is done when the call returns.
                let sum = sums.0[phase].load(Ordering::Relaxed);
                assert_eq!(sum, (number / 2 + 1) * 55);
                if number % 400 == 0 {
                    // Long enough for them to sleep.
                    std::thread::sleep(2 * SPIN);
                    pool.wake();
                }
            }
        }
    }

    #[test]
    fn runs_at_the_same_time_do_not_meet() {
        let pool = Pool::new(NonZeroUsize::new(3));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let sums = Arc::new(Sums::default());
                    for number in 1..500 {
                        pool.run(&sums, Round::default(), 7, 3);
                        assert_eq!(sums.0[0].load(Ordering::Relaxed), number * 21);
                    }
                });
            }
        });
    }

    /// Two tasks, neither of which ends before the other has begun; [`Meeting::met`] tells whether they did in time.
    #[derive(Default)]
    struct Meeting {
        begun: AtomicUsize,
        met: AtomicUsize,
    }

    impl Tasks for Meeting {
        fn task(&self, _: Round, _: usize, _: usize) {
            self.begun.fetch_add(1, Ordering::SeqCst);
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(20) {
                if self.begun.load(Ordering::SeqCst) == 2 {
                    self.met.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_panic_is_passed_on_and_the_threads_stay() {
        let pool = Pool::new(NonZeroUsize::new(2));
        let sums = Arc::new(Sums::default());
        let panics = Round {
            phase: 2,
            ..Round::default()
        };
        for _ in 0..3 {
            let run = || pool.run(&sums, panics, 50, 2);
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
        pool.run(&sums, Round::default(), 11, 2);
        assert_eq!(sums.0[0].load(Ordering::Relaxed), 55);
        let meeting = Arc::new(Meeting::default());
        pool.run(&meeting, Round::default(), 2, 2);
        assert_eq!(meeting.met.load(Ordering::SeqCst), 2);
    }
}
