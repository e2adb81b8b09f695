//! The threads that share the work of a run: the caller's own and those that wait for it.
//!
//! Kernels are short, so handing one out must cost less than a microsecond. Work comes in rounds of numbered
//! tasks. Each thread has a share of the numbers, the same one whenever there are as many tasks: neighbouring tasks of one
//! kernel and of the next use neighbouring elements, which are then in the thread's own cache. Whoever is done with his
//! share takes from the others'. The thread that runs the model takes numbers like the others and never waits for
//! one that has not come yet: only for tasks that others are at. Threads that have nothing to do look for the next
//! round for a while, and only then sleep.

use crate::fork;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
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
    /// When there was last too little to wake a thread for, in nanoseconds from the start on.
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
            && crew.shared.asleep.load(Ordering::Relaxed) > 0
        {
            crew.shared.wake();
        }
    }

    /// Whether work that takes `cost` nanoseconds is to be shared out. No thread is woken for little, unless little
    /// follows little: then it stays awake.
    pub(crate) fn is_worth(&self, cost: u64) -> bool {
        if cost >= WORTH_WAKING || !self.is_asleep() {
            return true;
        }
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let now = nanoseconds(self.start.elapsed());
        let before = self.little.swap(now, Ordering::Relaxed);
        before != 0 && now.saturating_sub(before) < nanoseconds(LOOK)
    }

    /// Whether a thread would have to be woken for the next round.
    fn is_asleep(&self) -> bool {
        let crew = self.crew.get().and_then(Option::as_ref);
        let crew = crew.filter(|crew| crew.is_here());
        crew.is_none_or(|crew| crew.shared.asleep.load(Ordering::Relaxed) > 0)
    }

    /// Does the tasks `0..tasks` of a round of `work`, on up to `workers` threads.
    pub(crate) fn run<T: Tasks + 'static>(
        &self,
        work: &Arc<T>,
        round: Round,
        tasks: usize,
        workers: usize,
    ) {
        let shared = match workers.min(tasks) {
            0 | 1 => None,
            _ => self.crew().map(|crew| &*crew.shared),
        };
        // Another run that has the threads keeps them: this one goes on alone.
        let lead = shared.and_then(|shared| Some((shared, shared.lead.try_lock().ok()?)));
        match lead {
            Some((shared, _lead)) if u32::try_from(tasks).is_ok() => {
                shared.run(work.clone(), round, tasks, workers);
            }
            _ => (0..tasks).for_each(|task| work.task(round, task, 0)),
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

/// Threads that wait for rounds.
struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Of the process that has started them.
    generation: u32,
}

impl Crew {
    fn new(count: usize, looks: bool) -> Option<Crew> {
        let shared = Arc::new(Shared::new(count + 1));
        let start = |worker| {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name(format!("vinelift {worker}"));
            thread.spawn(move || shared.serve(worker, looks)).ok()
        };
        let threads: Vec<JoinHandle<()>> = (1..=count).map_while(start).collect();
        (!threads.is_empty()).then_some(Crew {
            shared,
            threads,
            generation: fork::generation(),
        })
    }

    /// Whether the threads are of this process.
    fn is_here(&self) -> bool {
        self.generation == fork::generation()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if !self.is_here() {
            // Nobody can wait for a thread that is not there, or take a lock that it may have held.
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.wake();
        for thread in self.threads.drain(..) {
            // A thread can only end early by a panic, which was passed on.
            let _ = thread.join();
        }
    }
}

/// How long a thread looks for the next round before it sleeps: longer than most kernels that one thread
/// runs alone, and than the time between two inferences in a row.
const LOOK: Duration = Duration::from_micros(150);

/// The state that all threads of a pool see.
struct Shared {
    /// Held by the run that hands out work.
    lead: Mutex<()>,
    /// The number of the round.
    number: AtomicU32,
    /// The shares of the threads.
    shares: Vec<Share>,
    job: Mutex<Job>,
    /// How many tasks of the round are done.
    done: AtomicUsize,
    /// Whether a task of the round has panicked.
    panicked: AtomicBool,
    /// Whether the threads are to end.
    over: AtomicBool,
    /// How many threads sleep or are about to.
    asleep: AtomicUsize,
    sleep: Mutex<()>,
    alarm: Condvar,
}

/// The tasks of a thread in a round: the number of the round, and of the next task, in one. It has a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Share(AtomicU64);

/// A round.
#[derive(Clone, Default)]
struct Job {
    number: u32,
    work: Option<Arc<dyn Tasks>>,
    round: Round,
    tasks: usize,
    /// How many threads have a share.
    workers: usize,
}

impl Job {
    /// The tasks that are a thread's own.
    fn share(&self, worker: usize) -> Range<usize> {
        let start = |worker| self.tasks * worker / self.workers;
        start(worker)..start(worker + 1)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ticket(number: u32, task: usize) -> u64 {
    u64::from(number) << 32 | task as u64
}

fn round_of(ticket: u64) -> u32 {
    (ticket >> 32) as u32
}

fn task_of(ticket: u64) -> usize {
    ticket as u32 as usize
}

impl Shared {
    fn new(threads: usize) -> Shared {
        Shared {
            lead: Mutex::default(),
            number: AtomicU32::new(0),
            shares: (0..threads).map(|_| Share::default()).collect(),
            job: Mutex::default(),
            done: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            over: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            sleep: Mutex::default(),
            alarm: Condvar::new(),
        }
    }

    /// Leads a round.
    fn run(&self, work: Arc<dyn Tasks>, round: Round, tasks: usize, workers: usize) {
        let number = self.number.load(Ordering::Relaxed).wrapping_add(1);
        let job = Job {
            number,
            work: Some(work.clone()),
            round,
            tasks,
            workers: workers.min(self.shares.len()),
        };
        *lock(&self.job) = job.clone();
        self.done.store(0, Ordering::Relaxed);
        self.panicked.store(false, Ordering::Relaxed);
        for (worker, share) in self.shares[..job.workers].iter().enumerate() {
            let first = job.share(worker).start;
            share.0.store(ticket(number, first), Ordering::Relaxed);
        }
        self.number.store(number, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
        // Ends the round even if a task panics here.
        let end = End {
            shared: self,
            job: &job,
        };
        while let Some(task) = self.next(&job, 0) {
            let _done = Done(&self.done);
            work.task(round, task, 0);
        }
        drop(end);
        lock(&self.job).work = None;
        assert!(
            !self.panicked.load(Ordering::Relaxed),
            "a task of a kernel panicked"
        );
    }

    /// Takes a task for a thread: of its own share, or else of the next one that has some left.
    fn next(&self, job: &Job, worker: usize) -> Option<usize> {
        let owners = (worker..job.workers).chain(0..worker);
        owners.into_iter().find_map(|owner| {
            let end = job.share(owner).end;
            let taken =
                self.shares[owner]
                    .0
                    .fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
                        (round_of(next) == job.number && task_of(next) < end).then_some(next + 1)
                    });
            taken.ok().map(task_of)
        })
    }

    /// The main function of a thread of the crew: does tasks until the pool ends.
    fn serve(&self, worker: usize, looks: bool) {
        let mut seen = 0;
        while let Some(number) = self.wait(seen, looks) {
            seen = number;
            // It may be the job of a later round, whose shares are not there yet: then there is no task.
            let job = lock(&self.job).clone();
            let Some(work) = &job.work else { continue };
            if job.number != number || worker >= job.workers {
                continue;
            }
            while let Some(task) = self.next(&job, worker) {
                let _done = Done(&self.done);
                let run = || work.task(job.round, task, worker);
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// The number of the next round that is not `seen`; nothing if there will be none.
    fn wait(&self, seen: u32, looks: bool) -> Option<u32> {
        let over = || self.over.load(Ordering::SeqCst);
        let next = || {
            let number = self.number.load(Ordering::SeqCst);
            (number != seen || over()).then_some(number)
        };
        loop {
            let start = Instant::now();
            while looks && start.elapsed() < LOOK {
                for _ in 0..16 {
                    if let Some(number) = next() {
                        return (!over()).then_some(number);
                    }
                    std::hint::spin_loop();
                }
            }
            let guard = lock(&self.sleep);
            // Whoever starts a round after the next look sees that a thread is asleep, and cannot wake it
            // before it is.
            self.asleep.fetch_add(1, Ordering::SeqCst);
            if next().is_none() {
                drop(self.alarm.wait(guard));
            }
            self.asleep.fetch_sub(1, Ordering::SeqCst);
            if let (false, Some(number)) = (looks, next()) {
                return (!over()).then_some(number);
            }
        }
    }

    fn wake(&self) {
        let _guard = lock(&self.sleep);
        self.alarm.notify_all();
    }
}

/// Counts a task as done, whatever its end.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Has nobody take a task of a round any more, and waits for the tasks that were taken.
struct End<'a> {
    shared: &'a Shared,
    job: &'a Job,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let closed = ticket(self.job.number, u32::MAX as usize);
        let taken = |worker: usize| {
            let share = self.job.share(worker);
            let next = self.shared.shares[worker].0.swap(closed, Ordering::AcqRel);
            task_of(next).min(share.end) - share.start
        };
        let taken: usize = (0..self.job.workers).map(taken).sum();
        let mut looks = 0u32;
        while self.shared.done.load(Ordering::Acquire) < taken {
            looks += 1;
            match looks < 4096 {
                true => std::hint::spin_loop(),
                // The other thread may be waiting for this processor.
                false => std::thread::yield_now(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                    std::thread::sleep(2 * LOOK);
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
    }
}
