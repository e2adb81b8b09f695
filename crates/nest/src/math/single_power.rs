//! Powers of `f32`.

use super::exponential::split;
use super::power_edges::{root, simple, with_edges};
use super::words::{bits, c, clamp, fused_polynomial, nearest, word};
use crate::build::{fma, number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// `x^y` of `f32`.
pub(super) fn pow(x: &Scalar, y: &Scalar) -> Scalar {
    let exponent = y.as_const().map(|bits| f32::from_bits(bits as u32));
    match (simple(x, y), exponent) {
        (Some(simple), _) => simple,
        (None, Some(y)) if y.is_finite() => pow_constant(x, y.into()),
        _ => pow_varying(x, y),
    }
}

/// `x^y` in `f64`, of which the rounding to `f32` leaves a correctly rounded result but where `f64` cannot tell.
fn pow_varying(x: &Scalar, y: &Scalar) -> Scalar {
    let (x, y) = (x.clone().cast(F64), y.clone().cast(F64));
    with_edges(&x, &y, power).cast(F32)
}

/// `x^y` for a constant finite `y` other than 0.
fn pow_constant(x: &Scalar, y: f64) -> Scalar {
    if y.fract() == 0.0 && (2.0..=7.0).contains(&y.abs()) {
        return product(x, y);
    }
    if (y * 4.0).fract() == 0.0 && y.abs() < 2.0 {
        return product_of_roots(x, y);
    }
    let (zero, infinity) = (number(0.0, F32), number(f64::INFINITY, F32));
    let size = x.abs();
    // Of zero, infinity and NaN.
    let at_ends = match y > 0.0 {
        true => size.clone(),
        false => number(1.0, F32) / &size,
    };
    if y.fract() != 0.0 {
        let inside = x.gt(zero.clone()) & x.lt(infinity.clone());
        let no_number = x.lt(zero) & x.gt(-infinity);
        let outside = select(no_number, number(f64::NAN, F32), at_ends);
        return select(
            inside,
            power(&x.clone().cast(F64), &c(y)).cast(F32),
            outside,
        );
    }
    let inside = size.gt(zero) & size.lt(infinity);
    let regular = power(&size.cast(F64), &c(y)).cast(F32);
    let magnitude = select(inside, regular, at_ends);
    match (y * 0.5).fract() == 0.0 {
        true => magnitude,
        false => {
            let sign = x.clone().bitcast(U32) & Scalar::constant(1 << 31, U32);
            (magnitude.bitcast(U32) | sign).bitcast(F32)
        }
    }
}

/// The power with a whole exponent of at most 7, in `f64`, where no product that matters leaves the range.
fn product(x: &Scalar, y: f64) -> Scalar {
    let x = x.clone().cast(F64);
    let exponent = y.abs() as u32;
    let (mut product, mut square) = (None, x);
    for k in 0..exponent.ilog2() + 1 {
        if k > 0 {
            square = &square * &square;
        }
        if exponent >> k & 1 == 1 {
            product = Some(match product {
                Some(product) => product * &square,
                None => square.clone(),
            });
        }
    }
    let product = product.unwrap_or_else(|| c(1.0));
    let power = if y > 0.0 { product } else { c(1.0) / product };
    power.cast(F32)
}

/// The power with an exponent that is a multiple of a quarter below 2, within 4 units in the last place: a whole part, of which
/// no power leaves the range before the result does, and square roots.
fn product_of_roots(x: &Scalar, y: f64) -> Scalar {
    let one = || number(1.0, F32);
    let root = root(x);
    let roots = match (y.abs() * 4.0) as u32 % 4 {
        1 => root.sqrt(),
        2 => root,
        _ => root.sqrt() * root,
    };
    let size = x.abs();
    match (y > 0.0, y.abs() > 1.0) {
        (true, true) => size * roots,
        (true, false) => roots,
        (false, true) => one() / size / roots,
        (false, false) => one() / roots,
    }
}

/// `2^(y log2(x))` for a normal positive `x`, within 2⁻³³ of it if it is a normal `f32`.
fn power(x: &Scalar, y: &Scalar) -> Scalar {
    exp2(&clamp(&(log2(x) * y), -160.0, 160.0))
}

/// `2^k 2^r` for the nearest `k`; the polynomial is fitted for the least relative error, 2⁻³⁴.
fn exp2(x: &Scalar) -> Scalar {
    const P: [f64; 8] = [
        0.9999999999616257,
        0.693147180728769,
        0.24022651198763664,
        0.05550410352712824,
        0.009618027171354633,
        0.0013333922933043388,
        0.00015469317728865253,
        1.520188603242346e-05,
    ];
    let (k, k_bits) = nearest(x.clone());
    let fraction = fused_polynomial(&(x - k), &P);
    (bits(&fraction) + k_bits.shl(word(52))).bitcast(F64)
}

/// `log2(2^k (1 + f)) = k + s P(s²)` with `s = f / (2 + f)` and `ln(1 + f) = 2 atanh(s)`; the polynomial is fitted for the
/// least relative error, 2⁻⁴⁵.
fn log2(x: &Scalar) -> Scalar {
    const P: [f64; 6] = [
        2.8853900817778495,
        0.9617966941142595,
        0.577077942074736,
        0.4122092838779623,
        0.3199043221052746,
        0.28292090595468833,
    ];
    let (k, f) = split(x);
    let s = &f / (&f + 2.0);
    let square = &s * &s;
    fma(&s, &fused_polynomial(&square, &P), &k)
}

#[cfg(test)]
mod tests {
    use crate::interpret::tests::map;
    use crate::ir::Scalar;
    use crate::math::tests::distance_f32;
    use vinelift_tensor::ElementType::F32;

    /// The worst of `x^y` with `y` a constant, over `xs`, in units in the last place.
    fn worst(xs: &[f32], y: f32) -> f64 {
        let bits: Vec<u64> = xs.iter().map(|x| x.to_bits().into()).collect();
        let exponent = || Scalar::constant(y.to_bits().into(), F32);
        let found = map([(F32, &bits)], |[x]| x.pow(exponent()));
        let of = |(x, z): (&f32, u64)| {
            let expected = f64::from(*x).powf(y.into());
            distance_f32(f32::from_bits(z as u32), expected)
        };
        xs.iter().zip(found).map(of).fold(0.0, f64::max)
    }

    /// Positive numbers of every exponent, and some below zero.
    fn numbers() -> Vec<f32> {
        let positive = (1u32..255 << 23).step_by(50_021).map(f32::from_bits);
        let negative = (0..100).map(|k| -0.37 * k as f32);
        positive.chain(negative).collect()
    }

    #[test]
    fn constant_exponents() {
        let xs = numbers();
        for y in [
            2.3,
            -2.3,
            0.1,
            1.0 / 3.0,
            17.7,
            -33.3,
            1e-3,
            1000.5,
            -1e6,
            9.0,
            -8.0,
            1e30,
        ] {
            let worst = worst(&xs, y);
            assert!(worst <= 0.501, "{y}: {worst}");
        }
    }

    #[test]
    fn exponents_of_few_products() {
        let xs = numbers();
        for y in [4.0, 5.0, 6.0, 7.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0] {
            let worst = worst(&xs, y);
            assert!(worst <= 0.501, "{y}: {worst}");
        }
    }

    #[test]
    fn exponents_of_roots() {
        let xs = numbers();
        for y in [
            0.25, 0.75, 1.25, 1.5, 1.75, -0.25, -0.75, -1.25, -1.5, -1.75,
        ] {
            let worst = worst(&xs, y);
            assert!(worst <= 4.0, "{y}: {worst}");
        }
    }

    #[test]
    fn exponents_that_vary() {
        let xs = numbers();
        let ys: Vec<f32> = (0..xs.len())
            .map(|k| (k as f32 * 0.618).sin() * 20.0)
            .collect();
        let [x_bits, y_bits] =
            [&xs, &ys].map(|of| of.iter().map(|x| x.to_bits().into()).collect::<Vec<u64>>());
        let found = map([(F32, &x_bits), (F32, &y_bits)], |[x, y]| x.pow(y));
        for ((x, y), z) in xs.iter().zip(&ys).zip(found) {
            let expected = f64::from(*x).powf((*y).into());
            let distance = distance_f32(f32::from_bits(z as u32), expected);
            assert!(distance <= 0.501, "{x:e} ^ {y}: {distance}");
        }
    }
}
