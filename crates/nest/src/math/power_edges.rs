//! Simple exponents, and the edges of C's `pow`, for powers of `f32` and `f64`.

use super::words::{bits, c, clamp, sign_bit, word};
use crate::build::{number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// Constant exponents whose power is a few operations, and as exact.
pub(super) fn simple(x: &Scalar, y: &Scalar) -> Option<Scalar> {
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
