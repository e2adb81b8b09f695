//! Which instruction does what. `None` where the target has none.

use super::super::Target;
use super::opcode::{Opcode, opcode};
use crate::vector_ir::ops::{Comparison, Op, is_float};
use vinelift_tensor::ElementType::{self, *};

/// On `f32` or `f64`: prefix `66` for the latter.
pub(super) fn float(width: u8, code: u8) -> Opcode {
    opcode(u8::from(width == 8), 1, width == 8, code)
}

/// Arithmetic of two operands.
pub(super) fn binary(op: Op, ty: ElementType, width: u8, target: Target) -> Option<Opcode> {
    if is_float(ty) {
        let code = match op {
            Op::Add => 0x58,
            Op::Sub => 0x5c,
            Op::Mul => 0x59,
            Op::Div => 0x5e,
            // The second operand if one is NaN or both are zeros.
            Op::Min => 0x5d,
            Op::Max => 0x5f,
            _ => return None,
        };
        return Some(float(width, code));
    }
    let is_512 = target == Target::Avx512;
    let by_width = |codes: [u8; 4]| {
        let code = codes[width.trailing_zeros() as usize];
        opcode(1, 1, width == 8, code)
    };
    let signed = ty.is_signed_integer();
    Some(match op {
        Op::Add => by_width([0xfc, 0xfd, 0xfe, 0xd4]),
        Op::Sub => by_width([0xf8, 0xf9, 0xfa, 0xfb]),
        Op::Mul => match width {
            2 => opcode(1, 1, false, 0xd5),
            4 => opcode(1, 2, false, 0x40),
            8 if is_512 => opcode(1, 2, true, 0x40),
            _ => return None,
        },
        Op::And => opcode(1, 1, width == 8, 0xdb),
        Op::Or => opcode(1, 1, width == 8, 0xeb),
        Op::Xor => opcode(1, 1, width == 8, 0xef),
        Op::Min | Op::Max => match (width, signed) {
            (1, true) => opcode(1, 2, false, if op == Op::Min { 0x38 } else { 0x3c }),
            (1, false) => opcode(1, 1, false, if op == Op::Min { 0xda } else { 0xde }),
            (2, true) => opcode(1, 1, false, if op == Op::Min { 0xea } else { 0xee }),
            (2, false) => opcode(1, 2, false, if op == Op::Min { 0x3a } else { 0x3e }),
            (8, _) if !is_512 => return None,
            (_, true) => opcode(1, 2, width == 8, if op == Op::Min { 0x39 } else { 0x3d }),
            (_, false) => opcode(1, 2, width == 8, if op == Op::Min { 0x3b } else { 0x3f }),
        },
        _ => return None,
    })
}

/// The whole products of the lower halves of words of 64 bits.
pub(super) const MULTIPLY_HALVES: Opcode = opcode(1, 1, true, 0xf4);

/// A shift by a constant, with the number in the field of the first register.
pub(super) fn shift(left: bool, signed: bool, width: u8, target: Target) -> Option<(Opcode, u8)> {
    let digit = match (left, signed) {
        (true, _) => 6,
        (false, false) => 2,
        (false, true) => 4,
    };
    let code = match width {
        2 => 0x71,
        4 => 0x72,
        8 if digit != 4 => 0x73,
        8 if target == Target::Avx512 => 0x72,
        _ => return None,
    };
    Some((opcode(1, 1, width == 8, code), digit))
}

/// The opcode of an operation on bits, in lanes of `width` bytes.
pub(super) fn bitwise(op: Op, width: u8) -> Option<Opcode> {
    binary(op, U64, width, Target::Avx512)
}

/// For comparisons of floats: false where one is NaN, but for `NotEqual`.
pub(super) fn float_order(comparison: Comparison) -> u8 {
    match comparison {
        Comparison::Equal => 0x00,
        Comparison::Less => 0x11,
        Comparison::LessOrEqual => 0x12,
        Comparison::NotEqual => 0x04,
        Comparison::GreaterOrEqual => 0x1d,
        Comparison::Greater => 0x1e,
    }
}

/// For AVX-512's comparisons of integers.
pub(super) fn integer_order(comparison: Comparison) -> u8 {
    match comparison {
        Comparison::Equal => 0,
        Comparison::Less => 1,
        Comparison::LessOrEqual => 2,
        Comparison::NotEqual => 4,
        Comparison::GreaterOrEqual => 5,
        Comparison::Greater => 6,
    }
}

/// AVX-512's comparison of integers.
pub(super) fn compare_integers(signed: bool, width: u8) -> Opcode {
    let (small, odd) = (width < 4, width == 2 || width == 8);
    let code = match (small, signed) {
        (true, true) => 0x3f,
        (true, false) => 0x3e,
        (false, true) => 0x1f,
        (false, false) => 0x1e,
    };
    opcode(1, 3, odd, code)
}

