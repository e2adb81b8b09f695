//! Single flight: of several threads that ask for the same work at once, one does it, and the others wait for the result.

use crate::{Error, stop};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

/// A lock for each key whose value a thread is making right now.
pub(crate) struct SingleFlight<K>(Mutex<FxHashMap<K, Weak<Mutex<()>>>>);

/// How long a thread sleeps before it tries a lock again that another thread holds.
const PAUSE: Duration = Duration::from_micros(200);

impl<K> Default for SingleFlight<K> {
    fn default() -> SingleFlight<K> {
        SingleFlight(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> SingleFlight<K> {
    /// The lock for a key, to be [held](hold) by the thread that makes its value.
    pub(crate) fn of(&self, key: &K) -> Arc<Mutex<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = all.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        all.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }
}

/// Holds `lock`, once no other thread does.
///
/// # Errors
/// [`Error::Cancelled`], once `stop` is true.
pub(crate) fn hold<'a>(
    lock: &'a Mutex<()>,
    stop: &AtomicBool,
) -> Result<MutexGuard<'a, ()>, Error> {
    loop {
        match lock.try_lock() {
            Ok(lock) => return Ok(lock),
            Err(TryLockError::Poisoned(lock)) => return Ok(lock.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
        stop::check(stop)?;
    }
}
