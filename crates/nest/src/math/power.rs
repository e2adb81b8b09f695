//! Powers of floats and of integers.

use super::single_power;
use super::words::*;
use crate::build::{integer, number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// `x^y` of `f64`, as C's `pow` at the edges.
pub(super) fn pow_f64(x: &Scalar, y: &Scalar) -> Scalar {
    simple(x, y).unwrap_or_else(|| with_edges(x, y, exp2_of_product))
}

/// `x^y` of `f32`.
pub(super) fn pow_f32(x: &Scalar, y: &Scalar) -> Scalar {
    let exponent = y.as_const().map(|bits| f32::from_bits(bits as u32));
    match (simple(x, y), exponent) {
        (Some(simple), _) => simple,
        (None, Some(y)) if y.is_finite() => single_power::pow_constant(x, y.into()),
        _ => single_power::pow(x, y),
    }
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

/// Constant exponents whose power is a few operations, and as exact.
fn simple(x: &Scalar, y: &Scalar) -> Option<Scalar> {
    let y = match (y.ty(), y.as_const()?) {
        (F32, bits) => f64::from(f32::from_bits(bits as u32)),
        (_, bits) => f64::from_bits(bits),
    };
    let one = || number(1.0, x.ty());
    Some(match y {
        0.0 => one(),
        1.0 => x.clone(),
        2.0 => x * x,
        3.0 => x * x * x,
        0.5 => root(x),
        -0.5 => one() / root(x),
        -1.0 => one() / x,
        _ => return None,
    })
}

/// `x^(1/2)`: of -inf it is inf, not NaN, and of -0 it is 0.
pub(super) fn root(x: &Scalar) -> Scalar {
    let infinity = number(f64::INFINITY, x.ty());
    select(x.eq(-infinity.clone()), infinity, (x + 0.0).sqrt())
}

/// The edges of `pow`, and the sign; `power` is that of a normal positive number and an exponent of
/// at most 2^70, which over- or underflows as a larger one would.
pub(super) fn with_edges(
    x: &Scalar,
    y: &Scalar,
    power: impl Fn(&Scalar, &Scalar) -> Scalar,
) -> Scalar {
    let (zero, one, infinity) = (c(0.0), c(1.0), c(f64::INFINITY));
    let size = x.abs();
    let regular = power(&size, &clamp(y, -TWO_70, TWO_70));
    let ends = select(
        size.eq(infinity.clone()) ^ y.lt(zero.clone()),
        infinity.clone(),
        zero.clone(),
    );
    let at_an_end = size.eq(zero.clone()) | size.eq(infinity.clone());
    let magnitude = select(at_an_end, ends, regular);
    let is_integer = |y: &Scalar| y.trunc().eq(y.clone());
    let is_odd = is_integer(y) & !is_integer(&(y * 0.5));
    let sign = select(is_odd, sign_bit(x), word(0));
    let signed = (bits(&magnitude) | sign).bitcast(F64);
    let no_number = x.lt(zero.clone()) & size.lt(infinity) & !is_integer(y);
    let is_nan = x.ne(x.clone()) | y.ne(y.clone());
    let general = select(no_number | is_nan, c(f64::NAN), signed);
    select(y.eq(zero) | x.eq(one.clone()), one, general)
}

const TWO_70: f64 = 1_180_591_620_717_411_303_424.0;

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
