//! Lanes128 of other widths: masks for elements of another size, conversions between numbers.

use super::lanes::{integer, vector};
use super::values::Lanes128;
use crate::emit::emitter::{Emitter, Result, register};
use cranelift_codegen::ir::{InstBuilder, Value, condcodes::FloatCC, condcodes::IntCC, types};
use vinelift_tensor::ElementType::{self, Boolean, F32, F64, I32, U32};

impl Emitter<'_, '_> {
    /// A mask of the lanes that are not zero, of integers.
    pub(super) fn is_not_zero(&mut self, lanes: &Lanes128) -> Lanes128 {
        let zero = self.zeros(lanes.width);
        let registers = lanes.registers.iter();
        let compare = |x: &Value| self.builder.ins().icmp(IntCC::NotEqual, *x, zero);
        Lanes128 {
            registers: registers.map(compare).collect(),
            width: lanes.width,
        }
    }

    /// A mask as bytes of 0 and 1.
    pub(super) fn ones(&mut self, mask: &Lanes128) -> Lanes128 {
        let bytes = self.masks(mask, 1);
        let one = self.builder.ins().iconst(types::I8, 1);
        let one = self.builder.ins().splat(types::I8X16, one);
        let registers = bytes.registers.iter();
        let low = |x: &Value| self.builder.ins().band(*x, one);
        Lanes128 {
            registers: registers.map(low).collect(),
            width: 1,
        }
    }

    /// A mask for lanes of another width.
    pub(super) fn masks(&mut self, mask: &Lanes128, width: usize) -> Lanes128 {
        self.resized(mask, width, true)
    }

    /// Integers in wider lanes, by their sign or not, or the low bits of them in narrower lanes.
    pub(super) fn resized(&mut self, lanes: &Lanes128, width: usize, signed: bool) -> Lanes128 {
        let mut lanes = lanes.clone();
        while lanes.width < width {
            lanes = self.widened(&lanes, signed);
        }
        while lanes.width > width {
            lanes = self.narrowed(&lanes);
        }
        lanes
    }

    fn widened(&mut self, lanes: &Lanes128, signed: bool) -> Lanes128 {
        let width = lanes.width * 2;
        let count = self.registers(width);
        let mut registers = Vec::with_capacity(count);
        for &x in &lanes.registers {
            let x = self.cast_register(x, vector(integer(lanes.width)));
            let ins = self.builder.ins();
            registers.push(if signed {
                ins.swiden_low(x)
            } else {
                ins.uwiden_low(x)
            });
            if registers.len() < count {
                let ins = self.builder.ins();
                registers.push(if signed {
                    ins.swiden_high(x)
                } else {
                    ins.uwiden_high(x)
                });
            }
        }
        Lanes128 { registers, width }
    }

    fn narrowed(&mut self, lanes: &Lanes128) -> Lanes128 {
        let width = lanes.width / 2;
        // The low half of each lane, of two registers.
        let picked = (0..32u8).filter(|k| usize::from(*k) % lanes.width < width);
        let picked: Vec<u8> = picked.collect();
        let mut registers = Vec::new();
        for pair in lanes.registers.chunks(2) {
            let a = self.cast_register(pair[0], types::I8X16);
            let b = self.cast_register(pair[pair.len() - 1], types::I8X16);
            let both = self.shuffled(a, b, &picked);
            registers.push(self.cast_register(both, vector(integer(width))));
        }
        Lanes128 { registers, width }
    }

    fn shuffled(&mut self, a: Value, b: Value, picked: &[u8]) -> Value {
        let mask = self.builder.func.dfg.immediates.push(picked.into());
        self.builder.ins().shuffle(a, b, mask)
    }

    pub(super) fn zeros(&mut self, width: usize) -> Value {
        let zero = self.builder.ins().iconst(integer(width), 0);
        self.builder.ins().splat(vector(integer(width)), zero)
    }

    pub(super) fn vector_bitcast(
        &mut self,
        x: &Lanes128,
        from: ElementType,
        to: ElementType,
    ) -> Lanes128 {
        if from == Boolean {
            return match to {
                Boolean => x.clone(),
                _ => self.ones(x),
            };
        }
        if to == Boolean {
            return self.is_not_zero(x);
        }
        let ty = vector(register(to));
        let registers = x.registers.iter();
        Lanes128 {
            registers: registers.map(|r| self.cast_register(*r, ty)).collect(),
            width: x.width,
        }
    }

