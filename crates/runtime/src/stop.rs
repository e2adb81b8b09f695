//! The flag that ends work early.

use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// [`Error::Cancelled`] once `stop` is true.
pub(crate) fn check(stop: &AtomicBool) -> Result<(), Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    }
}

/// The outcome of a run that `stop` can cancel. If the run failed and `stop` is true, it was cancelled, whatever the error says. If it
/// succeeded, its variables have changed, so it does not count as cancelled even if `stop` became true meanwhile.
pub fn outcome<T, E: From<Error>>(result: Result<T, E>, stop: &AtomicBool) -> Result<T, E> {
    match result {
        Err(_) if stop.load(Ordering::Relaxed) => Err(Error::Cancelled.into()),
        ended => ended,
    }
}

/// A flag that nobody sets.
pub(crate) fn never() -> &'static Arc<AtomicBool> {
    static NEVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    &NEVER
}
