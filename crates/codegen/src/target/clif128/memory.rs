//! Lanes in memory, and lanes made of scalars. Booleans are bytes here, not masks.

use super::{Clif128, Lanes128, integer, register, vector};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use vinelift_tensor::ElementType;

impl Clif128<'_, '_> {
    /// The lanes that lie from an address on.
    pub(crate) fn load(
        &mut self,
        ty: ElementType,
        flags: MemFlagsData,
        (address, offset): (Value, i32),
    ) -> Lanes128 {
        let register = register(ty);
        let width = register.bytes() as usize;
        let bytes = self.lanes * width;
        let vector = vector(register);
        let registers = if bytes < 16 {
            let word = integer(bytes);
            let word = self.builder.ins().load(word, flags, address, offset);
            let whole = self.in_low_part(word);
            vec![self.cast_register(whole, vector)]
        } else {
            let load = |k: usize| {
                let offset = offset + 16 * k as i32;
                self.builder.ins().load(vector, flags, address, offset)
            };
            (0..bytes / 16).map(load).collect()
        };
        Lanes128 { registers, width }
    }

    /// A word in the low part of a register.
    fn in_low_part(&mut self, word: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(word);
        self.builder.ins().scalar_to_vector(vector(ty), word)
    }

    /// Writes the lanes from an address on.
    pub(crate) fn store(
        &mut self,
        flags: MemFlagsData,
        (address, offset): (Value, i32),
        lanes: &Lanes128,
    ) {
        let bytes = self.lanes * lanes.width;
        if bytes < 16 {
            let word = integer(bytes);
            let register = self.cast_register(lanes.registers[0], vector(word));
            let low = self.builder.ins().extractlane(register, 0);
            self.builder.ins().store(flags, low, address, offset);
            return;
        }
        for (k, &register) in lanes.registers.iter().enumerate() {
            let offset = offset + 16 * k as i32;
            self.builder.ins().store(flags, register, address, offset);
        }
    }

    /// The lanes if a condition holds, which is the same for all, else zeros.
    pub(crate) fn kept_if(&mut self, condition: Value, lanes: &Lanes128) -> Lanes128 {
        let all = self.builder.ins().uextend(types::I64, condition);
        let all = self.builder.ins().ineg(all);
        let all = self.builder.ins().splat(types::I64X2, all);
        let mut registers = Vec::with_capacity(lanes.registers.len());
        for &register in &lanes.registers {
            let ty = self.builder.func.dfg.value_type(register);
            let mask = self.cast_register(all, ty);
            registers.push(self.builder.ins().band(register, mask));
        }
        Lanes128 {
            registers,
            width: lanes.width,
        }
    }

    /// A register, or the low part of one, full of scalars of type `register`.
    pub(crate) fn one_register(&mut self, register: Type, elements: &[Value]) -> Value {
        let ins = self.builder.ins();
        let mut filled = match register.bytes() {
            1 | 2 => ins.splat(vector(register), elements[0]),
            _ => ins.scalar_to_vector(vector(register), elements[0]),
        };
        for (lane, &element) in elements.iter().enumerate().skip(1) {
            filled = self.builder.ins().insertlane(filled, element, lane as u8);
        }
        filled
    }

    /// One scalar for each lane.
    pub(crate) fn of_scalars(&mut self, ty: ElementType, elements: &[Value]) -> Lanes128 {
        let register = register(ty);
        let width = register.bytes() as usize;
        let registers = elements
            .chunks(16 / width)
            .map(|elements| self.one_register(register, elements))
            .collect();
        Lanes128 { registers, width }
    }

    /// One lane as a scalar.
    pub(crate) fn scalar(&mut self, ty: ElementType, lanes: &Lanes128, lane: usize) -> Value {
        let each = 16 / lanes.width;
        let mut register = lanes.registers[lane / each];
        if ty != ElementType::Boolean {
            // A vector made by shifts and masks is still one of integers.
            register = self.cast_register(register, vector(super::register(ty)));
        }
        let lane = (lane % each) as u8;
        let value = self.builder.ins().extractlane(register, lane);
        if ty != ElementType::Boolean {
            return value;
        }
        let value = match lanes.width {
            1 => value,
            _ => self.builder.ins().ireduce(types::I8, value),
        };
        self.builder.ins().band_imm_u(value, 1)
    }
}
