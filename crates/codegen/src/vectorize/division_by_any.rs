//! Quotients and remainders of `i64` by any divisor, computed in `f64`: by one division of small numbers, by two of others.

use super::build::Builder;
use crate::vector_ir::ops::{Comparison, Op};
use crate::vector_ir::program::Value;
use vinelift_nest::{Binary, Rounding};
use vinelift_tensor::ElementType::{self, Boolean, F64, I64, U64};

/// The bits of 2⁵², of which the low ones are those of a whole number that is added to it.
pub(super) const TWO_52: u64 = (1023 + 52) << 52;
/// The same of 2⁸⁴, whose last place is 2³².
const TWO_84: u64 = (1023 + 84) << 52;
/// 1.5 · 2⁵²: the same for numbers of either sign below 2⁵¹.
pub(super) const MAGIC: u64 = TWO_52 | 1 << 51;
const TOP: u64 = 1 << 63;

impl Builder<'_, '_> {
    /// `op(x, y)`, of numbers from -2⁵⁰ up to 2⁵⁰ in `f64`.
    ///
    /// There, a quotient that is no whole number lies at least `1 / |y|` from the next, and is rounded by `|x / y| 2⁻⁵³` at most,
    /// which is less: it stays on its side. The remainder is a number of the same size, and exact.
    pub(super) fn divided_by_any(
        &mut self,
        op: Binary,
        rounding: Rounding,
        [x, y]: [Value; 2],
    ) -> Option<Value> {
        let [(a, a_is_large), (b, b_is_large)] = [x, y].map(|x| self.small_float(x));
        let quotient = self.apply(Op::Div, F64, &[a, b]);
        let whole = match rounding {
            Rounding::TowardZero => Op::Trunc,
            Rounding::Down => Op::Floor,
        };
        let quotient = self.apply(whole, F64, &[quotient]);
        let near = match op {
            Binary::Rem => {
                let negative = self.apply(Op::Neg, F64, &[quotient]);
                self.apply(Op::MulAdd, F64, &[negative, b, a])
            }
            _ => quotient,
        };
        let magic = self.constant(MAGIC, F64);
        let near = self.apply(Op::Add, F64, &[near, magic]);
        let near = self.apply(Op::Sub, I64, &[near, magic]);
        let is_by_zero = self.with(Op::Compare(Comparison::Equal), I64, y, 0);
        let is_far = self.apply(Op::Or, Boolean, &[a_is_large, b_is_large]);
        let is_far = self.apply(Op::Or, Boolean, &[is_far, is_by_zero]);
        self.rarely(is_far, I64, near, |this| {
            let far = this.divided_twice(op, rounding, [x, y]);
            let zero = this.constant(0, I64);
            Some(this.apply(Op::Select, I64, &[is_by_zero, zero, far]))
        })
    }

    /// The float that a number from -2⁵⁰ up to 2⁵⁰ is, and whether it is not among these.
    fn small_float(&mut self, x: Value) -> (Value, Value) {
        let moved = self.with(Op::Add, I64, x, TOP | 1 << 50);
        let most = (TOP | 1 << 51) - 1;
        let is_large = self.with(Op::Compare(Comparison::Greater), I64, moved, most);
        let float = self.with(Op::Xor, U64, moved, TOP | TWO_52);
        let middle = 2f64.powi(52) + 2f64.powi(50);
        let float = self.with(Op::Sub, F64, float, middle.to_bits());
        (float, is_large)
    }

