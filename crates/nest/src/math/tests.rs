//! Against the functions of the standard library, or series where it has none, over all magnitudes.

use crate::interpret::tests::map;
use crate::ir::{Binary, Scalar, Unary};
use vinelift_tensor::ElementType::*;

/// `op` of all `xs`.
fn f64s(op: Unary, xs: &[f64]) -> Vec<f64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits()).collect();
    map([(F64, &bits)], |[x]| Scalar::unary(op, x))
        .into_iter()
        .map(f64::from_bits)
        .collect()
}

pub(super) fn f32s(op: Unary, xs: &[f32]) -> Vec<f32> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits().into()).collect();
    map([(F32, &bits)], |[x]| Scalar::unary(op, x))
        .into_iter()
        .map(|y| f32::from_bits(y as u32))
        .collect()
}

fn pow_f64(pairs: &[(f64, f64)]) -> Vec<f64> {
    let (xs, ys): (Vec<u64>, Vec<u64>) = pairs
        .iter()
        .map(|(x, y)| (x.to_bits(), y.to_bits()))
        .unzip();
    let pow = |[x, y]: [Scalar; 2]| Scalar::binary(Binary::Pow, x, y);
    map([(F64, &xs), (F64, &ys)], pow)
        .into_iter()
        .map(f64::from_bits)
        .collect()
}

