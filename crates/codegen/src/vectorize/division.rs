//! Quotients and remainders of `i64` by constants, by shifts and products: no vector instruction divides integers.

use super::build::Builder;
use crate::vector_ir::ops::Op;
use crate::vector_ir::program::Value;
use vinelift_nest::{Binary, Kind, Rounding, Scalar, rounded_down};
use vinelift_tensor::ElementType::{I64, U64};

/// `op(x, y)`, `Div` or `Rem`, of a quotient that is rounded so.
#[derive(Clone, Copy)]
pub(super) struct Division<'n> {
    op: Binary,
    rounding: Rounding,
    x: &'n Scalar,
    y: &'n Scalar,
    divisor: i64,
}

impl<'n> Division<'n> {
    pub(super) fn operands(self) -> Vec<&'n Scalar> {
        vec![self.x, self.y]
    }
}

impl<'n> Builder<'_, 'n> {
    /// The division that a scalar is, if [`Self::divided`] defines it.
    pub(super) fn division(&self, scalar: &'n Scalar) -> Option<Division<'n>> {
        if scalar.ty() != I64 || self.is_in_kernel() {
            return None;
        }
        let (rounding, (op, x, y)) = match scalar.kind() {
            Kind::Binary(op @ (Binary::Div | Binary::Rem), x, y) => {
                (Rounding::TowardZero, (*op, x, y))
            }
            Kind::Select(..) => (Rounding::Down, rounded_down(scalar)?),
            _ => return None,
        };
        let divisor = y.as_const()? as i64;
        let is_defined = match rounding {
            Rounding::TowardZero => divisor != i64::MIN,
            Rounding::Down => divisor > 0,
        };
        is_defined.then_some(Division {
            op,
            rounding,
            x,
            y,
            divisor,
        })
    }

    pub(super) fn divided(&mut self, division: Division<'n>) -> Option<Value> {
        let Division { op, divisor, .. } = division;
        if divisor == 0 {
            return Some(self.constant(0, I64));
        }
        let x = self.known_value(division.x)?;
        let size = divisor.unsigned_abs();
        let sign = self.apply(Op::ShiftRight(63), I64, &[x]);
        if size.is_power_of_two() {
            return Some(self.divided_by_power(x, sign, division));
        }
        let quotient = match division.rounding {
            Rounding::Down => {
                let positive = self.apply(Op::Xor, I64, &[x, sign]);
                let quotient = self.quotient(positive, size);
                self.apply(Op::Xor, I64, &[quotient, sign])
            }
            Rounding::TowardZero => {
                let positive = self.negated_by(x, sign);
                let quotient = self.quotient(positive, size);
                self.negated_by(quotient, sign)
            }
        };
        // Of the size of the divisor, for the remainder does not depend on its sign.
        Some(match op {
            Binary::Rem => {
                let size = self.constant(size, I64);
                let whole = self.apply(Op::Mul, I64, &[quotient, size]);
                self.apply(Op::Sub, I64, &[x, whole])
            }
            _ if divisor < 0 => self.apply(Op::Neg, I64, &[quotient]),
            _ => quotient,
        })
    }

    /// `⌊u / size⌋` for `u` up to 2⁶³, as a product with a reciprocal that is a little too large.
    ///
    /// With `2ᵏ < size < 2ᵏ⁺¹` and `m = ⌈2⁶⁴⁺ᵏ / size⌉`, which is below 2⁶⁴, `m · size = 2⁶⁴⁺ᵏ + e` with `e < size`, so at most
    /// 2ᵏ⁺¹ - 2. Then `u m / 2⁶⁴⁺ᵏ` is larger than `u / size` by `u e / 2⁶⁴⁺ᵏ / size`, which is less than `1 / size`: not
    /// enough to reach the next whole number.
    fn quotient(&mut self, u: Value, size: u64) -> Value {
        let k = size.ilog2();
        let reciprocal = (1u128 << (64 + k)).div_ceil(size.into()) as u64;
        let reciprocal = self.constant(reciprocal, U64);
        let high = self.apply(Op::MulHigh, U64, &[u, reciprocal]);
        self.apply(Op::ShiftRight(k as u8), U64, &[high])
    }

    /// Shifts round down. Where the quotient rounds toward zero, what is negative is first moved up by the divisor less 1.
    fn divided_by_power(&mut self, x: Value, sign: Value, division: Division<'n>) -> Value {
        let size = division.divisor.unsigned_abs();
        let rest = self.constant(size - 1, I64);
        let moved = match division.rounding {
            Rounding::Down => x,
            Rounding::TowardZero => {
                let by = self.apply(Op::And, I64, &[sign, rest]);
                self.apply(Op::Add, I64, &[x, by])
            }
        };
        if division.op == Binary::Rem {
            let whole = self.constant(!(size - 1), I64);
            let whole = self.apply(Op::And, I64, &[moved, whole]);
            return self.apply(Op::Sub, I64, &[x, whole]);
        }
        let quotient = match size.trailing_zeros() {
            0 => moved,
            k => self.apply(Op::ShiftRight(k as u8), I64, &[moved]),
        };
        match division.divisor < 0 {
            true => self.apply(Op::Neg, I64, &[quotient]),
            false => quotient,
        }
    }

    /// `-x` where all bits of `sign` are set, `x` where none are.
    fn negated_by(&mut self, x: Value, sign: Value) -> Value {
        let flipped = self.apply(Op::Xor, I64, &[x, sign]);
        self.apply(Op::Sub, I64, &[flipped, sign])
    }
}
