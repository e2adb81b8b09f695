//! Indices that depend on data: checked by registers, and the elements that lie where they say.
//!
//! The indices of a turn lie side by side in memory. Each is compared with its extent in the register that it is
//! loaded into and gathered by: the memory is the caller's, and other threads may write there. If one is not in
//! range, code that is laid out far away adds the extent to those of the turn that are less than zero, by vectors,
//! on the stack, and the turn's gathers begin again with these; if that does not help, the function ends and returns 1.
//!
//! Rows in registers are permuted by vectors of indices, which lead nowhere else, whatever they are. Those are
//! compared all at once: with AVX-512 by a comparison of unsigned numbers, with AVX2, which has none, by the sign of
//! `k | (n - 1 - k)`, which is clear if and only if `k` lies in `0..n`.

use super::super::Target;
use super::assembly::{Assembly, CheckedIndices, Cold, INDICES_AT};
use super::encode::{Condition, Gpr, Label, Memory, Modifiers, RAX, RSP, RmOperand};
use super::machine::{Check, MachineInstruction};
use super::opcode::{Opcode, opcode};
use crate::vector_ir::ops::Compared;

/// Registers that programs with indices take for themselves, the first of those that there are: an index,
/// where the indices lie, two narrow indices at once, and where the first lane's elements lie.
pub(super) const OWN: usize = 4;
pub(super) const INDEX: Gpr = Gpr(1);
/// Vector registers for elements that are put together.
pub(super) const SCRATCH: u8 = 3;

/// The constant that indices with such an extent are compared with.
pub(super) fn limit(extent: u64, target: Target) -> u64 {
    match target {
        Target::Avx512 => extent,
        Target::Avx2 => extent.wrapping_sub(1),
    }
}

impl Assembly<'_> {
    pub(super) fn check(&mut self, i: &MachineInstruction, check: Check, good: u8) {
        let from = self.memory(i.access);
        let each = index_bytes(i);
        let is_whole = check.registers > 0 && matches!(each, 4 | 8) && i.bytes >= 16;
        self.code.require(self.program.has_indices && is_whole);
        self.code.address(INDICES_AT, from);
        let mut checked = CheckedIndices {
            bytes: check.bytes(i.bytes),
            each,
            limit: None,
        };
        if check.compared != Compared::Never {
            let here = self.code.label();
            match check.compared {
                Compared::WhenUsed(extent) => checked.limit = Some((extent, here)),
                _ => {
                    let limit = self.register(i.from[0]);
                    self.compare(i, check, (limit, good), INDICES_AT);
                    self.code.jump_if(Condition::NotZero, here);
                }
            }
            let resume = self.code.here();
            self.cold.push(Cold {
                instruction: *i,
                check,
                good,
                here,
                resume,
            });
        }
        self.checked = Some(checked);
    }

    /// Must be called before an instruction that is no gather, nor spills one. Those that compare their indices may begin
    /// again from the check on, so nothing else may be among them.
    pub(super) fn end_of_gathers(&mut self) {
        if self.checked.is_some_and(|checked| checked.limit.is_some()) {
            self.checked = None;
        }
    }

    /// Compares the indices from `at` on: zero if all are in range.
    fn compare(&mut self, i: &MachineInstruction, check: Check, limit_and_good: (u8, u8), at: Gpr) {
        match self.evex {
            true => self.compare_unsigned(i, check, limit_and_good, at),
            false => self.join_signs(i, check, limit_and_good, at),
        }
    }

    fn compare_unsigned(
        &mut self,
        i: &MachineInstruction,
        check: Check,
        (limit, good): (u8, u8),
        at: Gpr,
    ) {
        for register in 0..check.registers {
            let extra = Modifiers {
                // A lane stays good only if the registers before this one found it good.
                mask: if register == 0 { 0 } else { good },
                zeroing: false,
                immediate: Some(GREATER),
            };
            let last = RmOperand::Memory(register_at(at, i.bytes, register));
            self.code.evex(i.op, i.bytes, good, limit, last, extra);
        }
        let good = RmOperand::Register(good);
        self.code.vex(MASK_TO_GENERAL, 16, INDEX.0, 0, good, None);
        let lanes = i.bytes / index_bytes(i);
        self.code.compare(INDEX, (1 << lanes) - 1);
    }

    fn join_signs(
        &mut self,
        i: &MachineInstruction,
        check: Check,
        (last, signs): (u8, u8),
        at: Gpr,
    ) {
        let is_wide = index_bytes(i) == 8;
        let subtract = if is_wide { SUBTRACT_WIDE } else { SUBTRACT };
        // The register `self.scratch` may hold the bound that they are compared with.
        let (index, others) = (self.scratch + 1, self.scratch + 2);
        for register in 0..check.registers {
            let place = RmOperand::Memory(register_at(at, i.bytes, register));
            let to = if register == 0 { signs } else { others };
            let mut emit = |op, first, second, last| {
                self.code.vex(op, i.bytes, first, second, last, None);
            };
            emit(LOAD, index, 0, place);
            emit(subtract, to, last, RmOperand::Register(index));
            emit(OR, to, to, RmOperand::Register(index));
            if to != signs {
                emit(OR, signs, signs, RmOperand::Register(to));
            }
        }
        let test = if is_wide { TEST_WIDE } else { TEST };
        let last = RmOperand::Register(signs);
        self.code.vex(test, i.bytes, signs, 0, last, None);
    }

    /// The code that is laid out far away; it leads back, or to `fault`.
    pub(super) fn cold_checks(&mut self, fault: Label) {
        for cold in std::mem::take(&mut self.cold) {
            self.code.put(cold.here);
            let each = matches!(cold.check.compared, Compared::WhenUsed(_));
            if cold.check.negative {
                // Look-ups may have used its register since.
                self.next_scratch = self.scratch;
                let limit = self.register(cold.instruction.from[0]);
                if each {
                    // They were on the stack already.
                    self.code.compare_with(INDICES_AT, RSP);
                    self.code.jump_if(Condition::Zero, fault);
                }
                for register in 0..cold.check.registers {
                    match self.evex {
                        true => self.count_from_the_end_masked(&cold, limit, register),
                        false => self.count_from_the_end(&cold, limit, register),
                    }
                }
                self.code.copy(INDICES_AT, RSP);
                if each {
                    self.code.jump(cold.resume);
                    continue;
                }
                let limit_and_good = (limit, cold.good);
                self.compare(&cold.instruction, cold.check, limit_and_good, RSP);
                self.code.jump_if(Condition::Zero, cold.resume);
            }
            self.code.jump(fault);
        }
    }

    /// Puts a register of indices on the stack, those less than zero counted from the end.
    fn count_from_the_end_masked(&mut self, cold: &Cold, limit: u8, register: u8) {
        let bytes = cold.instruction.bytes;
        let wide = index_bytes(&cold.instruction) == 8;
        // The first may be the limit.
        let index = self.scratch + 1;
        let mut emit = |op, first, second, last, mask| {
            let op = Opcode { wide, ..op };
            let extra = Modifiers {
                mask,
                ..Modifiers::default()
            };
            self.code.evex(op, bytes, first, second, last, extra);
        };
        let [from, to] =
            [INDICES_AT, RSP].map(|at| RmOperand::Memory(register_at(at, bytes, register)));
        let add = if wide { ADD_WIDE } else { ADD };
        emit(LOAD, index, 0, from, 0);
        emit(SIGNS, cold.good, 0, RmOperand::Register(index), 0);
        emit(add, index, index, RmOperand::Register(limit), cold.good);
        emit(STORE, index, 0, to, 0);
    }

    /// The same without masks; the limit is one less than the extent.
    fn count_from_the_end(&mut self, cold: &Cold, limit: u8, register: u8) {
        let bytes = cold.instruction.bytes;
        let (index, less) = (self.scratch + 1, cold.good);
        let [greater, add, subtract] = match index_bytes(&cold.instruction) {
            8 => [IS_GREATER_WIDE, ADD_WIDE, SUBTRACT_WIDE],
            _ => [IS_GREATER, ADD, SUBTRACT],
        };
        let mut emit = |op, first, second, last| {
            self.code.vex(op, bytes, first, second, last, None);
        };
        let [from, to] =
            [INDICES_AT, RSP].map(|at| RmOperand::Memory(register_at(at, bytes, register)));
        let added = index + 1;
        emit(LOAD, index, 0, from);
        emit(XOR, less, less, RmOperand::Register(less));
        // All bits of those less than zero: minus one.
        emit(greater, less, less, RmOperand::Register(index));
        emit(AND, added, less, RmOperand::Register(limit));
        emit(add, index, index, RmOperand::Register(added));
        emit(subtract, index, index, RmOperand::Register(less));
        emit(STORE, index, 0, to);
    }

    /// Ends the function.
    pub(super) fn end_with_fault(&mut self, end: Label) -> Label {
        let fault = self.code.here();
        self.code.set(RAX, 1);
        self.code.jump(end);
        fault
    }
}

