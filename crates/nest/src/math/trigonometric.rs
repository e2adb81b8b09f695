//! Sine, cosine and tangent in `f64`, of any finite argument.
//!
//! The argument less the nearest multiple of π/2 is found as a sum of two numbers, of more than 53
//! bits: below 2^20 π/2 with π/2 in parts whose products are exact (Cody–Waite), above it with those
//! bits of 2/π that matter (Payne–Hanek). Polynomials are the minimax ones of fdlibm.

use super::words::*;
use crate::build::{index, select};
use crate::ir::{Binary, BufferId, Scalar};
use vinelift_tensor::ElementType::*;

/// Sine; `table` are the [`TWO_OVER_PI`].
pub(super) fn sin(x: &Scalar, table: BufferId) -> Scalar {
    let value = by_size(x, table, |r| {
        let value = select(r.is_odd(), r.cos(), r.sin());
        flip_sign(value, &r.quadrant)
    });
    unless_tiny(x, TINY, value)
}

/// Cosine.
pub(super) fn cos(x: &Scalar, table: BufferId) -> Scalar {
    by_size(x, table, |r| {
        let value = select(r.is_odd(), r.sin(), r.cos());
        flip_sign(value, &(&r.quadrant + word(1)))
    })
}

/// Tangent.
pub(super) fn tan(x: &Scalar, table: BufferId) -> Scalar {
    let value = by_size(x, table, |r| {
        let (sin, cos) = (r.sin(), r.cos());
        let above = select(r.is_odd(), -cos.clone(), sin.clone());
        above / select(r.is_odd(), sin, cos)
    });
    unless_tiny(x, TINY, value)
}

