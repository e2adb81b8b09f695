//! Quotients and remainders of `i64`, for which there is no vector instruction. Where the divisor is a constant, shifts and
//! products compute them.

use super::build::Builder;
use crate::vector_ir::ops::Op;
use crate::vector_ir::program::Value;
use vinelift_nest::{Binary, Kind, Rounding, Scalar, rounded_down};
use vinelift_tensor::ElementType::{I64, U64};

/// `op(x, y)`, a `Div` or `Rem`, whose quotient is rounded in this way.
#[derive(Clone, Copy)]
pub(super) struct Division<'n> {
    pub(super) op: Binary,
    pub(super) rounding: Rounding,
    pub(super) x: &'n Scalar,
    pub(super) y: &'n Scalar,
}

impl<'n> Builder<'_, 'n> {
    /// The division that a scalar is, if it is one of `i64` in a function.
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
        Some(Division { op, rounding, x, y })
    }

    pub(super) fn divided(&mut self, division: Division<'n>) -> Option<Value> {
        let Division { op, rounding, x, y } = division;
        let divisor = y.as_const().map(|bits| bits as i64);
        // The smallest number has a size that is none, and downward only positive divisors have a shorter way.
        let is_short = |divisor: &i64| match rounding {
            Rounding::TowardZero => *divisor != i64::MIN,
            Rounding::Down => *divisor >= 0,
        };
        let x = self.known_value(x)?;
        match divisor.filter(is_short) {
            Some(0) => Some(self.constant(0, I64)),
            Some(divisor) => Some(self.divided_by_constant(op, rounding, x, divisor)),
            None => {
                let y = self.known_value(y)?;
                self.divided_by_any(op, rounding, [x, y])
            }
        }
    }

    fn divided_by_constant(
        &mut self,
        op: Binary,
        rounding: Rounding,
        x: Value,
        divisor: i64,
    ) -> Value {
        let size = divisor.unsigned_abs();
        let sign = self.apply(Op::ShiftRight(63), I64, &[x]);
        if size.is_power_of_two() {
            return self.divided_by_power(op, rounding, [x, sign], divisor);
        }
        let quotient = match rounding {
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
        match op {
            Binary::Rem => {
                let size = self.constant(size, I64);
                let whole = self.apply(Op::Mul, I64, &[quotient, size]);
                self.apply(Op::Sub, I64, &[x, whole])
            }
            _ if divisor < 0 => self.apply(Op::Neg, I64, &[quotient]),
            _ => quotient,
        }
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
    fn divided_by_power(
        &mut self,
        op: Binary,
        rounding: Rounding,
        [x, sign]: [Value; 2],
        divisor: i64,
    ) -> Value {
        let size = divisor.unsigned_abs();
        let rest = self.constant(size - 1, I64);
        let moved = match rounding {
            Rounding::Down => x,
            Rounding::TowardZero => {
                let by = self.apply(Op::And, I64, &[sign, rest]);
                self.apply(Op::Add, I64, &[x, by])
            }
        };
        if op == Binary::Rem {
            let whole = self.constant(!(size - 1), I64);
            let whole = self.apply(Op::And, I64, &[moved, whole]);
            return self.apply(Op::Sub, I64, &[x, whole]);
        }
        let quotient = match size.trailing_zeros() {
            0 => moved,
            k => self.apply(Op::ShiftRight(k as u8), I64, &[moved]),
        };
        match divisor < 0 {
            true => self.apply(Op::Neg, I64, &[quotient]),
            false => quotient,
        }
    }

    /// `-x` where all bits of `sign` are set, `x` where none are.
    pub(super) fn negated_by(&mut self, x: Value, sign: Value) -> Value {
        let flipped = self.apply(Op::Xor, I64, &[x, sign]);
        self.apply(Op::Sub, I64, &[flipped, sign])
    }
}