fn index_bytes(check: &MachineInstruction) -> u8 {
    check.access.map_or(8, |access| access.step)
}

/// Where a register of indices lies.
fn register_at(base: Gpr, bytes: u8, register: u8) -> Memory {
    Memory::At {
        base,
        scale: 0,
        offset: i32::from(register) * i32::from(bytes),
    }
}

/// The predicate `>` of comparisons of integers.
const GREATER: u8 = 6;

const MASK_TO_GENERAL: Opcode = opcode(0, 1, false, 0x93);
const LOAD: Opcode = opcode(2, 1, false, 0x6f);
const STORE: Opcode = opcode(2, 1, false, 0x7f);
/// A mask of the lanes that are less than zero.
const SIGNS: Opcode = opcode(2, 2, false, 0x39);
const ADD: Opcode = opcode(1, 1, false, 0xfe);
const ADD_WIDE: Opcode = opcode(1, 1, true, 0xd4);
const SUBTRACT: Opcode = opcode(1, 1, false, 0xfa);
const SUBTRACT_WIDE: Opcode = opcode(1, 1, true, 0xfb);
const AND: Opcode = opcode(1, 1, false, 0xdb);
const OR: Opcode = opcode(1, 1, false, 0xeb);
pub(super) const XOR: Opcode = opcode(1, 1, false, 0xef);
/// Whether the signs of all lanes are clear.
const TEST: Opcode = opcode(1, 2, false, 0x0e);
const TEST_WIDE: Opcode = opcode(1, 2, false, 0x0f);
/// All bits of the lanes where the first is greater.
const IS_GREATER: Opcode = opcode(1, 1, false, 0x66);
const IS_GREATER_WIDE: Opcode = opcode(1, 2, false, 0x37);
