//! The variables of a request, which are kept from run to run.

use super::ffi::{Outcome, Text, View, guard};
use super::request::{Each, Request};
use super::view::with_view;
use vinelift::{ElementType, Error};

/// Gives what a variable holds, if it holds something.
///
/// # Safety
/// The text is there; `give` may be called.
pub(crate) unsafe extern "C" fn get_variable(
    request: &Request,
    name: Text,
    give: Each<View>,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { name.to_text() };
        let state = request.state();
        match state.request.variable(&name) {
            // SAFETY: the caller's promise.
            Some(value) => with_view(value, |view| unsafe { give.call(view) }),
            None => Ok(()),
        }
    })
}

/// Sets what a variable holds, to a copy.
///
/// # Safety
/// The texts and the value are there.
pub(crate) unsafe extern "C" fn set_variable(
    request: &Request,
    name: Text,
    element_type: Text,
    value: &View,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let (name, ty) = unsafe { (name.to_text(), element_type.to_text()) };
        let unknown = |error| Error::Input(format!("variable '{name}': {error}"));
        let ty: ElementType = ty.parse().map_err(unknown)?;
        // SAFETY: the caller's promise.
        let own = unsafe { value.copied(ty)? };
        Ok(request.state().request.set_variable(&name, own)?)
    })
}

/// Has a variable hold nothing.
///
/// # Safety
/// The text is there.
pub(crate) unsafe extern "C" fn reset_variable(request: &Request, name: Text) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { name.to_text() };
        request.state().request.reset_variable(&name);
        Ok(())
    })
}
