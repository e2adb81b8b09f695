//! Arithmetic on all lanes, as operations of the vector program.

use super::build::Builder;
use crate::vector_ir::ops::{Op, cast_steps};
use crate::vector_ir::program::Value;
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, Boolean};

impl Builder<'_, '_> {
    /// These bits in all lanes.
    pub(super) fn constant(&mut self, bits: u64, ty: ElementType) -> Value {
        self.throughout(Op::Constant(bits), ty)
    }

    pub(super) fn unary(&mut self, op: Unary, ty: ElementType, x: Value) -> Option<Value> {
        Some(self.apply(Op::of_unary(op)?, ty, &[x]))
    }

    /// `y_bits` are the bits of `y` if it is a constant.
    pub(super) fn binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        [x, y]: [Value; 2],
        y_bits: Option<u64>,
    ) -> Option<Value> {
        Some(match Op::of_shift(op, ty, y_bits) {
            Some(shift) => self.apply(shift, ty, &[x]),
            None => self.apply(Op::of_binary(op)?, ty, &[x, y]),
        })
    }

    pub(super) fn cast(&mut self, x: Value, from: ElementType, to: ElementType) -> Option<Value> {
        let steps = cast_steps(from, to)?;
        Some(
            steps
                .into_iter()
                .fold(x, |x, (op, ty)| self.apply(op, ty, &[x])),
        )
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
