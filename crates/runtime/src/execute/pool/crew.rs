//! The worker threads of a pool, which take tasks from their own shares and steal from others'.

use super::{Round, Tasks};
use crate::fork;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that wait for rounds.
pub(super) struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The fork generation of the process that has started them.
    generation: u32,
}

impl Crew {
    /// Starts `count` threads, or as many as the system gives; `None` if it gives none. They spin before they sleep if `spins`.
    pub(super) fn new(count: usize, spins: bool) -> Option<Crew> {
        let shared = Arc::new(Shared::new(count + 1));
        let start = |worker| {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name(format!("vinelift {worker}"));
            thread.spawn(move || shared.serve(worker, spins)).ok()
        };
        let threads: Vec<JoinHandle<()>> = (1..=count).map_while(start).collect();
        (!threads.is_empty()).then_some(Crew {
            shared,
            threads,
            generation: fork::generation(),
        })
    }

    /// Whether the threads are of this process.
    pub(super) fn is_here(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Whether a thread sleeps, or is about to.
    pub(super) fn is_asleep(&self) -> bool {
        self.shared.asleep.load(Ordering::Relaxed) > 0
    }

    /// Wakes the threads that sleep.
    pub(super) fn wake(&self) {
        self.shared.wake();
    }

    /// Does the tasks `0..tasks` of a round of `work` with up to `workers` threads, the caller's among them; `false`, and none of
    /// them, if another run has the threads.
    pub(super) fn run(
        &self,
        work: Arc<dyn Tasks>,
        round: Round,
        tasks: usize,
        workers: usize,
    ) -> bool {
        let _lead = match self.shared.lead.try_lock() {
            Ok(lead) => lead,
            // A round that a panic has ended has left nothing behind.
            Err(TryLockError::Poisoned(lead)) => lead.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.shared.run(work, round, tasks, workers);
        true
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

/// How long a thread spins for the next round before it sleeps: longer than most kernels that one thread runs alone, and than
/// the time between two inferences in a row.
pub(super) const SPIN: Duration = Duration::from_micros(150);

/// The state that all threads of a crew see.
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

/// A [`Share`] whose next task, in the round of this number, is `task`.
fn next_task(number: u32, task: usize) -> u64 {
    u64::from(number) << 32 | task as u64
}

fn round_of(next: u64) -> u32 {
    (next >> 32) as u32
}

fn task_of(next: u64) -> usize {
    next as u32 as usize
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

    /// Leads a round, on the thread of the run that holds `lead`.
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
            share.0.store(next_task(number, first), Ordering::Relaxed);
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

    /// Takes a task for a thread: of its own share, or else it steals one from the next share that has some left.
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
    fn serve(&self, worker: usize, spins: bool) {
        let mut seen = 0;
        while let Some(number) = self.wait(seen, spins) {
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
    fn wait(&self, seen: u32, spins: bool) -> Option<u32> {
        let over = || self.over.load(Ordering::SeqCst);
        let next = || {
            let number = self.number.load(Ordering::SeqCst);
            (number != seen || over()).then_some(number)
        };
        loop {
            let start = Instant::now();
            while spins && start.elapsed() < SPIN {
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
            if let (false, Some(number)) = (spins, next()) {
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
        let closed = next_task(self.job.number, u32::MAX as usize);
        let taken = |worker: usize| {
            let share = self.job.share(worker);
            let next = self.shared.shares[worker].0.swap(closed, Ordering::AcqRel);
            task_of(next).min(share.end) - share.start
        };
        let taken: usize = (0..self.job.workers).map(taken).sum();
        let mut spins = 0u32;
        while self.shared.done.load(Ordering::Acquire) < taken {
            spins += 1;
            match spins < 4096 {
                true => std::hint::spin_loop(),
                // The other thread may be waiting for this processor.
                false => std::thread::yield_now(),
            }
        }
    }
}
