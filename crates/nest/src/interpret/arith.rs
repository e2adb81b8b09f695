//! The primitive functions, over values as bits in the low end of a `u64`.

use crate::ir::{Binary, Unary};
use half::f16;
use vinelift_tensor::ElementType::{self, *};

/// Whether `op` is defined on `ty`.
pub(super) fn has_unary(op: Unary, ty: ElementType) -> bool {
    use Unary::*;
    match op {
        Neg | Abs => ty.is_arithmetic() && ty != Boolean,
        Not => ty.is_arithmetic() && !ty.is_float(),
        Rarely => ty == Boolean,
        _ => op.is_primitive() && matches!(ty, F32 | F64),
    }
}

/// Whether `op` is defined on operands of type `ty`.
pub(super) fn has_binary(op: Binary, ty: ElementType) -> bool {
    use Binary::*;
    match op {
        Add | Sub | Mul | Term | Div | Rem => ty.is_arithmetic() && ty != Boolean,
        Eq | Ne if ty == String => true,
        Min | Max | Eq | Ne | Lt | Le | Gt | Ge => ty.is_arithmetic(),
        And | Or | Xor => ty.is_arithmetic() && !ty.is_float(),
        Shl | Shr => ty.is_arithmetic() && ty.is_integer(),
        MulHigh => ty == U64,
        Pow => false,
    }
}

/// `op(x)` where [`has_unary`].
pub(super) fn unary(op: Unary, ty: ElementType, x: u64) -> u64 {
    match ty {
        F32 => u64::from(unary_f32(op, f32::from_bits(x as u32)).to_bits()),
        F64 => unary_f64(op, f64::from_bits(x)).to_bits(),
        Boolean if op == Unary::Not => x ^ 1,
        Boolean => x,
        _ => mask(ty, unary_integer(op, ty, signed(ty, x))),
    }
}

/// `op(x, y)` where [`has_binary`].
pub(super) fn binary(op: Binary, ty: ElementType, x: u64, y: u64) -> u64 {
    macro_rules! on {
        ($function:ident, $t:ty, $u:ty) => {
            match $function(op, x as $u as $t, y as $u as $t) {
                Value::Number(n) => n as $u as u64,
                Value::Truth(b) => b.into(),
            }
        };
    }
    match ty {
        F32 => match binary_f32(op, f32::from_bits(x as u32), f32::from_bits(y as u32)) {
            Value::Number(n) => n.to_bits().into(),
            Value::Truth(b) => b.into(),
        },
        F64 => match binary_f64(op, f64::from_bits(x), f64::from_bits(y)) {
            Value::Number(n) => n.to_bits(),
            Value::Truth(b) => b.into(),
        },
        I8 => on!(binary_i8, i8, u8),
        I16 => on!(binary_i16, i16, u16),
        I32 => on!(binary_i32, i32, u32),
        I64 => on!(binary_i64, i64, u64),
        U16 => on!(binary_u16, u16, u16),
        U32 => on!(binary_u32, u32, u32),
        U64 if op == Binary::MulHigh => ((u128::from(x) * u128::from(y)) >> 64) as u64,
        U64 | String => on!(binary_u64, u64, u64),
        _ => on!(binary_u8, u8, u8),
    }
}

/// `sum` and a term more, where [`has_binary`] of [`Binary::Term`].
pub(super) fn add_term(ty: ElementType, sum: u64, x: u64, y: u64) -> u64 {
    let f32 = |bits: u64| f32::from_bits(bits as u32);
    match ty {
        F32 => f32(x).mul_add(f32(y), f32(sum)).to_bits().into(),
        F64 => {
            let [x, y, sum] = [x, y, sum].map(f64::from_bits);
            x.mul_add(y, sum).to_bits()
        }
        _ => binary(Binary::Add, ty, sum, binary(Binary::Mul, ty, x, y)),
    }
}

/// `x` of type `from` converted by value, where neither type is a storage float or `string`.
///
/// A float becomes an integer by way of `i64` (`i32` for `i32`): truncated if that is in range,
/// else the smallest. Narrower types take the low bits of it. `u64` takes `0..2^64` exactly.
pub(super) fn cast(from: ElementType, to: ElementType, x: u64) -> u64 {
    match (from, to) {
        (F32, F64) => f64::from(f32::from_bits(x as u32)).to_bits(),
        (F64, F32) => u64::from((f64::from_bits(x) as f32).to_bits()),
        (F16, F32) => u64::from(f16::from_bits(x as u16).to_f32().to_bits()),
        (F32, F16) => u64::from(f16::from_f32(f32::from_bits(x as u32)).to_bits()),
        (F32, F32) | (F64, F64) => x,
        (F32, _) => float_to_integer(f64::from(f32::from_bits(x as u32)), to),
        (F64, _) => float_to_integer(f64::from_bits(x), to),
        (U64, F32) => u64::from((x as f32).to_bits()),
        (U64, F64) => (x as f64).to_bits(),
        (_, F32) => u64::from((signed(from, x) as f32).to_bits()),
        (_, F64) => (signed(from, x) as f64).to_bits(),
        (_, Boolean) => (x != 0).into(),
        _ => mask(to, signed(from, x)),
    }
}

