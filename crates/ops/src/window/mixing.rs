//! Operators that mix elements by weights: the type that they compute in, and what they store.

use vinelift_nest::Scalar;
use vinelift_nest::build::clamp;
use vinelift_tensor::ElementType;
use vinelift_tensor::ElementType::{F32, F64};

/// The type in which elements of `ty` are mixed: `f64` for `f64` and for integers that an `f32` may not hold, `f32` for all others.
pub(super) fn mixing_type(ty: ElementType) -> ElementType {
    match ty.compute() {
        F64 => F64,
        integer if integer.is_integer() && integer.bits() >= 32 => F64,
        _ => F32,
    }
}

/// The float `x` made an integer by `to_integer` and clamped to `ty`, if that is an integer type; else `x`.
pub(super) fn whole(x: Scalar, ty: ElementType, to_integer: fn(&Scalar) -> Scalar) -> Scalar {
    match ty.is_integer() {
        true => clamped(to_integer(&x), ty),
        false => x,
    }
}

/// `x`, which is [whole](whole()) if `ty` is an integer type, as an element of that type.
pub(super) fn stored(x: Scalar, ty: ElementType) -> Scalar {
    x.cast(ty.compute()).cast(ty)
}

/// The float `x`, brought within the integer type `ty`.
fn clamped(x: Scalar, ty: ElementType) -> Scalar {
    let bits = ty.bits() as i32;
    let (low, high) = match ty.is_signed_integer() {
        true => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
        false => (0.0, 2f64.powi(bits)),
    };
    // The largest double that is not above the type's largest number.
    let high = if bits == 64 {
        high.next_down()
    } else {
        high - 1.0
    };
    clamp(x, low, high)
}
