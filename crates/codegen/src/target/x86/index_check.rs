//! Indices that depend on data: checked by registers, and the elements that lie where they say.
//!
//! The indices of a turn lie side by side in memory. Each is compared with its extent in the register that it is
//! loaded into and looked up by: the memory is the caller's, and other threads may write there. If one is not in
//! range, code that is laid out far away adds the extent to those of the turn that are less than zero, by vectors,
//! on the stack, and the turn's look-ups begin again with these; if that does not help, the strip ends and returns 1.
//!
//! Rows in registers are permuted by vectors of indices, which lead nowhere else, whatever they are. Those are
//! compared all at once: with AVX-512 by a comparison of unsigned numbers, with AVX2, which has none, by the sign of
//! `k | (n - 1 - k)`, which is clear if and only if `k` lies in `0..n`.

use super::super::Target;
use super::assemble::Assembly;
use super::encode::{Condition, Extra, General, Label, Last, Memory, Opcode, RAX, RSP, opcode};
use super::machine::{Check, Form, Instruction, Lookup, Program, Step};
use crate::vector_ir::ops::{Compared, Gather};

/// Registers that programs with indices take for themselves, the first of those that there are: an index,
/// where the indices lie, two narrow indices at once, and where the first lane's elements lie.
pub(super) const OWN: usize = 4;
const INDEX: General = General(1);
const INDICES_AT: General = General(2);
const PAIR: General = General(6);
const ELEMENTS_AT: General = General(8);
/// Vector registers for elements that are put together.
pub(super) const SCRATCH: u8 = 3;
/// Of indices on the stack: a register's bytes.
pub(super) const ALIGNMENT: i32 = 64;

/// Indices that have been checked, or are when they are used.
#[derive(Clone, Copy)]
pub(super) struct Checked {
    /// Bytes of all of them, and of one.
    bytes: i32,
    each: u8,
    /// The extent that each is compared with when it is used, and where to go if it is not below.
    limit: Option<(i32, Label)>,
}

/// The code far away for indices that are not all in range.
pub(super) struct Cold {
    instruction: Instruction,
    check: Check,
    good: u8,
    here: Label,
    resume: Label,
}

/// The constant that indices with such an extent are compared with.
pub(super) fn limit(extent: u64, target: Target) -> u64 {
    match target {
        Target::Avx512 => extent,
        Target::Avx2 => extent.wrapping_sub(1),
    }
}

/// Bytes of the stack for indices; `None` if they are too many.
pub(super) fn frame(program: &Program) -> Option<i32> {
    fn most(steps: &[Step]) -> i32 {
        let of = |step: &Step| match step {
            Step::Loop { body, .. } => most(body),
            Step::Do(i) => match i.form {
                Form::Check(check) if check.compared != Compared::Never => bytes_of(i, check),
                _ => 0,
            },
        };
        steps.iter().map(of).max().unwrap_or(0)
    }
    // The page behind the stack that is in use is a guard: it must not be jumped over.
    const MOST: i32 = 2048;
    Some(most(&program.steps)).filter(|bytes| *bytes <= MOST)
}

/// Bytes of the indices of a turn.
fn bytes_of(i: &Instruction, check: Check) -> i32 {
    i32::from(check.registers) * i32::from(i.bytes)
}

