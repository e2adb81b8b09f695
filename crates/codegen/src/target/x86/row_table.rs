//! Short rows that stay in registers, whose elements are permuted instead of loaded one by one.
//!
//! With AVX-512 a row takes as many registers as its bytes fill. With AVX2, which permutes words of 32 bits only, each
//! element takes a word.

use super::super::Target;
use super::machine::{BroadcastSource, Class, Form, MachineInstruction, Operand, instruction};
use super::opcodes;
use super::select::{RegisterGroup, Selector};
use crate::vector_ir::ops::{Access, Comparison, unsigned};

/// Registers that a row may take which stays in them.
const MOST_REGISTERS: usize = 4;
/// Bytes of a register of AVX-512.
const REGISTER: usize = 64;
/// Words of 32 bits in a register of AVX2: elements of a row are as wide there.
const WORDS: usize = 8;

/// Whether a row of `extent` elements of `width` bytes may stay in registers, for indices of `index_bytes` in a program
/// of `lanes` and `parts`.
pub(in super::super) fn holds_table(
    target: Target,
    [lanes, parts]: [usize; 2],
    extent: usize,
    width: u8,
    index_bytes: u8,
) -> bool {
    let bytes = usize::from(width);
    match target {
        Target::Avx512 => {
            extent * bytes <= MOST_REGISTERS * REGISTER && (bytes > 1 || permutes_bytes())
        }
        Target::Avx2 => {
            let is_whole = lanes * usize::from(index_bytes) == target.bytes();
            bytes <= 4
                && (WORDS..=MOST_REGISTERS * WORDS).contains(&extent)
                && is_whole
                && parts.is_multiple_of(parts_at_once(index_bytes))
        }
    }
}

/// Whether the machine has instructions that put bytes in another order.
fn permutes_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512vbmi");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

impl Selector<'_> {
    /// The `extent` elements from there on, in registers.
    pub(super) fn load_table(
        &mut self,
        access: Access,
        extent: usize,
        width: u8,
    ) -> Option<RegisterGroup> {
        let row = match self.target {
            Target::Avx512 => self.row_of_512(access, extent, width),
            Target::Avx2 => self.row_of_words(access, extent, width),
        };
        Some(RegisterGroup::new(row?, width))
    }

    /// The elements of a table that the indices, which have been checked, say.
    pub(super) fn table_lookup(
        &mut self,
        table: &RegisterGroup,
        index_bytes: u8,
        width: u8,
    ) -> Option<RegisterGroup> {
        match self.target {
            Target::Avx512 => self.permuted_by_512(&table.parts, index_bytes, width),
            Target::Avx2 => self.permuted_words(&table.parts, index_bytes, width),
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

    fn permuted_by_512(
        &mut self,
        row: &[Operand],
        index_bytes: u8,
        width: u8,
    ) -> Option<RegisterGroup> {
        let indices = (0..self.parts).map(|part| self.checked_indices(part, index_bytes));
        let indices = indices.collect();
        let indices = self.resized(&RegisterGroup::new(indices, index_bytes), width, false)?;
        let op = opcodes::permute(width);
        let mut found: Option<RegisterGroup> = None;
        for (number, register) in row.iter().enumerate() {
            let mut i = instruction(Form::Rvm, op, REGISTER as u8);
            let register = RegisterGroup::new(vec![*register], width);
            let Some(found) = &found else {
                let all = self.each(i, Class::Vector, &[&indices, &register]);
                found = Some(RegisterGroup::new(all, width));
                continue;
            };
            // Only the low bits of an index count: the others say which register.
            let first = self.constant((number * REGISTER / usize::from(width)) as u64, width);
            let at_least = Comparison::GreaterOrEqual;
            let beyond = self.compare(at_least, unsigned(width), &indices, &first)?;
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
            pointer: super::machine::INDICES,
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

    fn permuted_words(
        &mut self,
        row: &[Operand],
        index_bytes: u8,
        width: u8,
    ) -> Option<RegisterGroup> {
        let at_once = parts_at_once(index_bytes);
        let mut parts = Vec::with_capacity(self.parts);
        for part in (0..self.parts).step_by(at_once) {
            let mut indices = self.checked_indices(part, index_bytes);
            if at_once == 2 {
                // The low halves of the words of both.
                let more = self.checked_indices(part + 1, index_bytes);
                let mut i = instruction(Form::Rvm, opcodes::SHUFFLE_TWO, 32);
                i.immediate = Some(0x88);
                indices = self.of_two(i, indices, more);
                let mut i = instruction(Form::Rm, opcodes::SHUFFLE_HALVES, 32);
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
                let bytes = self.broadcast(BroadcastSource::Whole(bytes), 64);
                let i = instruction(Form::Rvm, opcodes::SHUFFLE_BYTES, 32);
                found = self.of_two(i, found, bytes);
                found = self.words_in_order(words, found);
            }
            parts.push(found);
            if at_once == 2 {
                let mut i = match width {
                    4 => instruction(Form::Mr, opcodes::HIGH_HALF, 32),
                    _ => instruction(Form::Vm(3), opcodes::SHIFT_BYTES, 16),
                };
                i.immediate = Some(if width == 4 { 1 } else { 4 * width });
                i.from[0] = Some(found);
                parts.push(self.give(i, Class::Vector));
            }
        }
        Some(RegisterGroup::new(parts, width))
    }

    /// The word of a row that each index says: the low three bits by permutation, and the others choose among
    /// registers.
    fn word_of_row(&mut self, row: &[Operand], indices: Operand) -> Option<Operand> {
        let permute = instruction(Form::Rvm, opcodes::permute(4), 32);
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
            let mut i = instruction(Form::Vm(digit), op, 32);
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
        let order = self.broadcast(BroadcastSource::Whole(order), 64);
        let i = instruction(Form::Rvm, opcodes::permute(4), 32);
        self.of_two(i, order, words)
    }

    fn of_two(&mut self, mut i: MachineInstruction, a: Operand, b: Operand) -> Operand {
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
            // Words that come in at the end are not in the row.
            all[by][pair] = (from % 8) | (((from + 1) % 8) << 32);
            pair += 1;
        }
        by += 1;
    }
    all
}
