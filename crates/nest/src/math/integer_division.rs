//! Quotients and remainders of integers of at most 32 bits, by floats: vectors divide no integers.
//!
//! `x / y` in `f64`, of integers of 8 and 16 bits in `f32`, truncates to the exact quotient. A quotient that
//! is no whole number lies at least `1 / |y|` below the next whole number `n` in magnitude, which is a part of
//! `1 / |n y|`, above 2⁻³⁴ (2⁻¹⁸ for 16 bits); rounding moves it by a part of 2⁻⁵³ (2⁻²⁴) at most, so it stays
//! below `n`. The remainder `x - trunc(x / y) y` is exact, too: no part of it is larger than `x`. Two `i32` stay in lanes of 32
//! bits ([`words`]).

mod words;

use self::words::WordDivision;
use crate::build::{fma, number, select, zero};
use crate::ir::{Binary, Kind, Scalar};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::{self, *};

/// The divisions of a nest, by the addresses of their operands: a quotient and its remainder share one.
#[derive(Default)]
pub(super) struct Divisions {
    by_floats: FxHashMap<[usize; 2], Division>,
    of_words: FxHashMap<[usize; 2], WordDivision>,
}

/// Which way a quotient that is no whole number is rounded. The remainder is what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// By leaving the fraction out.
    TowardZero,
    /// To the next smaller whole number.
    Down,
}

impl Divisions {
    /// The definition of `Div` or `Rem` of such integers; the operands live as long as this.
    pub(super) fn binary(
        &mut self,
        op: Binary,
        rounding: Rounding,
        x: &Scalar,
        y: &Scalar,
    ) -> Option<Scalar> {
        let ty = x.ty();
        if !is_defined(op, ty) {
            return None;
        }
        match y.as_const() {
            Some(0) => return Some(zero(ty)),
            // Vectors shift no bytes.
            Some(y) if y.is_power_of_two() && ty.bits() > 8 && !is_lowest(y, ty) => {
                return Some(by_power_of_two(op, rounding, x, y.trailing_zeros().into()));
            }
            _ => {}
        }
        let key = [x.address(), y.address()];
        if ty == I32 && y.as_const().is_none() {
            let division = self.of_words.entry(key);
            let division = division.or_insert_with(|| WordDivision::new(x, y));
            return Some(division.result(op, rounding));
        }
        let division = self.by_floats.entry(key);
        let division = division.or_insert_with(|| Division::new(x, y));
        Some(from_float(division.result(op, rounding), ty))
    }
}

fn is_defined(op: Binary, ty: ElementType) -> bool {
    matches!(op, Binary::Div | Binary::Rem) && matches!(ty, I8 | U8 | I16 | U16 | I32 | U32)
}

/// The operands, if it is a quotient or remainder of integers that is corrected from rounding toward zero to rounding
/// down.
pub fn rounded_down(scalar: &Scalar) -> Option<(Binary, &Scalar, &Scalar)> {
    let Kind::Select(_, _, uncorrected) = scalar.kind() else {
        return None;
    };
    let (op, x, y) = match uncorrected.kind() {
        Kind::Binary(op @ (Binary::Div | Binary::Rem), x, y) if x.ty().is_integer() => (*op, x, y),
        _ => return None,
    };
    let nothing = || zero(x.ty());
    let is_negative = y.lt(nothing());
    // Of a constant it may have been found out.
    let known = y.as_const().map(|bits| integer_value(bits, y.ty()) < 0.0);
    let known = known.map(|is_negative| Scalar::constant(is_negative.into(), Boolean));
    let is_expected = |is_negative| {
        let rest = x.rem(y.clone());
        let signs_differ = rest.ne(nothing()) & rest.lt(nothing()).ne(is_negative);
        let corrected = match op {
            Binary::Rem => rest + y,
            _ => uncorrected - 1,
        };
        select(signs_differ, corrected, uncorrected.clone()) == *scalar
    };
    let is_one = is_expected(is_negative) || known.is_some_and(is_expected);
    is_one.then_some((op, x, y))
}

/// A division in floats.
struct Division {
    x: Scalar,
    y: Scalar,
    quotient: Quotient,
}

enum Quotient {
    /// `x / y`, and whether the divisor is 0.
    Of(Scalar, Scalar),
    By(f64),
}

