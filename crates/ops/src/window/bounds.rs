//! The numbers that an integer type holds.

use vinelift_nest::Scalar;
use vinelift_nest::build::clamp;
use vinelift_tensor::ElementType;

/// The float `x`, brought within the integer type `ty`.
pub(super) fn clamped(x: Scalar, ty: ElementType) -> Scalar {
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
