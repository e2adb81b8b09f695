//! Hyperbolic functions and their inverses in `f64`, by exponentials and logarithms.

use super::exponential::{exp_scaled, expm1, log1p};
use super::words::*;
use crate::build::select;
use crate::ir::Scalar;

/// `sinh(x) = (t + t / (t + 1)) / 2` with `t = e^|x| - 1`, and `e^|x| / 2` where that is as exact.
pub(super) fn sinh(x: &Scalar) -> Scalar {
    let size = x.abs();
    let t = expm1(&size);
    let small = (&t + &t / (&t + 1.0)) * 0.5;
    let value = select(size.lt(c(22.0)), small, exp_scaled(&size, -1.0));
    unless_tiny(x, TINY, copy_sign(&value, x))
}

/// `cosh(x) = h + 1 / (4 h)` with `h = e^|x| / 2`.
pub(super) fn cosh(x: &Scalar) -> Scalar {
    let half = exp_scaled(&x.abs(), -1.0);
    &half + c(0.25) / &half
}

/// `tanh(x) = -t / (t + 2)` with `t = e^(-2|x|) - 1`, above 1 as `1 - 2 / (t + 2)` with
/// `t = e^(2|x|) - 1`.
pub(super) fn tanh(x: &Scalar) -> Scalar {
    let size = x.abs();
    let is_small = size.lt(c(1.0));
    let t = expm1(&(size * select(is_small.clone(), c(-2.0), c(2.0))));
    let below = &t + 2.0;
    let value = select(is_small, t / &below, c(1.0) - c(2.0) / below);
    unless_tiny(x, TINY, copy_sign(&value, x))
}

/// `asinh(x) = ln(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))`, and `ln |x| + ln 2` for huge `x`.
pub(super) fn asinh(x: &Scalar) -> Scalar {
    let size = x.abs();
    let square = x * x;
    let argument = &size + &square / ((&square + 1.0).sqrt() + 1.0);
    unless_tiny(x, TINY, copy_sign(&log1p_or_huge(&size, argument), x))
}

/// `acosh(x) = ln(1 + t + sqrt(2 t + t^2))` with `t = x - 1`, and `ln x + ln 2` for huge `x`.
pub(super) fn acosh(x: &Scalar) -> Scalar {
    let t = x - 1.0;
    let argument = &t + (&t * (&t + 2.0)).sqrt();
    select(x.lt(c(1.0)), c(f64::NAN), log1p_or_huge(x, argument))
}

/// `atanh(x) = ln(1 + 2x / (1 - x)) / 2`, the quotient of a small `x` as `2x + 2x x / (1 - x)`.
pub(super) fn atanh(x: &Scalar) -> Scalar {
    let size = x.abs();
    let (twice, rest) = (&size * 2.0, c(1.0) - &size);
    let small = &twice + &twice * &size / &rest;
    let argument = select(size.lt(c(0.5)), small, twice / rest);
    unless_tiny(x, TINY, copy_sign(&(log1p(&argument) * 0.5), x))
}

/// 2^-28: the square is below half a unit in the last place.
const TINY: f64 = 1.0 / 268_435_456.0;

/// `log1p(argument)`, or `ln x + ln 2` where the square of `x` might overflow and `log1p` is the
/// logarithm.
fn log1p_or_huge(x: &Scalar, argument: Scalar) -> Scalar {
    let is_huge = x.gt(c(2f64.powi(500)));
    let offset = select(is_huge.clone(), c(std::f64::consts::LN_2), c(0.0));
    log1p(&select(is_huge, x.clone(), argument)) + offset
}