/// The bits of 2/π after the binary point, behind a word of zeros.
pub(super) const TWO_OVER_PI: [u64; 20] = [
    0x0000_0000_0000_0000,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// 2^-27: the cube is below half a unit in the last place.
const TINY: f64 = 1.0 / 134_217_728.0;

/// `f` of the reduced argument. One select of all: its sides are two loops' worth of code.
fn by_size(x: &Scalar, table: BufferId, f: impl Fn(Reduced) -> Scalar) -> Scalar {
    const LIMIT: f64 = 1_647_099.0;
    let size = x.abs();
    let large = select(
        size.lt(c(f64::INFINITY)),
        f(reduce_large(x, table)),
        c(f64::NAN),
    );
    select(size.lt(c(LIMIT)), f(reduce_medium(x)), large)
}

/// Negates `value` if bit 1 of `quadrant` is set.
fn flip_sign(value: Scalar, quadrant: &Scalar) -> Scalar {
    (bits(&value) ^ (quadrant & word(2)).shl(word(62))).bitcast(F64)
}

/// An argument as `quadrant · π/2 + r + rest`, with `|r| <= π/4`. The quadrant counts modulo 4, and
/// may have other bits set above.
struct Reduced {
    quadrant: Scalar,
    r: Scalar,
    rest: Scalar,
}

impl Reduced {
    fn is_odd(&self) -> Scalar {
        (&self.quadrant & word(1)).ne(word(0))
    }

    /// `sin(r + rest)`
    fn sin(&self) -> Scalar {
        const S1: f64 = -1.66666666666666324348e-01;
        const S: [f64; 5] = [
            8.33333333332248946124e-03,
            -1.98412698298579493134e-04,
            2.75573137070700676789e-06,
            -2.50507602534068634195e-08,
            1.58969099521155010221e-10,
        ];
        let (r, rest) = (&self.r, &self.rest);
        let square = r * r;
        let cube = &square * r;
        let tail = polynomial(&square, &S);
        r - ((&square * (rest * 0.5 - &cube * tail) - rest) - cube * S1)
    }

    /// `cos(r + rest)`
    fn cos(&self) -> Scalar {
        const C: [f64; 6] = [
            4.16666666666666019037e-02,
            -1.38888888888741095749e-03,
            2.48015872894767294178e-05,
            -2.75573143513906633035e-07,
            2.08757232129817482790e-09,
            -1.13596475577881948265e-11,
        ];
        let (r, rest) = (&self.r, &self.rest);
        let square = r * r;
        let half = &square * 0.5;
        let w = c(1.0) - &half;
        let tail = &square * &square * polynomial(&square, &C) - r * rest;
        &w + (((c(1.0) - &w) - half) + tail)
    }
}

/// π/2 in three parts of 33 bits, whose products with quadrants below 2^20 are exact, and the rest.
fn reduce_medium(x: &Scalar) -> Reduced {
    const PARTS: [f64; 3] = [
        1.57079632673412561417e+00,
        6.07710050630396597660e-11,
        2.02226624871116645580e-21,
    ];
    const REST: f64 = 8.47842766036889956997e-32;
    let (k, quadrant) = nearest(x * std::f64::consts::FRAC_2_PI);
    // Exact, for the two are close to each other.
    let first = x - &k * PARTS[0];
    let (second, error) = two_sum(&first, &(&k * -PARTS[1]));
    let (third, more_error) = two_sum(&second, &(&k * -PARTS[2]));
    let (r, rest) = two_sum(&third, &(error + (more_error - k * REST)));
    Reduced { quadrant, r, rest }
}

/// `x 2/π` modulo 4 from the 192 bits of 2/π that matter to it.
///
/// For `|x| = m 2^e` with `m` of 53 bits, bits of 2/π of weight `2^(2-e)` and above give multiples
/// of 4. With the bits from there on read as a fraction `F`, `x 2/π = 4 m F` modulo 4, of which the
/// high 128 bits are kept: no `f64` is nearer to a multiple of π/2 than to leave 60 of them.
fn reduce_large(x: &Scalar, table: BufferId) -> Reduced {
    let magnitude = bits(&x.abs());
    let mantissa = (&magnitude & word((1 << 52) - 1)) | word(1 << 52);
    // Of the bit of weight 2^(1-e) in the table: e - 2 + 64, with e = exponent - 1075.
    let start = magnitude.shr(word(52)).cast(I64) - (1075 + 2 - 64);
    let first = index(TWO_OVER_PI.len() as i64 - 4).min(index(0).max(start.shr(index(6))));
    let shift = start.cast(U64) & word(63);
    let loaded: [Scalar; 4] =
        std::array::from_fn(|k| Scalar::load(table, vec![&first + k as i64], U64));
    let window = |k: usize| loaded[k].shl(shift.clone()) | loaded[k + 1].shr(word(64) - &shift);
    let high = |x: Scalar| Scalar::binary(Binary::MulHigh, x, mantissa.clone());
    let middle = window(1) * &mantissa;
    let low = &middle + high(window(2));
    let carry = low.lt(middle).cast(U64);
    let top = window(0) * &mantissa + high(window(1)) + carry;
    // The nearest quadrant, and what is left, as sign and magnitude.
    let quadrant = (&top + word(1 << 61)).shr(word(62));
    let left = top - quadrant.shl(word(62));
    let negative = left.shr(word(63));
    let mask = word(0) - &negative;
    let halves = [left ^ &mask, low ^ mask];
    let piece = |half: usize, shift: u64, weight: i32| {
        let piece = halves[half].shr(word(shift)) & word(0xffff_ffff);
        piece.cast(F64) * 2f64.powi(weight)
    };
    let (sum, error) = two_sum(&piece(0, 32, -30), &piece(0, 0, -62));
    let (sum, more_error) = two_sum(&sum, &piece(1, 32, -94));
    let tail = error + (more_error + piece(1, 0, -126));
    let (r, rest) = times_half_pi(&sum, &tail);
    let sign = (sign_bit(x).shr(word(63)) ^ negative).shl(word(63));
    let signed = |x: Scalar| (bits(&x) ^ &sign).bitcast(F64);
    let mirrored = select(x.lt(c(0.0)), word(0) - &quadrant, quadrant);
    Reduced {
        quadrant: mirrored,
        r: signed(r),
        rest: signed(rest),
    }
}

/// `(x + tail) π/2` in two parts. The product's error is found from halves of its factors (Dekker).
fn times_half_pi(x: &Scalar, tail: &Scalar) -> (Scalar, Scalar) {
    let pi_high = f64::from_bits(HALF_PI.0.to_bits() & !0xffff_ffff);
    let pi_low = HALF_PI.0 - pi_high;
    let x_high = (bits(x) & word(!0x07ff_ffff)).bitcast(F64);
    let x_low = x - &x_high;
    let product = x * HALF_PI.0;
    let error =
        ((&x_high * pi_high - &product) + &x_low * pi_high + &x_high * pi_low) + x_low * pi_low;
    two_sum(&product, &(error + (x * HALF_PI.1 + tail * HALF_PI.0)))
}
