//! Powers of floats and of integers.

use super::power_edges::{simple, with_edges};
use super::words::*;
use crate::build::{integer, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// `x^y` of `f64`, as C's `pow` at the edges.
pub(super) fn pow_f64(x: &Scalar, y: &Scalar) -> Scalar {
    simple(x, y).unwrap_or_else(|| with_edges(x, y, exp2_of_product))
}

/// `x^y` of integers, wrapping: the product of those `x^(2^k)` whose bit `k` of `y` is set.
///
/// The power with a negative exponent: the quotient `1 / x^-y` without its fraction; 0 for `x = 0`.
pub(super) fn pow_integer(x: &Scalar, y: &Scalar) -> Scalar {
    let ty = x.ty();
    let one = || integer(1, ty);
    let signed = ty.is_signed_integer();
    let steps = match y.as_const() {
        Some(y) => 64 - y.leading_zeros() as usize,
        None => ty.bits(),
    };
    let (mut product, mut square) = (one(), x.clone());
    for k in 0..steps.min(ty.bits() - usize::from(signed)) {
        if k > 0 {
            square = &square * &square;
        }
        let bit = (y & Scalar::constant(1 << k, ty)).ne(integer(0, ty));
        product = product * select(bit, square.clone(), one());
    }
    if !signed {
        return product;
    }
    let odd = (y & one()).ne(integer(0, ty));
    let of_minus_one = select(
        x.eq(integer(-1, ty)),
        select(odd, integer(-1, ty), one()),
        integer(0, ty),
    );
    let inverse = select(x.eq(one()), one(), of_minus_one);
    select(y.lt(integer(0, ty)), inverse, product)
}

/// `2^(y log2(x))` for positive `x`, with the product in two parts (after fdlibm).
fn exp2_of_product(x: &Scalar, y: &Scalar) -> Scalar {
    let (log_high, log_low) = log2(x);
    let y_high = chop(y);
    let low = (y - &y_high) * &log_high + y * log_low;
    let high = y_high * log_high;
    let z = &low + &high;
    let bounded = clamp(&z, -1100.0, 1100.0);
    let (k, _) = nearest(bounded);
    let power = scale(exp2_fraction(&(high - &k), &low), &k);
    let underflow = select(z.lt(c(-1100.0)), c(0.0), power);
    select(z.gt(c(1100.0)), c(f64::INFINITY), underflow)
}

/// `2^(high + low)` for a sum of at most 1/2 and a bit.
fn exp2_fraction(high: &Scalar, low: &Scalar) -> Scalar {
    const LN_2: f64 = std::f64::consts::LN_2;
    const LN_2_HIGH: f64 = 6.93147182464599609375e-01;
    const LN_2_LOW: f64 = -1.90465429995776804525e-09;
    const P: [f64; 5] = [
        1.66666666666666019037e-01,
        -2.77777777770155933842e-03,
        6.61375632143793436117e-05,
        -1.65339022054652515390e-06,
        4.13813679705723846039e-08,
    ];
    let t = chop(&(low + high));
    let u = &t * LN_2_HIGH;
    let v = (low - (&t - high)) * LN_2 + &t * LN_2_LOW;
    let z = &u + &v;
    let w = v - (&z - u);
    let square = &z * &z;
    let t = &z - &square * polynomial(&square, &P);
    let r = (&z * &t) / (t - 2.0) - (&w + &z * &w);
    c(1.0) - (r - z)
}

/// `log2(x)` of a positive number in two parts, the first of 21 bits.
///
/// `x = 2^n a` with `a` near `b`, which is 1 or 3/2; with `s = (a - b) / (a + b)`,
/// `ln(a / b) = 2 atanh(s) = 2s + 2/3 s^3 + s^5 L(s^2)`.
fn log2(x: &Scalar) -> (Scalar, Scalar) {
    const L: [f64; 6] = [
        5.99999999999994648725e-01,
        4.28571428578550184252e-01,
        3.33333329818377432918e-01,
        2.72728123808534006489e-01,
        2.30660745775561754067e-01,
        2.06975017800338417784e-01,
    ];
    /// `2 / (3 ln 2)`, whole and in two parts.
    const CP: f64 = 9.61796693925975554329e-01;
    const CP_HIGH: f64 = 9.61796700954437255859e-01;
    const CP_LOW: f64 = -7.02846165095275826516e-09;
    /// `log2(3/2)` in two parts.
    const LOG2_HIGH: f64 = 5.84962487220764160156e-01;
    const LOG2_LOW: f64 = 1.35003920212974897128e-08;

    let subnormal = x.lt(c(f64::MIN_POSITIVE));
    let word_of = bits(&select(
        subnormal.clone(),
        x * 18_014_398_509_481_984.0,
        x.clone(),
    ));
    let exponent = (word_of.shr(word(52)) | word(0x4330_0000_0000_0000)).bitcast(F64);
    let exponent =
        exponent - (4_503_599_627_370_496.0 + 1023.0) - select(subnormal, c(54.0), c(0.0));
    let a = ((word_of & word((1 << 52) - 1)) | word(1023 << 52)).bitcast(F64);
    let is_upper = a.ge(c(1.732_050_807_568_877_2));
    let n = exponent + select(is_upper.clone(), c(1.0), c(0.0));
    let a = select(is_upper, &a * 0.5, a);
    let near_3_2 = a.ge(c(1.224_744_871_391_589));
    let pick = |at_3_2: f64, at_1: f64| select(near_3_2.clone(), c(at_3_2), c(at_1));
    let b = pick(1.5, 1.0);

    let (u, v) = (&a - &b, c(1.0) / (&a + &b));
    let s = &u * &v;
    let s_high = chop(&s);
    let t_high = chop(&(&a + &b));
    let t_low = a - (&t_high - b);
    let s_low = v * ((u - &s_high * t_high) - &s_high * t_low);
    let square = &s * &s;
    let r = &square * &square * polynomial(&square, &L) + &s_low * (&s_high + &s);
    let high_square = &s_high * &s_high;
    let t_high = chop(&(&high_square + 3.0 + &r));
    let t_low = r - ((&t_high - 3.0) - high_square);
    let (u, v) = (s_high * &t_high, s_low * t_high + t_low * s);
    let p_high = chop(&(&u + &v));
    let p_low = v - (&p_high - u);
    let z_high = &p_high * CP_HIGH;
    let z_low = p_high * CP_LOW + p_low * CP + pick(LOG2_LOW, 0.0);
    let log_b = pick(LOG2_HIGH, 0.0);
    let high = chop(&(((&z_high + &z_low) + &log_b) + &n));
    let low = z_low - (((&high - n) - log_b) - z_high);
    (high, low)
}