    /// As the scalar cast, lane by lane where there is no instruction for it.
    pub(super) fn vector_cast(
        &mut self,
        x: &Lanes128,
        from: ElementType,
        to: ElementType,
    ) -> Result<Lanes128> {
        let is_whole = |ty: ElementType| (ty.is_integer() && !ty.is_packed()) || ty == Boolean;
        let (from_width, to_width) = (
            register(from).bytes() as usize,
            register(to).bytes() as usize,
        );
        Ok(match (from, to) {
            _ if from == to => x.clone(),
            (Boolean, F32) => {
                let mask = self.masks(x, 4);
                let one = self.constant(1f32.to_bits().into(), F32);
                let one = self.spread(one, F32);
                let one = self.vector_bitcast(&one, F32, I32);
                let bits = self.each_two(&mask, &one, |b, x, y| b.ins().band(x, y));
                self.vector_bitcast(&bits, I32, F32)
            }
            (Boolean, _) if is_whole(to) => {
                let ones = self.ones(x);
                self.resized(&ones, to_width, false)
            }
            (F32 | F64, Boolean) => {
                let zero = self.zero(from);
                let zero = self.spread(zero, from);
                let width = x.width;
                let differs =
                    self.each_two(x, &zero, |b, x, y| b.ins().fcmp(FloatCC::NotEqual, x, y));
                Lanes128 { width, ..differs }
            }
            _ if is_whole(from) && to == Boolean => self.is_not_zero(x),
            _ if is_whole(from) && is_whole(to) => {
                self.resized(x, to_width, from.is_signed_integer())
            }
            // All of these are exact in `i32`.
            (_, F32) if is_whole(from) && (from_width < 4 || from == I32) => {
                let wide = self.resized(x, 4, from.is_signed_integer());
                let convert = |r: &Value| self.builder.ins().fcvt_from_sint(types::F32X4, *r);
                Lanes128 {
                    registers: wide.registers.iter().map(convert).collect(),
                    width: 4,
                }
            }
            (U32, F32) => {
                let convert = |r: &Value| self.builder.ins().fcvt_from_uint(types::F32X4, *r);
                Lanes128 {
                    registers: x.registers.iter().map(convert).collect(),
                    width: 4,
                }
            }
            (F32, I32) => self.truncated(x),
            (F32, F64) => self.promoted(x),
            (F64, F32) => self.demoted(x),
            _ => return self.lane_by_lane(to, &[(from, x)], |e, x| e.cast(x[0], from, to)),
        })
    }

    /// `f32` to `i32`, the smallest number for what does not fit.
    fn truncated(&mut self, x: &Lanes128) -> Lanes128 {
        let limit = self.constant((2f32.powi(31)).to_bits().into(), F32);
        let limit = self.builder.ins().splat(types::F32X4, limit);
        let smallest = self
            .builder
            .ins()
            .iconst(types::I32, i64::from(i32::MIN as u32));
        let smallest = self.builder.ins().splat(types::I32X4, smallest);
        let is_x86 = self.is_x86;
        let convert = |x: &Value| {
            if is_x86 {
                return self.builder.ins().x86_cvtt2dq(types::I32X4, *x);
            }
            let near = self.builder.ins().fcvt_to_sint_sat(types::I32X4, *x);
            let fits = self.builder.ins().fcmp(FloatCC::LessThan, *x, limit);
            self.builder.ins().bitselect(fits, near, smallest)
        };
        Lanes128 {
            registers: x.registers.iter().map(convert).collect(),
            width: 4,
        }
    }

    fn promoted(&mut self, x: &Lanes128) -> Lanes128 {
        let count = self.registers(8);
        let mut registers = Vec::with_capacity(count);
        let high: Vec<u8> = (8..24).collect();
        for &x in &x.registers {
            registers.push(self.builder.ins().fvpromote_low(x));
            if registers.len() < count {
                let bytes = self.cast_register(x, types::I8X16);
                let bytes = self.shuffled(bytes, bytes, &high);
                let upper = self.cast_register(bytes, types::F32X4);
                registers.push(self.builder.ins().fvpromote_low(upper));
            }
        }
        Lanes128 {
            registers,
            width: 8,
        }
    }

    fn demoted(&mut self, x: &Lanes128) -> Lanes128 {
        let low: Vec<u8> = (0..8).chain(16..24).collect();
        let mut registers = Vec::new();
        for pair in x.registers.chunks(2) {
            let parts: Vec<Value> = pair
                .iter()
                .map(|x| self.builder.ins().fvdemote(*x))
                .collect();
            let a = self.cast_register(parts[0], types::I8X16);
            let b = self.cast_register(parts[parts.len() - 1], types::I8X16);
            let both = self.shuffled(a, b, &low);
            registers.push(self.cast_register(both, types::F32X4));
        }
        Lanes128 {
            registers,
            width: 4,
        }
    }
}
