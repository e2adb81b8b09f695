//! Texts and arrays that callers get and free later: from `malloc`, so that freeing them does not
//! depend on their contents, which callers may have changed.

use crate::status::{Failure, Result, Status};
use libc::{c_char, c_void};

/// A copy of `text` that ends in NUL. A NUL in it ends it early.
pub(crate) fn copy_text(text: &str) -> Result<*mut c_char> {
    let end = text.find('\0').unwrap_or(text.len());
    let bytes = text.as_bytes()[..end].iter().chain([&0u8]);
    copy_items(&bytes.map(|b| *b as c_char).collect::<Vec<c_char>>())
}

/// A copy of `items`; never `NULL`, even if there are none.
pub(crate) fn copy_items<T: Copy>(items: &[T]) -> Result<*mut T> {
    let bytes = size_of_val(items).max(1);
    // SAFETY: `malloc` may be called with any size but 0, which it is not.
    let copy = unsafe { libc::malloc(bytes) }.cast::<T>();
    if copy.is_null() {
        let text = format!("out of memory: cannot allocate {bytes} bytes");
        return Err(Failure::new(Status::GeneralError, text));
    }
    // SAFETY: the new memory is as long as `items`, apart from them, and aligned for any C type, of
    // which `T` is one.
    unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), copy, items.len()) };
    Ok(copy)
}

/// Frees what this module allocated; `NULL` is nothing.
///
/// # Safety
/// The pointer comes from this module, or is `NULL`, and is not used again.
pub(crate) unsafe fn release<T>(pointer: *const T) {
    // SAFETY: the caller's promise; all that this module allocates comes from `malloc`.
    unsafe { libc::free(pointer.cast_mut().cast::<c_void>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn copies_can_be_freed_whatever_becomes_of_them() {
        let text = copy_text("a\0b").unwrap();
        // SAFETY: the texts are copies that end in NUL, and are freed once.
        unsafe {
            assert_eq!(CStr::from_ptr(text), c"a");
            *text = 0;
            release(text);
        }
        let none = copy_items::<u64>(&[]).unwrap();
        assert!(!none.is_null());
        // SAFETY: as above.
        unsafe { release(none) };
    }
}
