//! Forks: the child has a copy of the memory of its parent, and of its threads only the one that forked.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A number that is another one in a child than in its parent. To ask for it costs a load: the system is not
/// asked.
pub fn generation() -> u32 {
    static WATCH: Once = Once::new();
    WATCH.call_once(watch);
    GENERATION.load(Ordering::Relaxed)
}

fn watch() {
    #[cfg(unix)]
    {
        extern "C" fn in_child() {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the function only adds to a number, which may be done in a child of a process of many
        // threads. If there is no memory to note it, forks go unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// A value that each process makes for itself. A child does not look at its parent's, which a thread that is
/// not there may have been about to change.
pub struct PerProcess<T>(AtomicPtr<Made<T>>);

struct Made<T> {
    generation: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// One that no process has made yet.
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The value of this process. It stays as long as the process.
    pub fn get(&'static self, make: impl FnOnce() -> T) -> &'static T {
        self.of(generation(), make)
    }

    fn of(&'static self, generation: u32, make: impl FnOnce() -> T) -> &'static T {
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: it is null, or was leaked below, and is never freed or written.
        if let Some(made) = unsafe { found.as_ref() }
            && made.generation == generation
        {
            return &made.value;
        }
        let value = make();
        let own = Box::into_raw(Box::new(Made { generation, value }));
        let change = self
            .0
            .compare_exchange(found, own, Ordering::AcqRel, Ordering::Acquire);
        let made = match change {
            Ok(_) => own,
            Err(other) => {
                // SAFETY: it was boxed above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(own) });
                other
            }
        };
        // SAFETY: `made` was leaked and is never freed. If it is `other`, another thread of this process, and of no
        // other, has put it there.
        unsafe { &(*made).value }
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_makes_one_value() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        let values: Vec<&u32> = std::thread::scope(|scope| {
            let get = |k| scope.spawn(move || VALUE.of(0, || k));
            let threads: Vec<_> = (0..8).map(get).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(values.iter().all(|v| std::ptr::eq(*v, values[0])));
        assert_eq!(*VALUE.of(1, || 100), 100, "a child makes its own");
        assert_eq!(*VALUE.of(1, || 101), 100);
        assert!(*values[0] < 8);
    }
}
