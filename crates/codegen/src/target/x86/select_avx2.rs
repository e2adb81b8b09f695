//! Operations for which AVX2 has no instruction, put together from several: masks of another width, and some on integers.

use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::{Comparison, Op};
use vinelift_tensor::ElementType::{self, I64};

impl Selector<'_> {
    /// A mask in lanes of `width` bytes, for what it governs.
    pub(super) fn fitted(&mut self, mask: &RegisterGroup, width: u8) -> Option<RegisterGroup> {
        match self.broadcast_source(mask) {
            // Of any width: all bits, or none.
            Some(source) => {
                let mask = self.broadcast(source, width);
                Some(RegisterGroup::new(vec![mask], width))
            }
            None => self.resized(mask, width, true),
        }
    }

    /// Two masks in lanes of the same width, which is that of one of them.
    pub(super) fn both_fitted(
        &mut self,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<[RegisterGroup; 2]> {
        let is_same = |mask: &RegisterGroup| self.broadcast_source(mask).is_some();
        let width = match (is_same(x), is_same(y)) {
            (true, false) => y.width,
            (false, true) => x.width,
            _ => x.width.min(y.width),
        };
        Some([self.fitted(x, width)?, self.fitted(y, width)?])
    }

    /// An operation on two integers for which there is no instruction.
    pub(super) fn composed(
        &mut self,
        op: Op,
        ty: ElementType,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        match (op, x.width) {
            (Op::Min, 8) => {
                let mask = self.compare(Comparison::Less, ty, x, y)?;
                self.select(&mask, ty, x, y)
            }
            (Op::Max, 8) => {
                let mask = self.compare(Comparison::Greater, ty, x, y)?;
                self.select(&mask, ty, x, y)
            }
            // The low byte of a product does not depend on what is above those of the factors.
            (Op::Mul, 1) if !self.is_512() => {
                let [x, y] = [self.resized(x, 2, false)?, self.resized(y, 2, false)?];
                let op = opcodes::binary(Op::Mul, ElementType::U16, 2, self.target)?;
                let product = self.three(op, &x, &y, None);
                self.resized(&product, 1, false)
            }
            (Op::Mul, 8) => self.lower_product(x, y),
            (Op::MulHigh, 8) => self.upper_product(x, y),
            _ => None,
        }
    }

    /// The mask of `x > y`, both without a sign: of numbers with the top bit flipped, with one.
    pub(super) fn is_above(
        &mut self,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        let width = x.width;
        let top = self.constant(1 << (8 * u32::from(width) - 1), width);
        let flip = opcodes::bitwise(Op::Xor, width)?;
        let [x, y] = [x, y].map(|x| self.three(flip, x, &top, None));
        Some(self.three(opcodes::greater(width), &x, &y, None))
    }

    /// `|x|` of `i64`: `(x ^ s) - s`, where `s` is all bits of what is negative.
    pub(super) fn absolute_of_64_bits(&mut self, x: &RegisterGroup) -> Option<RegisterGroup> {
        let sign = self.signs_of_64_bits(x);
        let flipped = self.three(opcodes::bitwise(Op::Xor, 8)?, x, &sign, None);
        let subtract = opcodes::binary(Op::Sub, I64, 8, self.target)?;
        Some(self.three(subtract, &flipped, &sign, None))
    }

    /// All bits where `i64` is negative, none elsewhere.
    fn signs_of_64_bits(&mut self, x: &RegisterGroup) -> RegisterGroup {
        let zero = self.constant(0, 8);
        self.three(opcodes::greater(8), &zero, x, None)
    }

    /// `⌊x / 2ⁿ⌋` of `i64`: `(u ^ m) - m`, where `u` is `x` shifted without its sign, and `m` the bit that the sign was shifted to.
    pub(super) fn shifted_64_bits(
        &mut self,
        x: &RegisterGroup,
        amount: u8,
    ) -> Option<RegisterGroup> {
        if amount == 63 {
            return Some(self.signs_of_64_bits(x));
        }
        let shifted = self.shifted(false, false, x, amount)?;
        let sign = self.constant(1 << (63 - u32::from(amount)), 8);
        let flipped = self.three(opcodes::bitwise(Op::Xor, 8)?, &shifted, &sign, None);
        let subtract = opcodes::binary(Op::Sub, I64, 8, self.target)?;
        Some(self.three(subtract, &flipped, &sign, None))
    }
}
