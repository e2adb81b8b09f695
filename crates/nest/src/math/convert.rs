//! The storage floats: to and from `f32`, by their bits.
//!
//! A format of `e` exponent bits with bias `b` and `m` mantissa bits holds
//! `(-1)^s (1 + mantissa / 2^m) 2^(exponent - b)`, and for exponent 0 the subnormals
//! `(-1)^s (mantissa / 2^m) 2^(1 - b)`. Decoding is exact; encoding rounds once, to nearest even.

use crate::build::{integer, number};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::{self, *};

/// The values of the codes of `nf4`: quantiles of a normal distribution (QLoRA, Dettmers et al. 2023).
pub(super) const NF4_VALUES: [f32; 16] = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
];

/// Above the k-th, a number is nearer to code `k + 1` than to code `k`. As published.
const NF4_THRESHOLDS: [f32; 15] = [
    -0.8480964004993439,
    -0.6106329262256622,
    -0.4599952697753906,
    -0.33967943489551544,
    -0.23460740596055984,
    -0.13791173323988914,
    -0.045525018125772476,
    0.03979014977812767,
    0.1202552504837513,
    0.2035212516784668,
    0.2920137718319893,
    0.3893125355243683,
    0.5016634166240692,
    0.6427869200706482,
    0.8614784181118011,
];

/// The `f32` of a number in a storage format other than `nf4`.
pub(super) fn decode(x: &Scalar) -> Scalar {
    let code = |ty| x.clone().bitcast(ty).cast(U32);
    match x.ty() {
        BF16 => code(U16).shl(bits(16)).bitcast(F32),
        F16 => HALF.widen(code(U16)),
        // The upper half of an f16.
        F8E5M2 => HALF.widen(code(U8).shl(bits(8))),
        F8E4M3 => E4M3.widen(code(U8)),
        F8E8M0 => {
            let code = code(U8);
            let power = Scalar::select(code.eq(bits(255)), bits(QUIET_NAN), code.shl(bits(23)));
            Scalar::select(code.eq(bits(0)), bits(HALF_OF_LEAST_NORMAL), power).bitcast(F32)
        }
        _ => E2M1.widen(code(U4)),
    }
}

/// A storage format's code of an `f32`.
///
/// Too large becomes infinity, in `f8e4m3` NaN, in `f4e2m1` and `nf4` the largest.
pub(super) fn encode(x: Scalar, to: ElementType) -> Scalar {
    match to {
        BF16 => {
            let word = x.clone().bitcast(U32);
            let rounded = round_off(&word, 16);
            let nan = word.shr(bits(16)) | bits(0x40);
            Scalar::select(x.ne(x.clone()), nan, rounded)
                .cast(U16)
                .bitcast(BF16)
        }
        F16 => HALF.narrow(&x).cast(U16).bitcast(F16),
        F8E5M2 => {
            let half = HALF.narrow(&x);
            // A NaN keeps its upper half, which is one.
            Scalar::select(x.ne(x.clone()), half.shr(bits(8)), round_off(&half, 8))
                .cast(U8)
                .bitcast(to)
        }
        F8E4M3 => E4M3.narrow(&x).cast(U8).bitcast(to),
        F8E8M0 => nearest_power(&x).cast(U8).bitcast(to),
        NF4 => {
            let above = NF4_THRESHOLDS.map(|t| x.gt(number(t.into(), F32)).cast(U8));
            let code = above
                .into_iter()
                .fold(Scalar::constant(0, U8), |sum, above| sum + above);
            code.cast(U4).bitcast(to)
        }
        _ => E2M1.narrow(&x).cast(U4).bitcast(to),
    }
}

/// An `f32` that rounds to `f16` as the number itself does. Integers from 2¹⁷ on are as good as 2¹⁷: both are infinite, and what is not
/// larger is an `f32`.
pub(super) fn narrow_to_half(x: Scalar) -> Scalar {
    let ty = x.ty();
    if !matches!(ty, I32 | U32 | I64 | U64) {
        return narrow_to_f32(x);
    }
    let near = x.min(integer(1 << 17, ty));
    let near = match ty.is_signed_integer() {
        true => near.max(integer(-(1 << 17), ty)),
        false => near,
    };
    near.cast(I32).cast(F32)
}

