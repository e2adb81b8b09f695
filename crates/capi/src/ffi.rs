//! Pointers that come from C.
//!
//! Values of these types are made by C programs, by calling a function of this library; nothing here
//! makes one. That is what their `unsafe` rests on: the caller keeps to the contract of the header.

use crate::status::{Failure, Result, guard_or};
use libc::{c_char, wchar_t};
use std::ffi::{CStr, OsStr};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Something to read, or `NULL`.
pub(crate) type In<'a, T> = Option<&'a T>;
/// Something to write, which may not be initialised yet, or `NULL`.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// An argument that may be `NULL` in C, of a function that needs it.
pub(crate) trait Required {
    type Value;

    /// The value, or an error that names the parameter.
    fn required(self, name: &str) -> Result<Self::Value>;
}

impl<T> Required for Option<T> {
    type Value = T;

    fn required(self, name: &str) -> Result<T> {
        self.ok_or_else(|| is_null(name))
    }
}

fn is_null(name: &str) -> Failure {
    Failure::argument(format!("`{name}` is NULL"))
}

/// A text that ends in NUL, or `NULL`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the pointer is a C program's; the headers ask for a text that ends in NUL and stays
        // as it is during the call, which `'a` does not exceed.
        Some(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// The text, `None` if it is `NULL`.
    pub(crate) fn optional(self, name: &str) -> Result<Option<&'a str>> {
        let not_utf8 = |_| Failure::argument(format!("`{name}` is not UTF-8"));
        self.bytes()
            .map(|bytes| std::str::from_utf8(bytes).map_err(not_utf8))
            .transpose()
    }

    pub(crate) fn required(self, name: &str) -> Result<&'a str> {
        self.optional(name)?.required(name)
    }

    /// The path that the text is, which need not be UTF-8.
    pub(crate) fn path(self) -> Option<&'a Path> {
        self.bytes()
            .map(|bytes| Path::new(OsStr::from_bytes(bytes)))
    }
}

/// A text of wide characters that ends in NUL, or `NULL`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct WideText<'a>(*const wchar_t, PhantomData<&'a wchar_t>);

impl WideText<'_> {
    pub(crate) fn path(self, name: &str) -> Result<Option<PathBuf>> {
        if self.0.is_null() {
            return Ok(None);
        }
        let mut text = String::new();
        for k in 0.. {
            // SAFETY: as the headers ask, the pointer is to characters of which the last is NUL, and
            // none of those before was.
            let code = unsafe { *self.0.add(k) };
            if code == 0 {
                break;
            }
            // Signed or not by machine; what is negative is no character in either.
            let character = char::from_u32(u32::from_ne_bytes(code.to_ne_bytes()));
            text.push(character.ok_or_else(|| {
                Failure::argument(format!("`{name}`[{k}] is {code}, which is no character"))
            })?);
        }
        Ok(Some(text.into()))
    }
}

/// An array, or `NULL`. How long it is comes with it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Array<'a, T>(*const T, PhantomData<&'a T>);

impl<'a, T> Array<'a, T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The elements. `NULL` is an array of none.
    pub(crate) fn items(self, count: usize, name: &str) -> Result<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(is_null(name));
        }
        if count > isize::MAX as usize / size_of::<T>().max(1) {
            return Err(Failure::argument(format!("`{name}` of {count} elements")));
        }
        // SAFETY: the pointer is a C program's; the headers ask for an array of the count that comes
        // with it, which stays as it is during the call. The count has been checked to be possible.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// A pointer to a handle on the heap, which the caller owns from now on.
pub(crate) fn handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Frees a handle that [`handle`] gave away; `NULL` is nothing.
pub(crate) fn free<T>(handle: Option<Box<T>>) {
    guard_or((), || {
        drop(handle);
        Ok(())
    });
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) const NULL: Text<'static> = Text(std::ptr::null(), PhantomData);

    pub(crate) fn text(text: &CStr) -> Text<'_> {
        Text(text.as_ptr(), PhantomData)
    }

    pub(crate) fn array<T>(items: &[T]) -> Array<'_, T> {
        Array(items.as_ptr(), PhantomData)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_an_error_that_names_the_parameter() {
        let message = |failure: Failure| failure.message;
        assert_eq!(
            message(testing::NULL.required("key").unwrap_err()),
            "`key` is NULL"
        );
        assert_eq!(testing::NULL.optional("key").unwrap(), None);
        assert_eq!(testing::text(c"CPU").required("device").unwrap(), "CPU");
        assert_eq!(
            message(testing::text(c"\xff").required("device").unwrap_err()),
            "`device` is not UTF-8"
        );
        let none = Array::<u8>(std::ptr::null(), PhantomData);
        assert_eq!(none.items(0, "dims").unwrap(), &[0u8; 0]);
        assert_eq!(
            message(none.items(1, "dims").unwrap_err()),
            "`dims` is NULL"
        );
        assert!(testing::array(&[1u64]).items(usize::MAX, "dims").is_err());
        let wide: Vec<wchar_t> = "ä/∂".chars().map(|c| c as wchar_t).chain([0]).collect();
        let wide = WideText(wide.as_ptr(), PhantomData);
        assert_eq!(wide.path("path").unwrap().unwrap(), Path::new("ä/∂"));
    }
}
