//! Loads, stores, and what goes with indices in memory.

use super::super::Target;
use super::index_check::limit;
use super::machine::{
    Broadcast, BroadcastSource, Check, Class, Form, GatherPart, Id, Operand, instruction,
};
use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::{Access, Gather, IndexCheck, Op};

/// Words of 64 bits.
const EVEN_THEN_ODD: [u64; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

impl Selector<'_> {
    pub(super) fn load(&mut self, access: Access, width: u8) -> Option<RegisterGroup> {
        let total = (self.lanes * usize::from(width)) as u8;
        let few = self.program.few;
        if total < 4 || (few.is_some() && total < 16) {
            return None;
        }
        let mask = few.and_then(|few| self.mask_of_first(few));
        let op = match mask {
            Some(_) => opcodes::masked_load(width, self.target)?,
            None => opcodes::load(total, width, self.target),
        };
        let mut loaded = Vec::with_capacity(self.parts);
        for part in 0..self.parts {
            let mut i = instruction(Form::Load, op, self.bytes(width));
            let offset = i32::try_from(part * usize::from(total)).ok()?;
            i.access = Some(Access {
                step: width,
                offset: access.offset.checked_add(offset)?,
                ..access
            });
            (i.mask, i.zeroing) = (mask, mask.is_some());
            loaded.push(self.give(i, Class::Vector));
        }
        Some(RegisterGroup::new(loaded, width))
    }

    /// A mask of the first lanes, if these are not all.
    fn mask_of_first(&mut self, count: usize) -> Option<Id> {
        (count < self.lanes).then(|| self.first_lanes(count))
    }

    /// Every second element of at least 16 bytes of them, from two registers that overlap in one: nothing beyond is read.
    pub(super) fn load_every_second(&mut self, access: Access, width: u8) -> Option<RegisterGroup> {
        if width == 8 || self.lanes * usize::from(width) < 16 {
            return None;
        }
        let bytes = self.bytes(width);
        let (lanes, size) = (self.lanes as i32, i32::from(width));
        // Elements up to the last that is wanted.
        let elements = 2 * self.program.few.unwrap_or(self.lanes) - 1;
        let mut loaded = Vec::with_capacity(self.parts);
        for part in 0..self.parts as i32 {
            let mut halves: Vec<RegisterGroup> = Vec::with_capacity(2);
            for first in [0, lanes - 1] {
                // The second has nothing of a short row.
                let left = elements.checked_sub(first as usize);
                let Some(left) = left.filter(|left| *left > 0) else {
                    halves.extend(halves.first().cloned());
                    continue;
                };
                let mask = self.mask_of_first(left);
                let op = match mask {
                    Some(_) => opcodes::masked_load(width, self.target)?,
                    None => opcodes::load(bytes, width, self.target),
                };
                let mut i = instruction(Form::Load, op, bytes);
                (i.mask, i.zeroing) = (mask, mask.is_some());
                let offset = size * (2 * lanes * part + first);
                i.access = Some(Access {
                    step: 2 * width,
                    offset: access.offset.checked_add(offset)?,
                    ..access
                });
                halves.push(RegisterGroup::new(vec![self.give(i, Class::Vector)], width));
            }
            let every_second = self.every_second(&halves[0], &halves[1], bytes)?;
            loaded.extend(every_second.parts);
        }
        Some(RegisterGroup::new(loaded, width))
    }

    /// The even elements of `low`, then the odd ones of `high`.
    fn every_second(
        &mut self,
        low: &RegisterGroup,
        high: &RegisterGroup,
        bytes: u8,
    ) -> Option<RegisterGroup> {
        // By units of 128 bits, which are then put in order.
        let mixed = match low.width {
            4 => self.three(opcodes::SHUFFLE_TWO, low, high, Some(0xd8)),
            _ => self.packed_pairs(low, high, bytes)?,
        };
        if bytes == 16 {
            return Some(mixed);
        }
        if bytes == 64 {
            let order = self.selected.broadcast(Broadcast {
                source: BroadcastSource::Whole(&EVEN_THEN_ODD),
                width: 64,
            });
            let order = RegisterGroup::new(vec![order], mixed.width);
            return Some(self.three(opcodes::SHUFFLE_BY, &order, &mixed, None));
        }
        let mut i = instruction(Form::Rm, opcodes::SHUFFLE_HALVES, 32);
        i.immediate = Some(0xd8);
        let ordered = self.each(i, Class::Vector, &[&mixed]);
        Some(RegisterGroup::new(ordered, mixed.width))
    }

    /// Of each 128 bits the even elements of `low`, then the odd ones of `high`; elements have 1 or 2 bytes.
    fn packed_pairs(
        &mut self,
        low: &RegisterGroup,
        high: &RegisterGroup,
        bytes: u8,
    ) -> Option<RegisterGroup> {
        let pair = 2 * low.width;
        let bits = 8 * low.width;
        let low_bits = self.constant((1 << bits) - 1, pair);
        let and = instruction(Form::Rvm, opcodes::bitwise(Op::And, 4)?, bytes);
        let even = self.each(and, Class::Vector, &[low, &low_bits]);
        let (op, digit) = opcodes::shift(false, false, pair, self.target)?;
        let mut shift = instruction(Form::Vm(digit), op, bytes);
        shift.immediate = Some(bits);
        let odd = self.each(shift, Class::Vector, &[high]);
        let [even, odd] = [even, odd].map(|pairs| RegisterGroup::new(pairs, pair));
        // Nothing is left to saturate.
        let pack = instruction(Form::Rvm, opcodes::pack_unsigned(pair)?, bytes);
        let packed = self.each(pack, Class::Vector, &[&even, &odd]);
        Some(RegisterGroup::new(packed, low.width))
    }

    pub(super) fn load_uniform(&mut self, access: Access, width: u8) -> RegisterGroup {
        let op = opcodes::broadcast(width, self.target);
        let mut i = instruction(Form::Load, op, self.bytes(width));
        i.access = Some(Access { step: 0, ..access });
        RegisterGroup::new(vec![self.give(i, Class::Vector)], width)
    }

    pub(super) fn store(&mut self, access: Access, value: &RegisterGroup, width: u8) -> Option<()> {
        // A conversion that is deferred to here.
        if value.width > width {
            let (packed, bytes) = self.packed(value, width)?;
            return self.store_registers(access, &packed, bytes);
        }
        let total = (self.lanes * usize::from(width)) as u8;
        let few = self.program.few;
        let least = if few.is_some() { 16 } else { 4 };
        if total < least {
            return None;
        }
        let parts = (0..self.parts).map(|part| value.part(part)).collect();
        self.store_registers(access, &RegisterGroup::new(parts, width), total)
    }

    /// Stores `bytes` bytes of each register, one after the other.
    fn store_registers(&mut self, access: Access, from: &RegisterGroup, bytes: u8) -> Option<()> {
        let few = self.program.few;
        let mask = few.and_then(|few| self.mask_of_first(few));
        let op = opcodes::store(bytes, from.width, self.target);
        for (number, part) in from.parts.iter().enumerate() {
            let mut i = instruction(Form::Store, op, bytes);
            i.from[0] = Some(*part);
            i.mask = mask;
            let offset = i32::try_from(number * usize::from(bytes)).ok()?;
            i.access = Some(Access {
                step: from.width,
                offset: access.offset.checked_add(offset)?,
                ..access
            });
            self.add(i);
        }
        Some(())
    }

    pub(super) fn prefetch(&mut self, access: Access) -> Option<()> {
        let mut i = instruction(Form::Prefetch, opcodes::NOT_MASK, 16);
        i.access = Some(access);
        self.add(i);
        Some(())
    }

    pub(super) fn check_indices(&mut self, check: IndexCheck, width: u8) -> Option<()> {
        let bytes = self.lanes * usize::from(width);
        if !(16..=self.target.bytes()).contains(&bytes) {
            return None;
        }
        let form = Form::Check(Check {
            registers: u8::try_from(self.parts).ok()?,
            compared: check.compared,
            negative: check.negative,
        });
        let op = opcodes::compare_integers(false, width);
        let mut i = instruction(form, op, bytes as u8);
        let limit = self.constant(limit(check.extent, self.target), width);
        i.from[0] = Some(limit.part(0));
        i.access = Some(Access {
            step: width,
            ..check.access
        });
        let class = match self.target {
            Target::Avx512 => Class::Mask,
            Target::Avx2 => Class::Vector,
        };
        self.give(i, class);
        Some(())
    }

    pub(super) fn gather(&mut self, gather: Gather, width: u8) -> Option<RegisterGroup> {
        let mut parts: Vec<Operand> = Vec::with_capacity(self.parts);
        for part in 0..self.parts {
            let lookup = GatherPart {
                first: u8::try_from(part * self.lanes).ok()?,
                lanes: self.lanes as u8,
                width,
                gather,
            };
            let mut i = instruction(Form::Gather(lookup), opcodes::NOT_MASK, 16);
            i.access = Some(gather.access);
            parts.push(self.give(i, Class::Vector));
        }
        Some(RegisterGroup::new(parts, width))
    }
}
