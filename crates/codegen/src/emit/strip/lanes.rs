//! Arithmetic on all lanes, as instructions.

use super::build::{Builder, Lanes};
use super::opcodes::{self, Order};
use crate::strip::program::{Class, Form, Instruction, Operand, Source};
use crate::strip::{Opcode, Target};
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, *};

/// An instruction that only needs its operands.
pub(super) fn instruction(form: Form, op: Opcode, bytes: u8) -> Instruction {
    Instruction {
        form,
        op,
        bytes: bytes.max(16),
        to: None,
        from: [None; 3],
        mask: None,
        zeroing: false,
        immediate: None,
        access: None,
        spreads: 0,
    }
}

impl Builder<'_, '_, '_> {
    /// `form` in every part, of operands that have one part or as many.
    pub(super) fn each(&mut self, i: Instruction, class: Class, from: &[&Lanes]) -> Vec<Operand> {
        let parts = from.iter().map(|x| x.parts.len()).max().unwrap_or(1);
        let mut all = Vec::with_capacity(parts);
        for part in 0..parts {
            let mut i = i;
            for (slot, x) in i.from.iter_mut().zip(from) {
                *slot = Some(x.part(part));
            }
            all.push(self.give(i, class));
        }
        all
    }

    /// A new value.
    pub(super) fn give(&mut self, i: Instruction, class: Class) -> Operand {
        let to = self.program.value(class);
        self.add(Instruction { to: Some(to), ..i });
        Operand::Value(to)
    }

    fn is_512(&self) -> bool {
        self.target == Target::Avx512
    }

    /// Bytes of elements that an instruction on them may spread from memory.
    fn spreads(&self, width: u8) -> u8 {
        match self.target {
            Target::Avx512 if width < 4 => 0,
            _ => width,
        }
    }

    /// `to = op(x, y)`, `y` possibly from memory.
    pub(super) fn three(&mut self, op: Opcode, x: &Lanes, y: &Lanes, imm: Option<u8>) -> Lanes {
        let mut i = instruction(Form::Three, op, self.bytes(x.width));
        i.spreads = self.spreads(x.width);
        i.immediate = imm;
        Lanes::new(self.each(i, Class::Vector, &[x, y]), x.width)
    }

    /// `to = op(x)`, of lanes of another width if they get one.
    fn two(&mut self, op: Opcode, x: &Lanes, width: u8, imm: Option<u8>) -> Lanes {
        let bytes = self.bytes(x.width).max(self.bytes(width));
        let mut i = instruction(Form::Two, op, bytes);
        i.immediate = imm;
        Lanes::new(self.each(i, Class::Vector, &[x]), width)
    }

    fn back(&mut self, op: Opcode, x: &Lanes, width: u8, imm: Option<u8>) -> Lanes {
        let bytes = self.bytes(x.width).max(self.bytes(width));
        let mut i = instruction(Form::Back, op, bytes);
        i.immediate = imm;
        Lanes::new(self.each(i, Class::Vector, &[x]), width)
    }

    pub(super) fn constant(&mut self, bits: u64, width: u8) -> Lanes {
        let spread = self.program.spread(Source::Constant(bits), width);
        Lanes::new(vec![spread], width)
    }

    pub(super) fn unary(&mut self, op: Unary, ty: ElementType, x: &Lanes) -> Option<Lanes> {
        if ty == Boolean {
            return (op == Unary::Not).then(|| self.not(x));
        }
        let width = x.width;
        let sign = 1u64 << (8 * u32::from(width) - 1);
        let bitwise = |op| opcodes::binary(op, U64, width, Target::Avx512);
        let floats = opcodes::is_float(ty);
        Some(match op {
            Unary::Not => {
                let ones = self.constant(u64::MAX >> (64 - 8 * u32::from(width)), width);
                self.three(bitwise(Binary::Xor)?, x, &ones, None)
            }
            Unary::Neg if floats => {
                let sign = self.constant(sign, width);
                self.three(bitwise(Binary::Xor)?, x, &sign, None)
            }
            Unary::Abs if floats => {
                let rest = self.constant(sign - 1, width);
                self.three(bitwise(Binary::And)?, x, &rest, None)
            }
            Unary::Neg => {
                let zero = self.constant(0, width);
                let op = opcodes::binary(Binary::Sub, ty, width, self.target)?;
                self.three(op, &zero, x, None)
            }
            Unary::Abs if !ty.is_signed_integer() => x.clone(),
            Unary::Abs => self.two(opcodes::absolute(width, self.target)?, x, width, None),
            Unary::Sqrt => self.two(opcodes::square_root(width), x, width, None),
            Unary::Round | Unary::Floor | Unary::Ceil | Unary::Trunc => {
                let mode = match op {
                    Unary::Round => 8,
                    Unary::Floor => 9,
                    Unary::Ceil => 10,
                    _ => 11,
                };
                self.two(opcodes::round(width, self.target), x, width, Some(mode))
            }
            _ => return None,
        })
    }

    pub(super) fn binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: &Lanes,
        y: &Lanes,
        y_bits: Option<u64>,
    ) -> Option<Lanes> {
        use Binary::*;
        if ty == Boolean {
            return self.of_masks(op, x, y);
        }
        if let Some(order) = Order::of(op) {
            return self.compare(order, ty, x, y);
        }
        if let (Shl | Shr, Some(amount)) = (op, y_bits.filter(|y| *y < ty.bits() as u64)) {
            let signed = ty.is_signed_integer();
            let (op, digit) = opcodes::shift(op == Shl, signed, x.width, self.target)?;
            let mut i = instruction(Form::Digit(digit), op, self.bytes(x.width));
            i.immediate = Some(amount as u8);
            return Some(Lanes::new(self.each(i, Class::Vector, &[x]), x.width));
        }
        let commutes = matches!(op, Add | Mul | And | Or | Xor);
        let op = opcodes::binary(op, ty, x.width, self.target)?;
        match commutes && x.is_spread() {
            true => Some(self.three(op, y, x, None)),
            false => Some(self.three(op, x, y, None)),
        }
    }

    pub(super) fn multiply_add(&mut self, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
        let mut i = instruction(
            Form::MulAdd,
            opcodes::multiply_add(a.width),
            self.bytes(a.width),
        );
        i.spreads = self.spreads(a.width);
        Lanes::new(self.each(i, Class::Vector, &[a, b, c]), a.width)
    }

    pub(super) fn compare(
        &mut self,
        order: Order,
        ty: ElementType,
        x: &Lanes,
        y: &Lanes,
    ) -> Option<Lanes> {
        if x.is_spread() && !y.is_spread() {
            return self.compare(order.mirrored(), ty, y, x);
        }
        let width = x.width;
        let signed = ty.is_signed_integer();
        let floats = opcodes::is_float(ty);
        if self.is_512() {
            let (op, immediate) = match floats {
                true => (opcodes::float(width, 0xc2), order.of_floats()),
                false => (
                    opcodes::compare_integers(signed, width),
                    order.of_integers(),
                ),
            };
            let mut i = instruction(Form::Three, op, self.bytes(width));
            i.immediate = Some(immediate);
            i.spreads = self.spreads(width);
            return Some(Lanes::mask(self.each(i, Class::Mask, &[x, y]), 0));
        }
        if floats {
            let op = opcodes::float(width, 0xc2);
            let mask = self.three(op, x, y, Some(order.of_floats()));
            return Some(Lanes::mask(mask.parts, width));
        }
        let mask = match order {
            Order::Eq | Order::Ne => self.three(opcodes::equal(width), x, y, None),
            _ if !signed => return None,
            Order::Gt | Order::Le => self.three(opcodes::greater(width), x, y, None),
            Order::Lt | Order::Ge => self.three(opcodes::greater(width), y, x, None),
        };
        let mask = Lanes::mask(mask.parts, width);
        Some(match order {
            Order::Ne | Order::Le | Order::Ge => self.not(&mask),
            _ => mask,
        })
    }

    fn not(&mut self, mask: &Lanes) -> Lanes {
        if self.is_512() {
            let i = instruction(Form::Masks, opcodes::NOT_MASK, 16);
            return Lanes::mask(self.each(i, Class::Mask, &[mask]), 0);
        }
        let ones = self.constant(u64::MAX >> (64 - 8 * u32::from(mask.width)), mask.width);
        let flipped = opcodes::binary(Binary::Xor, U64, mask.width, self.target);
        let flipped = flipped.map(|op| self.three(op, mask, &ones, None));
        flipped.map_or_else(|| mask.clone(), |m| Lanes::mask(m.parts, mask.width))
    }

    fn of_masks(&mut self, op: Binary, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        use Binary::*;
        let (op, x, y) = match op {
            Gt => (Lt, y, x),
            Ge => (Le, y, x),
            _ => (op, x, y),
        };
        if op == Le {
            let not = self.not(x);
            return self.of_masks(Or, &not, y);
        }
        if self.is_512() {
            let i = instruction(Form::Masks, opcodes::masks(op)?, 32);
            return Some(Lanes::mask(self.each(i, Class::Mask, &[x, y]), 0));
        }
        if x.width != y.width {
            return None;
        }
        let (x, op, negate) = match op {
            And | Min => (x.clone(), And, false),
            Or | Max => (x.clone(), Or, false),
            Xor | Ne => (x.clone(), Xor, false),
            Eq => (x.clone(), Xor, true),
            Lt => (self.not(x), And, false),
            _ => return None,
        };
        let op = opcodes::binary(op, U64, x.width, self.target)?;
        let mask = self.three(op, &x, y, None);
        let mask = Lanes::mask(mask.parts, x.width);
        Some(if negate { self.not(&mask) } else { mask })
    }

    pub(super) fn select(
        &mut self,
        mask: &Lanes,
        ty: ElementType,
        yes: &Lanes,
        no: &Lanes,
    ) -> Option<Lanes> {
        if ty == Boolean {
            let taken = self.of_masks(Binary::And, mask, yes)?;
            let not = self.not(mask);
            let other = self.of_masks(Binary::And, &not, no)?;
            return self.of_masks(Binary::Or, &taken, &other);
        }
        let width = yes.width;
        let mut i = instruction(
            Form::Blend,
            opcodes::blend(width, self.target),
            self.bytes(width),
        );
        i.spreads = self.spreads(width);
        if self.is_512() {
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
            return Some(Lanes::new(all, width));
        }
        if mask.width != width {
            return None;
        }
        Some(Lanes::new(
            self.each(i, Class::Vector, &[no, yes, mask]),
            width,
        ))
    }

    /// A mask of the lanes of integers that are not zero.
    pub(super) fn is_not_zero(&mut self, x: &Lanes) -> Lanes {
        if self.is_512() {
            let i = instruction(Form::Three, opcodes::test(x.width), self.bytes(x.width));
            return Lanes::mask(self.each(i, Class::Mask, &[x, x]), 0);
        }
        let zero = self.constant(0, x.width);
        let equal = self.three(opcodes::equal(x.width), x, &zero, None);
        self.not(&Lanes::mask(equal.parts, x.width))
    }

    /// `value` where the mask is set, else zero.
    pub(super) fn chosen(&mut self, mask: &Lanes, value: u64, width: u8) -> Option<Lanes> {
        let ty = match width {
            1 => U8,
            2 => U16,
            4 => U32,
            _ => U64,
        };
        let (value, zero) = (self.constant(value, width), self.constant(0, width));
        if self.is_512() {
            return self.select(mask, ty, &value, &zero);
        }
        if mask.width != width {
            return None;
        }
        let op = opcodes::binary(Binary::And, ty, width, self.target)?;
        Some(self.three(op, mask, &value, None))
    }

    pub(super) fn resized(&mut self, x: &Lanes, width: u8, signed: bool) -> Option<Lanes> {
        if x.width == width {
            return Some(x.clone());
        }
        if x.width < width {
            let op = opcodes::widen(x.width, width, signed)?;
            return Some(self.two(op, x, width, None));
        }
        if !self.is_512() {
            return None;
        }
        let op = opcodes::narrow(x.width, width)?;
        Some(self.back(op, x, width, None))
    }

    pub(super) fn cast(&mut self, x: &Lanes, from: ElementType, to: ElementType) -> Option<Lanes> {
        let whole = |ty: ElementType| ty.is_integer() && !ty.is_packed();
        let width = self.width(to);
        if from == to {
            return Some(x.clone());
        }
        if from == Boolean {
            let one = match to {
                F32 => u64::from(1f32.to_bits()),
                F64 => 1f64.to_bits(),
                _ if whole(to) => 1,
                _ => return None,
            };
            return self.chosen(x, one, width);
        }
        if to == Boolean {
            if whole(from) {
                return Some(self.is_not_zero(x));
            }
            let zero = self.constant(0, x.width);
            return opcodes::is_float(from)
                .then(|| self.compare(Order::Ne, from, x, &zero))
                .flatten();
        }
        if whole(from) && whole(to) {
            return self.resized(x, width, from.is_signed_integer());
        }
        if (from, to) == (F32, F16) {
            return Some(self.back(opcodes::TO_HALF, x, 2, Some(0)));
        }
        // The low byte is 0 from 2^31 on, as it is of what stands for what has no `i32`.
        if from == F32 && matches!(to, I8 | U8) {
            let words = self.cast(x, F32, I32)?;
            return self.resized(&words, 1, true);
        }
        // All narrower integers are exact in `i32`.
        let (x, from) = match whole(from) && x.width < 4 {
            true => (&self.resized(x, 4, from.is_signed_integer())?, I32),
            false => (x, from),
        };
        let op = opcodes::convert(from, to, self.target)?;
        Some(self.two(op, x, width, None))
    }

    pub(super) fn bitcast(
        &mut self,
        x: &Lanes,
        from: ElementType,
        to: ElementType,
    ) -> Option<Lanes> {
        match (from, to) {
            (Boolean, Boolean) => Some(x.clone()),
            (Boolean, _) => self.chosen(x, 1, 1),
            (_, Boolean) => Some(self.is_not_zero(x)),
            _ => Some(x.clone()),
        }
    }
}
