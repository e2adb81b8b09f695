//! Arithmetic on integers and booleans, in registers of their own width.

use super::emitter::{Emitter, Result, no_primitive, register};
use cranelift_codegen::ir::{
    InstBuilder, Value,
    condcodes::{CondCode, IntCC},
    types,
};
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, Boolean, U64};

impl Emitter<'_, '_> {
    pub(super) fn integer_unary(&mut self, op: Unary, ty: ElementType, x: Value) -> Result<Value> {
        Ok(match op {
            Unary::Not if ty == Boolean => self.builder.ins().bxor_imm_u(x, 1),
            Unary::Rarely if ty == Boolean => x,
            _ if !is_number(ty) => return no_primitive(format_args!("{op:?} of {ty}")),
            Unary::Not => self.builder.ins().bnot(x),
            Unary::Neg => self.builder.ins().ineg(x),
            Unary::Abs if ty.is_unsigned_integer() => x,
            Unary::Abs => {
                let negated = self.builder.ins().ineg(x);
                let negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, x, 0);
                self.builder.ins().select(negative, negated, x)
            }
            _ => return no_primitive(format_args!("{op:?} of {ty}")),
        })
    }

    pub(super) fn integer_binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: Value,
        y: Value,
        y_bits: Option<u64>,
    ) -> Result<Value> {
        use Binary::*;
        let defined = match op {
            Eq | Ne => ty.is_arithmetic() || ty == ElementType::String,
            And | Or | Xor | Min | Max | Lt | Le | Gt | Ge => ty.is_arithmetic(),
            MulHigh => ty == U64,
            _ => is_number(ty),
        };
        if !defined {
            return no_primitive(format_args!("{op:?} of {ty}"));
        }
        let signed = ty.is_signed_integer();
        let less = if signed {
            IntCC::SignedLessThan
        } else {
            IntCC::UnsignedLessThan
        };
        let greater = less.swap_args();
        let ins = self.builder.ins();
        Ok(match op {
            Add => ins.iadd(x, y),
            Sub => ins.isub(x, y),
            Mul | Term => ins.imul(x, y),
            MulHigh => ins.umulhi(x, y),
            And => ins.band(x, y),
            Or => ins.bor(x, y),
            Xor => ins.bxor(x, y),
            Eq => ins.icmp(IntCC::Equal, x, y),
            Ne => ins.icmp(IntCC::NotEqual, x, y),
            Lt => ins.icmp(less, x, y),
            Ge => ins.icmp(less.complement(), x, y),
            Gt => ins.icmp(greater, x, y),
            Le => ins.icmp(greater.complement(), x, y),
            Min | Max => {
                let first = ins.icmp(if op == Min { less } else { greater }, x, y);
                self.builder.ins().select(first, x, y)
            }
            Shl | Shr => self.shift(op, ty, x, y, y_bits),
            Div | Rem => self.divide(op, ty, x, y, y_bits),
            Pow => return no_primitive(format_args!("{op:?} of {ty}")),
        })
    }

    fn shift(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: Value,
        y: Value,
        y_bits: Option<u64>,
    ) -> Value {
        let bits = ty.bits() as u64;
        // Unsigned: a negative amount is above any width.
        let within = match y_bits {
            Some(y) if y < bits => None,
            _ => Some(
                self.builder
                    .ins()
                    .icmp_imm_u(IntCC::UnsignedLessThan, y, bits as i64),
            ),
        };
        if op == Binary::Shr && ty.is_signed_integer() {
            let y = match within {
                Some(within) => {
                    let most = self.constant(bits - 1, ty);
                    self.builder.ins().select(within, y, most)
                }
                None => y,
            };
            return self.builder.ins().sshr(x, y);
        }
        let ins = self.builder.ins();
        let shifted = if op == Binary::Shl {
            ins.ishl(x, y)
        } else {
            ins.ushr(x, y)
        };
        match within {
            Some(within) => {
                let zero = self.zero(ty);
                self.builder.ins().select(within, shifted, zero)
            }
            None => shifted,
        }
    }

    /// `Div` or `Rem`; neither instruction ever meets a divisor that it traps on.
    fn divide(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: Value,
        y: Value,
        y_bits: Option<u64>,
    ) -> Value {
        let signed = ty.is_signed_integer();
        // Cranelift divides by constants without a division only from 32 bits on.
        let wide = if ty.bits() < 32 {
            types::I32
        } else {
            register(ty)
        };
        let (x, y) = (self.extend(x, ty, wide), self.extend(y, ty, wide));
        let minus_one = u64::MAX >> (64 - ty.bits());
        let special = match y_bits {
            Some(y) if y != 0 && !(signed && y == minus_one) => None,
            _ if signed => {
                // 0 and -1: the quotient is the product, the remainder is 0.
                let above = self.builder.ins().iadd_imm_s(y, 1);
                Some(
                    self.builder
                        .ins()
                        .icmp_imm_u(IntCC::UnsignedLessThan, above, 2),
                )
            }
            _ => Some(self.builder.ins().icmp_imm_u(IntCC::Equal, y, 0)),
        };
        let divisor = match special {
            Some(special) => {
                let one = self.builder.ins().iconst(wide, 1);
                self.builder.ins().select(special, one, y)
            }
            None => y,
        };
        let ins = self.builder.ins();
        let regular = match (op, signed) {
            (Binary::Div, true) => ins.sdiv(x, divisor),
            (Binary::Div, false) => ins.udiv(x, divisor),
            (_, true) => ins.srem(x, divisor),
            (_, false) => ins.urem(x, divisor),
        };
        let value = match special {
            Some(special) => {
                let exception = match op {
                    Binary::Div => self.builder.ins().imul(x, y),
                    _ => self.builder.ins().iconst(wide, 0),
                };
                self.builder.ins().select(special, exception, regular)
            }
            None => regular,
        };
        if wide == register(ty) {
            value
        } else {
            self.builder.ins().ireduce(register(ty), value)
        }
    }

    /// `Div` or `Rem` of two `i64` that are not negative: unsigned is cheaper.
    pub(super) fn divide_natural(
        &mut self,
        op: Binary,
        x: Value,
        y: Value,
        y_bits: Option<u64>,
    ) -> Value {
        self.divide(op, U64, x, y, y_bits)
    }
}

fn is_number(ty: ElementType) -> bool {
    ty.is_integer() && ty.is_arithmetic()
}
