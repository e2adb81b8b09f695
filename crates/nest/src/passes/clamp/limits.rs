//! Limits that others make needless: those of an activation, and of the rounding after it.
//!
//! > `max(0, min(6, max(0, x)))` is `min(6, max(0, x))`, and `min(highs[c], min(6, x))` is `min(highs[c], x)` if all `highs` are at
//! > most 6.

use crate::ir::{Binary, Buffer, Kind, Role, Scalar, as_binary, float};
use vinelift_tensor::ElementType::F32;

/// `x`, a minimum or maximum, without a limit that changes nothing; `None` if there is none.
pub(super) fn without_needless(buffers: &[Buffer], x: &Scalar) -> Option<Scalar> {
    let Kind::Binary(op @ (Binary::Max | Binary::Min), limit, inner) = x.kind() else {
        return None;
    };
    if x.ty() != F32 {
        return None;
    }
    let is_within = |inner: f64, outer: f64| match op {
        Binary::Max => inner >= outer,
        _ => inner <= outer,
    };
    let loosest = loosest(buffers, limit, *op)?;
    if let (Some(limit), Some(bound)) = (float(limit), bound(inner, *op))
        && is_within(bound, limit)
    {
        return Some(inner.clone());
    }
    let (wider, unlimited) = as_binary(*op, inner)?;
    let is_needless = float(wider).is_some_and(|wider| is_within(loosest, wider));
    is_needless.then(|| Scalar::binary(*op, limit.clone(), unlimited.clone()))
}

/// `x` without its outermost limits of one kind.
pub(super) fn unlimited(x: &Scalar, end: Binary) -> &Scalar {
    match as_binary(end, x) {
        Some((limit, inner)) if float(limit).is_some() => unlimited(inner, end),
        _ => x,
    }
}

/// The number that `x` is at least (`Max`) or at most (`Min`) if it is not NaN, where an activation before makes it so.
pub(super) fn bound(x: &Scalar, end: Binary) -> Option<f64> {
    let Kind::Binary(op @ (Binary::Max | Binary::Min), limit, inner) = x.kind() else {
        return None;
    };
    let limit = float(limit).filter(|limit| !limit.is_nan())?;
    let inner = bound(inner, end);
    match (*op == end, end) {
        (true, Binary::Max) => Some(inner.map_or(limit, |inner| inner.max(limit))),
        (true, _) => Some(inner.map_or(limit, |inner| inner.min(limit))),
        (false, Binary::Max) => inner.map(|inner| inner.min(limit)),
        (false, _) => inner.map(|inner| inner.max(limit)),
    }
}

/// The least of the limits from below (`Max`), or the largest of those from above (`Min`), that a constant or the elements of a table
/// are; `None` if one is NaN.
fn loosest(buffers: &[Buffer], limit: &Scalar, end: Binary) -> Option<f64> {
    let Kind::Load { buffer, .. } = limit.kind() else {
        return float(limit).filter(|limit| !limit.is_nan());
    };
    let Role::Table(bytes) = &buffers[buffer.0 as usize].role else {
        return None;
    };
    let (numbers, _) = bytes.as_chunks::<4>();
    let numbers = numbers.iter().map(|x| f64::from(f32::from_le_bytes(*x)));
    let looser = |a: f64, b: f64| match end {
        Binary::Max => a.min(b),
        _ => a.max(b),
    };
    let are_numbers = !numbers.clone().any(f64::is_nan);
    numbers.reduce(looser).filter(|_| are_numbers)
}
