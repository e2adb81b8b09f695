//! A function that is being assembled, and where its operands are.

use super::super::{Mark, Target};
use super::allocate::Registers;
use super::encode::{Assembler, Gpr, Label, Memory, Modifiers, RDI, RSP, RmOperand};
use super::frame::Frame;
use super::general::{GeneralRegisters, Pointer};
use super::machine::{
    Broadcast, BroadcastSource, Check, INDICES, Id, MachineInstruction, MachineProgram, Operand,
};
use super::opcode::{Opcode, opcode};
use super::opcodes;
use crate::vector_ir::ops::Access;
use rustc_hash::FxHashMap;

/// Points to the indices that were checked last.
pub(super) const INDICES_AT: Gpr = Gpr(2);
const MOVE: Opcode = opcode(2, 1, false, 0x6f);

pub(super) struct Assembly<'p> {
    pub(super) program: &'p MachineProgram,
    pub(super) registers: Registers,
    pub(super) target: Target,
    pub(super) evex: bool,
    /// The first of the vector registers, at least two, for what is loaded for one instruction.
    pub(super) scratch: u8,
    pub(super) general: GeneralRegisters,
    pub(super) frame: Frame,
    /// The indices that were checked last.
    pub(super) checked: Option<CheckedIndices>,
    /// The largest number of an element along the lanes, in the loop over lanes that is open.
    pub(super) most_lane: i64,
    /// Counted loops that are open.
    pub(super) depth: usize,
    /// Registers of what is broadcast once and for all.
    pub(super) hoisted: FxHashMap<u32, u8>,
    pub(super) code: Assembler,
    pub(super) pool: Vec<u8>,
    /// Offsets in the pool, by bits, width, and copies.
    pub(super) pooled: FxHashMap<(u64, u8, u8), u32>,
    pub(super) next_scratch: u8,
    /// Checks of indices that have to go on elsewhere.
    pub(super) cold: Vec<Cold>,
    pub(super) marks: Vec<Mark>,
}

/// Indices that have been checked, or are when they are used.
#[derive(Clone, Copy)]
pub(super) struct CheckedIndices {
    /// Bytes of all of them, and of one.
    pub(super) bytes: i32,
    pub(super) each: u8,
    /// The extent that each is compared with when it is used, and where to go if it is not below.
    pub(super) limit: Option<(i32, Label)>,
}

/// The code far away for indices that are not all in range.
pub(super) struct Cold {
    pub(super) instruction: MachineInstruction,
    pub(super) check: Check,
    pub(super) good: u8,
    pub(super) here: Label,
    pub(super) resume: Label,
}