/// An `f32` that rounds to every storage format as the number itself does.
///
/// A number that is no `f32` becomes its neighbour with an odd mantissa ("round to odd"): such a number is
/// no midpoint of a format with at least two bits less, and stays on its side of every midpoint.
pub(super) fn narrow_to_f32(x: Scalar) -> Scalar {
    let x = match x.ty() {
        I64 | U64 => sticky_f64(x),
        I32 | U32 => x.cast(F64),
        F64 => x,
        _ => return x.cast(F32),
    };
    let near = x.clone().cast(F32);
    let back = near.clone().cast(F64);
    let word = near.clone().bitcast(U32);
    // Toward zero, then odd. The bits of floats of one sign are in the order of their magnitudes.
    let odd = (word - back.abs().gt(x.abs()).cast(U32)) | bits(1);
    let exact = back.eq(x.clone()) | x.ne(x.clone());
    Scalar::select(exact, near, odd.bitcast(F32))
}

/// A 64-bit integer as an `f64`: exactly if it is below 2^52, else with its low 12 bits, which are
/// below every midpoint of a storage format, replaced by one that says whether any was set.
fn sticky_f64(x: Scalar) -> Scalar {
    let word = |value: u64| Scalar::constant(value, x.ty());
    let zero = word(0);
    let kept = &x & word(!0xfff);
    let lost = (&x & word(0xfff)).ne(zero).cast(x.ty()).shl(word(11));
    let small =
        (x.clone().cast(U64) + Scalar::constant(1 << 52, U64)).lt(Scalar::constant(1 << 53, U64));
    Scalar::select(small, x, kept | lost).cast(F64)
}

/// A float format with subnormals, of at most 16 bits.
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: u32,
    top: Top,
}

/// The meaning of a format's largest codes.
enum Top {
    /// Infinity, and NaNs above it.
    Infinity,
    /// The largest is NaN.
    Nan,
    /// Numbers, at which encoding saturates.
    Number,
}

const HALF: Format = Format {
    exponent_bits: 5,
    mantissa_bits: 10,
    bias: 15,
    top: Top::Infinity,
};
const E4M3: Format = Format {
    exponent_bits: 4,
    mantissa_bits: 3,
    bias: 7,
    top: Top::Nan,
};
const E2M1: Format = Format {
    exponent_bits: 2,
    mantissa_bits: 1,
    bias: 1,
    top: Top::Number,
};

const INFINITY: u32 = 0x7f80_0000;
const QUIET_NAN: u32 = 0x7fc0_0000;
/// 2^-127.
const HALF_OF_LEAST_NORMAL: u32 = 0x0040_0000;

impl Format {
    /// The `f32` of a code, which comes as `u32`.
    fn widen(&self, code: Scalar) -> Scalar {
        let shift = 23 - self.mantissa_bits;
        let magnitude = &code & bits(self.largest());
        let wide = magnitude.shl(bits(shift));
        let normal = &wide + bits((127 - self.bias) << 23);
        // With the implicit 1 of exponent 1, then without it.
        let least_normal = bits(self.least_normal());
        let subnormal = (&wide + &least_normal).bitcast(F32) - least_normal.clone().bitcast(F32);
        let finite = Scalar::select(wide.lt(bits(1 << 23)), subnormal.bitcast(U32), normal);
        let infinity = bits(((1 << self.exponent_bits) - 1) << self.mantissa_bits);
        let absolute = match self.top {
            Top::Infinity => {
                // A NaN becomes a quiet one.
                let is_nan = magnitude.gt(infinity.clone());
                let top = Scalar::select(is_nan, bits(QUIET_NAN), bits(INFINITY));
                Scalar::select(magnitude.ge(infinity), wide | top, finite)
            }
            Top::Nan => Scalar::select(magnitude.eq(bits(self.largest())), bits(QUIET_NAN), finite),
            Top::Number => finite,
        };
        let sign = code
            .shr(bits(self.exponent_bits + self.mantissa_bits))
            .shl(bits(31));
        (sign | absolute).bitcast(F32)
    }

