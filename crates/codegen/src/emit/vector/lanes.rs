//! Registers of 128 bits full of lanes: loads, stores, and single lanes.

use crate::emit::emitter::{Emitter, Result, register};
use crate::target::clif128::{Lanes128, integer, vector};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use vinelift_tensor::ElementType::{self, Boolean, U8};

impl Emitter<'_, '_> {
    /// The lanes if a condition holds, which is the same for all, else zeros.
    pub(super) fn lanes_if(&mut self, condition: Value, lanes: &Lanes128) -> Lanes128 {
        let all = self.builder.ins().uextend(types::I64, condition);
        let all = self.builder.ins().ineg(all);
        let all = self.builder.ins().splat(types::I64X2, all);
        let mut registers = Vec::with_capacity(lanes.registers.len());
        for &register in &lanes.registers {
            let ty = self.builder.func.dfg.value_type(register);
            let mask = self.clif128().cast_register(all, ty);
            registers.push(self.builder.ins().band(register, mask));
        }
        Lanes128 {
            registers,
            width: lanes.width,
        }
    }

    /// A register, or the low part of one, full of scalars.
    pub(in crate::emit) fn one_register(&mut self, register: Type, elements: &[Value]) -> Value {
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
    pub(super) fn gathered(&mut self, ty: ElementType, elements: &[Value]) -> Lanes128 {
        let register = register(ty);
        let (width, each) = (register.bytes() as usize, 16 / register.bytes() as usize);
        let mut registers = Vec::new();
        for part in elements.chunks(each) {
            registers.push(self.one_register(register, part));
        }
        let lanes = Lanes128 { registers, width };
        match ty {
            Boolean => self.clif128().is_not_zero(U8, &lanes),
            _ => lanes,
        }
    }

    /// One lane as a scalar.
    pub(super) fn lane(&mut self, ty: ElementType, lanes: &Lanes128, lane: usize) -> Value {
        let each = 16 / lanes.width;
        let register = lanes.registers[lane / each];
        let value = self
            .builder
            .ins()
            .extractlane(register, (lane % each) as u8);
        if ty != Boolean {
            return value;
        }
        let value = match lanes.width {
            1 => value,
            _ => self.builder.ins().ireduce(types::I8, value),
        };
        self.builder.ins().band_imm_u(value, 1)
    }

    /// `f` in every lane, on scalars.
    pub(super) fn lane_by_lane(
        &mut self,
        to: ElementType,
        operands: &[(ElementType, &Lanes128)],
        mut f: impl FnMut(&mut Self, &[Value]) -> Result<Value>,
    ) -> Result<Lanes128> {
        let mut results = Vec::with_capacity(self.vectors.lanes());
        for lane in 0..self.vectors.lanes() {
            let scalars: Vec<Value> = operands
                .iter()
                .map(|(ty, lanes)| self.lane(*ty, lanes, lane))
                .collect();
            results.push(f(self, &scalars)?);
        }
        Ok(self.gathered(to, &results))
    }

    /// The lanes that lie from an address on.
    pub(super) fn load_registers(
        &mut self,
        ty: ElementType,
        flags: MemFlagsData,
        address: Value,
        offset: i32,
    ) -> Lanes128 {
        let register = register(ty);
        let width = register.bytes() as usize;
        let bytes = self.vectors.lanes() * width;
        let vector = vector(register);
        let registers = if bytes < 16 {
            let word = integer(bytes);
            let word = self.builder.ins().load(word, flags, address, offset);
            let whole = self.cast_to_vector(word);
            vec![self.clif128().cast_register(whole, vector)]
        } else {
            let ins = |k: usize, this: &mut Self| {
                let offset = offset + 16 * k as i32;
                this.builder.ins().load(vector, flags, address, offset)
            };
            (0..bytes / 16).map(|k| ins(k, self)).collect()
        };
        let lanes = Lanes128 { registers, width };
        match ty {
            Boolean => self.clif128().is_not_zero(U8, &lanes),
            _ => lanes,
        }
    }

    /// A word in the low part of a register.
    fn cast_to_vector(&mut self, word: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(word);
        self.builder.ins().scalar_to_vector(vector(ty), word)
    }

    /// Writes the lanes from an address on.
    pub(super) fn store_lanes(
        &mut self,
        ty: ElementType,
        flags: MemFlagsData,
        address: Value,
        offset: i32,
        lanes: &Lanes128,
    ) {
        let lanes = &match ty {
            Boolean => self.ones(lanes),
            _ => lanes.clone(),
        };
        let bytes = self.vectors.lanes() * lanes.width;
        if bytes < 16 {
            let word = integer(bytes);
            let register = self
                .clif128()
                .cast_register(lanes.registers[0], vector(word));
            let low = self.builder.ins().extractlane(register, 0);
            self.builder.ins().store(flags, low, address, offset);
            return;
        }
        for (k, &register) in lanes.registers.iter().enumerate() {
            let offset = offset + 16 * k as i32;
            self.builder.ins().store(flags, register, address, offset);
        }
    }
}
