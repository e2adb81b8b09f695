//! Conversions by value and by bits.

use super::emitter::{Emitter, Result, no_primitive, register};
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, Type, Value,
    condcodes::{FloatCC, IntCC},
    types,
};
use vinelift_tensor::ElementType::{self, Boolean, F32, F64, I4, I32, I64, U64};

impl Emitter<'_, '_> {
    pub(super) fn cast(&mut self, x: Value, from: ElementType, to: ElementType) -> Result<Value> {
        let is_float = |ty| matches!(ty, F32 | F64);
        let is_whole = |ty: ElementType| ty.is_integer() || ty == Boolean;
        Ok(match (from, to) {
            _ if from == to => x,
            (F32, F64) => self.builder.ins().fpromote(types::F64, x),
            (F64, F32) => self.builder.ins().fdemote(types::F32, x),
            _ if is_float(from) && to == Boolean => {
                let zero = self.zero(from);
                self.builder.ins().fcmp(FloatCC::NotEqual, x, zero)
            }
            _ if is_float(from) && to.is_integer() => self.float_to_integer(x, from, to),
            _ if is_whole(from) && is_float(to) => self.integer_to_float(x, from, to),
            _ if is_whole(from) && to == Boolean => {
                self.builder.ins().icmp_imm_u(IntCC::NotEqual, x, 0)
            }
            _ if is_whole(from) && to.is_integer() => self.resize(x, from, to),
            _ => return no_primitive(format_args!("a cast from {from} to {to}")),
        })
    }

    /// The same bits in the register of another type of the same width.
    pub(super) fn bitcast(&mut self, x: Value, from: ElementType, to: ElementType) -> Value {
        if to == Boolean {
            return self.builder.ins().icmp_imm_u(IntCC::NotEqual, x, 0);
        }
        if register(from) == register(to) {
            return x;
        }
        self.builder
            .ins()
            .bitcast(register(to), MemFlagsData::new(), x)
    }

    /// An integer in a register at least as wide as its own, by its own sign.
    pub(super) fn extend(&mut self, x: Value, ty: ElementType, wide: Type) -> Value {
        let x = if ty == I4 {
            let high = self.builder.ins().ishl_imm_u(x, 4);
            self.builder.ins().sshr_imm_u(high, 4)
        } else {
            x
        };
        if register(ty) == wide {
            x
        } else if ty.is_signed_integer() {
            self.builder.ins().sextend(wide, x)
        } else {
            self.builder.ins().uextend(wide, x)
        }
    }

    /// The low bits of an integer in a register at least as wide.
    fn narrow(&mut self, x: Value, to: ElementType) -> Value {
        let narrow = register(to);
        let x = match self.builder.func.dfg.value_type(x) {
            ty if ty == narrow => x,
            _ => self.builder.ins().ireduce(narrow, x),
        };
        if to.is_packed() {
            self.builder.ins().band_imm_u(x, (1 << to.bits()) - 1)
        } else {
            x
        }
    }

    fn resize(&mut self, x: Value, from: ElementType, to: ElementType) -> Value {
        let wide = if register(to).bits() > register(from).bits() {
            register(to)
        } else {
            register(from)
        };
        let x = self.extend(x, from, wide);
        self.narrow(x, to)
    }

    /// To the nearest float, ties to even.
    fn integer_to_float(&mut self, x: Value, from: ElementType, to: ElementType) -> Value {
        if from == U64 {
            return self.builder.ins().fcvt_from_uint(register(to), x);
        }
        // Signed conversions are cheaper, and a wider register holds every unsigned value.
        let wide = if from.bits() < 32 || from == I32 {
            types::I32
        } else {
            types::I64
        };
        let x = self.extend(x, from, wide);
        self.builder.ins().fcvt_from_sint(register(to), x)
    }

    /// Truncated. What does not fit `i32`, `i64` is their smallest value; the narrower types and
    /// `u32` take the low bits of the `i64`. `u64` takes its own values exactly, negative ones as
    /// `i64` does, and 2^63 for the rest.
    fn float_to_integer(&mut self, x: Value, from: ElementType, to: ElementType) -> Value {
        match to {
            I32 => self.float_to_signed(x, from, types::I32),
            U64 => {
                let limit = self.power_of_two(63, from);
                let small = self.float_to_signed(x, from, types::I64);
                let rest = self.builder.ins().fsub(x, limit);
                let rest = self.float_to_signed(rest, from, types::I64);
                let top = self.index(i64::MIN);
                let large = self.builder.ins().bxor(rest, top);
                let is_small = self.builder.ins().fcmp(FloatCC::LessThan, x, limit);
                let beyond = self.power_of_two(64, from);
                let fits = self.builder.ins().fcmp(FloatCC::LessThan, x, beyond);
                let large = self.builder.ins().select(fits, large, top);
                self.builder.ins().select(is_small, small, large)
            }
            _ => {
                let x = self.float_to_signed(x, from, types::I64);
                self.narrow(x, to)
            }
        }
    }

    /// To `i32` or `i64`, the smallest value for what does not fit.
    fn float_to_signed(&mut self, x: Value, from: ElementType, to: Type) -> Value {
        // Saturation settles all but what is too large, and NaN.
        let saturated = self.builder.ins().fcvt_to_sint_sat(to, x);
        let limit = self.power_of_two(to.bits() - 1, from);
        let fits = self.builder.ins().fcmp(FloatCC::LessThan, x, limit);
        let smallest = 1i64.rotate_left(to.bits() - 1);
        let smallest = self.constant(smallest as u64, if to == types::I32 { I32 } else { I64 });
        self.builder.ins().select(fits, saturated, smallest)
    }

    fn power_of_two(&mut self, exponent: u32, ty: ElementType) -> Value {
        let x = 2f64.powi(exponent as i32);
        let bits = if ty == F32 {
            u64::from((x as f32).to_bits())
        } else {
            x.to_bits()
        };
        self.constant(bits, ty)
    }
}
