//! Arithmetic in every lane.

use super::values::Lanes128;
use crate::emit::emitter::{Emitter, Result, no_primitive};
use cranelift_codegen::ir::{
    InstBuilder, Value,
    condcodes::{CondCode, FloatCC, IntCC},
};
use cranelift_frontend::FunctionBuilder;
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, Boolean, F32, F64};

impl Emitter<'_, '_> {
    pub(super) fn each(
        &mut self,
        x: &Lanes128,
        f: impl Fn(&mut FunctionBuilder<'_>, Value) -> Value,
    ) -> Lanes128 {
        let registers = x.registers.iter();
        Lanes128 {
            registers: registers.map(|x| f(&mut self.builder, *x)).collect(),
            width: x.width,
        }
    }

    pub(super) fn each_two(
        &mut self,
        x: &Lanes128,
        y: &Lanes128,
        f: impl Fn(&mut FunctionBuilder<'_>, Value, Value) -> Value,
    ) -> Lanes128 {
        let pairs = x.registers.iter().zip(&y.registers);
        Lanes128 {
            registers: pairs.map(|(x, y)| f(&mut self.builder, *x, *y)).collect(),
            width: x.width,
        }
    }

    pub(super) fn vector_unary(
        &mut self,
        op: Unary,
        ty: ElementType,
        x: &Lanes128,
    ) -> Result<Lanes128> {
        let is_float = matches!(ty, F32 | F64);
        Ok(match op {
            Unary::Not if ty == Boolean || ty.is_integer() => self.each(x, |b, x| b.ins().bnot(x)),
            Unary::Neg if is_float => self.each(x, |b, x| b.ins().fneg(x)),
            Unary::Neg => self.each(x, |b, x| b.ins().ineg(x)),
            Unary::Abs if is_float => self.each(x, |b, x| b.ins().fabs(x)),
            Unary::Sqrt if is_float => self.each(x, |b, x| b.ins().sqrt(x)),
            Unary::Floor if is_float => self.each(x, |b, x| b.ins().floor(x)),
            Unary::Ceil if is_float => self.each(x, |b, x| b.ins().ceil(x)),
            Unary::Trunc if is_float => self.each(x, |b, x| b.ins().trunc(x)),
            Unary::Round if is_float => self.each(x, |b, x| b.ins().nearest(x)),
            _ => return self.lane_by_lane(ty, &[(ty, x)], |e, x| e.unary(op, ty, x[0])),
        })
    }

    /// `y_bits` are the bits of `y` if it is a constant.
    pub(super) fn vector_binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: &Lanes128,
        y: &Lanes128,
        y_bits: Option<u64>,
    ) -> Result<Lanes128> {
        match ty {
            F32 | F64 => self.vector_float(op, ty, x, y),
            Boolean => self.vector_boolean(op, x, y),
            _ => self.vector_integer(op, ty, x, y, y_bits),
        }
    }

    /// `sum` and the term `x · y`.
    pub(super) fn vector_add_term(
        &mut self,
        ty: ElementType,
        sum: &Lanes128,
        x: &Lanes128,
        y: &Lanes128,
    ) -> Result<Lanes128> {
        if !ty.is_float() {
            let term = self.vector_binary(Binary::Mul, ty, x, y, None)?;
            return self.vector_binary(Binary::Add, ty, sum, &term, None);
        }
        let factors = x.registers.iter().zip(&y.registers);
        let all = factors.zip(&sum.registers);
        Ok(Lanes128 {
            registers: all
                .map(|((x, y), sum)| self.builder.ins().fma(*x, *y, *sum))
                .collect(),
            width: sum.width,
        })
    }

    fn vector_float(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: &Lanes128,
        y: &Lanes128,
    ) -> Result<Lanes128> {
        use Binary::*;
        let compare =
            |cc| move |b: &mut FunctionBuilder<'_>, x: Value, y: Value| b.ins().fcmp(cc, x, y);
        Ok(match op {
            Add => self.each_two(x, y, |b, x, y| b.ins().fadd(x, y)),
            Sub => self.each_two(x, y, |b, x, y| b.ins().fsub(x, y)),
            Mul => self.each_two(x, y, |b, x, y| b.ins().fmul(x, y)),
            Div => self.each_two(x, y, |b, x, y| b.ins().fdiv(x, y)),
            // One instruction, which gives the second operand if one is NaN or both are zeros.
            Min | Max => {
                let order = match op {
                    Min => FloatCC::LessThan,
                    _ => FloatCC::GreaterThan,
                };
                let first = self.each_two(x, y, compare(order));
                self.vector_select(&first, ty, x, y)
            }
            Eq => self.each_two(x, y, compare(FloatCC::Equal)),
            Ne => self.each_two(x, y, compare(FloatCC::NotEqual)),
            Lt => self.each_two(x, y, compare(FloatCC::LessThan)),
            Le => self.each_two(x, y, compare(FloatCC::LessThanOrEqual)),
            Gt => self.each_two(x, y, compare(FloatCC::GreaterThan)),
            Ge => self.each_two(x, y, compare(FloatCC::GreaterThanOrEqual)),
            Rem | And | Or | Xor | Shl | Shr | MulHigh | Term | Pow => {
                let operands = [(ty, x), (ty, y)];
                return self.lane_by_lane(ty, &operands, |e, x| e.binary(op, ty, x[0], x[1], None));
            }
        })
    }

    fn vector_boolean(&mut self, op: Binary, x: &Lanes128, y: &Lanes128) -> Result<Lanes128> {
        use Binary::*;
        let width = x.width.max(y.width);
        let (x, y) = (self.masks(x, width), self.masks(y, width));
        let not = |this: &mut Self, x: &Lanes128| this.each(x, |b, x| b.ins().bnot(x));
        let and = |this: &mut Self, x: &Lanes128, y: &Lanes128| {
            this.each_two(x, y, |b, x, y| b.ins().band(x, y))
        };
        let or = |this: &mut Self, x: &Lanes128, y: &Lanes128| {
            this.each_two(x, y, |b, x, y| b.ins().bor(x, y))
        };
        let xor = |this: &mut Self, x: &Lanes128, y: &Lanes128| {
            this.each_two(x, y, |b, x, y| b.ins().bxor(x, y))
        };
        Ok(match op {
            And | Min => and(self, &x, &y),
            Or | Max => or(self, &x, &y),
            Xor | Ne => xor(self, &x, &y),
            Eq => {
                let differ = xor(self, &x, &y);
                not(self, &differ)
            }
            Lt => {
                let x = not(self, &x);
                and(self, &x, &y)
            }
            Le => {
                let x = not(self, &x);
                or(self, &x, &y)
            }
            Gt => {
                let y = not(self, &y);
                and(self, &x, &y)
            }
            Ge => {
                let y = not(self, &y);
                or(self, &x, &y)
            }
            _ => return no_primitive(format_args!("{op:?} of booleans")),
        })
    }

    fn vector_integer(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: &Lanes128,
        y: &Lanes128,
        y_bits: Option<u64>,
    ) -> Result<Lanes128> {
        use Binary::*;
        let less = match ty.is_signed_integer() {
            true => IntCC::SignedLessThan,
            false => IntCC::UnsignedLessThan,
        };
        let greater = less.swap_args();
        let compare =
            |cc| move |b: &mut FunctionBuilder<'_>, x: Value, y: Value| b.ins().icmp(cc, x, y);
        let amount = y_bits.filter(|y| *y < ty.bits() as u64).map(|y| y as i64);
        Ok(match (op, amount) {
            (Add, _) => self.each_two(x, y, |b, x, y| b.ins().iadd(x, y)),
            (Sub, _) => self.each_two(x, y, |b, x, y| b.ins().isub(x, y)),
            (Mul, _) if x.width > 1 => self.each_two(x, y, |b, x, y| b.ins().imul(x, y)),
            (And, _) => self.each_two(x, y, |b, x, y| b.ins().band(x, y)),
            (Or, _) => self.each_two(x, y, |b, x, y| b.ins().bor(x, y)),
            (Xor, _) => self.each_two(x, y, |b, x, y| b.ins().bxor(x, y)),
            (Eq, _) => self.each_two(x, y, compare(IntCC::Equal)),
            (Ne, _) => self.each_two(x, y, compare(IntCC::NotEqual)),
            (Lt, _) => self.each_two(x, y, compare(less)),
            (Ge, _) => self.each_two(x, y, compare(less.complement())),
            (Gt, _) => self.each_two(x, y, compare(greater)),
            (Le, _) => self.each_two(x, y, compare(greater.complement())),
            (Min | Max, _) => {
                let order = if op == Min { less } else { greater };
                let first = self.each_two(x, y, compare(order));
                self.vector_select(&first, ty, x, y)
            }
            (Shl, Some(by)) => self.each(x, |b, x| b.ins().ishl_imm_u(x, by)),
            (Shr, Some(by)) if ty.is_signed_integer() => {
                self.each(x, |b, x| b.ins().sshr_imm_u(x, by))
            }
            (Shr, Some(by)) => self.each(x, |b, x| b.ins().ushr_imm_u(x, by)),
            _ => {
                let operands = [(ty, x), (ty, y)];
                return self
                    .lane_by_lane(ty, &operands, |e, x| e.binary(op, ty, x[0], x[1], y_bits));
            }
        })
    }

    /// `yes` where the mask is set.
    pub(super) fn vector_select(
        &mut self,
        mask: &Lanes128,
        ty: ElementType,
        yes: &Lanes128,
        no: &Lanes128,
    ) -> Lanes128 {
        let (yes, no) = match ty {
            // Of masks the widths may differ.
            Boolean => {
                let width = yes.width.max(no.width);
                (&self.masks(yes, width), &self.masks(no, width))
            }
            _ => (yes, no),
        };
        let mask = self.masks(mask, yes.width);
        let mut registers = Vec::with_capacity(yes.registers.len());
        for ((&mask, &yes), &no) in mask.registers.iter().zip(&yes.registers).zip(&no.registers) {
            let ty = self.builder.func.dfg.value_type(yes);
            let mask = self.cast_register(mask, ty);
            registers.push(self.builder.ins().bitselect(mask, yes, no));
        }
        Lanes128 {
            registers,
            width: yes.width,
        }
    }
}
