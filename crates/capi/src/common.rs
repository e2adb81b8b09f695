//! `ov_common.h`: element types, texts of statuses, freeing of texts.

use crate::ffi::{Out, Required};
use crate::last_error::last_message;
use crate::memory;
use crate::status::{Failure, Result, guard_or};
use libc::c_char;
use vinelift::ElementType;

/// `ov_element_type_e`, as a number: a C program may pass any.
pub(crate) type ElementCode = u32;

/// Element types by their numbers, from 1 on. 0 is a type that is not known.
const ELEMENT_TYPES: [ElementType; 25] = [
    ElementType::Boolean,
    ElementType::BF16,
    ElementType::F16,
    ElementType::F32,
    ElementType::F64,
    ElementType::I4,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::U1,
    ElementType::U2,
    ElementType::U3,
    ElementType::U4,
    ElementType::U6,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::NF4,
    ElementType::F8E4M3,
    ElementType::F8E5M2,
    ElementType::String,
    ElementType::F4E2M1,
    ElementType::F8E8M0,
];

pub(crate) fn element_code(element_type: ElementType) -> ElementCode {
    let position = ELEMENT_TYPES.iter().position(|ty| *ty == element_type);
    position.map_or(0, |k| k as ElementCode + 1)
}

pub(crate) fn element_type(code: ElementCode) -> Result<ElementType> {
    let position = (code as usize).checked_sub(1);
    let found = position.and_then(|k| ELEMENT_TYPES.get(k).copied());
    found.ok_or_else(|| match code {
        0 => Failure::argument("the element type is dynamic, expected one that is known"),
        _ => Failure::argument(format!("there is no element type {code}")),
    })
}

/// The meaning of a status, a text that must not be freed.
#[unsafe(no_mangle)]
extern "C" fn ov_get_error_info(status: i32) -> *const c_char {
    let text = match status {
        0 => c"success",
        -1 => c"general error",
        -2 => c"not implemented",
        -3 => c"the model is not loaded",
        -4 => c"a parameter does not fit",
        -5 => c"not found",
        -6 => c"out of bounds",
        -7 => c"unexpected error",
        -8 => c"the request is busy",
        -9 => c"the result is not ready",
        -10 => c"not allocated",
        -11 => c"inference was not started",
        -12 => c"the model is not read",
        -13 => c"inference was cancelled",
        -14 => c"invalid parameter",
        -15 => c"unknown error",
        -16 => c"a function that is not implemented",
        _ => c"unknown exception",
    };
    text.as_ptr()
}

/// Frees a text that a function of this library returned.
///
/// # Safety
/// The text comes from this library, from a function that says so, or is `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_free(content: *const c_char) {
    // SAFETY: the caller's promise; all such texts come from `memory`.
    unsafe { memory::release(content) }
}

/// The message of the last failure in this thread, a copy to be freed with `ov_free`; `NULL` if there
/// was none. It may be called wherever a thread runs code, also in what it or the process calls when it ends
/// (destructors of thread keys, `atexit`): there the message is cut after 1023 bytes.
#[unsafe(no_mangle)]
extern "C" fn ov_get_last_err_msg() -> *const c_char {
    guard_or(std::ptr::null(), || match last_message().as_str() {
        "" => Ok(std::ptr::null()),
        message => Ok(memory::copy_text(message)?.cast_const()),
    })
}

/// Writes a copy of `text` for the caller.
pub(crate) fn give_text(out: Out<'_, *mut c_char>, name: &str, text: &str) -> Result<()> {
    out.required(name)?.write(memory::copy_text(text)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_the_numbers_of_the_header() {
        for (k, ty) in ELEMENT_TYPES.into_iter().enumerate() {
            assert_eq!(element_type(k as u32 + 1).unwrap(), ty);
            assert_eq!(element_code(ty), k as u32 + 1);
        }
        let number = |ty| element_code(ty);
        assert_eq!(number(ElementType::F32), 4);
        assert_eq!(number(ElementType::U8), 16);
        assert_eq!(number(ElementType::String), 23);
        assert_eq!(ElementType::ALL.len(), ELEMENT_TYPES.len());
        assert!(element_type(0).unwrap_err().message.contains("dynamic"));
        assert_eq!(
            element_type(26).unwrap_err().message,
            "there is no element type 26"
        );
    }
}
