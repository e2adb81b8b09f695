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

/// A flag that nobody sets.
pub(crate) fn never() -> &'static Arc<AtomicBool> {
    static NEVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    &NEVER
}
