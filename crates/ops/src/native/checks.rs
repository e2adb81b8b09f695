//! Checks that several native operators make.

use super::real::is_real;
use crate::{Infer, OpError};
use vinelift_tensor::ElementType;

/// Input `name` must be of one of the types that indices and lengths have.
pub(super) fn index_type(cx: &Infer<'_>, name: &'static str) -> Result<ElementType, OpError> {
    cx.expect(name, "i32 or i64", |t| {
        matches!(t, ElementType::I32 | ElementType::I64)
    })
}

/// The element type of input `name`, which must be a float type that operators compute on.
pub(super) fn real_type(cx: &Infer<'_>, name: &'static str) -> Result<ElementType, OpError> {
    cx.expect(name, "f16, bf16, f32 or f64", is_real)
}

/// The value of the attribute `name`, which says of what type an output of integers is.
pub(super) fn output_type(name: &str, ty: ElementType) -> Result<ElementType, OpError> {
    match ty {
        ElementType::I32 | ElementType::I64 => Ok(ty),
        _ => Err(OpError::Shape(format!(
            "`{name}` must be i32 or i64, found {ty}"
        ))),
    }
}
