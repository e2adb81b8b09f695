//! Conversions between numbers, and integers in lanes of other widths.

use super::machine::{BroadcastSource, Class, Form, instruction};
use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::{Op, is_whole_integer, lane_bytes};
use vinelift_tensor::ElementType::{self, F16, F32};

/// Words of 32 bits: the first of the lower and of the upper half, the second of both, and so on.
const HALVES_IN_TURN: [u64; 8] = [4 << 32, 5 << 32 | 1, 6 << 32 | 2, 7 << 32 | 3, 0, 0, 0, 0];

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

    /// AVX2: the low bits of integers as neighbours, of as many registers at a time as fill one; and how many bytes these are.
    pub(super) fn packed(&mut self, x: &RegisterGroup, width: u8) -> Option<(RegisterGroup, u8)> {
        let parts = (0..self.parts).map(|part| x.part(part)).collect();
        let all = RegisterGroup::new(parts, x.width);
        let low_bits = self.constant(u64::MAX >> (64 - 8 * u32::from(width)), x.width);
        let mut packed = self.three(opcodes::bitwise(Op::And, x.width)?, &all, &low_bits, None);
        let together = usize::from(x.width / width).min(self.parts);
        while packed.width > width {
            // Nothing is left to saturate.
            let op = opcodes::pack_unsigned(packed.width)?;
            let mut halves = Vec::with_capacity(packed.parts.len().div_ceil(2));
            for pair in packed.parts.chunks(2) {
                let mut i = instruction(Form::Rvm, op, 32);
                i.from = [Some(pair[0]), pair.last().copied(), None];
                halves.push(self.give(i, Class::Vector));
            }
            packed = RegisterGroup::new(halves, packed.width / 2);
        }
        // The lower halves of all registers are in the lower half.
        let ordered = match x.width / width {
            2 => {
                let mut i = instruction(Form::Rm, opcodes::SHUFFLE_HALVES, 32);
                i.immediate = Some(0b11_01_10_00);
                self.each(i, Class::Vector, &[&packed])
            }
            4 => {
                let order = self.broadcast(BroadcastSource::Whole(&HALVES_IN_TURN), 32);
                let order = RegisterGroup::new(vec![order], width);
                let i = instruction(Form::Rvm, opcodes::permute(4), 32);
                self.each(i, Class::Vector, &[&order, &packed])
            }
            _ => return None,
        };
        let bytes = together * self.lanes * usize::from(width);
        Some((RegisterGroup::new(ordered, width), bytes as u8))
    }

    /// The nearest integers to `f32`, of halves the even ones; `i32::MIN` where there is none.
    pub(super) fn rounded_to_integers(&mut self, x: &RegisterGroup) -> RegisterGroup {
        self.two(opcodes::ROUND_TO_INTEGER, x, 4, None)
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
