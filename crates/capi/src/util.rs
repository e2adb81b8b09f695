//! `ov_util.h`: where messages go.

use crate::memory;
use crate::status::guard_or;
use libc::c_char;
use std::sync::{Mutex, PoisonError};

type Callback = unsafe extern "C" fn(*const c_char);

/// The function that gets messages; none at first.
static CALLBACK: Mutex<Option<Callback>> = Mutex::new(None);

fn set(callback: Option<Callback>) {
    *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner) = callback;
}

/// Tells `message` to the callback that the program has set, if it has.
pub(crate) fn log(message: &str) {
    let callback = *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(callback) = callback else { return };
    if let Ok(text) = memory::copy_text(message) {
        // SAFETY: the program gave the function for messages, which are texts that end in NUL. The
        // text is freed after it, and comes from `memory`.
        unsafe {
            callback(text);
            memory::release(text);
        }
    }
}

/// Has messages told to `func`; to nobody if it is `NULL`.
#[unsafe(no_mangle)]
extern "C" fn ov_util_set_log_callback(func: Option<Callback>) {
    guard_or((), || {
        set(func);
        Ok(())
    });
}

/// Has messages told to nobody, as at first.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ov_util_reset_log_callback() {
    guard_or((), || {
        set(None);
        Ok(())
    });
}