/// AVX's comparison of integers, for equality or of signed ones for greater.
pub(super) fn equal(width: u8) -> Opcode {
    match width {
        1 => opcode(1, 1, false, 0x74),
        2 => opcode(1, 1, false, 0x75),
        4 => opcode(1, 1, false, 0x76),
        _ => opcode(1, 2, false, 0x29),
    }
}

pub(super) fn greater(width: u8) -> Opcode {
    match width {
        1 => opcode(1, 1, false, 0x64),
        2 => opcode(1, 1, false, 0x65),
        4 => opcode(1, 1, false, 0x66),
        _ => opcode(1, 2, false, 0x37),
    }
}

/// AVX-512: the mask of lanes that have a bit in common.
pub(super) fn test(width: u8) -> Opcode {
    let code = if width < 4 { 0x26 } else { 0x27 };
    opcode(1, 2, width == 2 || width == 8, code)
}

pub(super) fn blend(width: u8, target: Target) -> Opcode {
    match target {
        Target::Avx2 => opcode(1, 3, false, 0x4c),
        Target::Avx512 => {
            let code = if width < 4 { 0x66 } else { 0x64 };
            opcode(1, 2, width == 2 || width == 8, code)
        }
    }
}

/// A load of `total` bytes, of elements of `width` bytes.
pub(super) fn load(total: u8, width: u8, target: Target) -> Opcode {
    let is_512 = target == Target::Avx512;
    match total {
        4 => opcode(1, 1, false, 0x6e),
        8 => opcode(2, 1, is_512, 0x7e),
        _ => full_move(0x6f, width, is_512),
    }
}

pub(super) fn store(total: u8, width: u8, target: Target) -> Opcode {
    let is_512 = target == Target::Avx512;
    match total {
        1 => opcode(1, 3, false, 0x14),
        2 => opcode(1, 3, false, 0x15),
        4 => opcode(1, 1, false, 0x7e),
        8 => opcode(1, 1, is_512, 0xd6),
        _ => full_move(0x7f, width, is_512),
    }
}

fn full_move(code: u8, width: u8, is_512: bool) -> Opcode {
    let prefix = if is_512 && width < 4 { 3 } else { 2 };
    opcode(prefix, 1, is_512 && (width == 2 || width == 8), code)
}

/// A load of the lanes that a mask has.
pub(super) fn masked_load(width: u8, target: Target) -> Option<Opcode> {
    match target {
        Target::Avx512 => Some(full_move(0x6f, width, true)),
        Target::Avx2 if width >= 4 => Some(opcode(1, 2, width == 8, 0x8c)),
        Target::Avx2 => None,
    }
}

/// Integers in wider lanes.
pub(super) fn widen(from: u8, to: u8, signed: bool) -> Option<Opcode> {
    let code = match (from, to) {
        (1, 2) => 0x30,
        (1, 4) => 0x31,
        (1, 8) => 0x32,
        (2, 4) => 0x33,
        (2, 8) => 0x34,
        (4, 8) => 0x35,
        _ => return None,
    };
    Some(opcode(1, 2, false, if signed { code - 0x10 } else { code }))
}

/// AVX-512: the low bits of integers, in narrower lanes.
pub(super) fn narrow(from: u8, to: u8) -> Option<Opcode> {
    let code = match (from, to) {
        (2, 1) => 0x30,
        (4, 1) => 0x31,
        (8, 1) => 0x32,
        (4, 2) => 0x33,
        (8, 2) => 0x34,
        (8, 4) => 0x35,
        _ => return None,
    };
    Some(opcode(2, 2, false, code))
}

/// AVX2: signed integers of `width` bytes of two registers, in each 128 bits, as unsigned ones of half as many bytes; what does
/// not fit becomes the nearest one that does.
pub(super) fn pack_unsigned(width: u8) -> Option<Opcode> {
    match width {
        2 => Some(opcode(1, 1, false, 0x67)),
        4 => Some(opcode(1, 2, false, 0x2b)),
        _ => None,
    }
}

/// The first integers of `width` bytes, at most 8, of two registers in turn.
pub(super) fn interleave(width: u8) -> Opcode {
    let code = match width {
        2 => 0x61,
        4 => 0x62,
        _ => 0x6c,
    };
    opcode(1, 1, false, code)
}

/// Conversions between numbers of 32 and 64 bits; `None` for what only AVX-512 has.
pub(super) fn convert(from: ElementType, to: ElementType, target: Target) -> Option<Opcode> {
    let is_512 = target == Target::Avx512;
    Some(match (from, to) {
        (I32, F32) => opcode(0, 1, false, 0x5b),
        (I32, F64) => opcode(2, 1, false, 0xe6),
        (F32, I32) => opcode(2, 1, false, 0x5b),
        (F64, I32) => opcode(1, 1, is_512, 0xe6),
        (F32, F64) => opcode(0, 1, false, 0x5a),
        (F64, F32) => opcode(1, 1, is_512, 0x5a),
        (F16, F32) => opcode(1, 2, false, 0x13),
        (U32, F32) if is_512 => opcode(3, 1, false, 0x7a),
        (U32, F64) if is_512 => opcode(2, 1, false, 0x7a),
        (I64, F32) if is_512 => opcode(0, 1, true, 0x5b),
        (I64, F64) if is_512 => opcode(2, 1, true, 0xe6),
        (U64, F32) if is_512 => opcode(3, 1, true, 0x7a),
        (U64, F64) if is_512 => opcode(2, 1, true, 0x7a),
        (F32, I64) if is_512 => opcode(1, 1, false, 0x7a),
        (F64, I64) if is_512 => opcode(1, 1, true, 0x7a),
        _ => return None,
    })
}