    /// `op(x, y)` of any numbers but a divisor 0, by sizes `u` and `v` up to 2⁶³.
    ///
    /// A quotient in floats has four roundings, which make up less than a part of 2⁻⁵⁰: of `u`, of `v`, of the reciprocal and of the
    /// product. With a reciprocal that is less by such a part, it is never too large, and too small by less than a part of 2⁻⁴⁹. So its
    /// whole part `q` leaves `u - q v` from 0 up to `v + 2¹⁴`. Of that, the quotient is found in the same way, to the right whole number
    /// or to one less.
    fn divided_twice(&mut self, op: Binary, rounding: Rounding, [x, y]: [Value; 2]) -> Value {
        let [x_sign, y_sign] = [x, y].map(|x| self.apply(Op::ShiftRight(63), I64, &[x]));
        let u = self.negated_by(x, x_sign);
        let v = self.negated_by(y, y_sign);
        let divisor = self.float(v);
        let less = self.constant((1.0 - 2f64.powi(-50)).to_bits(), F64);
        let reciprocal = self.apply(Op::Div, F64, &[less, divisor]);
        let first = self.quotient_in_floats(u, reciprocal);
        let rest = self.rest(u, first, v);
        let second = self.quotient_in_floats(rest, reciprocal);
        let rest = self.rest(rest, second, v);
        let is_one_more = self.apply(Op::Compare(Comparison::GreaterOrEqual), U64, &[rest, v]);
        let once = self.apply(Op::Sub, I64, &[rest, v]);
        let rest = self.apply(Op::Select, I64, &[is_one_more, once, rest]);
        let sign = self.apply(Op::Xor, I64, &[x_sign, y_sign]);
        let result = match op {
            Binary::Rem => self.negated_by(rest, x_sign),
            _ => {
                let quotient = self.apply(Op::Add, I64, &[first, second]);
                let one = self.apply(Op::MaskedConstant(1), I64, &[is_one_more]);
                let quotient = self.apply(Op::Add, I64, &[quotient, one]);
                self.negated_by(quotient, sign)
            }
        };
        if rounding == Rounding::TowardZero {
            return result;
        }
        // Where the signs differ, a quotient that is not whole is one less.
        let down = match op {
            Binary::Rem => self.apply(Op::And, I64, &[sign, y]),
            _ => sign,
        };
        let is_whole = self.with(Op::Compare(Comparison::Equal), I64, rest, 0);
        let nothing = self.constant(0, I64);
        let down = self.apply(Op::Select, I64, &[is_whole, nothing, down]);
        self.apply(Op::Add, I64, &[result, down])
    }

    /// `x - q v`
    fn rest(&mut self, x: Value, quotient: Value, v: Value) -> Value {
        let product = self.apply(Op::Mul, I64, &[quotient, v]);
        self.apply(Op::Sub, I64, &[x, product])
    }

    /// The whole part of a number up to 2⁶³, and a little, times a reciprocal.
    fn quotient_in_floats(&mut self, x: Value, reciprocal: Value) -> Value {
        let x = self.float(x);
        let quotient = self.apply(Op::Mul, F64, &[x, reciprocal]);
        let high = self.with(Op::Mul, F64, quotient, 2f64.powi(-32).to_bits());
        let high = self.apply(Op::Floor, F64, &[high]);
        let factor = self.constant((-2f64.powi(32)).to_bits(), F64);
        let low = self.apply(Op::MulAdd, F64, &[high, factor, quotient]);
        let low = self.apply(Op::Floor, F64, &[low]);
        let [high, low] = [high, low].map(|half| self.with(Op::Add, F64, half, TWO_52));
        let high = self.apply(Op::ShiftLeft(32), U64, &[high]);
        let low = self.with(Op::Xor, U64, low, TWO_52);
        self.apply(Op::Add, U64, &[high, low])
    }

    /// The float next to a number without a sign: its halves are exact, and added.
    fn float(&mut self, x: Value) -> Value {
        let high = self.apply(Op::ShiftRight(32), U64, &[x]);
        let high = self.with(Op::Or, U64, high, TWO_84);
        let low = self.with(Op::And, U64, x, u64::MAX >> 32);
        let low = self.with(Op::Or, U64, low, TWO_52);
        let both = 2f64.powi(84) + 2f64.powi(52);
        let high = self.with(Op::Sub, F64, high, both.to_bits());
        self.apply(Op::Add, F64, &[high, low])
    }

    /// `op(x, y)` with a constant `y`.
    pub(super) fn with(&mut self, op: Op, ty: ElementType, x: Value, y: u64) -> Value {
        let y = self.constant(y, ty);
        self.apply(op, ty, &[x, y])
    }
}
