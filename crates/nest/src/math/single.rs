//! The functions of `f32` that networks spend their time in, in `f32` itself: lanes of `f64` are
//! half as many. Within 4 units in the last place of an `f32`, subnormal results included.

use super::words::{clamp, polynomial};
use crate::build::{number, select};
use crate::scalar::Scalar;
use vinelift_tensor::ElementType::*;

/// `e^x = 2^k e^r` with `x = k ln 2 + r` (Cody–Waite); the polynomial is that of Cephes.
pub(super) fn exp(x: &Scalar) -> Scalar {
    const P: [f64; 6] = [
        5.0000001201e-1,
        1.6666665459e-1,
        4.1665795894e-2,
        8.3334519073e-3,
        1.3981999507e-3,
        1.9875691500e-4,
    ];
    let x = clamp(x, -104.0, 89.0);
    let (k, _) = nearest(&x * std::f64::consts::LOG2_E);
    let r = x - &k * LN_2.0 - &k * LN_2.1;
    let y = &r * &r * polynomial(&r, &P) + r + 1.0;
    // In two steps, of which the first is exact: one power may be out of range.
    let (half, half_bits) = nearest(&k * 0.5);
    let (_, rest_bits) = nearest(k - half);
    y * power_of_two(half_bits) * power_of_two(rest_bits)
}

/// `ln(2^k (1 + f)) = k ln 2 + f - f^2 / 2 + f^3 P(f)`; the polynomial is that of Cephes.
pub(super) fn log(x: &Scalar) -> Scalar {
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
    const ONE: u32 = 0x3f80_0000;
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let subnormal = x.lt(c(f64::from(f32::MIN_POSITIVE)));
    let normal = select(subnormal.clone(), x * 33_554_432.0, x.clone());
    let shifted = bits(&normal) + word(ONE - SQRT_HALF);
    // An exponent in the low bits of 2^23 adds to it.
    let k = (shifted.shr(word(23)) | word(0x4b00_0000)).bitcast(F32) - (8_388_608.0 + 127.0);
    let k = k - select(subnormal, c(25.0), c(0.0));
    let f = ((shifted & word(0x007f_ffff)) + word(SQRT_HALF)).bitcast(F32) - 1.0;
    let square = &f * &f;
    let tail = &square * &f * polynomial(&f, &P) + &k * LN_2.1;
    let value = tail - square * 0.5 + f + k * LN_2.0;
    let inside = x.gt(c(0.0)) & x.lt(c(f64::INFINITY));
    let below = select(x.lt(c(0.0)), c(f64::NAN), x.clone());
    select(
        inside,
        value,
        select(x.eq(c(0.0)), c(f64::NEG_INFINITY), below),
    )
}

/// `1 - 2 / (e^(2|x|) + 1)`, and `x + x^3 P(x^2)` below 0.625; the polynomial is that of Cephes.
pub(super) fn tanh(x: &Scalar) -> Scalar {
    const P: [f64; 5] = [
        -3.33332819422e-1,
        1.33314422036e-1,
        -5.37397155531e-2,
        2.06390887954e-2,
        -5.70498872745e-3,
    ];
    let size = x.abs();
    let square = x * x;
    let small = &size + &size * &square * polynomial(&square, &P);
    let large = c(1.0) - c(2.0) / (exp(&(&size * 2.0)) + 1.0);
    copy_sign(&select(size.lt(c(0.625)), small, large), x)
}

/// `1 - e^(-|x| + |x| Q(|x|))`, and `x + x P(x^2)` below 0.93; the polynomials are those of Juffa.
pub(super) fn erf(x: &Scalar) -> Scalar {
    const P: [f64; 6] = [
        1.28379166e-1,
        -3.76125336e-1,
        1.12819925e-1,
        -2.67681349e-2,
        4.99119423e-3,
        -5.96761703e-4,
    ];
    const Q: [f64; 7] = [
        -1.28717512e-1,
        -6.34846687e-1,
        -1.06777877e-1,
        2.42546219e-2,
        -3.88396438e-3,
        3.83197126e-4,
        -1.72853470e-5,
    ];
    let size = x.abs();
    let square = x * x;
    let small = &size + &size * polynomial(&square, &P);
    // From 4 on it is 1.
    let t = clamp(&size, 0.0, 4.0);
    let q = polynomial(&t, &Q);
    let large = c(1.0) - exp(&(&t * q - &t));
    copy_sign(&select(size.lt(c(0.927734375)), small, large), x)
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

fn copy_sign(magnitude: &Scalar, sign: &Scalar) -> Scalar {
    ((bits(magnitude) & word(0x7fff_ffff)) | (bits(sign) & word(0x8000_0000))).bitcast(F32)
}

/// The integer nearest to `x`, which is below 2^22, and the integer's low bits as those of a word.
fn nearest(x: Scalar) -> (Scalar, Scalar) {
    const MAGIC: f64 = 12_582_912.0;
    let shifted = x + MAGIC;
    (&shifted - MAGIC, bits(&shifted))
}

fn power_of_two(k_bits: Scalar) -> Scalar {
    (k_bits + word(127)).shl(word(23)).bitcast(F32)
}