    /// The code, as `u32`, of an `f32`.
    fn narrow(&self, x: &Scalar) -> Scalar {
        let shift = 23 - self.mantissa_bits;
        let word = x.clone().bitcast(U32);
        let sign = word
            .shr(bits(31))
            .shl(bits(self.exponent_bits + self.mantissa_bits));
        let mut magnitude = word & bits(0x7fff_ffff);
        if let Top::Number = self.top {
            magnitude = magnitude.min(bits(self.largest_finite()));
        }
        let normal = round_off(&(&magnitude - bits((127 - self.bias) << 23)), shift);
        // The least subnormal is one unit in the last place of this power of two.
        let unit = bits((127 + 1 - self.bias + shift) << 23);
        let subnormal =
            (magnitude.clone().bitcast(F32) + unit.clone().bitcast(F32)).bitcast(U32) - unit;
        let finite = Scalar::select(magnitude.lt(bits(self.least_normal())), subnormal, normal);
        let code = match self.top {
            Top::Infinity => {
                let infinity = ((1 << self.exponent_bits) - 1) << self.mantissa_bits;
                // A NaN becomes a quiet one that keeps its upper bits.
                let quiet = infinity | 1 << (self.mantissa_bits - 1);
                let kept = magnitude.shr(bits(shift)) & bits((1 << self.mantissa_bits) - 1);
                let nan = kept | bits(quiet);
                let special = Scalar::select(magnitude.gt(bits(INFINITY)), nan, bits(infinity));
                let too_large = bits((127 + (1 << self.exponent_bits) - 1 - self.bias) << 23);
                Scalar::select(magnitude.ge(too_large), special, finite)
            }
            // Half a unit above the largest number, whose code is even, rounds down to it.
            Top::Nan => {
                let half_unit = 1 << (shift - 1);
                let rounds_down = bits(self.largest_finite() + half_unit);
                Scalar::select(magnitude.gt(rounds_down), bits(self.largest()), finite)
            }
            Top::Number => finite,
        };
        sign | code
    }

    /// The largest code without its sign.
    fn largest(&self) -> u32 {
        (1 << (self.exponent_bits + self.mantissa_bits)) - 1
    }

    /// The largest number of a format without infinity, as the bits of an `f32`.
    fn largest_finite(&self) -> u32 {
        let code = self.largest() - u32::from(matches!(self.top, Top::Nan));
        (code << (23 - self.mantissa_bits)) + ((127 - self.bias) << 23)
    }

    /// `2^(1 - bias)`, as the bits of an `f32`.
    fn least_normal(&self) -> u32 {
        (127 + 1 - self.bias) << 23
    }
}

/// The code `e` of the power of two `2^(e - 127)` nearest to an `f32`, as `u32`; of a midpoint the
/// even one, of zero and what is below the least, of infinity the largest.
fn nearest_power(x: &Scalar) -> Scalar {
    let word = x.clone().bitcast(U32);
    let normal = round_off(&word, 23).min(bits(254));
    let midpoint = HALF_OF_LEAST_NORMAL + HALF_OF_LEAST_NORMAL / 2;
    let subnormal = word.gt(bits(midpoint)).cast(U32);
    let positive = Scalar::select(word.lt(bits(1 << 23)), subnormal, normal);
    let ordered = Scalar::select(x.gt(number(0.0, F32)), positive, bits(0));
    Scalar::select(x.ne(x.clone()), bits(255), ordered)
}

/// A `u32` without its low bits, rounded to nearest even.
fn round_off(word: &Scalar, low_bits: u32) -> Scalar {
    let odd = word.shr(bits(low_bits)) & bits(1);
    (word + bits((1 << (low_bits - 1)) - 1) + odd).shr(bits(low_bits))
}

fn bits(value: u32) -> Scalar {
    Scalar::constant(value.into(), U32)
}

#[cfg(test)]
mod tests;