/// The integer that the bits of a `ty` mean; of a `u64`, the same bits.
pub(super) fn signed(ty: ElementType, x: u64) -> i64 {
    if !ty.is_signed_integer() {
        return x as i64;
    }
    let unused = 64 - ty.bits();
    (x << unused) as i64 >> unused
}

fn mask(ty: ElementType, x: i64) -> u64 {
    x as u64 & (u64::MAX >> (64 - ty.bits()))
}

fn float_to_integer(x: f64, to: ElementType) -> u64 {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    let small = if (-TWO_63..TWO_63).contains(&x) {
        x as i64
    } else {
        i64::MIN
    };
    match to {
        Boolean => (x != 0.0).into(),
        I32 if small < i32::MIN.into() || small > i32::MAX.into() => mask(I32, i32::MIN.into()),
        U64 if (0.0..2.0 * TWO_63).contains(&x) => x as u64,
        _ => mask(to, small),
    }
}

fn unary_integer(op: Unary, ty: ElementType, x: i64) -> i64 {
    match op {
        Unary::Neg => x.wrapping_neg(),
        Unary::Abs if ty.is_signed_integer() => x.wrapping_abs(),
        Unary::Not => !x,
        _ => x,
    }
}

enum Value<T> {
    Number(T),
    Truth(bool),
}

macro_rules! unary_float {
    ($name:ident $t:ty) => {
        fn $name(op: Unary, x: $t) -> $t {
            match op {
                Unary::Neg => -x,
                Unary::Abs => x.abs(),
                Unary::Sqrt => x.sqrt(),
                Unary::Floor => x.floor(),
                Unary::Ceil => x.ceil(),
                Unary::Trunc => x.trunc(),
                Unary::Round => x.round_ties_even(),
                _ => x,
            }
        }
    };
}

macro_rules! binary_float {
    ($name:ident $t:ty) => {
        fn $name(op: Binary, x: $t, y: $t) -> Value<$t> {
            Value::Number(match op {
                Binary::Add => x + y,
                Binary::Sub => x - y,
                Binary::Mul | Binary::Term => x * y,
                Binary::Div => x / y,
                Binary::Rem => x % y,
                Binary::Min if x < y => x,
                Binary::Max if x > y => x,
                Binary::Min | Binary::Max => y,
                _ => return compare(op, x, y),
            })
        }
    };
}

macro_rules! binary_integer {
    ($($name:ident $t:ty,)*) => { $(
        fn $name(op: Binary, x: $t, y: $t) -> Value<$t> {
            let amount = u32::try_from(y).ok().filter(|&n| n < <$t>::BITS);
            Value::Number(match op {
                Binary::Add => x.wrapping_add(y),
                Binary::Sub => x.wrapping_sub(y),
                Binary::Mul | Binary::Term => x.wrapping_mul(y),
                Binary::Div if y == 0 => 0,
                Binary::Div => x.wrapping_div(y),
                Binary::Rem if y == 0 => 0,
                Binary::Rem => x.wrapping_rem(y),
                Binary::Min => x.min(y),
                Binary::Max => x.max(y),
                Binary::And => x & y,
                Binary::Or => x | y,
                Binary::Xor => x ^ y,
                Binary::Shl => amount.map_or(0, |n| x << n),
                // In two steps: all bits may go.
                Binary::Shr => amount.map_or((x >> (<$t>::BITS - 1)) >> 1, |n| x >> n),
                _ => return compare(op, x, y),
            })
        }
    )* };
}

unary_float!(unary_f32 f32);
unary_float!(unary_f64 f64);
binary_float!(binary_f32 f32);
binary_float!(binary_f64 f64);
binary_integer! {
    binary_i8 i8, binary_i16 i16, binary_i32 i32, binary_i64 i64,
    binary_u8 u8, binary_u16 u16, binary_u32 u32, binary_u64 u64,
}

fn compare<T: PartialOrd>(op: Binary, x: T, y: T) -> Value<T> {
    Value::Truth(match op {
        Binary::Eq => x == y,
        Binary::Ne => x != y,
        Binary::Lt => x < y,
        Binary::Le => x <= y,
        Binary::Gt => x > y,
        _ => x >= y,
    })
}
