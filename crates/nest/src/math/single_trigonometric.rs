//! Sine, cosine and tangent of `f32`, of any finite argument, in `f64` and in straight lines: rounded correctly
//! but where `f64` cannot tell.

use super::words::{bits, c, fused_polynomial, word};
use crate::build::{fma, number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// Sine.
pub(super) fn sin(x: &Scalar) -> Scalar {
    let turn = Turn::of(x);
    let value = select(turn.is_even(), turn.sin(), turn.cos());
    unless_zero(x, flip_sign(value, &turn.quadrant).cast(F32))
}

/// Cosine.
pub(super) fn cos(x: &Scalar) -> Scalar {
    let turn = Turn::of(x);
    let value = select(turn.is_even(), turn.cos(), turn.sin());
    flip_sign(value, &(&turn.quadrant + word(1))).cast(F32)
}

/// Tangent.
pub(super) fn tan(x: &Scalar) -> Scalar {
    let turn = Turn::of(x);
    let (sin, cos) = (turn.sin(), turn.cos());
    let above = select(turn.is_even(), sin.clone(), -cos.clone());
    let below = select(turn.is_even(), cos, sin);
    unless_zero(x, (above / below).cast(F32))
}

/// Keeps the sign of zero.
fn unless_zero(x: &Scalar, value: Scalar) -> Scalar {
    select(x.eq(number(0.0, F32)), x.clone(), value)
}

/// Negates `value` if bit 1 of `quadrant` is set.
fn flip_sign(value: Scalar, quadrant: &Scalar) -> Scalar {
    (bits(&value) ^ (quadrant & word(2)).shl(word(62))).bitcast(F64)
}

/// An angle as `quadrant / 4 + rest` turns, but for whole turns, with `|rest| <= 1/8`. The quadrant counts
/// modulo 4, and may have other bits set above.
struct Turn {
    quadrant: Scalar,
    rest: Scalar,
    square: Scalar,
}

/// 1 / 2π in parts of 29 bits, whose products with an `f32` of 24 bits are exact, and what these lack, which is of
/// bits that are below 2⁻²⁰ times the largest `f32`.
const INVERSE_PARTS: [f64; 5] = [
    0.15915494272485375,
    3.6704158115630214e-10,
    5.690025167992954e-19,
    1.4703036846932608e-27,
    2.5867171752090537e-36,
];
const INVERSE_REST: f64 = 9.458140970740169e-46;

impl Turn {
    /// `x / 2π` by parts, each without its whole turns, which is exact.
    ///
    /// The quadrant is that nearest to their sum. Taken off first, it leaves sums that are exact, or no larger than the rest by
    /// far: a part that is larger than the rest has no bits below the 53rd from that part's first. No `f32` is nearer to a
    /// multiple of a quarter than 2⁻³³ turns. Infinities give NaN.
    fn of(x: &Scalar) -> Turn {
        /// Adding it leaves no room for less than a quarter.
        const MAGIC: f64 = 1_688_849_860_263_936.0;
        let x = x.clone().cast(F64);
        let [first, others @ ..] = INVERSE_PARTS.map(|part| {
            let turns = &x * part;
            &turns - turns.round()
        });
        let sum = others.iter().fold(first.clone(), |sum, part| sum + part);
        let shifted = sum + MAGIC;
        let rest = others
            .iter()
            .fold(first - (&shifted - MAGIC), |sum, part| sum + part);
        let rest = fma(&x, &c(INVERSE_REST), &rest);
        Turn {
            quadrant: bits(&shifted),
            square: &rest * &rest,
            rest,
        }
    }

    fn is_even(&self) -> Scalar {
        (&self.quadrant & word(1)).eq(word(0))
    }

    /// The sine of the rest; the polynomial is fitted for the least relative error, 2⁻³⁷.
    fn sin(&self) -> Scalar {
        const P: [f64; 5] = [
            6.283185307150989,
            -41.3417021505175,
            81.60520379315565,
            -76.69777249286957,
            41.46983086556035,
        ];
        &self.rest * fused_polynomial(&self.square, &P)
    }

    /// The cosine of the rest; the polynomial is fitted for the least relative error, 2⁻⁴³.
    fn cos(&self) -> Scalar {
        const P: [f64; 6] = [
            0.9999999999999343,
            -19.739208801890864,
            64.93939381533166,
            -85.45676209251245,
            60.23797688481035,
            -26.05285827428561,
        ];
        fused_polynomial(&self.square, &P)
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::Unary;
    use crate::math::tests::{distance_f32, f32s};

    /// Those `f32` are nearest that round from multiples computed in `f64`, and their neighbours.
    #[test]
    fn next_to_multiples_of_a_quarter_turn() {
        let multiples = (0..20_000u32)
            .chain((0..31).map(|k| 1 << k))
            .chain((0..31).map(|k| 3 << k));
        let near = multiples.flat_map(|k| {
            let x = (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32;
            [x, x.next_up(), x.next_down(), -x]
        });
        check(&near.collect::<Vec<f32>>());
    }

    #[test]
    fn numbers_of_every_exponent() {
        let numbers = (0u32..=254).flat_map(|exponent| {
            (0..400u32)
                .map(move |k| f32::from_bits(exponent << 23 | k.wrapping_mul(20_971) & 0x7f_ffff))
        });
        check(&numbers.chain([f32::MAX, f32::MIN]).collect::<Vec<f32>>());
    }

    /// The standard library's functions of `f64` reduce any argument exactly.
    fn check(xs: &[f32]) {
        type Reference = fn(f64) -> f64;
        let functions: [(Unary, Reference); 3] = [
            (Unary::Sin, f64::sin),
            (Unary::Cos, f64::cos),
            (Unary::Tan, f64::tan),
        ];
        for (op, reference) in functions {
            for (x, y) in xs.iter().zip(f32s(op, xs)) {
                let distance = distance_f32(y, reference((*x).into()));
                assert!(distance <= 0.5002, "{op:?}({x:e}) is {y:e}: {distance}");
            }
        }
    }

    #[test]
    fn zeros_and_what_is_no_number() {
        for op in [Unary::Sin, Unary::Tan] {
            let found: Vec<u32> = f32s(op, &[0.0, -0.0])
                .into_iter()
                .map(f32::to_bits)
                .collect();
            assert_eq!(found, [0.0f32, -0.0].map(f32::to_bits));
        }
        assert_eq!(f32s(Unary::Cos, &[0.0, -0.0]), [1.0, 1.0]);
        for op in [Unary::Sin, Unary::Cos, Unary::Tan] {
            let found = f32s(op, &[f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
            assert!(found.iter().all(|y| y.is_nan()), "{op:?}");
        }
    }
}
