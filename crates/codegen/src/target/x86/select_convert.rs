//! Conversions between numbers, and integers in lanes of other widths.

use super::machine::{Class, Form, instruction};
use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::{is_whole_integer, lane_bytes};
use vinelift_tensor::ElementType::{self, F16, F32};

impl Selector<'_> {
    /// Integers in wider lanes, by their sign or not, or the low bits of them in narrower lanes.
    pub(super) fn resized(
        &mut self,
        x: &RegisterGroup,
        width: u8,
        signed: bool,
    ) -> Option<RegisterGroup> {
        if x.width == width {
            return Some(x.clone());
        }
        if x.width < width {
            let op = opcodes::widen(x.width, width, signed)?;
            return Some(self.two(op, x, width, None));
        }
        if !self.is_512() {
            return Some(self.narrowed(x, width));
        }
        let op = opcodes::narrow(x.width, width)?;
        Some(self.of_one(Form::Mr, op, x, width, None))
    }

    /// AVX2: the low bits of integers, in narrower lanes.
    fn narrowed(&mut self, x: &RegisterGroup, width: u8) -> RegisterGroup {
        // Each half of a register has them one after the other, again and again.
        let kept = 16 / x.width * width;
        let places = (0..kept).map(|byte| byte / width * x.width + byte % width);
        let places = places
            .rev()
            .fold(0, |all, place| all << 8 | u64::from(place));
        let places = self.constant(places, kept);
        let bytes = self.bytes(x.width);
        let shuffle = instruction(Form::Rvm, opcodes::SHUFFLE_BYTES, bytes);
        let low = self.each(shuffle, Class::Vector, &[x, &places]);
        let low = RegisterGroup::new(low, width);
        if bytes == 16 {
            return low;
        }
        let mut halve = instruction(Form::Mr, opcodes::HIGH_HALF, bytes);
        halve.immediate = Some(1);
        let high = RegisterGroup::new(self.each(halve, Class::Vector, &[&low]), width);
        let join = instruction(Form::Rvm, opcodes::interleave(kept), 16);
        RegisterGroup::new(self.each(join, Class::Vector, &[&low, &high]), width)
    }

    pub(super) fn convert(
        &mut self,
        x: &RegisterGroup,
        from: ElementType,
        to: ElementType,
    ) -> Option<RegisterGroup> {
        let width = lane_bytes(to);
        if is_whole_integer(from) && is_whole_integer(to) {
            return self.resized(x, width, from.is_signed_integer());
        }
        if (from, to) == (F32, F16) {
            return Some(self.of_one(Form::Mr, opcodes::TO_HALF, x, 2, Some(0)));
        }
        let op = opcodes::convert(from, to, self.target)?;
        Some(self.two(op, x, width, None))
    }
}
