//! Inverse sine, cosine and tangent in `f64`. Polynomials are the minimax ones of fdlibm.

use super::words::*;
use crate::build::select;
use crate::ir::Scalar;

/// Inverse sine: `asin(x) = x + x R(x^2)` up to 1/2, above it `π/2 - 2 asin(sqrt((1 - x) / 2))`.
pub(super) fn asin(x: &Scalar) -> Scalar {
    let size = x.abs();
    let is_small = size.lt(c(0.5));
    let z = select(is_small.clone(), x * x, (c(1.0) - &size) * 0.5);
    let r = ratio(&z);
    let small = &size + &size * &r;
    let Root { root, high, rest } = root(&z);
    let quarter = c(HALF_PI.0 / 2.0);
    let large =
        &quarter - ((root * 2.0 * r - (c(HALF_PI.1) - rest * 2.0)) - (&quarter - high * 2.0));
    copy_sign(&select(is_small, small, large), x)
}

/// Inverse cosine: `π/2 - asin(x)` up to 1/2, above it `2 asin(sqrt((1 - x) / 2))`, and
/// `π - acos(-x)` below.
pub(super) fn acos(x: &Scalar) -> Scalar {
    let size = x.abs();
    let is_small = size.lt(c(0.5));
    let z = select(is_small.clone(), x * x, (c(1.0) - &size) * 0.5);
    let r = ratio(&z);
    let small = c(HALF_PI.0) - (x - (c(HALF_PI.1) - x * &r));
    let Root { root, high, rest } = root(&z);
    let negative = (c(HALF_PI.0) - (&root + (&r * &root - HALF_PI.1))) * 2.0;
    let positive = (high + (r * root + rest)) * 2.0;
    select(is_small, small, select(x.lt(c(0.0)), negative, positive))
}

/// The coefficients of `P` for [`atan`].
const ATAN: [f64; 11] = [
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
];

/// Inverse tangent: `atan(x) = atan(b) + atan((x - b) / (1 + b x))` for the nearest of a few `b`,
/// and `atan(t) = t - t^3 P(t^2)`.
pub(super) fn atan(x: &Scalar) -> Scalar {
    let size = x.abs();
    let pick = |values: [Scalar; 5]| {
        let [zero, half, one, three_halves, infinity] = values;
        let upper = select(size.lt(c(39.0 / 16.0)), three_halves, infinity);
        let upper = select(size.lt(c(19.0 / 16.0)), one, upper);
        select(
            size.lt(c(7.0 / 16.0)),
            zero,
            select(size.lt(c(11.0 / 16.0)), half, upper),
        )
    };
    let above = pick([
        size.clone(),
        &size * 2.0 - 1.0,
        &size - 1.0,
        &size - 1.5,
        c(-1.0),
    ]);
    let below = pick([
        c(1.0),
        &size + 2.0,
        &size + 1.0,
        &size * 1.5 + 1.0,
        size.clone(),
    ]);
    let high = pick(
        [
            0.0,
            4.63647609000806093515e-01,
            HALF_PI.0 / 2.0,
            9.82793723247329054082e-01,
            HALF_PI.0,
        ]
        .map(c),
    );
    let low = pick(
        [
            0.0,
            2.26987774529616870924e-17,
            HALF_PI.1 / 2.0,
            1.39033110312309984516e-17,
            HALF_PI.1,
        ]
        .map(c),
    );
    let t = above / below;
    let square = &t * &t;
    let value = high - ((&t * (&square * polynomial(&square, &ATAN)) - low) - t);
    copy_sign(&value, x)
}

/// `(asin(s) - s) / s` for `z = s^2 <= 1/4`.
fn ratio(z: &Scalar) -> Scalar {
    const P: [f64; 6] = [
        1.66666666666666657415e-01,
        -3.25565818622400915405e-01,
        2.01212532134862925881e-01,
        -4.00555345006794114027e-02,
        7.91534994289814532176e-04,
        3.47933107596021167570e-05,
    ];
    const Q: [f64; 5] = [
        1.0,
        -2.40339491173441421878e+00,
        2.02094576023350569471e+00,
        -6.88283971605453293030e-01,
        7.70381505559019352791e-02,
    ];
    z * polynomial(z, &P) / polynomial(z, &Q)
}

/// A square root in two parts: `high + rest`, more exact than `root`.
struct Root {
    root: Scalar,
    high: Scalar,
    rest: Scalar,
}

fn root(z: &Scalar) -> Root {
    let root = z.sqrt();
    let high = chop(&root);
    // Not by zero: the root of zero is exact.
    let rest = (z - &high * &high) / c(f64::MIN_POSITIVE).max(&root + &high);
    Root { root, high, rest }
}