impl Division {
    fn new(x: &Scalar, y: &Scalar) -> Division {
        let divisor = y.as_const().map(|bits| integer_value(bits, y.ty()));
        let [x, y] = [x, y].map(to_float);
        match divisor {
            Some(divisor) => Division {
                y: number(divisor, x.ty()),
                quotient: Quotient::By(divisor),
                x,
            },
            None => Division {
                quotient: Quotient::Of(&x / &y, y.eq(zero(y.ty()))),
                x,
                y,
            },
        }
    }

    /// The result as a float, which truncates to it: 0 where the divisor is 0. The smallest number by -1 gives one more than its type
    /// holds.
    fn result(&self, op: Binary, rounding: Rounding) -> Scalar {
        let whole = match (rounding, op) {
            (Rounding::Down, _) => self.quotient(rounding).floor(),
            (_, Binary::Rem) => self.quotient(rounding).trunc(),
            _ => self.quotient(rounding),
        };
        let value = match op {
            Binary::Rem => &self.x - whole * &self.y,
            _ => whole,
        };
        match &self.quotient {
            Quotient::Of(_, is_by_zero) => select(is_by_zero.clone(), zero(value.ty()), value),
            Quotient::By(_) => value,
        }
    }

    /// A float that, rounded as `rounding` says, is the exact quotient.
    ///
    /// `x · (1 / y)` with a rounded reciprocal may lie just below a whole quotient, which would then be rounded to one less. So it is
    /// made larger: for truncation by the factor `1 + 2⁻³⁶` (`1 + 2⁻²⁰` in `f32`), which is more than both roundings take away and
    /// less than lies between any other quotient and the next whole number; for rounding down by `1 / |2 y|`, half of the least
    /// fraction that a quotient can have.
    fn quotient(&self, rounding: Rounding) -> Scalar {
        let ty = self.x.ty();
        let excess = if ty == F64 {
            2f64.powi(-36)
        } else {
            2f64.powi(-20)
        };
        match (&self.quotient, rounding) {
            (Quotient::Of(quotient, _), _) => quotient.clone(),
            (Quotient::By(y), Rounding::TowardZero) => &self.x * ((1.0 + excess) / y),
            (Quotient::By(y), Rounding::Down) => {
                let half = number(0.5 / y.abs(), ty);
                fma(&self.x, &number(1.0 / y, ty), &half)
            }
        }
    }
}

/// `op(x, 2^log2)` by shifts, which round down. Where the quotient rounds toward zero, the divisor less 1 is added to negative `x`
/// first.
fn by_power_of_two(op: Binary, rounding: Rounding, x: &Scalar, log2: u64) -> Scalar {
    let ty = x.ty();
    let of = |bits: u64| Scalar::constant(bits, ty);
    let mask = of((1 << log2) - 1);
    let moved = match rounding {
        Rounding::TowardZero if ty.is_signed_integer() => {
            x + (x.shr(of(ty.bits() as u64 - 1)) & mask.clone())
        }
        _ => {
            return match op {
                Binary::Rem => x & mask,
                _ => x.shr(of(log2)),
            };
        }
    };
    match op {
        Binary::Rem => x - (moved & !mask),
        _ => moved.shr(of(log2)),
    }
}

fn is_lowest(bits: u64, ty: ElementType) -> bool {
    ty.is_signed_integer() && bits == 1 << (ty.bits() - 1)
}

fn integer_value(bits: u64, ty: ElementType) -> f64 {
    match ty.is_signed_integer() {
        // Of its own width.
        true => (((bits << (64 - ty.bits())) as i64) >> (64 - ty.bits())) as f64,
        false => bits as f64,
    }
}

/// 2³¹
const TWO_31: f64 = 2_147_483_648.0;

/// Conversions are those of `i32`, for vectors have no others.
fn to_float(x: &Scalar) -> Scalar {
    match x.ty() {
        U32 => top_bit_flipped(x.clone()).bitcast(I32).cast(F64) + TWO_31,
        I32 => x.clone().cast(F64),
        _ => x.clone().cast(F32),
    }
}

/// The low bits of a number without its fraction.
fn from_float(x: Scalar, ty: ElementType) -> Scalar {
    match ty {
        U32 => top_bit_flipped((x.trunc() - TWO_31).cast(I32).bitcast(U32)),
        _ => x.cast(I32).cast(ty),
    }
}

fn top_bit_flipped(x: Scalar) -> Scalar {
    x ^ Scalar::constant(1 << 31, U32)
}

#[cfg(test)]
mod tests;
