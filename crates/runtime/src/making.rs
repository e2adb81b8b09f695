//! Work that several threads ask for at once, and one does.

use crate::{Error, stop};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

/// A lock for each key whose value a thread is making right now.
pub(crate) struct Making<K>(Mutex<FxHashMap<K, Weak<Mutex<()>>>>);

/// How long a thread sleeps that waits for what another one makes.
const PAUSE: Duration = Duration::from_micros(200);

impl<K> Default for Making<K> {
    fn default() -> Making<K> {
        Making(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Making<K> {
    /// The lock that whoever makes what has this key holds.
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

/// Holds `lock`, after whoever holds it now.
///
/// # Errors
/// [`Error::Cancelled`], once `stop` is true.
pub(crate) fn alone<'a>(
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
