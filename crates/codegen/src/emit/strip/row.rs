//! Short rows that stay in registers, whose elements are permuted instead of loaded one by one.

use super::build::{Argument, Builder, Lanes};
use super::lanes::instruction;
use super::opcodes::{self, Order};
use crate::strip::program::{Access, Class, Form, INDICES, Id, Instruction, Operand, Source};
use crate::strip::{Target, permutes_bytes};
use vinelift_tensor::ElementType;

/// Registers that a row may take which stays in them.
const MOST_REGISTERS: usize = 4;
/// Bytes of a register of AVX-512.
const REGISTER: usize = 64;
/// Words of 32 bits in a register of AVX2: elements of a row are as wide there.
const WORDS: usize = 8;

impl Builder<'_, '_, '_> {
    /// Whether a row of `extent` elements of `width` bytes may stay in registers, for indices of so many bytes.
    pub(super) fn keeps_row(&self, extent: usize, width: u8, index_bytes: u8) -> bool {
        let bytes = usize::from(width);
        match self.target {
            Target::Avx512 => {
                extent * bytes <= MOST_REGISTERS * REGISTER && (bytes > 1 || permutes_bytes())
            }
            Target::Avx2 => {
                let is_whole = self.lanes * usize::from(index_bytes) == self.target.bytes();
                bytes <= 4
                    && (WORDS..=MOST_REGISTERS * WORDS).contains(&extent)
                    && is_whole
                    && self.parts.is_multiple_of(parts_at_once(index_bytes))
            }
        }
    }

    /// The `extent` elements from there on, in registers.
    pub(super) fn row(
        &mut self,
        access: Access,
        extent: usize,
        width: u8,
        depth: usize,
    ) -> Option<Vec<Operand>> {
        let before = self.go_to(depth);
        let row = match self.target {
            Target::Avx512 => self.row_of_512(access, extent, width),
            Target::Avx2 => self.row_of_words(access, extent, width),
        };
        self.go_to(before);
        row
    }

    /// Of the elements of a row those that the indices, which have been checked, say.
    pub(super) fn permuted(
        &mut self,
        row: &[Operand],
        index_bytes: u8,
        width: u8,
    ) -> Option<Lanes> {
        match self.target {
            Target::Avx512 => self.permuted_by_512(row, index_bytes, width),
            Target::Avx2 => self.permuted_words(row, index_bytes, width),
        }
    }

    fn row_of_512(&mut self, access: Access, extent: usize, width: u8) -> Option<Vec<Operand>> {
        let each = REGISTER / usize::from(width);
        let mut row = Vec::new();
        for first in (0..extent).step_by(each) {
            let count = each.min(extent - first);
            let mask = match count == each {
                true => None,
                false => Some(self.first_lanes(count)),
            };
            let op = opcodes::masked_load(width, self.target)?;
            let mut i = instruction(Form::Load, op, REGISTER as u8);
            i.access = Some(Access {
                offset: access
                    .offset
                    .checked_add((first * usize::from(width)) as i32)?,
                ..access
            });
            i.mask = mask;
            i.zeroing = mask.is_some();
            row.push(self.give(i, Class::Vector));
        }
        Some(row)
    }

    /// A mask of the first lanes.
    pub(super) fn first_lanes(&mut self, count: usize) -> Id {
        if let Some(known) = self.first.get(&count) {
            return *known;
        }
        self.arguments.push(Argument::Bits((1u64 << count) - 1));
        let argument = self.arguments.len() as u32 - 1;
        let before = self.go_to(0);
        let mask = instruction(Form::Argument(argument), opcodes::NOT_MASK, 16);
        let to = self.program.value(Class::Mask);
        self.add(Instruction {
            to: Some(to),
            ..mask
        });
        self.go_to(before);
        self.first.insert(count, to);
        to
    }

    fn permuted_by_512(&mut self, row: &[Operand], index_bytes: u8, width: u8) -> Option<Lanes> {
        let indices = (0..self.parts).map(|part| self.checked_indices(part, index_bytes));
        let indices = indices.collect();
        let indices = self.resized(&Lanes::new(indices, index_bytes), width, false)?;
        let op = opcodes::permute(width);
        let integer = match width {
            1 => ElementType::U8,
            2 => ElementType::U16,
            4 => ElementType::U32,
            _ => ElementType::U64,
        };
        let mut found: Option<Lanes> = None;
        for (number, register) in row.iter().enumerate() {
            let mut i = instruction(Form::Three, op, REGISTER as u8);
            let register = Lanes::new(vec![*register], width);
            let Some(found) = &found else {
                let all = self.each(i, Class::Vector, &[&indices, &register]);
                found = Some(Lanes::new(all, width));
                continue;
            };
            // Only the low bits of an index count: the others say which register.
            let first = self.constant((number * REGISTER / usize::from(width)) as u64, width);
            let beyond = self.compare(Order::Ge, integer, &indices, &first)?;
            for (part, operand) in found.parts.iter().enumerate() {
                let (Operand::Value(to), Operand::Value(mask)) = (*operand, beyond.part(part))
                else {
                    return None;
                };
                i.to = Some(to);
                i.mask = Some(mask);
                i.from = [Some(indices.part(part)), Some(register.part(0)), None];
                self.add(i);
            }
        }
        found
    }

    /// The indices of a part, which have been checked.
    fn checked_indices(&mut self, part: usize, index_bytes: u8) -> Operand {
        let bytes = self.bytes(index_bytes);
        let op = opcodes::load(bytes, index_bytes, self.target);
        let mut i = instruction(Form::Load, op, bytes);
        i.access = Some(Access {
            pointer: INDICES,
            step: 0,
            offset: (part * usize::from(bytes)) as i32,
        });
        self.give(i, Class::Vector)
    }

    /// A row as words of 32 bits. Of its last elements as many are loaded as a register holds, and moved to where they
    /// belong.
    fn row_of_words(&mut self, access: Access, extent: usize, width: u8) -> Option<Vec<Operand>> {
        let op = match width {
            4 => opcodes::load(32, 4, self.target),
            _ => opcodes::widen(width, 4, false)?,
        };
        let mut row = Vec::new();
        for first in (0..extent).step_by(WORDS) {
            let start = first.min(extent - WORDS);
            let mut i = instruction(Form::Load, op, 32);
            let offset = i32::try_from(start * usize::from(width)).ok()?;
            i.access = Some(Access {
                offset: access.offset.checked_add(offset)?,
                ..access
            });
            let words = self.give(i, Class::Vector);
            row.push(match first - start {
                0 => words,
                by => self.words_in_order(&MOVED_DOWN[by], words),
            });
        }
        Some(row)
    }

    fn permuted_words(&mut self, row: &[Operand], index_bytes: u8, width: u8) -> Option<Lanes> {
        let at_once = parts_at_once(index_bytes);
        let mut parts = Vec::with_capacity(self.parts);
        for part in (0..self.parts).step_by(at_once) {
            let mut indices = self.checked_indices(part, index_bytes);
            if at_once == 2 {
                // The low halves of the words of both.
                let more = self.checked_indices(part + 1, index_bytes);
                let mut i = instruction(Form::Three, opcodes::SHUFFLE_TWO, 32);
                i.immediate = Some(0x88);
                indices = self.of_two(i, indices, more);
                let mut i = instruction(Form::Two, opcodes::SHUFFLE_HALVES, 32);
                i.immediate = Some(0xd8);
                i.from[0] = Some(indices);
                indices = self.give(i, Class::Vector);
            }
            let mut found = self.word_of_row(row, indices)?;
            if width < 4 {
                let (bytes, words) = match width {
                    1 => (&LOW_BYTES, &FIRST_WORDS),
                    _ => (&LOW_HALVES, &FIRST_PAIRS),
                };
                let bytes = self.program.spread(Source::Whole(bytes), 64);
                let i = instruction(Form::Three, opcodes::SHUFFLE_BYTES, 32);
                found = self.of_two(i, found, bytes);
                found = self.words_in_order(words, found);
            }
            parts.push(found);
            if at_once == 2 {
                let mut i = match width {
                    4 => instruction(Form::Back, opcodes::HIGH_HALF, 32),
                    _ => instruction(Form::Digit(3), opcodes::SHIFT_BYTES, 16),
                };
                i.immediate = Some(if width == 4 { 1 } else { 4 * width });
                i.from[0] = Some(found);
                parts.push(self.give(i, Class::Vector));
            }
        }
        Some(Lanes::new(parts, width))
    }

    /// The word of a row that each index says: the low three bits by permutation, and the others choose among
    /// registers.
    fn word_of_row(&mut self, row: &[Operand], indices: Operand) -> Option<Operand> {
        let permute = instruction(Form::Three, opcodes::permute(4), 32);
        let found = row
            .iter()
            .map(|words| self.of_two(permute, indices, *words));
        let mut found: Vec<Operand> = found.collect();
        for bit in 3u8.. {
            if found.len() == 1 {
                break;
            }
            // The bit becomes the sign.
            let (op, digit) = opcodes::shift(true, false, 4, self.target)?;
            let mut i = instruction(Form::Digit(digit), op, 32);
            i.immediate = Some(31 - bit);
            i.from[0] = Some(indices);
            let sign = self.give(i, Class::Vector);
            let choose = |pair: &[Operand]| match *pair {
                [low, high] => {
                    let mut i = instruction(Form::Blend, opcodes::BLEND_BY_SIGN, 32);
                    i.from = [Some(low), Some(high), Some(sign)];
                    self.give(i, Class::Vector)
                }
                _ => pair[0],
            };
            found = found.chunks(2).map(choose).collect();
        }
        found.first().copied()
    }

    /// Words of 32 bits in this order.
    fn words_in_order(&mut self, order: &'static [u64; 8], words: Operand) -> Operand {
        let order = self.program.spread(Source::Whole(order), 64);
        let i = instruction(Form::Three, opcodes::permute(4), 32);
        self.of_two(i, order, words)
    }

    fn of_two(&mut self, mut i: Instruction, a: Operand, b: Operand) -> Operand {
        i.from = [Some(a), Some(b), None];
        self.give(i, Class::Vector)
    }
}

