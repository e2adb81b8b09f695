//! Words for writing definitions, and the parts that several share. All in `f64`, but for polynomials.

use crate::build::{fma, number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// An `f64` constant.
pub(super) fn c(x: f64) -> Scalar {
    number(x, F64)
}

/// A `u64` constant.
pub(super) fn word(x: u64) -> Scalar {
    Scalar::constant(x, U64)
}

/// The bits of an `f64`.
pub(super) fn bits(x: &Scalar) -> Scalar {
    x.clone().bitcast(U64)
}

/// `c[0] + x (c[1] + x (c[2] + …))`, by Horner's rule, in the type of `x`.
pub(super) fn polynomial(x: &Scalar, coefficients: &[f64]) -> Scalar {
    let mut terms = coefficients.iter().rev().map(|&c| number(c, x.ty()));
    let last = terms.next().unwrap_or_else(|| number(0.0, x.ty()));
    terms.fold(last, |sum, c| sum * x + c)
}

/// As [`polynomial`], with every step rounded once.
pub(super) fn fused_polynomial(x: &Scalar, coefficients: &[f64]) -> Scalar {
    let mut terms = coefficients.iter().rev().map(|&c| number(c, x.ty()));
    let last = terms.next().unwrap_or_else(|| number(0.0, x.ty()));
    terms.fold(last, |sum, c| fma(&sum, x, &c))
}

/// `min(max(x, low), high)`, NaN where `x` is.
pub(super) fn clamp(x: &Scalar, low: f64, high: f64) -> Scalar {
    crate::build::clamp(x.clone(), low, high)
}

/// `|magnitude|` with the sign of `sign`.
pub(super) fn copy_sign(magnitude: &Scalar, sign: &Scalar) -> Scalar {
    (bits(&magnitude.abs()) | sign_bit(sign)).bitcast(F64)
}

/// The sign of `x` in its place, all else zero.
pub(super) fn sign_bit(x: &Scalar) -> Scalar {
    bits(x) & word(1 << 63)
}

/// `x` without the lower half of its bits: products of two such numbers are exact.
pub(super) fn chop(x: &Scalar) -> Scalar {
    (bits(x) & word(!0xffff_ffff)).bitcast(F64)
}

/// The integer nearest to `x`, which is below 2^51, and the integer's low bits as those of a word.
pub(super) fn nearest(x: Scalar) -> (Scalar, Scalar) {
    let shifted = x + MAGIC;
    (&shifted - MAGIC, bits(&shifted))
}

/// 1.5 · 2^52: adding it to what is below 2^51 leaves no room for a fraction.
pub(super) const MAGIC: f64 = 6_755_399_441_055_744.0;

/// `y · 2^k` for an integer `k` in -2000..=2000, rounded once: in two steps, of which the first is
/// exact unless the result overflows anyway.
pub(super) fn scale(y: Scalar, k: &Scalar) -> Scalar {
    let (half, half_bits) = nearest(k * 0.5);
    let (_, rest_bits) = nearest(k - half);
    let power = |k_bits: Scalar| (k_bits + word(1023)).shl(word(52)).bitcast(F64);
    y * power(half_bits) * power(rest_bits)
}

/// `a + b` and its rounding error ("TwoSum", Knuth).
pub(super) fn two_sum(a: &Scalar, b: &Scalar) -> (Scalar, Scalar) {
    let sum = a + b;
    let b_part = &sum - a;
    let error = (a - (&sum - &b_part)) + (b - b_part);
    (sum, error)
}

/// `x` where it is so small that the function equals it, which also keeps the sign of zero.
pub(super) fn unless_tiny(x: &Scalar, tiny: f64, value: Scalar) -> Scalar {
    select(x.abs().lt(c(tiny)), x.clone(), value)
}

/// The high and low part of π/2.
pub(super) const HALF_PI: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.12323399573676603587e-17);
/// ln 2 in two parts, the first of 32 bits: its products with exponents are exact.
pub(super) const LN_2: (f64, f64) = (6.93147180369123816490e-01, 1.90821492927058770002e-10);
