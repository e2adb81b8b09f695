//! The functions of `f32` that networks spend their time in, in `f32` itself: lanes of `f64` are
//! half as many. Within 4 units in the last place of an `f32`, subnormal results included; `tanh` and
//! `erf` within 6.

use super::words::{clamp, fused_polynomial, two_sum};
use crate::build::{fma, number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// Of `e^r = 1 + r + r² P(r)` for `|r| <= ln(2) / 2`, by Cephes.
const EXP_TAIL: [f64; 6] = [
    5.0000001201e-1,
    1.6666665459e-1,
    4.1665795894e-2,
    8.3334519073e-3,
    1.3981999507e-3,
    1.9875691500e-4,
];

/// `(1.5 · 2^23 + k, r)` with `x = k ln 2 + r` (Cody–Waite).
fn nearest_power(x: &Scalar) -> (Scalar, Scalar) {
    let shifted = fma(x, &c(std::f64::consts::LOG2_E), &c(MAGIC));
    let k = &shifted - MAGIC;
    let r = fma(&k, &c(-LN_2.1), &fma(&k, &c(-LN_2.0), x));
    (shifted, r)
}

/// Adding it leaves no room for a fraction.
const MAGIC: f64 = 12_582_912.0;

/// `e^x = 2^k e^r` with `x = k ln 2 + r`.
pub(super) fn exp(x: &Scalar) -> Scalar {
    // Below, `k` would be less than -151.
    let x = clamp(x, -104.7, 89.0);
    let (shifted, r) = nearest_power(&x);
    let y = fma(
        &fma(&fused_polynomial(&r, &EXP_TAIL), &r, &c(1.0)),
        &r,
        &c(1.0),
    );
    // By two powers of two, so that what overflows or becomes subnormal does so by the second. For tiny results the first is
    // `2^(k + 24)`, and 0 for the least `k`: a product that is rounded to 0 takes some processors a hundred cycles.
    let is_tiny = x.lt(c(-86.0));
    let offset = select(
        is_tiny.clone(),
        word((127 + 24) << 23),
        word((127 - 1) << 23),
    );
    let factor = select(is_tiny, c(2f64.powi(-24)), c(2.0));
    y * (bits(&shifted).shl(word(23)) + offset).bitcast(F32) * factor
}

/// `e^x - 1 = 2^k (e^r - 1) + (2^k - 1)` with `x = k ln 2 + r`, of which half is computed, as `2^k` may overflow.
pub(super) fn expm1(x: &Scalar) -> Scalar {
    // Below, it is -1.
    let near = clamp(x, -27.0, 89.0);
    let (shifted, r) = nearest_power(&near);
    let part = fma(&(&r * &r), &fused_polynomial(&r, &EXP_TAIL), &r);
    let half_power = (bits(&shifted).shl(word(23)) + word(126 << 23)).bitcast(F32);
    let value = fma(&part, &half_power, &(&half_power - 0.5)) * 2.0;
    // Which also keeps the sign of zero.
    select(x.abs().lt(c(2f64.powi(-25))), x.clone(), value)
}

/// Natural logarithm.
pub(super) fn log(x: &Scalar) -> Scalar {
    let subnormal = x.lt(c(f64::from(f32::MIN_POSITIVE)));
    let normal = select(subnormal.clone(), x * 33_554_432.0, x.clone());
    let (k, f) = split(&normal);
    let k = k - select(subnormal, c(25.0), c(0.0));
    special_logs(x, 0.0, log_parts(&k, &f, &c(0.0)))
}

/// `ln(1 + x)`: the logarithm of the rounded sum `u`, and the rest of the sum over `u`.
pub(super) fn log1p(x: &Scalar) -> Scalar {
    let (u, rest) = two_sum(&c(1.0), x);
    let (k, f) = split(&u);
    let value = special_logs(x, -1.0, log_parts(&k, &f, &(rest / u)));
    // Which also keeps the sign of zero.
    select(x.abs().lt(c(2f64.powi(-26))), x.clone(), value)
}

/// `ln(1 + x)` for `0 <= x <= 1`: `2 atanh(s)` with `s = x / (2 + x)`; the polynomial in `s^2 <= 1/9` is fitted
/// for the least relative error.
pub(super) fn log1p_of_part(x: &Scalar) -> Scalar {
    const P: [f64; 4] = [
        0.3333320656131912,
        0.20010849856439186,
        0.1399956465684846,
        0.1401226076399823,
    ];
    let s = x / (x + 2.0);
    let square = &s * &s;
    let double = &s + s.clone();
    fma(
        &(&double * &square),
        &fused_polynomial(&square, &P),
        &double,
    )
}

/// `(k, f)` with `x = 2^k (1 + f)` and `sqrt(1/2) <= 1 + f < sqrt(2)`, for a normal positive `x`.
fn split(x: &Scalar) -> (Scalar, Scalar) {
    const ONE: u32 = 0x3f80_0000;
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let shifted = bits(x) + word(ONE - SQRT_HALF);
    // An exponent in the low bits of 2^23 adds to it.
    let k = (shifted.shr(word(23)) | word(0x4b00_0000)).bitcast(F32) - (8_388_608.0 + 127.0);
    let f = ((shifted & word(0x007f_ffff)) + word(SQRT_HALF)).bitcast(F32) - 1.0;
    (k, f)
}

/// `ln(2^k (1 + f)) + rest = k ln 2 + f - f^2 / 2 + f^3 P(f) + rest` for a small rest; the polynomial
/// is that of Cephes.
fn log_parts(k: &Scalar, f: &Scalar, rest: &Scalar) -> Scalar {
    const P: [f64; 9] = [
        3.3333331174e-1,
        -2.4999993993e-1,
        2.0000714765e-1,
        -1.6668057665e-1,
        1.4249322787e-1,
        -1.2420140846e-1,
        1.1676998740e-1,
        -1.1514610310e-1,
        7.0376836292e-2,
    ];
    let square = f * f;
    let tail = fma(
        &(&square * f),
        &fused_polynomial(f, &P),
        &fma(k, &c(LN_2.1), rest),
    );
    let near = fma(&square, &c(-0.5), &tail) + f;
    fma(k, &c(LN_2.0), &near)
}

/// The value of a logarithm, but of the ends of its domain `zero..inf`, what is outside, and NaN.
fn special_logs(x: &Scalar, zero: f64, value: Scalar) -> Scalar {
    let inside = x.gt(c(zero)) & x.lt(c(f64::INFINITY));
    let below = select(x.lt(c(zero)), c(f64::NAN), x.clone());
    let outside = select(x.eq(c(zero)), c(f64::NEG_INFINITY), below);
    select(inside, value, outside)
}

/// `x P(x^2) / Q(x^2)`, fitted for the least relative error; from 9.02 on it is 1.
pub(super) fn tanh(x: &Scalar) -> Scalar {
    const P: [f64; 7] = [
        0.9999999933,
        0.1308315475,
        0.003102998524,
        1.114421557e-05,
        -2.018374779e-08,
        5.257647798e-11,
        -8.435655846e-14,
    ];
    const Q: [f64; 4] = [1.0, 0.4641648173, 0.02449137099, 0.0002544746394];
    odd_quotient(x, 9.02, &P, &Q)
}

/// `x P(x^2) / Q(x^2)`, fitted for the least relative error; from 3.95 on it is 1.
pub(super) fn erf(x: &Scalar) -> Scalar {
    const P: [f64; 6] = [
        1.128379144,
        0.1915401233,
        0.05287387526,
        0.003807663058,
        0.0002846666231,
        2.025859181e-06,
    ];
    const Q: [f64; 6] = [
        1.0,
        0.5030806932,
        0.1145552108,
        0.01505409907,
        0.00117058633,
        3.783018336e-05,
    ];
    odd_quotient(x, 3.95, &P, &Q)
}

/// `x p(x^2) / q(x^2)` up to `limit`, never above 1, and 1 from there on.
fn odd_quotient(x: &Scalar, limit: f64, p: &[f64], q: &[f64]) -> Scalar {
    let near = clamp(x, -limit, limit);
    let square = &near * &near;
    let quotient = &near * fused_polynomial(&square, p) / fused_polynomial(&square, q);
    let quotient = clamp(&quotient, -1.0, 1.0);
    let quotient = select(x.ge(c(limit)), c(1.0), quotient);
    select(x.le(c(-limit)), c(-1.0), quotient)
}

/// ln 2 in two parts, the first of 9 bits: its products with exponents are exact.
const LN_2: (f64, f64) = (0.693359375, -2.12194440e-4);

fn c(x: f64) -> Scalar {
    number(x, F32)
}

fn word(x: u32) -> Scalar {
    Scalar::constant(x.into(), U32)
}

fn bits(x: &Scalar) -> Scalar {
    x.clone().bitcast(U32)
}
