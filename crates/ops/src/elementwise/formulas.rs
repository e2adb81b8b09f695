//! The formulas of elementwise operators that are more than a scalar's own operation.

use vinelift_nest::build::{integer, number, select, zero};
use vinelift_nest::{Scalar, Unary};
use vinelift_tensor::ElementType::{F32, F64};

/// `f(x)` of a float, `x` itself if it is an integer.
pub(super) fn of_float(x: &[Scalar], f: impl FnOnce(&Scalar) -> Scalar) -> Scalar {
    if x[0].ty().is_integer() {
        x[0].clone()
    } else {
        f(&x[0])
    }
}

/// `f(x)`; of an integer, truncated.
pub(super) fn truncated(f: Unary, x: &[Scalar]) -> Scalar {
    through_float(x, |x| Scalar::unary(f, x))
}

/// `f(x)`; of an integer, rounded to the nearest.
pub(super) fn rounded(f: Unary, x: &[Scalar]) -> Scalar {
    if x[0].ty().is_float() {
        return Scalar::unary(f, x[0].clone());
    }
    through_float(x, |x| Scalar::unary(f, x).round())
}

fn through_float(x: &[Scalar], f: impl FnOnce(Scalar) -> Scalar) -> Scalar {
    let ty = x[0].ty();
    let float = match ty {
        _ if ty.is_float() => ty,
        _ if ty.bits() <= 16 => F32,
        _ => F64,
    };
    f(x[0].clone().cast(float)).cast(ty)
}

/// `1 / (1 + e^-x)`
pub(crate) fn sigmoid(x: &Scalar) -> Scalar {
    number(1.0, x.ty()) / ((-x.clone()).exp() + 1.0)
}

/// `ln(1 + e^x)`, as `max(x, 0) + ln(1 + e^-|x|)`, which does not overflow.
pub(super) fn soft_plus(x: &Scalar) -> Scalar {
    let rest = Scalar::unary(Unary::Log1p, (-x.abs()).exp());
    number(0.0, x.ty()).max(x.clone()) + rest
}

/// `x / (1 + |x|)`
pub(super) fn soft_sign(x: &Scalar) -> Scalar {
    x / (x.abs() + 1.0)
}

/// `x · tanh(ln(1 + e^x))`. With `e = e^-|x|` that is a ratio of polynomials without overflow:
/// `(1 + 2e) / (1 + 2e + 2e²)` for positive `x`, `(e² + 2e) / (e² + 2e + 2)` for others.
pub(super) fn mish(x: &Scalar) -> Scalar {
    let e = (-x.abs()).exp();
    let (twice, squared) = (&e * 2.0, square(e));
    let positive = (&twice + 1.0) / (&twice + &squared * 2.0 + 1.0);
    let negative = (&twice + &squared) / (&twice + &squared + 2.0);
    x * select(x.gt(number(0.0, x.ty())), positive, negative)
}

/// -1, 0 or 1; NaN for NaN.
pub(super) fn sign(x: &Scalar) -> Scalar {
    let of = |n| integer(n, x.ty());
    if x.ty().is_unsigned_integer() {
        return x.min(of(1));
    }
    select(x.gt(of(0)), of(1), select(x.lt(of(0)), of(-1), x.clone()))
}

/// The remainder with the sign of the divisor.
pub(super) fn floor_mod(a: &Scalar, b: &Scalar) -> Scalar {
    let rest = a.rem(b.clone());
    if a.ty().is_unsigned_integer() {
        return rest;
    }
    select(signs_differ(&rest, b), &rest + b, rest)
}

/// Whether one is negative and the other positive, which asks for a correction from truncation to
/// flooring; `rest` is a remainder by `b`.
pub(super) fn signs_differ(rest: &Scalar, b: &Scalar) -> Scalar {
    let zero = || zero(b.ty());
    rest.ne(zero()) & rest.lt(zero()).ne(b.lt(zero()))
}

pub(super) fn square(x: Scalar) -> Scalar {
    &x * &x
}

pub(super) fn infinity(x: &Scalar) -> Scalar {
    number(f64::INFINITY, x.ty())
}

/// `y` with `erf(y) = x`, in `f64`: Winitzki's approximation (S. Winitzki, "A handy approximation
/// for the error function and its inverse", 2008), off by 2·10⁻³ at most, and two of Halley's steps.
pub(super) fn erf_inv(x: &Scalar) -> Scalar {
    const A: f64 = 0.147;
    let ty = x.ty();
    let x = x.clone().cast(F64);
    let log = Scalar::unary(Unary::Log1p, -square(x.clone()));
    let t = &log / 2.0 + 2.0 / (std::f64::consts::PI * A);
    let scaled = &log / -A;
    let root = (&square(t.clone()) + &scaled).sqrt();
    let guess = (scaled / (root + &t)).sqrt();
    let mut y = select(x.lt(number(0.0, F64)), -guess.clone(), guess);
    for _ in 0..2 {
        // e = (erf(y) - x) / erf'(y), erf''(y) = -2y·erf'(y)
        let slope = (-square(y.clone())).exp() * std::f64::consts::FRAC_2_SQRT_PI;
        let e = (y.erf() - &x) / slope;
        y = &y - &e / (&y * &e + 1.0);
    }
    let ends = x.abs().eq(number(1.0, F64));
    select(ends, &x * f64::INFINITY, y).cast(ty)
}
