//! Arithmetic on `f32` and `f64`.

use super::{Emitter, Result, no_primitive};
use cranelift_codegen::ir::{InstBuilder, Value, condcodes::FloatCC};
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
}
