//! The types that pass between C++ and Rust: texts, tensors, errors.
//!
//! The structs are those of `crates/plugin/cpp/engine.hpp`. The C++ side makes them, and keeps what they point at for the time of a
//! call.

use crate::status::panic_text;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Elements one after the other; none if `len` is 0, whatever the pointer is.
#[repr(C)]
pub(crate) struct Slice<T> {
    start: *const T,
    len: usize,
}

/// Bytes of UTF-8.
pub(crate) type Text = Slice<u8>;

// Derived, they would ask the same of `T`.
impl<T> Clone for Slice<T> {
    fn clone(&self) -> Slice<T> {
        *self
    }
}

impl<T> Copy for Slice<T> {}

impl<T> Slice<T> {
    pub(crate) fn of(items: &[T]) -> Slice<T> {
        Slice {
            start: items.as_ptr(),
            len: items.len(),
        }
    }

    /// # Safety
    /// The elements are there, and nobody writes them, for the time of `'a`.
    pub(crate) unsafe fn items<'a>(self) -> &'a [T] {
        match self.len {
            0 => &[],
            // SAFETY: the caller's promise.
            len => unsafe { std::slice::from_raw_parts(self.start, len) },
        }
    }
}

impl Text {
    pub(crate) fn of_text(text: &str) -> Text {
        Slice::of(text.as_bytes())
    }

    /// The text, with replacements for what is not UTF-8.
    ///
    /// # Safety
    /// As [`Slice::items`], for the time of the call.
    pub(crate) unsafe fn to_text(self) -> String {
        // SAFETY: the caller's promise.
        String::from_utf8_lossy(unsafe { self.items() }).into_owned()
    }
}

/// A tensor: of a program, or one to be given to it. The element type is known from elsewhere.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct View {
    pub(crate) dims: Slice<usize>,
    pub(crate) bytes: *mut u8,
    pub(crate) byte_len: usize,
    /// The elements, if they are strings.
    pub(crate) texts: Slice<Text>,
}

/// Something of the C++ side, with what lets go of it.
#[repr(C)]
pub(crate) struct Keeper {
    object: *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: the object is a list of shared pointers, which may be let go of by any thread.
unsafe impl Send for Keeper {}
// SAFETY: nothing is done with the object but to let go of it, once.
unsafe impl Sync for Keeper {}

impl Drop for Keeper {
    fn drop(&mut self) {
        // SAFETY: the C++ side gave the two for this, and it is done once.
        unsafe { (self.release)(self.object) }
    }
}

/// How a call ended.
#[repr(C)]
pub(crate) struct Outcome {
    /// One of the numbers in `crates/plugin/cpp/engine.hpp`.
    status: i32,
    /// Why it failed: to be freed by [`free_message`]. Null if it did not.
    message: *mut c_char,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine's reason.
    #[error(transparent)]
    Engine(#[from] vinelift::Error),
    /// A setting that cannot be.
    #[error("{0}")]
    Setting(String),
    /// A function of the C++ side failed, which knows why.
    #[error("the caller failed")]
    Caller,
    /// A bug of ours.
    #[error("internal error: {0}")]
    Panic(String),
}

impl From<vinelift::TensorError> for Failure {
    fn from(error: vinelift::TensorError) -> Failure {
        Failure::Engine(error.into())
    }
}

impl Failure {
    fn status(&self) -> i32 {
        match self {
            Failure::Engine(vinelift::Error::Cancelled) => 2,
            Failure::Caller => 3,
            _ => 1,
        }
    }
}

/// Runs the body of a function. Errors and panics become its outcome.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Outcome {
    // A panic may leave data half changed. Shared data is behind mutexes, whose users can go on with it in any state.
    let caught = catch_unwind(AssertUnwindSafe(body));
    match caught.unwrap_or_else(|panic| Err(Failure::Panic(panic_text(&*panic)))) {
        Ok(()) => Outcome {
            status: 0,
            message: ptr::null_mut(),
        },
        Err(failure) => {
            let text = failure.to_string().replace('\0', "?");
            Outcome {
                status: failure.status(),
                message: CString::new(text).unwrap_or_default().into_raw(),
            }
        }
    }
}

/// Frees the message of an outcome; null is nothing.
///
/// # Safety
/// It is one, and was not freed yet.
pub(crate) unsafe extern "C" fn free_message(message: *mut c_char) {
    if !message.is_null() {
        // SAFETY: `guard` made it, and the caller's promise.
        drop(unsafe { CString::from_raw(message) });
    }
}

/// Frees what `make` has made; null is nothing.
///
/// # Safety
/// It comes from there, and was not freed yet.
pub(crate) unsafe extern "C" fn free<T>(object: *mut T) {
    if !object.is_null() {
        guard(|| {
            // SAFETY: `make` made it of a box, and the caller's promise.
            drop(unsafe { Box::from_raw(object) });
            Ok(())
        });
    }
}

/// A pointer to `object`, to be given to [`free`] later.
pub(crate) fn make<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text(outcome: &Outcome) -> &str {
        // SAFETY: it is the message of an outcome, and not freed yet.
        unsafe { CStr::from_ptr(outcome.message) }.to_str().unwrap()
    }

    #[test]
    fn errors_and_panics_are_outcomes() {
        let done = guard(|| Ok(()));
        assert!(done.status == 0 && done.message.is_null());
        let cancelled = guard(|| Err(vinelift::Error::Cancelled.into()));
        assert_eq!(cancelled.status, 2);
        assert_eq!(text(&cancelled), "the inference was cancelled");
        let panic = guard(|| panic!("at {}\0", 7));
        assert_eq!(panic.status, 1);
        assert_eq!(text(&panic), "internal error: at 7?");
        for outcome in [done, cancelled, panic] {
            // SAFETY: each is freed once.
            unsafe { free_message(outcome.message) };
        }
    }

    #[test]
    fn no_elements_need_no_pointer() {
        let none = Slice::<u64> {
            start: ptr::null(),
            len: 0,
        };
        // SAFETY: there are none.
        assert!(unsafe { none.items() }.is_empty());
    }
}
