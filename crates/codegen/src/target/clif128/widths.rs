//! Lanes of another width, and conversions that change it.

use super::{Clif128, Lanes128, integer, vector};
use cranelift_codegen::ir::{InstBuilder, Type, Value, condcodes::FloatCC, types};
use cranelift_frontend::FunctionBuilder;

impl Clif128<'_, '_> {
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

    /// A mask for lanes of another width.
    pub(crate) fn masks(&mut self, mask: &Lanes128, width: usize) -> Lanes128 {
        self.resized(mask, width, true)
    }

    /// `f32` to `i32`, the smallest number for what does not fit.
    pub(super) fn truncated(&mut self, x: &Lanes128) -> Lanes128 {
        let limit = self.builder.ins().f32const(2f32.powi(31));
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

    pub(super) fn promoted(&mut self, x: &Lanes128) -> Lanes128 {
        self.each_half(x, |b, x| b.ins().fvpromote_low(x))
    }

    /// `i32` to `f64`.
    pub(super) fn doubles_of(&mut self, x: &Lanes128) -> Lanes128 {
        self.each_half(x, |b, x| {
            let wide = b.ins().swiden_low(x);
            b.ins().fcvt_from_sint(types::F64X2, wide)
        })
    }

    /// A register for each half of one: `f` makes it of the lower half.
    fn each_half(
        &mut self,
        x: &Lanes128,
        f: impl Fn(&mut FunctionBuilder<'_>, Value) -> Value,
    ) -> Lanes128 {
        let count = self.registers(8);
        let mut registers = Vec::with_capacity(count);
        let high: Vec<u8> = (8..24).collect();
        for &x in &x.registers {
            let ty = self.builder.func.dfg.value_type(x);
            registers.push(f(self.builder, x));
            if registers.len() < count {
                let bytes = self.cast_register(x, types::I8X16);
                let bytes = self.shuffled(bytes, bytes, &high);
                let upper = self.cast_register(bytes, ty);
                registers.push(f(self.builder, upper));
            }
        }
        Lanes128 {
            registers,
            width: 8,
        }
    }

    pub(super) fn demoted(&mut self, x: &Lanes128) -> Lanes128 {
        let halves = x.registers.iter();
        let halves = halves.map(|x| self.builder.ins().fvdemote(*x)).collect();
        self.joined(halves, types::F32X4)
    }

    /// `f64` to `i32`, the smallest number for what does not fit.
    pub(super) fn truncated_doubles(&mut self, x: &Lanes128) -> Lanes128 {
        let mut halves = Vec::with_capacity(x.registers.len());
        for &x in &x.registers {
            let wide = match self.is_x86 {
                true => self.builder.ins().x86_cvtt2dq(types::I64X2, x),
                false => {
                    let limit = self.double_everywhere(2f64.powi(31));
                    let least = self.double_everywhere(-2f64.powi(31));
                    let fits = self.builder.ins().fcmp(FloatCC::LessThan, x, limit);
                    let fits = self.cast_register(fits, types::F64X2);
                    let x = self.builder.ins().bitselect(fits, x, least);
                    self.builder.ins().fcvt_to_sint_sat(types::I64X2, x)
                }
            };
            let zeros = self.builder.func.dfg.constants.insert(vec![0; 16].into());
            let zeros = self.builder.ins().vconst(types::I64X2, zeros);
            halves.push(self.builder.ins().snarrow(wide, zeros));
        }
        self.joined(halves, types::I32X4)
    }

    fn double_everywhere(&mut self, x: f64) -> Value {
        let x = self.builder.ins().f64const(x);
        self.builder.ins().splat(types::F64X2, x)
    }

    /// One register of the lower halves of every two; `ty` has lanes of 32 bits.
    fn joined(&mut self, halves: Vec<Value>, ty: Type) -> Lanes128 {
        let low: Vec<u8> = (0..8).chain(16..24).collect();
        let mut registers = Vec::new();
        for pair in halves.chunks(2) {
            let a = self.cast_register(pair[0], types::I8X16);
            let b = self.cast_register(pair[pair.len() - 1], types::I8X16);
            let both = self.shuffled(a, b, &low);
            registers.push(self.cast_register(both, ty));
        }
        Lanes128 {
            registers,
            width: 4,
        }
    }
}