impl Assembly<'_> {
    pub(super) fn check(&mut self, i: &Instruction, check: Check, good: u8) {
        let from = self.memory(i.access);
        let each = index_bytes(i);
        let is_whole = check.registers > 0 && matches!(each, 4 | 8) && i.bytes >= 16;
        self.code.require(self.program.has_indices && is_whole);
        self.code.address(INDICES_AT, from);
        let mut checked = Checked {
            bytes: bytes_of(i, check),
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

    /// To be said before an instruction that is no look-up. Those that compare their indices may begin again from the
    /// check on, so nothing else may be among them.
    pub(super) fn end_of_look_ups(&mut self) {
        if self.checked.is_some_and(|checked| checked.limit.is_some()) {
            self.checked = None;
        }
    }

    /// The register that points to the indices which were checked last; those from `offset` on are wanted.
    pub(super) fn checked_at(&mut self, offset: i32) -> General {
        let inside = |checked: &Checked| (0..checked.bytes).contains(&offset);
        self.code.require(self.checked.as_ref().is_some_and(inside));
        INDICES_AT
    }

    /// Compares the indices from `at` on: zero if all are in range.
    fn compare(&mut self, i: &Instruction, check: Check, limit_and_good: (u8, u8), at: General) {
        match self.evex {
            true => self.compare_unsigned(i, check, limit_and_good, at),
            false => self.join_signs(i, check, limit_and_good, at),
        }
    }

    fn compare_unsigned(
        &mut self,
        i: &Instruction,
        check: Check,
        (limit, good): (u8, u8),
        at: General,
    ) {
        for register in 0..check.registers {
            let extra = Extra {
                // Those before it must have been good.
                mask: if register == 0 { 0 } else { good },
                zeroing: false,
                immediate: Some(GREATER),
            };
            let last = Last::Memory(register_at(at, i.bytes, register));
            self.code.evex(i.op, i.bytes, good, limit, last, extra);
        }
        let good = Last::Register(good);
        self.code.vex(MASK_TO_GENERAL, 16, INDEX.0, 0, good, None);
        let lanes = i.bytes / index_bytes(i);
        self.code.compare(INDEX, (1 << lanes) - 1);
    }

    fn join_signs(&mut self, i: &Instruction, check: Check, (last, signs): (u8, u8), at: General) {
        let is_wide = index_bytes(i) == 8;
        let subtract = if is_wide { SUBTRACT_WIDE } else { SUBTRACT };
        // The first may be what they are compared with.
        let (index, others) = (self.scratch + 1, self.scratch + 2);
        for register in 0..check.registers {
            let place = Last::Memory(register_at(at, i.bytes, register));
            let to = if register == 0 { signs } else { others };
            let mut emit = |op, first, second, last| {
                self.code.vex(op, i.bytes, first, second, last, None);
            };
            emit(LOAD, index, 0, place);
            emit(subtract, to, last, Last::Register(index));
            emit(OR, to, to, Last::Register(index));
            if to != signs {
                emit(OR, signs, signs, Last::Register(to));
            }
        }
        let test = if is_wide { TEST_WIDE } else { TEST };
        let last = Last::Register(signs);
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
            let extra = Extra {
                mask,
                ..Extra::default()
            };
            self.code.evex(op, bytes, first, second, last, extra);
        };
        let [from, to] = [INDICES_AT, RSP].map(|at| Last::Memory(register_at(at, bytes, register)));
        let add = if wide { ADD_WIDE } else { ADD };
        emit(LOAD, index, 0, from, 0);
        emit(SIGNS, cold.good, 0, Last::Register(index), 0);
        emit(add, index, index, Last::Register(limit), cold.good);
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
        let [from, to] = [INDICES_AT, RSP].map(|at| Last::Memory(register_at(at, bytes, register)));
        let added = index + 1;
        emit(LOAD, index, 0, from);
        emit(XOR, less, less, Last::Register(less));
        // All bits of those less than zero: minus one.
        emit(greater, less, less, Last::Register(index));
        emit(AND, added, less, Last::Register(limit));
        emit(add, index, index, Last::Register(added));
        emit(subtract, index, index, Last::Register(less));
        emit(STORE, index, 0, to);
    }

    pub(super) fn look_up(&mut self, i: &Instruction, elements: Lookup, to: u8) {
        let at = self.memory(i.access);
        let gather = elements.gather;
        let Some(access) = i.access.filter(|_| self.may_look_up(elements)) else {
            self.code.require(false);
            return;
        };
        let place = match (access.step, at) {
            (0, Memory::At { base, offset, .. }) if gather.row_bytes != 0 => {
                let columns = i32::from(gather.columns);
                self.code.copy(INDEX, RAX);
                match gather.row_bytes % columns {
                    0 => self.code.multiply(INDEX, gather.row_bytes / columns),
                    _ => {
                        let most = self.most_lane;
                        self.code
                            .divide_exactly(INDEX, columns.unsigned_abs(), most);
                        self.code.multiply(INDEX, gather.row_bytes);
                    }
                }
                let first = Memory::Indexed {
                    base,
                    index: INDEX,
                    scale: 1,
                    offset,
                };
                self.code.address(ELEMENTS_AT, first);
                (ELEMENTS_AT, 0)
            }
            (0, Memory::At { base, offset, .. }) => (base, offset),
            _ => {
                self.code.address(ELEMENTS_AT, at);
                (ELEMENTS_AT, 0)
            }
        };
        let unit = (16 / elements.width).min(elements.lanes);
        for group in 0..elements.lanes / unit {
            let filled = if group == 0 { to } else { self.scratch };
            self.fill(elements, place, group * unit, unit, filled);
            if group > 0 {
                let bytes = elements.lanes * elements.width;
                let last = Last::Register(filled);
                self.three(INSERT, bytes, (to, to, last), Some(group));
            }
        }
    }

    /// Whether there are registers for such elements, and indices for all of its lanes that have been checked.
    fn may_look_up(&self, elements: Lookup) -> bool {
        let Lookup {
            first,
            lanes,
            width,
            gather,
        } = elements;
        let Gather {
            index_bytes,
            index_step,
            columns,
            row_bytes,
            ..
        } = gather;
        let last = (i32::from(first) + i32::from(lanes)) * i32::from(index_bytes);
        let is_checked = |checked: &Checked| checked.each == index_bytes && last <= checked.bytes;
        let fills = match width {
            4 => matches!(lanes, 2 | 4 | 8 | 16),
            8 => matches!(lanes, 2 | 4 | 8),
            1 | 2 => lanes > 0 && (lanes < 16 / width || lanes.is_multiple_of(16 / width)),
            _ => false,
        };
        // Narrow indices are loaded two at a time.
        let is_even = first.is_multiple_of(2);
        let steps = columns > 0 || row_bytes == 0;
        self.checked.as_ref().is_some_and(is_checked) && fills && is_even && steps && index_step > 0
    }

    /// Fills the 128 bits of a register, or the first of them, with the elements of so many lanes.
    fn fill(&mut self, elements: Lookup, place: (General, i32), first: u8, count: u8, to: u8) {
        let (second, third) = (self.scratch + 1, self.scratch + 2);
        let element = |this: &mut Self, lane: u8| {
            let memory = this.element(elements, place, first + lane);
            Last::Memory(memory)
        };
        match elements.width {
            4 => {
                let two = |this: &mut Self, lane: u8, [to, other]: [u8; 2]| {
                    for (register, lane) in [(to, lane), (other, lane + 1)] {
                        let last = element(this, lane);
                        this.three(LOAD_4, 16, (register, 0, last), None);
                    }
                    this.three(INTERLEAVE, 16, (to, to, Last::Register(other)), None);
                };
                two(self, 0, [to, second]);
                if count == 4 {
                    two(self, 2, [second, third]);
                    let last = Last::Register(second);
                    self.three(JOIN_HALVES, 16, (to, to, last), None);
                }
            }
            8 => {
                let last = element(self, 0);
                self.three(LOAD_8, 16, (to, 0, last), None);
                let last = element(self, 1);
                self.three(LOAD_UPPER, 16, (to, to, last), None);
            }
            width => {
                self.three(XOR, 16, (to, to, Last::Register(to)), None);
                let insert = if width == 2 { INSERT_2 } else { INSERT_1 };
                for lane in 0..count {
                    let last = element(self, lane);
                    self.three(insert, 16, (to, to, last), Some(lane));
                }
            }
        }
    }

    /// Where the element of a lane lies.
    fn element(&mut self, elements: Lookup, (base, offset): (General, i32), lane: u8) -> Memory {
        let Gather {
            index_bytes,
            index_step,
            column_bytes,
            row_bytes,
            columns,
            ..
        } = elements.gather;
        let lane = elements.first + lane;
        let (row, column) = match columns {
            0 => (0, lane),
            columns => (lane / columns, lane % columns),
        };
        let index = self.index(lane, index_bytes);
        let scale = match index_step {
            1 | 2 | 4 | 8 => index_step as u8,
            _ => {
                self.code.multiply(index, index_step);
                1
            }
        };
        Memory::Indexed {
            base,
            index,
            scale,
            offset: self.offset_of(offset, [(row, row_bytes), (column, column_bytes.into())]),
        }
    }

    /// An offset with some steps added.
    fn offset_of(&mut self, offset: i32, steps: [(u8, i32); 2]) -> i32 {
        let sum = steps.iter().try_fold(offset, |sum, (count, step)| {
            sum.checked_add(step.checked_mul(i32::from(*count))?)
        });
        self.code.require(sum.is_some());
        sum.unwrap_or(0)
    }

    /// The index of a lane, in a register. Narrow ones are loaded two at a time: lanes come in their order.
    fn index(&mut self, lane: u8, bytes: u8) -> General {
        let at = i32::from(lane) * i32::from(bytes);
        let indices = self.checked_at(at);
        let is_wide = bytes == 8;
        let index = if is_wide {
            self.code.load(INDEX, indices, at);
            INDEX
        } else if lane % 2 == 1 {
            self.code.take_upper_half(PAIR);
            PAIR
        } else {
            self.code.load(PAIR, indices, at);
            self.code.copy_lower_half(INDEX, PAIR);
            INDEX
        };
        if let Some((extent, cold)) = self.checked.and_then(|checked| checked.limit) {
            self.code.compare_sized(index, extent, is_wide);
            self.code.jump_if(Condition::AboveOrEqual, cold);
        }
        index
    }

    fn three(
        &mut self,
        op: Opcode,
        bytes: u8,
        (first, second, last): (u8, u8, Last),
        immediate: Option<u8>,
    ) {
        if !self.evex {
            self.code.vex(op, bytes, first, second, last, immediate);
            return;
        }
        let extra = Extra {
            immediate,
            ..Extra::default()
        };
        self.code.evex(op, bytes, first, second, last, extra);
    }

    /// Ends the function.
    pub(super) fn end_with_fault(&mut self, end: Label) -> Label {
        let fault = self.code.here();
        self.code.set(RAX, 1);
        self.code.jump(end);
        fault
    }
}

