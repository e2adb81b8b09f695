//! `fmod`, exactly: long division of mantissas as integers.

use super::emitter::Emitter;
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Value, condcodes::IntCC, types};
use vinelift_tensor::ElementType;

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << 52;
/// The bit above the mantissa, that normal numbers do not store.
const HIDDEN: u64 = 1 << 52;
/// Zeros above the hidden bit: how far a remainder can be shifted at once.
const ROOM: i64 = 11;

impl Emitter<'_, '_> {
    /// The remainder of `x / y`, with the sign of `x`.
    pub(super) fn float_rem(&mut self, ty: ElementType, x: Value, y: Value) -> Value {
        if ty == ElementType::F64 {
            return self.double_rem(x, y);
        }
        // A remainder has no more digits than its operands: nothing is rounded on the way back.
        let x = self.builder.ins().fpromote(types::F64, x);
        let y = self.builder.ins().fpromote(types::F64, y);
        let value = self.double_rem(x, y);
        self.builder.ins().fdemote(types::F32, value)
    }

    fn double_rem(&mut self, x: Value, y: Value) -> Value {
        let b = &mut self.builder;
        let (divide, join) = (b.create_block(), b.create_block());
        let result = b.append_block_param(join, types::F64);
        let bits = b.ins().bitcast(types::I64, MemFlagsData::new(), x);
        let sign = b.ins().band_imm_s(bits, SIGN as i64);
        let x_bits = b.ins().bxor(bits, sign);
        let y_bits = b.ins().bitcast(types::I64, MemFlagsData::new(), y);
        let y_bits = b.ins().band_imm_s(y_bits, !SIGN as i64);

        // NaN unless `x` is finite and `y` is neither zero nor NaN; else `x` itself if it is smaller.
        let infinity = b.ins().iconst(types::I64, INFINITY as i64);
        let finite = b.ins().icmp(IntCC::UnsignedLessThan, x_bits, infinity);
        let below = b.ins().iadd_imm_s(y_bits, -1);
        let number = b.ins().icmp(IntCC::UnsignedLessThan, below, infinity);
        let defined = b.ins().band(finite, number);
        let small = b.ins().icmp(IntCC::UnsignedLessThan, x_bits, y_bits);
        let large = b
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, x_bits, y_bits);
        let nan = b.ins().f64const(f64::NAN);
        let unchanged = b.ins().band(defined, small);
        let early = b.ins().select(unchanged, x, nan);
        let must_divide = b.ins().band(defined, large);
        b.ins()
            .brif(must_divide, divide, &[], join, &[BlockArg::from(early)]);

        b.switch_to_block(divide);
        let (mantissa, exponent) = self.normalise(x_bits);
        let (divisor, last) = self.normalise(y_bits);
        let steps = self.builder.ins().isub(exponent, last);
        let remainder = self.long_division(mantissa, divisor, steps);
        let value = self.compose(remainder, last, sign);
        self.builder.ins().jump(join, &[BlockArg::from(value)]);
        self.builder.switch_to_block(join);
        result
    }

    /// Mantissa with its hidden bit and exponent of a positive finite number, as if no number were
    /// subnormal: the value is `mantissa · 2^(exponent - 1075)`.
    fn normalise(&mut self, bits: Value) -> (Value, Value) {
        let ins = self.builder.ins();
        let stored = ins.ushr_imm_u(bits, 52);
        let fraction = self.builder.ins().band_imm_s(bits, HIDDEN as i64 - 1);
        let normal = self.builder.ins().bor_imm_s(fraction, HIDDEN as i64);
        let zeros = self.builder.ins().clz(fraction);
        let shift = self.builder.ins().iadd_imm_s(zeros, -ROOM);
        let shifted = self.builder.ins().ishl(fraction, shift);
        let one = self.index(1);
        let lowered = self.builder.ins().isub(one, shift);
        let mantissa = self.builder.ins().select(stored, normal, shifted);
        let exponent = self.builder.ins().select(stored, stored, lowered);
        (mantissa, exponent)
    }

    /// `mantissa · 2^steps mod divisor`; the divisor has its hidden bit, so it is not zero.
    fn long_division(&mut self, mantissa: Value, divisor: Value, steps: Value) -> Value {
        let first = self.builder.ins().urem(mantissa, divisor);
        let b = &mut self.builder;
        let (head, body, exit) = (b.create_block(), b.create_block(), b.create_block());
        b.ins()
            .jump(head, &[BlockArg::from(first), BlockArg::from(steps)]);
        let remainder = b.append_block_param(head, types::I64);
        let left = b.append_block_param(head, types::I64);
        b.switch_to_block(head);
        let done = b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, left, 0);
        b.ins().brif(done, exit, &[], body, &[]);

        b.switch_to_block(body);
        let most = b.ins().iconst(types::I64, ROOM);
        let few = b.ins().icmp(IntCC::SignedLessThan, left, most);
        let step = b.ins().select(few, left, most);
        let shifted = b.ins().ishl(remainder, step);
        let next = b.ins().urem(shifted, divisor);
        let left = b.ins().isub(left, step);
        b.ins()
            .jump(head, &[BlockArg::from(next), BlockArg::from(left)]);
        b.switch_to_block(exit);
        remainder
    }

    /// The number `mantissa · 2^(exponent - 1075)` with a sign; the mantissa is below 2^53.
    fn compose(&mut self, mantissa: Value, exponent: Value, sign: Value) -> Value {
        let b = &mut self.builder;
        let zeros = b.ins().clz(mantissa);
        let shift = b.ins().iadd_imm_s(zeros, -ROOM);
        let normal = b.ins().ishl(mantissa, shift);
        let exponent = b.ins().isub(exponent, shift);
        // Adding the mantissa adds its hidden bit, 1, to the exponent.
        let stored = b.ins().iadd_imm_s(exponent, -1);
        let stored = b.ins().ishl_imm_u(stored, 52);
        let normal = b.ins().iadd(normal, stored);
        let one = b.ins().iconst(types::I64, 1);
        let lost = b.ins().isub(one, exponent);
        let shifted = b.ins().ishl(mantissa, shift);
        let subnormal = b.ins().ushr(shifted, lost);
        let is_normal = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, exponent, 0);
        let bits = b.ins().select(is_normal, normal, subnormal);
        let zero = b.ins().iconst(types::I64, 0);
        let bits = b.ins().select(mantissa, bits, zero);
        let bits = b.ins().bor(bits, sign);
        b.ins().bitcast(types::F64, MemFlagsData::new(), bits)
    }
}
