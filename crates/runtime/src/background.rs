//! A thread that compiles what no run waits for.

use crate::fork;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Something to do, which ends soon once the flag is true.
type Job = Box<dyn FnOnce(&Arc<AtomicBool>) + Send>;

/// A thread that does one job after the other. It is started by the first, and is gone when this is: dropping it stops the
/// job that it is at, and waits for it.
#[derive(Default)]
pub(crate) struct Background {
    worker: Mutex<Option<Worker>>,
}

struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    /// Of the process that has started it: a child of it has no such thread.
    generation: u32,
}

impl Background {
    /// Queues a job. It never runs if the system gives no thread, or if this is dropped first.
    pub(crate) fn submit(&self, job: impl FnOnce(&Arc<AtomicBool>) + Send + 'static) {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.is_none() {
            *worker = Worker::start();
        }
        if let Some(worker) = worker.as_ref().filter(|worker| worker.is_here()) {
            // The thread ends after this is dropped, and not before.
            drop(worker.jobs.send(Box::new(job)));
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let worker = self
            .worker
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(worker) = worker.take() else { return };
        if !worker.is_here() {
            // The settings of a thread that has ended are left as they are.
            std::mem::forget(worker);
            return;
        }
        worker.stop.store(true, Ordering::Relaxed);
        drop(worker.jobs);
        // A job that panicked has done nothing.
        drop(worker.thread.join());
    }
}

impl Worker {
    fn start() -> Option<Worker> {
        let stop = Arc::new(AtomicBool::new(false));
        let (jobs, received) = channel();
        let thread = {
            let stop = stop.clone();
            std::thread::Builder::new()
                .name("vinelift".to_owned())
                .spawn(move || work(&received, &stop))
        };
        Some(Worker {
            jobs,
            thread: thread.ok()?,
            stop,
            generation: fork::generation(),
        })
    }

    fn is_here(&self) -> bool {
        self.generation == fork::generation()
    }
}

fn work(jobs: &Receiver<Job>, stop: &Arc<AtomicBool>) {
    while let Ok(job) = jobs.recv() {
        if !stop.load(Ordering::Relaxed) {
            job(stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[test]
    fn jobs_are_done_in_order_and_stopped() {
        let background = Background::default();
        let count = Arc::new(AtomicUsize::new(0));
        let (done, wait) = channel();
        for number in 0..10 {
            let (count, done) = (count.clone(), done.clone());
            background.submit(move |_| {
                assert_eq!(count.fetch_add(1, Ordering::Relaxed), number);
                done.send(()).unwrap();
            });
        }
        (0..10).for_each(|_| wait.recv().unwrap());
        background.submit(move |stop| {
            done.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        wait.recv().unwrap();
        let later = count.clone();
        background.submit(move |_| {
            later.fetch_add(1, Ordering::Relaxed);
        });
        drop(background);
        assert_eq!(
            count.load(Ordering::Relaxed),
            10,
            "what has not begun is left"
        );
    }
}