/// Pseudo-random bits (SplitMix64).
pub(super) fn random(count: usize) -> impl Iterator<Item = u64> {
    (1..=count as u64).map(|k| {
        let z = k.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// Numbers of every magnitude, more of those between 2^-8 and 2^8, and the edges.
fn samples() -> Vec<f64> {
    let edges = [
        0.0,
        1.0,
        0.5,
        2.0,
        f64::MIN_POSITIVE,
        5e-324,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        709.78,
        745.2,
    ];
    let edges = edges.into_iter().flat_map(|x| [x, -x]);
    let anywhere = random(8_000).map(f64::from_bits);
    let near_one = random(40_000)
        .map(|bits| f64::from_bits(bits & !(0x7ff << 52) | (1015 + (bits >> 52) % 16) << 52));
    edges.chain(anywhere).chain(near_one).collect()
}

/// How many `f64` lie between two, at most.
fn distance(got: f64, expected: f64) -> f64 {
    if got.is_nan() || expected.is_nan() || got.is_infinite() || expected.is_infinite() {
        return if got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let ordered = |x: f64| {
        if x.is_sign_negative() {
            i64::MIN - x.to_bits() as i64
        } else {
            x.to_bits() as i64
        }
    };
    ordered(got).abs_diff(ordered(expected)) as f64
}

/// Units in the last place of an `f32` between a number and the exact one.
pub(super) fn distance_f32(got: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if got.is_nan() || rounded.is_nan() || got.is_infinite() || rounded.is_infinite() {
        return if got == rounded || got.is_nan() && rounded.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let unit = f64::from(rounded.abs().next_up()) - f64::from(rounded.abs());
    (f64::from(got) - expected).abs() / unit
}

const FUNCTIONS: [(Unary, f64); 17] = [
    (Unary::Exp, 2.0),
    (Unary::Expm1, 2.0),
    (Unary::Log, 2.0),
    (Unary::Log1p, 2.0),
    (Unary::Sin, 2.0),
    (Unary::Cos, 2.0),
    (Unary::Tan, 3.0),
    (Unary::Asin, 2.0),
    (Unary::Acos, 2.0),
    (Unary::Atan, 2.0),
    (Unary::Sinh, 3.0),
    (Unary::Cosh, 3.0),
    (Unary::Tanh, 3.0),
    (Unary::Asinh, 4.0),
    (Unary::Acosh, 4.0),
    (Unary::Atanh, 4.0),
    (Unary::Erf, 6.0),
];

fn reference(op: Unary) -> fn(f64) -> f64 {
    match op {
        Unary::Exp => f64::exp,
        Unary::Expm1 => f64::exp_m1,
        Unary::Log => f64::ln,
        Unary::Log1p => f64::ln_1p,
        Unary::Sin => f64::sin,
        Unary::Cos => f64::cos,
        Unary::Tan => f64::tan,
        Unary::Asin => f64::asin,
        Unary::Acos => f64::acos,
        Unary::Atan => f64::atan,
        Unary::Sinh => f64::sinh,
        Unary::Cosh => f64::cosh,
        Unary::Tanh => f64::tanh,
        Unary::Asinh => |x| {
            if x.abs() > 1e150 {
                (x.abs().ln() + std::f64::consts::LN_2).copysign(x)
            } else {
                x.asinh()
            }
        },
        Unary::Acosh => |x| {
            if x < 1e150 {
                2.0 * ((x - 1.0) / 2.0).sqrt().asinh()
            } else {
                x.ln() + std::f64::consts::LN_2
            }
        },
        Unary::Atanh => |x| (0.5 * (2.0 * x.abs() / (1.0 - x.abs())).ln_1p()).copysign(x),
        _ => erf,
    }
}

/// By its series of positive terms, or the continued fraction of its complement.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 || x.abs() > 7.0 {
        return if x.abs() > 7.0 { x.signum() } else { x };
    }
    let size = x.abs();
    let scale = (-size * size).exp() / std::f64::consts::PI.sqrt();
    let value = if size < 1.8 {
        let terms = (0..200).scan(2.0 * size, |term, n| {
            let this = *term;
            *term *= 2.0 * size * size / (2 * n + 3) as f64;
            Some(this)
        });
        scale * terms.collect::<Vec<_>>().into_iter().rev().sum::<f64>()
    } else {
        1.0 - scale
            / (1..200)
                .rev()
                .fold(size, |tail, n| size + f64::from(n) / 2.0 / tail)
    };
    value.copysign(x)
}

#[test]
fn doubles_are_within_bounds_everywhere() {
    let xs = samples();
    for (op, bound) in FUNCTIONS {
        let reference = reference(op);
        for (&x, y) in xs.iter().zip(f64s(op, &xs)) {
            let expected = reference(x);
            let distance = distance(y, expected);
            assert!(
                distance <= bound,
                "{op:?}({x:e}) is {y:e}, expected {expected:e}: {distance}"
            );
            assert!(
                y.is_nan() || y.is_sign_negative() == expected.is_sign_negative(),
                "sign of {op:?}({x:e}) = {y:e}"
            );
        }
    }
}

#[test]
fn floats_are_within_a_unit_everywhere() {
    let strided = (0..=u32::MAX).step_by(130_367).map(f32::from_bits);
    let xs: Vec<f32> = strided
        .chain(samples().into_iter().map(|x| x as f32))
        .collect();
    for (op, _) in FUNCTIONS {
        let (reference, bound) = (reference(op), bound_f32(op));
        for (&x, y) in xs.iter().zip(f32s(op, &xs)) {
            let expected = reference(x.into());
            let distance = distance_f32(y, expected);
            assert!(
                distance <= bound,
                "{op:?}({x:e}) is {y:e}, expected {expected:e}: {distance}"
            );
            let same_sign = y.is_sign_negative() == expected.is_sign_negative();
            assert!(y.is_nan() || same_sign, "sign of {op:?}({x:e}) = {y:e}");
        }
    }
}

/// Functions that are evaluated in `f64` round correctly, but for ties that `f64` cannot tell.
fn bound_f32(op: Unary) -> f64 {
    match op {
        Unary::Exp | Unary::Expm1 | Unary::Log | Unary::Log1p => 4.0,
        Unary::Tanh | Unary::Erf => 6.0,
        _ => 0.501,
    }
}

#[test]
fn arguments_of_any_size_are_reduced() {
    // From the table of worst cases of Ng, "Argument Reduction for Huge Arguments", and by mpmath.
    let cases = [
        (Unary::Sin, 1e22, -0.852_200_849_767_188_8),
        (Unary::Cos, 1e22, 0.523_214_785_395_138_9),
        (Unary::Sin, 6381956970095103.0 * 2f64.powi(797), 1.0),
        (
            Unary::Cos,
            6381956970095103.0 * 2f64.powi(797),
            -4.687_165_924_254_627_6e-19,
        ),
        (Unary::Sin, f64::MAX, 0.004_961_954_789_184_062),
        (Unary::Tan, f64::MAX, -0.004_962_015_874_444_895),
    ];
    for (op, x, expected) in cases {
        let got = f64s(op, &[x])[0];
        assert!(
            distance(got, expected) <= 1.0,
            "{op:?}({x:e}) is {got:e}, expected {expected:e}"
        );
    }
}

#[test]
fn powers_of_doubles() {
    let pairs: Vec<(f64, f64)> = samples()
        .into_iter()
        .zip(random(60_000))
        .map(|(x, bits)| {
            let y = f64::from_bits(bits & !(0x7ff << 52) | (1010 + (bits >> 52) % 24) << 52);
            (
                if bits & 3 == 0 { x } else { x.abs() },
                if bits & 7 == 0 { y.trunc() } else { y },
            )
        })
        .collect();
    for (&(x, y), z) in pairs.iter().zip(pow_f64(&pairs)) {
        let expected = x.powf(y);
        assert!(
            distance(z, expected) <= 2.0,
            "{x:e} ^ {y:e} is {z:e}, expected {expected:e}"
        );
    }
}

#[test]
fn edges_of_powers() {
    let values = [
        0.0,
        0.5,
        1.0,
        2.0,
        3.0,
        1e300,
        5e-324,
        f64::INFINITY,
        f64::NAN,
        1.0 + f64::EPSILON,
        4503599627370497.0,
    ];
    let values = values.into_iter().flat_map(|x| [x, -x]).collect::<Vec<_>>();
    let pairs: Vec<(f64, f64)> = values
        .iter()
        .flat_map(|&x| values.iter().map(move |&y| (x, y)))
        .collect();
    for (&(x, y), z) in pairs.iter().zip(pow_f64(&pairs)) {
        let expected = x.powf(y);
        assert!(
            distance(z, expected) <= 1.0,
            "{x:e} ^ {y:e} is {z:e}, expected {expected:e}"
        );
    }
    let bits: Vec<u64> = values
        .iter()
        .map(|&x| u64::from((x as f32).to_bits()))
        .collect();
    for &y in &values {
        // With the exponent a constant, and not.
        let y = y as f32;
        let constant = map([(F32, &bits)], |[x]| {
            x.pow(Scalar::constant(y.to_bits().into(), F32))
        });
        let ys = vec![u64::from(y.to_bits()); bits.len()];
        let general = map([(F32, &bits), (F32, &ys)], |[x, y]| x.pow(y));
        for ((&x, constant), general) in values.iter().zip(constant).zip(general) {
            let expected = (x as f32).powf(y);
            for z in [constant, general].map(|z| f32::from_bits(z as u32)) {
                assert!(
                    distance_f32(z, expected.into()) <= 1.0,
                    "{x:e} ^ {y:e} is {z:e}, expected {expected:e}"
                );
                assert!(
                    z.is_nan() || z.is_sign_negative() == expected.is_sign_negative(),
                    "sign of {x:e} ^ {y:e}"
                );
            }
        }
    }
}

#[test]
fn powers_of_integers() {
    let pairs: [(i64, i64); 10] = [
        (3, 4),
        (-2, 63),
        (2, 64),
        (7, 0),
        (0, 0),
        (0, -1),
        (1, -5),
        (-1, -5),
        (-1, -4),
        (2, -1),
    ];
    let expected = [81, i64::MIN, 0, 1, 1, 0, 1, -1, 1, 0];
    let (xs, ys): (Vec<u64>, Vec<u64>) = pairs.iter().map(|&(x, y)| (x as u64, y as u64)).unzip();
    let got = map([(I64, &xs), (I64, &ys)], |[x, y]| x.pow(y));
    assert_eq!(got, expected.map(|x: i64| x as u64));
    for ((x, y), expected) in pairs.into_iter().zip(expected) {
        assert_eq!(
            map([(I64, &[x as u64])], |[x]| x.pow(crate::build::index(y))),
            [expected as u64],
            "{x} ^ {y}"
        );
    }
    assert_eq!(
        map([(U8, &[3, 2, 255]), (U8, &[6, 8, 255])], |[x, y]| x.pow(y)),
        [729 % 256, 0, 255]
    );
}

/// `ln(1 + e^-|x|)`, whose argument is from 0 to 1.
#[test]
fn a_logarithm_of_one_and_a_part_has_a_shorter_definition() {
    let xs: Vec<f32> = samples().into_iter().map(|x| x as f32).collect();
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits().into()).collect();
    let found = map([(F32, &bits)], |[x]| {
        Scalar::unary(Unary::Log1p, (-x.abs()).exp())
    });
    for (x, got) in xs.iter().zip(found) {
        let got = f64::from(f32::from_bits(got as u32));
        let power = (-f64::from(*x).abs()).exp();
        let want = power.ln_1p();
        // Of the power and of the logarithm.
        let allowed = (want * 6.0 * f64::from(f32::EPSILON)).max(f64::from(f32::from_bits(2)));
        let near = (got - want).abs() <= allowed;
        assert!(
            near || got.is_nan() && want.is_nan(),
            "of {x:e}: {got:e}, not {want:e}"
        );
    }
}
