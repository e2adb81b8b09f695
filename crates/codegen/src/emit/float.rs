//! Arithmetic on `f32` and `f64`.

use super::emitter::{Emitter, Result, no_primitive};
use cranelift_codegen::ir::{
    Endianness, InstBuilder, MemFlagsData, Value, condcodes::FloatCC, types,
};
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType;

impl Emitter<'_, '_> {
    pub(super) fn float_unary(&mut self, op: Unary, ty: ElementType, x: Value) -> Result<Value> {
        let ins = self.builder.ins();
        Ok(match op {
            Unary::Neg => ins.fneg(x),
            Unary::Abs => ins.fabs(x),
            Unary::Sqrt => ins.sqrt(x),
            Unary::Floor => ins.floor(x),
            Unary::Ceil => ins.ceil(x),
            Unary::Trunc => ins.trunc(x),
            Unary::Round => ins.nearest(x),
            _ => return no_primitive(format_args!("{op:?} of {ty}")),
        })
    }

    pub(super) fn float_binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: Value,
        y: Value,
    ) -> Result<Value> {
        use Binary::*;
        let ins = self.builder.ins();
        Ok(match op {
            Add => ins.fadd(x, y),
            Sub => ins.fsub(x, y),
            Mul => ins.fmul(x, y),
            // The fold around it adds it: [`Emitter::add_term`].
            Term => return no_primitive("a term outside a sum"),
            Div => ins.fdiv(x, y),
            Rem => self.float_rem(ty, x, y),
            // Not `fmin`: which operand comes out if one is NaN, or both are zeros, is defined.
            Min | Max => {
                let order = if op == Min {
                    FloatCC::LessThan
                } else {
                    FloatCC::GreaterThan
                };
                if self.analysis.has_vectors {
                    return Ok(self.float_choice(order, ty, x, y));
                }
                let first = ins.fcmp(order, x, y);
                self.builder.ins().select(first, x, y)
            }
            Eq => ins.fcmp(FloatCC::Equal, x, y),
            Ne => ins.fcmp(FloatCC::NotEqual, x, y),
            Lt => ins.fcmp(FloatCC::LessThan, x, y),
            Le => ins.fcmp(FloatCC::LessThanOrEqual, x, y),
            Gt => ins.fcmp(FloatCC::GreaterThan, x, y),
            Ge => ins.fcmp(FloatCC::GreaterThanOrEqual, x, y),
            And | Or | Xor | Shl | Shr | MulHigh | Pow => {
                return no_primitive(format_args!("{op:?} of {ty}"));
            }
        })
    }

    /// `x` if it is in this order with `y`, or else `y`: one instruction on registers of vectors, where a
    /// select of floats would be a branch, which data make hard to predict.
    fn float_choice(&mut self, order: FloatCC, ty: ElementType, x: Value, y: Value) -> Value {
        let vector = match ty {
            ElementType::F32 => types::F32X4,
            _ => types::F64X2,
        };
        let x = self.builder.ins().scalar_to_vector(vector, x);
        let y = self.builder.ins().scalar_to_vector(vector, y);
        let first = self.builder.ins().fcmp(order, x, y);
        let little = MemFlagsData::new().with_endianness(Endianness::Little);
        let first = self.builder.ins().bitcast(vector, little, first);
        let chosen = self.builder.ins().bitselect(first, x, y);
        self.builder.ins().extractlane(chosen, 0)
    }
}