fn index_bytes(check: &Instruction) -> u8 {
    check.access.map_or(8, |access| access.step)
}

/// Where a register of indices lies.
fn register_at(base: General, bytes: u8, register: u8) -> Memory {
    Memory::At {
        base,
        scale: 0,
        offset: i32::from(register) * i32::from(bytes),
    }
}

/// Of comparisons of integers.
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
const XOR: Opcode = opcode(1, 1, false, 0xef);
/// Whether the signs of all lanes are clear.
const TEST: Opcode = opcode(1, 2, false, 0x0e);
const TEST_WIDE: Opcode = opcode(1, 2, false, 0x0f);
/// All bits of the lanes where the first is greater.
const IS_GREATER: Opcode = opcode(1, 1, false, 0x66);
const IS_GREATER_WIDE: Opcode = opcode(1, 2, false, 0x37);
/// One element, with zeros above it.
const LOAD_4: Opcode = opcode(2, 1, false, 0x10);
const LOAD_8: Opcode = opcode(3, 1, true, 0x10);
const LOAD_UPPER: Opcode = opcode(1, 1, true, 0x16);
const INTERLEAVE: Opcode = opcode(0, 1, false, 0x14);
const JOIN_HALVES: Opcode = opcode(0, 1, false, 0x16);
/// One element at a number.
const INSERT_2: Opcode = opcode(1, 1, false, 0xc4);
const INSERT_1: Opcode = opcode(1, 3, false, 0x20);
/// 128 bits at a number.
const INSERT: Opcode = opcode(1, 3, false, 0x38);