/// How many parts the indices in one register of words are of.
fn parts_at_once(index_bytes: u8) -> usize {
    usize::from(index_bytes) / 4
}

/// The low byte of each word of 32 bits, in each 128 bits.
static LOW_BYTES: [u64; 8] = in_each_half([0xffff_ffff_0c08_0400, u64::MAX]);
/// The same of the low halves.
static LOW_HALVES: [u64; 8] = in_each_half([0x0d0c_0908_0504_0100, u64::MAX]);
/// Orders of words: the first of each 128 bits, and the first two.
static FIRST_WORDS: [u64; 8] = [4 << 32, 0, 0, 0, 0, 0, 0, 0];
static FIRST_PAIRS: [u64; 8] = [1 << 32, 4 | (5 << 32), 0, 0, 0, 0, 0, 0];

const fn in_each_half([low, high]: [u64; 2]) -> [u64; 8] {
    [low, high, low, high, low, high, low, high]
}

/// By how many: the order of words that moves them down.
static MOVED_DOWN: [[u64; 8]; WORDS] = moved_down();

const fn moved_down() -> [[u64; 8]; WORDS] {
    let mut all = [[0; 8]; WORDS];
    let mut by = 0;
    while by < WORDS {
        let mut pair = 0;
        while pair < WORDS / 2 {
            let from = (2 * pair + by) as u64;
            // What comes in at the end is not in the row.
            all[by][pair] = (from % 8) | (((from + 1) % 8) << 32);
            pair += 1;
        }
        by += 1;
    }
    all
}
