//! Cranelift's vectors of 128 bits (SSE4.1, NEON): the portable back end of the operations on lanes.
//!
//! A value takes as many registers as its lanes fill, so that all values have the same number of lanes whatever their
//! width. Masks are lanes of zeros or ones, of any width, and are resized to that of the lanes that they govern.

mod memory;
mod widths;

use crate::vector_ir::ops::{Comparison, Op, is_float, is_whole_integer, lane_bytes};
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, Type, Value,
    condcodes::{CondCode, FloatCC, IntCC},
    types,
};
use cranelift_frontend::FunctionBuilder;
use vinelift_tensor::ElementType::{self, Boolean, F32, F64, I32, U32};

/// The values of a scalar at consecutive points: registers of 128 bits, the first points first. What
/// fills less than one register lies in its low part.
#[derive(Clone, Debug)]
pub(crate) struct Lanes128 {
    pub(crate) registers: Vec<Value>,
    /// Bytes of one lane. Booleans are masks, all ones for true, of any width.
    pub(crate) width: usize,
}

/// Puts operations on `lanes` lanes into a function.
pub(crate) struct Clif128<'a, 'f> {
    pub(crate) builder: &'a mut FunctionBuilder<'f>,
    pub(crate) lanes: usize,
    pub(crate) is_x86: bool,
}

/// How a value is held in a register: floats of 32 and 64 bits as such, all else as its bits with
/// zeros above them, booleans as 0 and 1.
pub(crate) fn register(ty: ElementType) -> Type {
    match ty {
        ElementType::F32 => types::F32,
        ElementType::F64 => types::F64,
        _ => match ty.bits() {
            ..=8 => types::I8,
            16 => types::I16,
            32 => types::I32,
            _ => types::I64,
        },
    }
}

/// The type of a register full of elements that are held in registers of type `element`.
pub(crate) fn vector(element: Type) -> Type {
    let lanes = 128 / element.bits();
    element.by(lanes).unwrap_or(types::I8X16)
}

