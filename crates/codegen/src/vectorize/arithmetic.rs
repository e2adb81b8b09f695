//! Arithmetic on all lanes, as operations of the vector program.

use super::build::Builder;
use crate::vector_ir::ops::{Comparison, Op, is_float, is_whole_integer, lane_bytes};
use crate::vector_ir::program::Value;
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, *};

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
        let amount = y_bits.filter(|y| *y < ty.bits() as u64).map(|y| y as u8);
        let shift = match (op, amount) {
            (Binary::Shl, Some(amount)) => Some(Op::ShiftLeft(amount)),
            (Binary::Shr, Some(amount)) => Some(Op::ShiftRight(amount)),
            _ => None,
        };
        Some(match shift.filter(|_| ty != Boolean) {
            Some(shift) => self.apply(shift, ty, &[x]),
            None => self.apply(Op::of_binary(op)?, ty, &[x, y]),
        })
    }

    pub(super) fn cast(&mut self, x: Value, from: ElementType, to: ElementType) -> Option<Value> {
        if from == to {
            return Some(x);
        }
        if from == Boolean {
            let one = match to {
                F32 => u64::from(1f32.to_bits()),
                F64 => 1f64.to_bits(),
                _ if is_whole_integer(to) => 1,
                _ => return None,
            };
            return Some(self.apply(Op::MaskedConstant(one), to, &[x]));
        }
        if to == Boolean {
            if is_whole_integer(from) {
                return Some(self.apply(Op::IsNonZero, from, &[x]));
            }
            let zero = self.constant(0, from);
            let differs = Op::Compare(Comparison::NotEqual);
            return is_float(from).then(|| self.apply(differs, from, &[x, zero]));
        }
        let narrow = |ty: ElementType| is_whole_integer(ty) && lane_bytes(ty) < 4;
        // The low byte is 0 from 2³¹ on, as it is of the integer that stands for what has no `i32`.
        if from == F32 && matches!(to, I8 | U8) {
            let words = self.apply(Op::Convert { from: F32 }, I32, &[x]);
            return Some(self.apply(Op::Convert { from: I32 }, to, &[words]));
        }
        // All narrower integers are exact in `i32`.
        if narrow(from) && !is_whole_integer(to) {
            let words = self.apply(Op::Convert { from }, I32, &[x]);
            return Some(self.apply(Op::Convert { from: I32 }, to, &[words]));
        }
        Some(self.apply(Op::Convert { from }, to, &[x]))
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