/// `f32` to the nearest `i32`.
pub(super) const ROUND_TO_INTEGER: Opcode = opcode(1, 1, false, 0x5b);

/// To `f16`, by the nearest; its fields are the other way round.
pub(super) const TO_HALF: Opcode = opcode(1, 3, false, 0x1d);

pub(super) fn square_root(width: u8) -> Opcode {
    float(width, 0x51)
}

/// By a rounding mode.
pub(super) fn round(width: u8, target: Target) -> Opcode {
    let code = if width == 8 { 9 } else { 8 };
    opcode(1, 3, width == 8 && target == Target::Avx512, code)
}

/// Fused, `f32` or `f64`; the order of operands is chosen later.
pub(super) fn multiply_add(width: u8) -> Opcode {
    opcode(1, 2, width == 8, 0)
}

pub(super) fn absolute(width: u8, target: Target) -> Option<Opcode> {
    let code = match width {
        1 => 0x1c,
        2 => 0x1d,
        4 => 0x1e,
        _ if target == Target::Avx512 => 0x1f,
        _ => return None,
    };
    Some(opcode(1, 2, width == 8, code))
}

/// The opcode of an operation on masks of AVX-512.
pub(super) fn masks(op: Op) -> Option<Opcode> {
    let code = match op {
        Op::And => 0x41,
        Op::Or => 0x45,
        Op::Xor => 0x47,
        Op::Compare(Comparison::Equal) => 0x46,
        // `!x & y`
        Op::Compare(Comparison::Less) => 0x42,
        _ => return None,
    };
    Some(opcode(0, 1, true, code))
}

/// Whether a mask has lanes; of AVX-512 in the first `lanes` bits, or more.
pub(super) fn has_lanes(target: Target, lanes: usize) -> Opcode {
    match (target, lanes) {
        (Target::Avx2, _) => opcode(1, 2, false, 0x17),
        (_, ..=8) => opcode(1, 1, false, 0x98),
        (_, ..=16) => opcode(0, 1, false, 0x98),
        (_, ..=32) => opcode(1, 1, true, 0x98),
        _ => opcode(0, 1, true, 0x98),
    }
}

pub(super) const NOT_MASK: Opcode = opcode(0, 1, true, 0x44);

/// One element in all lanes.
pub(super) fn broadcast(width: u8, target: Target) -> Opcode {
    let code = match width {
        1 => 0x78,
        2 => 0x79,
        4 => 0x58,
        _ => 0x59,
    };
    opcode(1, 2, width == 8 && target == Target::Avx512, code)
}

/// A general register of 64 bits in all lanes, or without AVX-512 in the first.
pub(super) fn turn(target: Target) -> Opcode {
    match target {
        Target::Avx2 => opcode(1, 1, true, 0x6e),
        Target::Avx512 => opcode(1, 2, true, 0x7c),
    }
}

/// Two words of 32 bits of each operand, in each 128 bits.
pub(super) const SHUFFLE_TWO: Opcode = opcode(0, 1, false, 0xc6);

/// Words of 64 bits in another order.
pub(super) const SHUFFLE_HALVES: Opcode = opcode(1, 3, true, 0x00);

/// Elements of the second operand by the numbers in the first; without AVX-512 only of 4 bytes.
pub(super) fn permute(width: u8) -> Opcode {
    let code = if width < 4 { 0x8d } else { 0x36 };
    opcode(1, 2, width == 2 || width == 8, code)
}

/// AVX-512: words of 64 bits in the order that the first operand says.
pub(super) const SHUFFLE_BY: Opcode = opcode(1, 2, true, 0x36);

/// In each 128 bits: bytes of the first operand by the numbers in the second.
pub(super) const SHUFFLE_BYTES: Opcode = opcode(1, 2, false, 0x00);

/// Words of 32 bits by the signs of a mask.
pub(super) const BLEND_BY_SIGN: Opcode = opcode(1, 3, false, 0x4a);

/// Either half of 256 bits; its fields are the other way round.
pub(super) const HIGH_HALF: Opcode = opcode(1, 3, false, 0x39);

/// 128 bits moved down by bytes, with the number 3 in the field of the first register.
pub(super) const SHIFT_BYTES: Opcode = opcode(1, 1, false, 0x73);
