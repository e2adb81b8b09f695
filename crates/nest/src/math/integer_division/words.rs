//! Quotients and remainders of `i32` in lanes of 32 bits: by one quotient in `f32` of numbers below 2²⁴, by two of others.

use super::Rounding;
use crate::build::{fma, integer, number, rarely, select};
use crate::ir::{Binary, Scalar};
use vinelift_tensor::ElementType::*;

/// A division of two `i32`.
pub(super) struct WordDivision {
    y: Scalar,
    /// As floats, and their quotient.
    near: [Scalar; 3],
    /// Whether one is not below 2²⁴.
    is_far: Scalar,
    far: FarDivision,
}

impl WordDivision {
    pub(super) fn new(x: &Scalar, y: &Scalar) -> WordDivision {
        let [a, b] = [x, y].map(|x| x.clone().cast(F32));
        let quotient = &a / &b;
        // The smallest number has a size that is none, with its top bit set.
        let large = (x.abs() | y.abs()) & integer(-(1 << 24), I32);
        WordDivision {
            far: FarDivision::new(x, y, &b),
            near: [a, b, quotient],
            is_far: rarely(large.ne(integer(0, I32))),
            y: y.clone(),
        }
    }

    /// 0 where the divisor is 0.
    pub(super) fn result(&self, op: Binary, rounding: Rounding) -> Scalar {
        let far = self.far.result(op, rounding, &self.y);
        let value = select(self.is_far.clone(), far, self.near(op, rounding));
        let zero = integer(0, I32);
        select(self.y.eq(zero.clone()), zero, value)
    }

    /// Of numbers below 2²⁴: a quotient that is no whole number lies at least `1 / |y|` from the next one, and is rounded by
    /// `|x / y| 2⁻²⁴` at most, which is less. The remainder is a whole number below 2²⁴, and exact.
    fn near(&self, op: Binary, rounding: Rounding) -> Scalar {
        let [a, b, quotient] = &self.near;
        let whole = match rounding {
            Rounding::TowardZero => quotient.trunc(),
            Rounding::Down => quotient.floor(),
        };
        let value = match op {
            Binary::Rem => fma(&-whole, b, a),
            _ => whole,
        };
        value.cast(I32)
    }
}

/// A division of any numbers but by 0.
struct FarDivision {
    /// -1 where the quotient is negative, else 0.
    sign: Scalar,
    quotient: Scalar,
    rest: Scalar,
}

impl FarDivision {
    /// A quotient in floats has four roundings, which make up less than a part of 2⁻²¹: of `x`, of `y`, of the reciprocal and of the
    /// product. With a reciprocal that is smaller by such a part, its size is never too large, and too small by less than a part of 2⁻²⁰.
    /// So its whole part `q` leaves `x - q y`, with the sign of `x` and of a size up to `|y| + 2¹¹`. Of that, the quotient is found in the
    /// same way, to the right whole number or to one less.
    fn new(x: &Scalar, y: &Scalar, divisor: &Scalar) -> FarDivision {
        let reciprocal = number(1.0 - 2f64.powi(-21), F32) / divisor;
        let quotient = |x: &Scalar| (x.clone().cast(F32) * &reciprocal).cast(I32);
        let first = quotient(x);
        let rest = x - &first * y;
        let second = quotient(&rest);
        let rest = &rest - &second * y;
        let size = |x: &Scalar| x.abs().bitcast(U32);
        let is_one_more = size(&rest).ge(size(y));
        let [x_sign, sign] = [x.clone(), x ^ y].map(|x| x.shr(integer(31, I32)));
        let zero = || integer(0, I32);
        let one = select(is_one_more.clone(), &sign | integer(1, I32), zero());
        let once = (y.abs() ^ &x_sign) - x_sign;
        FarDivision {
            quotient: first + second + one,
            rest: &rest - select(is_one_more, once, zero()),
            sign,
        }
    }

    fn result(&self, op: Binary, rounding: Rounding, y: &Scalar) -> Scalar {
        let result = match op {
            Binary::Rem => &self.rest,
            _ => &self.quotient,
        };
        if rounding == Rounding::TowardZero {
            return result.clone();
        }
        // Where the signs differ, a quotient that is not whole is one less.
        let down = match op {
            Binary::Rem => &self.sign & y,
            _ => self.sign.clone(),
        };
        let zero = integer(0, I32);
        result + select(self.rest.eq(zero.clone()), zero, down)
    }
}
