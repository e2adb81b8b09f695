//! Masks: comparisons that make them, operations on them, and what they choose.

use super::machine::{BroadcastSource, Class, Form, Operand, instruction};
use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::{Comparison, Op, is_float};
use vinelift_tensor::ElementType::{self, Boolean, U64};

impl Selector<'_> {
    pub(super) fn mask_argument(&mut self, number: u32) -> RegisterGroup {
        if self.is_512() {
            let i = instruction(Form::Argument(number), opcodes::NOT_MASK, 16);
            return RegisterGroup::new(vec![self.give(i, Class::Mask)], 0);
        }
        // All bits or none: lanes of any width, and of this one a register holds them all.
        let width = (self.target.bytes() / self.lanes).clamp(1, 8) as u8;
        let argument = self.broadcast(BroadcastSource::Argument(number), width);
        RegisterGroup::new(vec![argument], width)
    }

    pub(super) fn compare(
        &mut self,
        comparison: Comparison,
        ty: ElementType,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        if x.is_broadcast() && !y.is_broadcast() {
            return self.compare(comparison.mirrored(), ty, y, x);
        }
        let width = x.width;
        let signed = ty.is_signed_integer();
        let floats = is_float(ty);
        if self.is_512() {
            let (op, immediate) = match floats {
                true => (
                    opcodes::float(width, 0xc2),
                    opcodes::float_order(comparison),
                ),
                false => (
                    opcodes::compare_integers(signed, width),
                    opcodes::integer_order(comparison),
                ),
            };
            let mut i = instruction(Form::Rvm, op, self.bytes(width));
            i.immediate = Some(immediate);
            i.broadcasts = self.broadcasts(width);
            return Some(RegisterGroup::new(self.each(i, Class::Mask, &[x, y]), 0));
        }
        if floats {
            let order = opcodes::float_order(comparison);
            return Some(self.three(opcodes::float(width, 0xc2), x, y, Some(order)));
        }
        use Comparison::*;
        let mask = match comparison {
            Equal | NotEqual => self.three(opcodes::equal(width), x, y, None),
            Greater | LessOrEqual if !signed => self.is_above(x, y)?,
            _ if !signed => self.is_above(y, x)?,
            Greater | LessOrEqual => self.three(opcodes::greater(width), x, y, None),
            Less | GreaterOrEqual => self.three(opcodes::greater(width), y, x, None),
        };
        Some(match comparison {
            NotEqual | LessOrEqual | GreaterOrEqual => self.not(&mask),
            _ => mask,
        })
    }

    pub(super) fn not(&mut self, mask: &RegisterGroup) -> RegisterGroup {
        if self.is_512() {
            let i = instruction(Form::Masks, opcodes::NOT_MASK, 16);
            return RegisterGroup::new(self.each(i, Class::Mask, &[mask]), 0);
        }
        let ones = self.ones(mask.width);
        match opcodes::bitwise(Op::Xor, mask.width) {
            Some(op) => self.three(op, mask, &ones, None),
            None => mask.clone(),
        }
    }

    pub(super) fn of_masks(
        &mut self,
        op: Op,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        use Comparison::*;
        let (op, x, y) = match op {
            Op::Compare(Greater) => (Op::Compare(Less), y, x),
            Op::Compare(GreaterOrEqual) => (Op::Compare(LessOrEqual), y, x),
            Op::Min => (Op::And, x, y),
            Op::Max => (Op::Or, x, y),
            Op::Compare(NotEqual) => (Op::Xor, x, y),
            op => (op, x, y),
        };
        if op == Op::Compare(LessOrEqual) {
            let not = self.not(x);
            return self.of_masks(Op::Or, &not, y);
        }
        if self.is_512() {
            let i = instruction(Form::Masks, opcodes::masks(op)?, 32);
            return Some(RegisterGroup::new(self.each(i, Class::Mask, &[x, y]), 0));
        }
        let [x, y] = self.both_fitted(x, y)?;
        let (x, op, negate) = match op {
            Op::And | Op::Or | Op::Xor => (x, op, false),
            Op::Compare(Equal) => (x, Op::Xor, true),
            Op::Compare(Less) => (self.not(&x), Op::And, false),
            _ => return None,
        };
        let mask = self.three(opcodes::bitwise(op, x.width)?, &x, &y, None);
        Some(if negate { self.not(&mask) } else { mask })
    }

    /// Finds out whether any part of a mask has lanes.
    pub(super) fn has_lanes(&mut self, mask: &RegisterGroup) -> Option<()> {
        let mut any = RegisterGroup::new(vec![mask.part(0)], mask.width);
        for part in mask.parts.iter().skip(1) {
            let part = RegisterGroup::new(vec![*part], mask.width);
            any = self.of_masks(Op::Or, &any, &part)?;
        }
        let op = opcodes::has_lanes(self.target, self.lanes);
        let bytes = if self.is_512() {
            16
        } else {
            self.bytes(mask.width)
        };
        let mut test = instruction(Form::HasLanes, op, bytes);
        test.from[0] = Some(any.part(0));
        self.add(test);
        Some(())
    }

    pub(super) fn select(
        &mut self,
        mask: &RegisterGroup,
        ty: ElementType,
        yes: &RegisterGroup,
        no: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        if ty == Boolean {
            let taken = self.of_masks(Op::And, mask, yes)?;
            let not = self.not(mask);
            let other = self.of_masks(Op::And, &not, no)?;
            return self.of_masks(Op::Or, &taken, &other);
        }
        let width = yes.width;
        let op = opcodes::blend(width, self.target);
        let mut i = instruction(Form::Blend, op, self.bytes(width));
        i.broadcasts = self.broadcasts(width);
        if !self.is_512() {
            let mask = self.fitted(mask, width)?;
            let chosen = self.each(i, Class::Vector, &[no, yes, &mask]);
            return Some(RegisterGroup::new(chosen, width));
        }
        let parts = mask.parts.len().max(yes.parts.len()).max(no.parts.len());
        let mut all = Vec::with_capacity(parts);
        for part in 0..parts {
            let Operand::Value(mask) = mask.part(part) else {
                return None;
            };
            i.mask = Some(mask);
            i.from = [Some(no.part(part)), Some(yes.part(part)), None];
            all.push(self.give(i, Class::Vector));
        }
        Some(RegisterGroup::new(all, width))
    }

    pub(super) fn is_not_zero(
        &mut self,
        ty: ElementType,
        x: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        if is_float(ty) {
            let zero = self.constant(0, x.width);
            return self.compare(Comparison::NotEqual, ty, x, &zero);
        }
        if self.is_512() {
            let i = instruction(Form::Rvm, opcodes::test(x.width), self.bytes(x.width));
            return Some(RegisterGroup::new(self.each(i, Class::Mask, &[x, x]), 0));
        }
        let zero = self.constant(0, x.width);
        let equal = self.three(opcodes::equal(x.width), x, &zero, None);
        Some(self.not(&equal))
    }

    pub(super) fn masked_constant(
        &mut self,
        mask: &RegisterGroup,
        value: u64,
        width: u8,
    ) -> Option<RegisterGroup> {
        let (value, zero) = (self.constant(value, width), self.constant(0, width));
        if self.is_512() {
            return self.select(mask, U64, &value, &zero);
        }
        let mask = self.fitted(mask, width)?;
        Some(self.three(opcodes::bitwise(Op::And, width)?, &mask, &value, None))
    }
}
