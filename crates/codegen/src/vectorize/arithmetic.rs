//! Arithmetic on all lanes, as operations of the vector program.

use super::build::Builder;
use crate::target::Target;
use crate::vector_ir::ops::{LaneOp, Op, cast_steps, is_float};
use crate::vector_ir::program::Value;
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, Boolean, I64};

impl Builder<'_, '_> {
    /// These bits in all lanes.
    pub(super) fn constant(&mut self, bits: u64, ty: ElementType) -> Value {
        self.throughout(Op::Constant(bits), ty)
    }

    pub(super) fn unary(&mut self, op: Unary, ty: ElementType, x: Value) -> Option<Value> {
        if op == Unary::Rarely {
            return Some(x);
        }
        let op = Op::of_unary(op).or_else(|| self.by_lane(LaneOp::Unary(op)))?;
        Some(self.apply(op, ty, &[x]))
    }

    /// `y_bits` are the bits of `y` if it is a constant.
    pub(super) fn binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        [x, y]: [Value; 2],
        y_bits: Option<u64>,
    ) -> Option<Value> {
        if let Some(shift) = Op::of_shift(op, ty, y_bits) {
            return Some(self.apply(shift, ty, &[x]));
        }
        let op = Op::of_binary(op).or_else(|| self.by_lane(LaneOp::Binary(op, y_bits)))?;
        Some(self.apply(op, ty, &[x, y]))
    }

    pub(super) fn cast(&mut self, x: Value, from: ElementType, to: ElementType) -> Option<Value> {
        if to == I64 && is_float(from) && self.target == Some(Target::Avx2) {
            return self.long_integers(x, from);
        }
        let by_lane = || Some(vec![(self.by_lane(LaneOp::Cast(from))?, to)]);
        let steps = cast_steps(from, to).or_else(by_lane)?;
        Some(
            steps
                .into_iter()
                .fold(x, |x, (op, ty)| self.apply(op, ty, &[x])),
        )
    }

    /// The operation that does it lane by lane, inside the kernel.
    pub(super) fn by_lane(&self, op: LaneOp) -> Option<Op> {
        self.is_in_kernel().then_some(Op::ByLane(op))
    }

    pub(super) fn bitcast(&mut self, x: Value, from: ElementType, to: ElementType) -> Value {
        match (from, to) {
            (Boolean, Boolean) => x,
            (Boolean, _) => self.apply(Op::MaskedConstant(1), to, &[x]),
            (_, Boolean) => self.apply(Op::IsNonZero, from, &[x]),
            _ => x,
        }
    }
}
