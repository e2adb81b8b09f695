//! Scalars taken apart, where they are of the form that is asked for.

use super::{Binary, Kind, Scalar};

/// Condition, and the values where it holds and where not.
pub(crate) fn as_select(x: &Scalar) -> Option<(&Scalar, &Scalar, &Scalar)> {
    match x.kind() {
        Kind::Select(condition, yes, no) => Some((condition, yes, no)),
        _ => None,
    }
}

/// The operands of an operation.
pub(crate) fn as_binary(op: Binary, x: &Scalar) -> Option<(&Scalar, &Scalar)> {
    match x.kind() {
        Kind::Binary(found, a, b) if *found == op => Some((a, b)),
        _ => None,
    }
}

/// A finite constant, or what is worked out of such.
pub(crate) fn float(x: &Scalar) -> Option<f64> {
    let value = match x.kind() {
        Kind::Const(bits) => f32::from_bits(bits.0 as u32),
        Kind::Binary(op, a, b) => {
            let (a, b) = (float(a)? as f32, float(b)? as f32);
            match op {
                Binary::Sub => a - b,
                Binary::Min => a.min(b),
                Binary::Max => a.max(b),
                _ => return None,
            }
        }
        _ => return None,
    };
    value.is_finite().then_some(f64::from(value))
}
