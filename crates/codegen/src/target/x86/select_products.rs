//! Products of 64 bits, put together from those of 32 bits: of `x = h 2³² + l` and `y = h' 2³² + l'`.

use super::machine::BroadcastSource;
use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::Op;
use vinelift_tensor::ElementType::U64;

impl Selector<'_> {
    /// The lower half: `l l' + (h l' + l h') 2³²`; of a constant it may be less.
    pub(super) fn lower_product(
        &mut self,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        let (x, y) = if x.is_broadcast() { (y, x) } else { (x, y) };
        let constant = match self.broadcast_source(y) {
            Some(BroadcastSource::Constant(bits)) => Some(bits),
            _ => None,
        };
        match constant {
            Some(u64::MAX) => return self.unary(Op::Neg, U64, x),
            Some(bits) if bits.is_power_of_two() => {
                return self.shifted(true, false, x, bits.trailing_zeros() as u8);
            }
            _ => {}
        }
        let high = self.upper_halves(x)?;
        let mut crossed = self.products(&high, y);
        let mut places = 32;
        if x.parts == y.parts {
            places += 1;
        } else if constant.is_none_or(|bits| bits >> 32 != 0) {
            let other = self.upper_halves(y)?;
            let product = self.products(x, &other);
            crossed = self.sum(&crossed, &product)?;
        }
        let crossed = self.shifted(true, false, &crossed, places)?;
        let low = self.products(x, y);
        self.sum(&crossed, &low)
    }

    /// The upper half: `h h' + ⌊t / 2³²⌋ + ⌊(t mod 2³² + l h') / 2³²⌋` with `t = h l' + ⌊l l' / 2³²⌋`. A product of two numbers
    /// below 2³², and another such number, are below 2⁶⁴.
    pub(super) fn upper_product(
        &mut self,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        let [high, other] = [self.upper_halves(x)?, self.upper_halves(y)?];
        let low = self.products(x, y);
        let low = self.upper_halves(&low)?;
        let crossed = self.products(&high, y);
        let crossed = self.sum(&crossed, &low)?;
        let lower_half = self.constant(u64::MAX >> 32, 8);
        let rest = self.three(opcodes::bitwise(Op::And, 8)?, &crossed, &lower_half, None);
        let product = self.products(x, &other);
        let rest = self.sum(&rest, &product)?;
        let product = self.products(&high, &other);
        let [crossed, rest] = [self.upper_halves(&crossed)?, self.upper_halves(&rest)?];
        let sum = self.sum(&product, &crossed)?;
        self.sum(&sum, &rest)
    }

    /// `l l'`
    fn products(&mut self, x: &RegisterGroup, y: &RegisterGroup) -> RegisterGroup {
        self.three(opcodes::MULTIPLY_HALVES, x, y, None)
    }

    fn upper_halves(&mut self, x: &RegisterGroup) -> Option<RegisterGroup> {
        match self.broadcast_source(x) {
            Some(BroadcastSource::Constant(bits)) => Some(self.constant(bits >> 32, 8)),
            _ => self.shifted(false, false, x, 32),
        }
    }

    fn sum(&mut self, x: &RegisterGroup, y: &RegisterGroup) -> Option<RegisterGroup> {
        let add = opcodes::binary(Op::Add, U64, 8, self.target)?;
        Some(self.three(add, x, y, None))
    }
}
