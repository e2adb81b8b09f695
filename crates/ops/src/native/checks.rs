//! Checks that several native operators make.

use crate::{Infer, OpError};
use vinelift_tensor::{ElementType, TensorError};

/// Input `name` must be of one of the types that indices and lengths have.
pub(super) fn index_type(cx: &Infer<'_>, name: &'static str) -> Result<ElementType, OpError> {
    cx.expect(name, "i32 or i64", |t| {
        matches!(t, ElementType::I32 | ElementType::I64)
    })
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

/// An empty list with room for `count` items; an error if there is no memory for so many.
pub(super) fn room_for<T>(count: usize) -> Result<Vec<T>, OpError> {
    let mut list = Vec::new();
    make_room(&mut list, count)?;
    Ok(list)
}

/// A list of `count` times `item`; an error if there is no memory for so many.
pub(super) fn filled<T: Clone>(count: usize, item: T) -> Result<Vec<T>, OpError> {
    let mut list = room_for(count)?;
    list.resize(count, item);
    Ok(list)
}

/// Room for `count` more items.
pub(super) fn make_room<T>(list: &mut Vec<T>, count: usize) -> Result<(), OpError> {
    let done = list.try_reserve_exact(count);
    let bytes = count.saturating_mul(size_of::<T>());
    done.map_err(|_| TensorError::OutOfMemory { bytes }.into())
}