impl Assembly<'_> {
    /// Says what the instructions that follow do.
    pub(super) fn mark(&mut self, what: &'static str, access: Option<Access>) {
        let memory = access.filter(|a| a.pointer != INDICES);
        self.marks.push(Mark {
            offset: self.code.len(),
            what,
            memory: memory.map(|a| (a.pointer, a.offset)),
        });
    }

    /// The register that a value is in.
    pub(super) fn register_of(&mut self, id: Id) -> u8 {
        let register = self.registers.of.get(id as usize).copied();
        self.code.require(register.is_some());
        register.unwrap_or(0)
    }

    /// The register that holds a pointer, or is loaded with it until the next that is on the stack.
    pub(super) fn pointer(&mut self, argument: u32) -> Gpr {
        match self.general.pointers.get(&argument) {
            Some(&Pointer::Register(register)) => register,
            Some(&Pointer::Stack(number)) => {
                let (register, offset) = (self.general.spare, self.frame.pointer(number));
                self.code.load(register, RSP, offset);
                register
            }
            None => {
                self.code.require(false);
                RDI
            }
        }
    }

    /// Must be called once the register that [`Assembly::pointer`] gave has another value, which the pointer then has.
    pub(super) fn keep_pointer(&mut self, argument: u32, register: Gpr) {
        if let Some(&Pointer::Stack(number)) = self.general.pointers.get(&argument) {
            self.code.store(register, RSP, self.frame.pointer(number));
        }
    }

    pub(super) fn argument_at(&mut self, argument: u32) -> Memory {
        let offset = i32::try_from(argument).ok();
        let offset = offset.and_then(|argument| argument.checked_mul(8));
        self.code.require(offset.is_some());
        Memory::At {
            base: RDI,
            scale: 0,
            offset: offset.unwrap_or(0),
        }
    }

    pub(super) fn load_argument(&mut self, to: Gpr, argument: u32) {
        if let Memory::At { base, offset, .. } = self.argument_at(argument) {
            self.code.load(to, base, offset);
        }
    }

    pub(super) fn emit(&mut self, i: &MachineInstruction, first: u8, second: u8, last: RmOperand) {
        if !self.evex {
            self.code
                .vex(i.op, i.bytes, first, second, last, i.immediate);
            return;
        }
        let mask = i.mask.map_or(0, |id| self.register_of(id));
        let extra = Modifiers {
            mask,
            zeroing: i.zeroing,
            immediate: i.immediate,
        };
        self.code.evex(i.op, i.bytes, first, second, last, extra);
    }

    pub(super) fn copy(&mut self, bytes: u8, to: u8, from: u8) {
        if to == from {
            return;
        }
        let last = RmOperand::Register(from);
        match self.evex {
            true => self
                .code
                .evex(MOVE, bytes, to, 0, last, Modifiers::default()),
            false => self.code.vex(MOVE, bytes, to, 0, last, None),
        }
    }

    /// The register that an operand is in, if it is in one.
    pub(super) fn in_register(&self, operand: Option<Operand>) -> Option<u8> {
        match operand {
            Some(Operand::Value(id)) => self.registers.of.get(id as usize).copied(),
            Some(Operand::Broadcast(broadcast)) => self.hoisted.get(&broadcast).copied(),
            None => None,
        }
    }

    /// The register that an operand is in, or is put into now.
    pub(super) fn register(&mut self, operand: Option<Operand>) -> u8 {
        match (self.in_register(operand), operand) {
            (Some(register), _) => register,
            (None, Some(Operand::Broadcast(broadcast))) => {
                let register = self.next_scratch;
                let registers = if self.evex { 32 } else { 16 };
                self.code.require(register < registers);
                self.next_scratch += 1;
                self.broadcast_to(broadcast, register);
                register
            }
            (None, _) => {
                self.code.require(false);
                0
            }
        }
    }

    /// As [`Assembly::register`], or in memory if the instruction can take it from there; what is no operand is memory.
    pub(super) fn last(&mut self, operand: Option<Operand>, i: &MachineInstruction) -> RmOperand {
        if operand.is_none() {
            return RmOperand::Memory(self.memory(i.access));
        }
        if let (None, Some(Operand::Broadcast(number))) = (self.in_register(operand), operand) {
            let broadcast = self.program.broadcasts[number as usize];
            let constant = match broadcast.source {
                BroadcastSource::Constant(bits) => Some(bits),
                BroadcastSource::Whole(_) | BroadcastSource::Argument(_) => None,
            };
            if self.evex && i.broadcasts == broadcast.width {
                return RmOperand::Broadcast(self.broadcast_memory(number));
            }
            if let (false, Some(bits)) = (self.evex, constant)
                && i.broadcasts != 0
            {
                let copies = 32 / broadcast.width;
                return RmOperand::Memory(Memory::Pool(self.constant(
                    bits,
                    broadcast.width,
                    copies,
                )));
            }
        }
        RmOperand::Register(self.register(operand))
    }

    pub(super) fn broadcast_memory(&mut self, number: u32) -> Memory {
        let broadcast = self.program.broadcasts[number as usize];
        match broadcast.source {
            BroadcastSource::Constant(bits) => {
                Memory::Pool(self.constant(bits, broadcast.width, 1))
            }
            BroadcastSource::Whole(words) => {
                let start = self.pool.len().next_multiple_of(64);
                self.pool.resize(start, 0);
                self.pool.extend(words.iter().flat_map(|w| w.to_le_bytes()));
                Memory::Pool(start as u32)
            }
            BroadcastSource::Argument(argument) => self.argument_at(argument),
        }
    }

    pub(super) fn broadcast_to(&mut self, number: u32, register: u8) {
        let Broadcast { source, width } = self.program.broadcasts[number as usize];
        let last = RmOperand::Memory(self.broadcast_memory(number));
        let op = match source {
            BroadcastSource::Whole(_) => MOVE,
            _ => opcodes::broadcast(width, self.target),
        };
        match self.evex {
            true => self
                .code
                .evex(op, 64, register, 0, last, Modifiers::default()),
            false => self.code.vex(op, 32, register, 0, last, None),
        }
    }

    /// The offset in the pool of `copies` copies of a constant.
    pub(super) fn constant(&mut self, bits: u64, width: u8, copies: u8) -> u32 {
        *self.pooled.entry((bits, width, copies)).or_insert_with(|| {
            let size = usize::from(width) * usize::from(copies);
            self.pool.resize(self.pool.len().next_multiple_of(size), 0);
            let start = self.pool.len();
            for _ in 0..copies {
                self.pool.extend(&bits.to_le_bytes()[..width.into()]);
            }
            start as u32
        })
    }

    pub(super) fn memory(&mut self, access: Option<Access>) -> Memory {
        let (base, step, offset) = match access {
            Some(Access {
                pointer: INDICES,
                step,
                offset,
            }) => (self.checked_at(offset), step, offset),
            Some(access) => (self.pointer(access.pointer), access.step, access.offset),
            None => {
                self.code.require(false);
                (RDI, 0, 0)
            }
        };
        Memory::At {
            base,
            scale: step,
            offset,
        }
    }

    /// The register that points to the indices which were checked last; those from `offset` on are wanted.
    pub(super) fn checked_at(&mut self, offset: i32) -> Gpr {
        let inside = |checked: &CheckedIndices| (0..checked.bytes).contains(&offset);
        self.code.require(self.checked.as_ref().is_some_and(inside));
        INDICES_AT
    }

    pub(super) fn three(
        &mut self,
        op: Opcode,
        bytes: u8,
        (first, second, last): (u8, u8, RmOperand),
        immediate: Option<u8>,
    ) {
        if !self.evex {
            self.code.vex(op, bytes, first, second, last, immediate);
            return;
        }
        let extra = Modifiers {
            immediate,
            ..Modifiers::default()
        };
        self.code.evex(op, bytes, first, second, last, extra);
    }
}