/// The integer type of `width` bytes.
pub(crate) fn integer(width: usize) -> Type {
    match width {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}

impl Clif128<'_, '_> {
    /// The result of an operation; `None` if there are no instructions for it.
    pub(crate) fn apply(
        &mut self,
        op: Op,
        ty: ElementType,
        operands: &[&Lanes128],
    ) -> Option<Lanes128> {
        let typed: Vec<Lanes128> = operands
            .iter()
            .enumerate()
            .map(|(k, x)| match op.operand_type(k, ty) {
                Boolean => (*x).clone(),
                operand => self.reinterpreted(x, operand),
            })
            .collect();
        match (op, &typed[..]) {
            (Op::Convert { from }, [x]) => self.convert(x, from, ty),
            (Op::MaskedConstant(bits), [mask]) => Some(self.masked_constant(mask, bits, ty)),
            (Op::IsNonZero, [x]) => Some(self.is_not_zero(ty, x)),
            (op, [x]) => self.unary(op, ty, x),
            (op, [x, y]) => match ty {
                F32 | F64 => self.floats(op, ty, x, y),
                Boolean => self.booleans(op, x, y),
                _ => self.integers(op, ty, x, y),
            },
            (Op::Select, [mask, yes, no]) => Some(self.select(mask, ty, yes, no)),
            (Op::MulAdd, [x, y, sum]) if is_float(ty) => Some(self.multiply_add(x, y, sum)),
            _ => None,
        }
    }

    fn unary(&mut self, op: Op, ty: ElementType, x: &Lanes128) -> Option<Lanes128> {
        let floats = is_float(ty);
        let signed = ty.is_signed_integer();
        Some(match op {
            Op::Not if ty == Boolean || ty.is_integer() => self.each(x, |b, x| b.ins().bnot(x)),
            Op::Neg if floats => self.each(x, |b, x| b.ins().fneg(x)),
            Op::Neg => self.each(x, |b, x| b.ins().ineg(x)),
            Op::Abs if floats => self.each(x, |b, x| b.ins().fabs(x)),
            Op::Abs if signed => self.each(x, |b, x| b.ins().iabs(x)),
            Op::Abs if ty != Boolean => x.clone(),
            Op::Sqrt if floats => self.each(x, |b, x| b.ins().sqrt(x)),
            Op::Floor if floats => self.each(x, |b, x| b.ins().floor(x)),
            Op::Ceil if floats => self.each(x, |b, x| b.ins().ceil(x)),
            Op::Trunc if floats => self.each(x, |b, x| b.ins().trunc(x)),
            Op::Round if floats => self.each(x, |b, x| b.ins().nearest(x)),
            Op::ShiftLeft(by) if !floats => {
                self.each(x, |b, x| b.ins().ishl_imm_u(x, i64::from(by)))
            }
            Op::ShiftRight(by) if signed => {
                self.each(x, |b, x| b.ins().sshr_imm_u(x, i64::from(by)))
            }
            Op::ShiftRight(by) if !floats => {
                self.each(x, |b, x| b.ins().ushr_imm_u(x, i64::from(by)))
            }
            _ => return None,
        })
    }

    fn multiply_add(&mut self, x: &Lanes128, y: &Lanes128, sum: &Lanes128) -> Lanes128 {
        let factors = x.registers.iter().zip(&y.registers);
        let all = factors.zip(&sum.registers);
        Lanes128 {
            registers: all
                .map(|((x, y), sum)| self.builder.ins().fma(*x, *y, *sum))
                .collect(),
            width: sum.width,
        }
    }

    fn floats(&mut self, op: Op, ty: ElementType, x: &Lanes128, y: &Lanes128) -> Option<Lanes128> {
        use Comparison::*;
        let compare =
            |cc| move |b: &mut FunctionBuilder<'_>, x: Value, y: Value| b.ins().fcmp(cc, x, y);
        Some(match op {
            Op::Add => self.each_two(x, y, |b, x, y| b.ins().fadd(x, y)),
            Op::Sub => self.each_two(x, y, |b, x, y| b.ins().fsub(x, y)),
            Op::Mul => self.each_two(x, y, |b, x, y| b.ins().fmul(x, y)),
            Op::Div => self.each_two(x, y, |b, x, y| b.ins().fdiv(x, y)),
            // One instruction, which gives the second operand if one is NaN or both are zeros.
            Op::Min | Op::Max => {
                let order = match op {
                    Op::Min => FloatCC::LessThan,
                    _ => FloatCC::GreaterThan,
                };
                let first = self.each_two(x, y, compare(order));
                self.select(&first, ty, x, y)
            }
            Op::Compare(Equal) => self.each_two(x, y, compare(FloatCC::Equal)),
            Op::Compare(NotEqual) => self.each_two(x, y, compare(FloatCC::NotEqual)),
            Op::Compare(Less) => self.each_two(x, y, compare(FloatCC::LessThan)),
            Op::Compare(LessOrEqual) => self.each_two(x, y, compare(FloatCC::LessThanOrEqual)),
            Op::Compare(Greater) => self.each_two(x, y, compare(FloatCC::GreaterThan)),
            Op::Compare(GreaterOrEqual) => {
                self.each_two(x, y, compare(FloatCC::GreaterThanOrEqual))
            }
            _ => return None,
        })
    }

    fn booleans(&mut self, op: Op, x: &Lanes128, y: &Lanes128) -> Option<Lanes128> {
        use Comparison::*;
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
        Some(match op {
            Op::And | Op::Min => and(self, &x, &y),
            Op::Or | Op::Max => or(self, &x, &y),
            Op::Xor | Op::Compare(NotEqual) => xor(self, &x, &y),
            Op::Compare(Equal) => {
                let differ = xor(self, &x, &y);
                not(self, &differ)
            }
            Op::Compare(Less) => {
                let x = not(self, &x);
                and(self, &x, &y)
            }
            Op::Compare(LessOrEqual) => {
                let x = not(self, &x);
                or(self, &x, &y)
            }
            Op::Compare(Greater) => {
                let y = not(self, &y);
                and(self, &x, &y)
            }
            Op::Compare(GreaterOrEqual) => {
                let y = not(self, &y);
                or(self, &x, &y)
            }
            _ => return None,
        })
    }

    fn integers(
        &mut self,
        op: Op,
        ty: ElementType,
        x: &Lanes128,
        y: &Lanes128,
    ) -> Option<Lanes128> {
        use Comparison::*;
        let less = match ty.is_signed_integer() {
            true => IntCC::SignedLessThan,
            false => IntCC::UnsignedLessThan,
        };
        let greater = less.swap_args();
        let compare =
            |cc| move |b: &mut FunctionBuilder<'_>, x: Value, y: Value| b.ins().icmp(cc, x, y);
        Some(match op {
            Op::Add => self.each_two(x, y, |b, x, y| b.ins().iadd(x, y)),
            Op::Sub => self.each_two(x, y, |b, x, y| b.ins().isub(x, y)),
            Op::Mul if x.width > 1 => self.each_two(x, y, |b, x, y| b.ins().imul(x, y)),
            Op::Mul => {
                let (x, y) = (self.resized(x, 2, false), self.resized(y, 2, false));
                let products = self.each_two(&x, &y, |b, x, y| b.ins().imul(x, y));
                self.resized(&products, 1, false)
            }
            Op::And => self.each_two(x, y, |b, x, y| b.ins().band(x, y)),
            Op::Or => self.each_two(x, y, |b, x, y| b.ins().bor(x, y)),
            Op::Xor => self.each_two(x, y, |b, x, y| b.ins().bxor(x, y)),
            Op::Compare(Equal) => self.each_two(x, y, compare(IntCC::Equal)),
            Op::Compare(NotEqual) => self.each_two(x, y, compare(IntCC::NotEqual)),
            Op::Compare(Less) => self.each_two(x, y, compare(less)),
            Op::Compare(GreaterOrEqual) => self.each_two(x, y, compare(less.complement())),
            Op::Compare(Greater) => self.each_two(x, y, compare(greater)),
            Op::Compare(LessOrEqual) => self.each_two(x, y, compare(greater.complement())),
            Op::Min | Op::Max => {
                let order = if op == Op::Min { less } else { greater };
                let first = self.each_two(x, y, compare(order));
                self.select(&first, ty, x, y)
            }
            _ => return None,
        })
    }

    /// Whether a mask has any lanes, as a boolean.
    pub(crate) fn has_lanes(&mut self, mask: &Lanes128) -> Value {
        let registers = mask.registers.iter().copied();
        match registers.reduce(|a, b| self.builder.ins().bor(a, b)) {
            Some(any) => self.builder.ins().vany_true(any),
            None => self.builder.ins().iconst(types::I8, 0),
        }
    }

    /// `yes` where the mask is set.
    pub(crate) fn select(
        &mut self,
        mask: &Lanes128,
        ty: ElementType,
        yes: &Lanes128,
        no: &Lanes128,
    ) -> Lanes128 {
        let (yes, no) = match ty {
            // Masks may differ in width.
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

    /// A mask of the lanes that are not zero.
    pub(crate) fn is_not_zero(&mut self, ty: ElementType, lanes: &Lanes128) -> Lanes128 {
        let zero = self.builder.ins().iconst(integer(lanes.width), 0);
        let zero = self.builder.ins().splat(vector(integer(lanes.width)), zero);
        let zero = self.cast_register(zero, vector(register(ty)));
        self.each(lanes, |b, x| match is_float(ty) {
            true => b.ins().fcmp(FloatCC::NotEqual, x, zero),
            false => b.ins().icmp(IntCC::NotEqual, x, zero),
        })
    }

    fn masked_constant(&mut self, mask: &Lanes128, bits: u64, ty: ElementType) -> Lanes128 {
        let width = usize::from(lane_bytes(ty));
        let mask = self.masks(mask, width);
        let bits = self.builder.ins().iconst(integer(width), bits as i64);
        let bits = self.builder.ins().splat(vector(integer(width)), bits);
        let kept = self.each(&mask, |b, x| b.ins().band(x, bits));
        self.reinterpreted(&kept, ty)
    }

    fn convert(&mut self, x: &Lanes128, from: ElementType, to: ElementType) -> Option<Lanes128> {
        Some(match (from, to) {
            _ if is_whole_integer(from) && is_whole_integer(to) => {
                self.resized(x, lane_bytes(to).into(), from.is_signed_integer())
            }
            (I32, F32) => self.each(x, |b, x| b.ins().fcvt_from_sint(types::F32X4, x)),
            (U32, F32) => self.each(x, |b, x| b.ins().fcvt_from_uint(types::F32X4, x)),
            (F32, I32) => self.truncated(x),
            (I32, F64) => self.doubles_of(x),
            (F64, I32) => self.truncated_doubles(x),
            (F32, F64) => self.promoted(x),
            (F64, F32) => self.demoted(x),
            _ => return None,
        })
    }

    /// The same bits, as lanes of a type of the same width.
    pub(crate) fn reinterpreted(&mut self, x: &Lanes128, ty: ElementType) -> Lanes128 {
        let ty = vector(register(ty));
        let registers = x.registers.iter();
        Lanes128 {
            registers: registers.map(|r| self.cast_register(*r, ty)).collect(),
            width: x.width,
        }
    }

    fn each(
        &mut self,
        x: &Lanes128,
        f: impl Fn(&mut FunctionBuilder<'_>, Value) -> Value,
    ) -> Lanes128 {
        let registers = x.registers.iter();
        Lanes128 {
            registers: registers.map(|x| f(self.builder, *x)).collect(),
            width: x.width,
        }
    }

    fn each_two(
        &mut self,
        x: &Lanes128,
        y: &Lanes128,
        f: impl Fn(&mut FunctionBuilder<'_>, Value, Value) -> Value,
    ) -> Lanes128 {
        let pairs = x.registers.iter().zip(&y.registers);
        Lanes128 {
            registers: pairs.map(|(x, y)| f(self.builder, *x, *y)).collect(),
            width: x.width,
        }
    }

    /// How many registers hold all lanes of `width` bytes each.
    pub(crate) fn registers(&self, width: usize) -> usize {
        (self.lanes * width).div_ceil(16)
    }

    pub(crate) fn cast_register(&mut self, x: Value, to: Type) -> Value {
        if self.builder.func.dfg.value_type(x) == to {
            return x;
        }
        let little = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        self.builder.ins().bitcast(to, little, x)
    }

    /// The same value in every lane.
    pub(crate) fn broadcast(&mut self, value: Value, ty: ElementType) -> Lanes128 {
        let register = register(ty);
        let width = register.bytes() as usize;
        let value = match ty {
            // 0 and 1 as a mask.
            Boolean => self.builder.ins().ineg(value),
            _ => value,
        };
        let all = self.builder.ins().splat(vector(register), value);
        Lanes128 {
            registers: vec![all; self.registers(width)],
            width,
        }
    }
}
