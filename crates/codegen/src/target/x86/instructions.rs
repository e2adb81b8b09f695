//! Machine instructions, by the form of their operands.

use super::assembly::Assembly;
use super::encode::{Memory, RAX, RmOperand};
use super::machine::{Class, Form, MachineInstruction, Operand};
use super::opcode::{Opcode, opcode};
use super::opcodes;

const LOAD_MASK: Opcode = opcode(0, 1, true, 0x90);
const STORE_MASK: Opcode = opcode(0, 1, true, 0x91);

impl Assembly<'_> {
    pub(super) fn instruction(&mut self, i: &MachineInstruction) {
        self.next_scratch = self.scratch;
        if !matches!(i.form, Form::Gather(_) | Form::Spill) {
            self.end_of_gathers();
        }
        let has_result = !matches!(i.form, Form::Store | Form::Prefetch | Form::HasLanes);
        self.code.require(i.to.is_some() == has_result);
        let to = i.to.map_or(0, |id| self.register_of(id));
        let [a, b, _] = i.from;
        match i.form {
            Form::Rvm => {
                let (first, last) = (self.register(a), self.last(b, i));
                self.emit(i, to, first, last);
            }
            Form::Rm => {
                let last = self.last(a, i);
                self.emit(i, to, 0, last);
            }
            Form::Vm(digit) => {
                let last = RmOperand::Register(self.register(a));
                self.emit(i, digit, to, last);
            }
            Form::Mr => {
                let first = self.register(a);
                self.emit(i, first, 0, RmOperand::Register(to));
            }
            Form::MulAdd => self.multiply_add(i, to),
            Form::Blend => self.blend(i, to),
            Form::Turn => self.turn(i, to),
            Form::Load => self.load(i, to),
            Form::Store => {
                let first = self.register(a);
                let last = RmOperand::Memory(self.memory(i.access));
                self.emit(i, first, 0, last);
            }
            Form::Prefetch => {
                let memory = self.memory(i.access);
                self.code.prefetch(memory);
            }
            Form::Masks => {
                let (first, last) = match b {
                    Some(_) => (self.register(a), RmOperand::Register(self.register(b))),
                    None => (0, RmOperand::Register(self.register(a))),
                };
                self.code.vex(i.op, i.bytes, to, first, last, i.immediate);
            }
            Form::HasLanes => {
                let mask = self.register(a);
                let last = RmOperand::Register(mask);
                self.code.vex(i.op, i.bytes, mask, 0, last, None);
            }
            Form::Check(check) => self.check(i, check, to),
            Form::Gather(elements) => self.gather(i, elements, to),
            Form::Mask(bits) => {
                let memory = Memory::Pool(self.constant(bits, 8, 1));
                self.load_mask(to, memory);
            }
            Form::Argument(argument) => {
                let memory = self.argument_at(argument);
                self.load_mask(to, memory);
            }
            Form::Spill => {
                let from = self.register(a);
                self.move_register(i, a, (from, to));
            }
            Form::Reload => {
                let slot = self.register(a);
                self.move_register(i, i.to.map(Operand::Value), (to, slot));
            }
        }
    }

    /// Stores, or loads, all bytes of the register of a value.
    fn move_register(
        &mut self,
        i: &MachineInstruction,
        value: Option<Operand>,
        (register, slot): (u8, u8),
    ) {
        let last = RmOperand::Memory(self.frame.slot(slot));
        let class = match value {
            Some(Operand::Value(id)) => self.program.values.get(id as usize),
            _ => None,
        };
        let is_spill = i.form == Form::Spill;
        match class {
            Some(Class::Mask) => {
                let op = if is_spill { STORE_MASK } else { LOAD_MASK };
                self.code.vex(op, 16, register, 0, last, None);
            }
            Some(Class::Vector) => {
                let bytes = self.target.bytes() as u8;
                let op = match is_spill {
                    true => opcodes::store(bytes, 4, self.target),
                    false => opcodes::load(bytes, 4, self.target),
                };
                self.three(op, bytes, (register, 0, last), None);
            }
            Some(Class::Slot) | None => self.code.require(false),
        }
    }

    fn blend(&mut self, i: &MachineInstruction, to: u8) {
        let [a, b, c] = i.from;
        let (no, yes) = (self.register(a), self.last(b, i));
        let immediate = match self.evex {
            true => {
                self.code.require(i.mask.is_some());
                None
            }
            false => Some(self.register(c) << 4),
        };
        self.emit(&MachineInstruction { immediate, ..*i }, to, no, yes);
    }

    /// Loops over lanes count in `rax`.
    fn turn(&mut self, i: &MachineInstruction, to: u8) {
        let counter = RmOperand::Register(RAX.0);
        if self.evex {
            self.emit(i, to, 0, counter);
            return;
        }
        self.code.vex(i.op, 16, to, 0, counter, None);
        let all = opcodes::broadcast(8, self.target);
        self.code
            .vex(all, i.bytes, to, 0, RmOperand::Register(to), None);
    }

    fn load(&mut self, i: &MachineInstruction, to: u8) {
        let last = RmOperand::Memory(self.memory(i.access));
        let mask = match self.evex {
            true => 0,
            // The mask of a masked load is an ordinary register.
            false => i.mask.map_or(0, |id| self.register_of(id)),
        };
        self.emit(i, to, mask, last);
    }

    fn load_mask(&mut self, to: u8, from: Memory) {
        let from = RmOperand::Memory(from);
        self.code.vex(LOAD_MASK, 16, to, 0, from, None);
    }

    /// Which form of the instruction there is depends on where the result goes.
    fn multiply_add(&mut self, i: &MachineInstruction, to: u8) {
        const FIRST_THIRD: u8 = 0x98;
        const FIRST_SECOND: u8 = 0xa8;
        const SECOND_THIRD: u8 = 0xb8;
        let at = |this: &Self, x: Option<Operand>| this.in_register(x);
        let [a, b, c] = i.from;
        // Named by which of to, the middle and the last operand are multiplied.
        let (code, middle, last) = if at(self, c) == Some(to) {
            match at(self, a) {
                Some(_) => (SECOND_THIRD, a, b),
                None => (SECOND_THIRD, b, a),
            }
        } else if at(self, a) == Some(to) {
            match at(self, b) {
                Some(_) => (FIRST_SECOND, b, c),
                None => (FIRST_THIRD, c, b),
            }
        } else if at(self, b) == Some(to) {
            match at(self, a) {
                Some(_) => (FIRST_SECOND, a, c),
                None => (FIRST_THIRD, c, a),
            }
        } else if c.is_none() {
            let from = self.register(a);
            self.copy(i.bytes, to, from);
            (FIRST_SECOND, b, c)
        } else {
            let from = self.register(c);
            self.copy(i.bytes, to, from);
            match at(self, a) {
                Some(_) => (SECOND_THIRD, a, b),
                None => (SECOND_THIRD, b, a),
            }
        };
        let middle = self.register(middle);
        let last = self.last(last, i);
        let op = Opcode {
            code: i.op.code | code,
            ..i.op
        };
        self.emit(&MachineInstruction { op, ..*i }, to, middle, last);
    }
}
