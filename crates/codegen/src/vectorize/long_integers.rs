//! Floats to `i64`, for machines without an instruction.

use super::build::Builder;
use super::division_by_any::{MAGIC, TWO_52};
use crate::vector_ir::ops::{Comparison, Op};
use crate::vector_ir::program::Value;
use vinelift_tensor::ElementType::{self, Boolean, F32, F64, I64, U64};

impl Builder<'_, '_> {
    /// The whole part of a float as an `i64`; the smallest `i64` where that does not fit. Below 2⁵¹, adding 1.5·2⁵² puts it into the
    /// low bits; larger numbers are converted in two halves.
    pub(super) fn long_integers(&mut self, x: Value, from: ElementType) -> Option<Value> {
        let x = match from {
            F32 => self.apply(Op::Convert { from }, F64, &[x]),
            _ => x,
        };
        let whole = self.apply(Op::Trunc, F64, &[x]);
        let size = self.apply(Op::Abs, F64, &[whole]);
        let below = |this: &mut Self, log2| {
            let limit = 2f64.powi(log2).to_bits();
            this.with(Op::Compare(Comparison::Less), F64, size, limit)
        };
        let is_near = below(self, 51);
        let is_far = self.apply(Op::Not, Boolean, &[is_near]);
        let magic = self.constant(MAGIC, F64);
        let near = self.apply(Op::Add, F64, &[whole, magic]);
        let near = self.apply(Op::Sub, I64, &[near, magic]);
        self.rarely(is_far, I64, near, |this| {
            let high = this.with(Op::Mul, F64, whole, 2f64.powi(-32).to_bits());
            let high = this.apply(Op::Floor, F64, &[high]);
            let factor = this.constant((-2f64.powi(32)).to_bits(), F64);
            let low = this.apply(Op::MulAdd, F64, &[high, factor, whole]);
            let high = this.apply(Op::Add, F64, &[high, magic]);
            let high = this.apply(Op::ShiftLeft(32), U64, &[high]);
            let low = this.with(Op::Add, F64, low, TWO_52);
            let low = this.with(Op::Xor, U64, low, TWO_52);
            let sum = this.apply(Op::Add, I64, &[high, low]);
            let is_number = below(this, 63);
            let smallest = this.constant(1 << 63, I64);
            Some(this.apply(Op::Select, I64, &[is_number, sum, smallest]))
        })
    }
}
