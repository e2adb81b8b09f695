//! Gathers: the elements that lie where checked indices say, put together one by one.

use super::assembly::{Assembly, CheckedIndices};
use super::encode::{Condition, Gpr, Memory, RAX, RmOperand};
use super::index_check::{INDEX, XOR};
use super::machine::{GatherPart, MachineInstruction};
use super::opcode::{Opcode, opcode};
use crate::vector_ir::ops::Gather;

/// Two narrow indices at once, and where the first lane's elements lie.
const PAIR: Gpr = Gpr(6);
const ELEMENTS_AT: Gpr = Gpr(8);

impl Assembly<'_> {
    pub(super) fn gather(&mut self, i: &MachineInstruction, elements: GatherPart, to: u8) {
        let at = self.memory(i.access);
        let gather = elements.gather;
        let Some(access) = i.access.filter(|_| self.may_gather(elements)) else {
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
                let last = RmOperand::Register(filled);
                self.three(INSERT, bytes, (to, to, last), Some(group));
            }
        }
    }

    /// Whether there are registers for such elements, and indices for all of its lanes that have been checked.
    fn may_gather(&self, elements: GatherPart) -> bool {
        let GatherPart {
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
        let is_checked =
            |checked: &CheckedIndices| checked.each == index_bytes && last <= checked.bytes;
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

    /// Fills the 128 bits of a register, or the first of them, with the elements of `count` lanes.
    fn fill(&mut self, elements: GatherPart, place: (Gpr, i32), first: u8, count: u8, to: u8) {
        let (second, third) = (self.scratch + 1, self.scratch + 2);
        let element = |this: &mut Self, lane: u8| {
            let memory = this.element(elements, place, first + lane);
            RmOperand::Memory(memory)
        };
        match elements.width {
            4 => {
                let two = |this: &mut Self, lane: u8, [to, other]: [u8; 2]| {
                    for (register, lane) in [(to, lane), (other, lane + 1)] {
                        let last = element(this, lane);
                        this.three(LOAD_4, 16, (register, 0, last), None);
                    }
                    this.three(INTERLEAVE, 16, (to, to, RmOperand::Register(other)), None);
                };
                two(self, 0, [to, second]);
                if count == 4 {
                    two(self, 2, [second, third]);
                    let last = RmOperand::Register(second);
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
                self.three(XOR, 16, (to, to, RmOperand::Register(to)), None);
                let insert = if width == 2 { INSERT_2 } else { INSERT_1 };
                for lane in 0..count {
                    let last = element(self, lane);
                    self.three(insert, 16, (to, to, last), Some(lane));
                }
            }
        }
    }

    /// Where the element of a lane lies.
    fn element(&mut self, elements: GatherPart, (base, offset): (Gpr, i32), lane: u8) -> Memory {
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
    fn index(&mut self, lane: u8, bytes: u8) -> Gpr {
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
}

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
