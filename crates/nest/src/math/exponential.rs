//! Exponentials and logarithms in `f64`.
//!
//! Reductions are those of Cody and Waite; polynomials are the minimax ones of fdlibm.

use super::words::*;
use crate::build::{number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// `e^x`
pub(super) fn exp(x: &Scalar) -> Scalar {
    exp_scaled(x, 0.0)
}

/// `e^x 2^shift`, which may be finite where `e^x` is not.
///
/// `x = k ln 2 + r` with `|r| <= ln 2 / 2`, and `e^r = 1 + 2r / (R - r)` where
/// `R = r (e^r + 1) / (e^r - 1) = 2 + P(r^2)`.
pub(super) fn exp_scaled(x: &Scalar, shift: f64) -> Scalar {
    const P: [f64; 5] = [
        1.66666666666666019037e-01,
        -2.77777777770155933842e-03,
        6.61375632143793436117e-05,
        -1.65339022054652515390e-06,
        4.13813679705723846039e-08,
    ];
    let x = clamp(x, -800.0, 800.0);
    let (k, _) = nearest(&x * std::f64::consts::LOG2_E);
    let (high, low) = (&x - &k * LN_2.0, &k * LN_2.1);
    let r = &high - &low;
    let square = &r * &r;
    let t = &r - &square * polynomial(&square, &P);
    let y = (&r * &t / (c(2.0) - t) - low + high) + 1.0;
    scale(y, &(k + shift))
}

/// `e^x - 1`
///
/// With `x = k ln 2 + r` as for [`exp`], `e^r - 1 = r - e` where `e` is found as exactly as the
/// reduction allows, and `e^x - 1 = 2^k (r + (1 - 2^-k) - e)`.
pub(super) fn expm1(x: &Scalar) -> Scalar {
    const Q: [f64; 6] = [
        1.0,
        -3.33333333333331316428e-02,
        1.58730158725481460165e-03,
        -7.93650757867487942473e-05,
        4.00821782732936239552e-06,
        -2.01099218183624371326e-07,
    ];
    let arg = clamp(x, -40.0, 720.0);
    let (k, _) = nearest(&arg * std::f64::consts::LOG2_E);
    let (high, low) = (&arg - &k * LN_2.0, &k * LN_2.1);
    let r = &high - &low;
    let lost = (high - &r) - low;
    let half = &r * 0.5;
    let half_square = &r * &half;
    let q = polynomial(&half_square, &Q);
    let t = c(3.0) - &q * half;
    let e = &half_square * ((q - &t) / (c(6.0) - &r * t));
    let e = (&r * (e - &lost) - lost) - half_square;
    // Beyond 60 the 1 is lost in the rounding.
    let (_, inverse_bits) = nearest(-number(60.0, F64).min(k.clone()));
    let inverse = (inverse_bits + word(1023)).shl(word(52)).bitcast(F64);
    let (sum, error) = two_sum(&r, &(c(1.0) - inverse));
    unless_tiny(x, f64::EPSILON / 4.0, scale(sum - (e - error), &k))
}

/// Natural logarithm.
pub(super) fn log(x: &Scalar) -> Scalar {
    let subnormal = x.lt(c(f64::MIN_POSITIVE));
    let scaled = select(subnormal.clone(), x * TWO_54, x.clone());
    let (k, f) = split(&scaled);
    let value = log_parts(k - select(subnormal, c(54.0), c(0.0)), &f, &c(0.0));
    special_logs(x, 0.0, value)
}

/// `ln(1 + x)`: the logarithm of the rounded sum `u`, and the rest of the sum over `u`.
pub(super) fn log1p(x: &Scalar) -> Scalar {
    let (u, rest) = two_sum(&c(1.0), x);
    let (k, f) = split(&u);
    let value = log_parts(k, &f, &(rest / u));
    unless_tiny(x, f64::EPSILON / 4.0, special_logs(x, -1.0, value))
}

const TWO_54: f64 = 18_014_398_509_481_984.0;

/// `(k, f)` with `x = 2^k (1 + f)` and `sqrt(1/2) <= 1 + f < sqrt(2)`, for a normal positive `x`.
pub(super) fn split(x: &Scalar) -> (Scalar, Scalar) {
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let shifted = bits(x) + word(ONE - SQRT_HALF);
    // An exponent in the low bits of 2^52 adds to it.
    let k =
        (shifted.shr(word(52)) | word(TWO_52)).bitcast(F64) - (4_503_599_627_370_496.0 + 1023.0);
    let mantissa = ((shifted & word((1 << 52) - 1)) + word(SQRT_HALF)).bitcast(F64);
    (k, mantissa - 1.0)
}

/// `ln(2^k (1 + f)) + rest` for a small rest.
///
/// With `s = f / (2 + f)`: `ln(1 + f) = 2 atanh(s) = f - f^2 / 2 + s (f^2 / 2 + R(s^2))`.
fn log_parts(k: Scalar, f: &Scalar, rest: &Scalar) -> Scalar {
    const R: [f64; 7] = [
        6.666666666666735130e-01,
        3.999999999940941908e-01,
        2.857142874366239149e-01,
        2.222219843214978396e-01,
        1.818357216161805012e-01,
        1.531383769920937332e-01,
        1.479819860511658591e-01,
    ];
    let s = f / (f + 2.0);
    let square = &s * &s;
    let half_square = f * f * 0.5;
    let r = &square * polynomial(&square, &R);
    s * (&half_square + r) + (&k * LN_2.1 + rest) - half_square + f + k * LN_2.0
}

/// The value of a logarithm, but of the ends of its domain `zero..inf`, what is outside, and NaN.
fn special_logs(x: &Scalar, zero: f64, value: Scalar) -> Scalar {
    let inside = x.gt(c(zero)) & x.lt(c(f64::INFINITY));
    let below = select(x.lt(c(zero)), c(f64::NAN), x.clone());
    select(
        inside,
        value,
        select(x.eq(c(zero)), c(f64::NEG_INFINITY), below),
    )
}
