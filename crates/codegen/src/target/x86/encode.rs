//! x86-64 instructions as bytes: those of vectors, and the few that loops take.

use super::opcode::Opcode;

/// A general register by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gpr(pub(super) u8);

pub(super) const RAX: Gpr = Gpr(0);
pub(super) const RDI: Gpr = Gpr(7);
pub(super) const RSP: Gpr = Gpr(4);
/// Points at the caller's, by which profilers find their way through calls.
pub(super) const RBP: Gpr = Gpr(5);

/// An operand in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Memory {
    /// `base + rax · scale + offset`, without the second for a scale of 0.
    At { base: Gpr, scale: u8, offset: i32 },
    /// `base + index · scale + offset`, of an index among the first eight registers.
    Indexed {
        base: Gpr,
        index: Gpr,
        scale: u8,
        offset: i32,
    },
    /// A constant behind the code, by its offset there.
    Pool(u32),
}

/// The operand that may be in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum RmOperand {
    Register(u8),
    Memory(Memory),
    /// One element, broadcast to all lanes.
    Broadcast(Memory),
}

impl RmOperand {
    /// Whether the register's number is below `count`, if it is one.
    fn register_below(self, count: u8) -> bool {
        match self {
            RmOperand::Register(register) => register < count,
            RmOperand::Memory(_) | RmOperand::Broadcast(_) => true,
        }
    }
}

/// The rest of an instruction on vectors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modifiers {
    /// The mask register that governs, 0 for none.
    pub(super) mask: u8,
    /// Whether the lanes that the mask leaves out become zero; otherwise they keep what the register held.
    pub(super) zeroing: bool,
    pub(super) immediate: Option<u8>,
}

/// A place in the code that jumps go to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

/// Conditions of jumps, after a comparison; of signed numbers where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    /// For unsigned numbers.
    AboveOrEqual = 0x3,
    Zero = 0x4,
    NotZero = 0x5,
    GreaterOrEqual = 0xd,
    LessOrEqual = 0xe,
}

/// Machine code under construction.
///
/// Operands that no instruction has (a register that there is not, a scale that is no power of two) are refused:
/// [`Assembler::finish`] then gives nothing.
#[derive(Default)]
pub(super) struct Assembler {
    bytes: Vec<u8>,
    is_refused: bool,
    /// Where an offset into the pool stands, and where the instruction ends that it counts from.
    pool_uses: Vec<(usize, usize)>,
    /// Where each label is, once that is known.
    labels: Vec<Option<usize>>,
    /// Where the distance to a label stands.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// By the encoding of AVX-512, `bytes` of the register at a time.
    pub(super) fn evex(
        &mut self,
        op: Opcode,
        bytes: u8,
        first: u8,
        second: u8,
        last: RmOperand,
        extra: Modifiers,
    ) {
        let fits = first < 32 && second < 32 && extra.mask < 8 && last.register_below(32);
        self.require(fits && matches!(bytes, 16 | 32 | 64));
        let length = (bytes.trailing_zeros() as u8).saturating_sub(4);
        let (x, b, broadcast) = match last {
            RmOperand::Register(r) => (r >> 4, r >> 3, false),
            RmOperand::Memory(m) => (0, base_bit(m), false),
            RmOperand::Broadcast(m) => (0, base_bit(m), true),
        };
        let not = |bit: u8, at: u8| (!bit & 1) << at;
        self.bytes.extend([
            0x62,
            not(first >> 3, 7) | not(x, 6) | not(b, 5) | not(first >> 4, 4) | op.map,
            u8::from(op.wide) << 7 | (!second & 15) << 3 | 4 | op.prefix,
            u8::from(extra.zeroing) << 7
                | length << 5
                | u8::from(broadcast) << 4
                | not(second >> 4, 3)
                | extra.mask,
            op.code,
        ]);
        self.operands(first, last, extra.immediate);
    }

    /// By the encoding of AVX.
    pub(super) fn vex(
        &mut self,
        op: Opcode,
        bytes: u8,
        first: u8,
        second: u8,
        last: RmOperand,
        immediate: Option<u8>,
    ) {
        // No element is broadcast from memory, and there are no masks.
        let fits = first < 16 && second < 16 && last.register_below(16);
        self.require(fits && matches!(bytes, 16 | 32) && !matches!(last, RmOperand::Broadcast(_)));
        let b = match last {
            RmOperand::Register(r) => r >> 3,
            RmOperand::Memory(m) | RmOperand::Broadcast(m) => base_bit(m),
        };
        let not = |bit: u8, at: u8| (!bit & 1) << at;
        self.bytes.extend([
            0xc4,
            not(first >> 3, 7) | 1 << 6 | not(b, 5) | op.map,
            u8::from(op.wide_in_avx()) << 7
                | (!second & 15) << 3
                | u8::from(bytes == 32) << 2
                | op.prefix,
            op.code,
        ]);
        self.operands(first, last, immediate);
    }

    /// Zeros the upper halves of vector registers, which code that does not know of them needs.
    pub(super) fn clear_upper(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    fn operands(&mut self, first: u8, last: RmOperand, immediate: Option<u8>) {
        let register = (first & 7) << 3;
        match last {
            RmOperand::Register(r) => self.bytes.push(0xc0 | register | (r & 7)),
            RmOperand::Memory(m) | RmOperand::Broadcast(m) => {
                self.memory(register, m, usize::from(immediate.is_some()));
            }
        }
        self.bytes.extend(immediate);
    }

    fn memory(&mut self, register: u8, memory: Memory, behind: usize) {
        self.require(match memory {
            Memory::Pool(_) => true,
            Memory::At { base, scale, .. } => base.0 < 16 && matches!(scale, 0 | 1 | 2 | 4 | 8),
            Memory::Indexed {
                base, index, scale, ..
            } => base.0 < 16 && index.0 < 8 && index != RSP && matches!(scale, 1 | 2 | 4 | 8),
        });
        let (base, index, scale, offset) = match memory {
            Memory::Pool(offset) => {
                self.bytes.push(register | 5);
                let at = self.bytes.len();
                self.pool_uses.push((at, at + 4 + behind));
                self.bytes.extend(offset.to_le_bytes());
                return;
            }
            Memory::At {
                base,
                scale,
                offset,
            } => (base.0, RAX, scale, offset),
            Memory::Indexed {
                base,
                index,
                scale,
                offset,
            } => (base.0, index, scale, offset),
        };
        // A form with four bytes of offset unless it is zero; without one, rbp and r13 mean others.
        let mode = if offset == 0 && base & 7 != 5 {
            0
        } else {
            0x80
        };
        match scale {
            0 if base & 7 != 4 => self.bytes.push(mode | register | (base & 7)),
            0 => self.bytes.extend([mode | register | 4, 4 << 3 | 4]),
            _ => {
                let scale = scale.trailing_zeros() as u8;
                let index = (index.0 & 7) << 3;
                self.bytes
                    .extend([mode | register | 4, scale << 6 | index | (base & 7)]);
            }
        }
        if mode != 0 {
            self.bytes.extend(offset.to_le_bytes());
        }
    }

    /// `to = [from + offset]`
    pub(super) fn load(&mut self, to: Gpr, from: Gpr, offset: i32) {
        self.move_word(0x8b, to, from, offset);
    }

    /// `[to + offset] = from`
    pub(super) fn store(&mut self, from: Gpr, to: Gpr, offset: i32) {
        self.move_word(0x89, from, to, offset);
    }

    fn move_word(&mut self, code: u8, register: Gpr, base: Gpr, offset: i32) {
        self.bytes.extend([rex(register.0 >> 3, base.0 >> 3), code]);
        let memory = Memory::At {
            base,
            scale: 0,
            offset,
        };
        self.memory((register.0 & 7) << 3, memory, 0);
    }

    /// `to = from`, an address.
    pub(super) fn address(&mut self, to: Gpr, from: Memory) {
        self.bytes.extend([rex(to.0 >> 3, base_bit(from)), 0x8d]);
        self.memory((to.0 & 7) << 3, from, 0);
    }

    /// `x = x + [from]`
    pub(super) fn add_from(&mut self, x: Gpr, from: Memory) {
        self.bytes.extend([rex(x.0 >> 3, base_bit(from)), 0x03]);
        self.memory((x.0 & 7) << 3, from, 0);
    }

    /// `x = x · [from]`
    pub(super) fn multiply_by(&mut self, x: Gpr, from: Memory) {
        self.bytes
            .extend([rex(x.0 >> 3, base_bit(from)), 0x0f, 0xaf]);
        self.memory((x.0 & 7) << 3, from, 0);
    }

    /// Has all caches fetch the line of an address.
    pub(super) fn prefetch(&mut self, from: Memory) {
        self.bytes
            .extend([sized(rex(0, base_bit(from)), false), 0x0f, 0x18]);
        self.memory(1 << 3, from, 0);
    }

    /// `x = x · by`
    pub(super) fn multiply(&mut self, x: Gpr, by: i32) {
        match by > 0 && by & (by - 1) == 0 {
            true => self.shift(SHIFT_LEFT, x, by.trailing_zeros() as u8, true),
            false => self.times(x, by, true),
        }
    }

    /// `x = x / by`, where that leaves nothing and `x` is at most `most`, which must be less than 2³¹: times what
    /// `by` is the inverse of, modulo 2³².
    pub(super) fn divide_exactly(&mut self, x: Gpr, by: u32, most: i64) {
        self.require(by > 0 && i32::try_from(most).is_ok());
        if by == 0 {
            return;
        }
        let power = by.trailing_zeros();
        let odd = by >> power;
        // Each step doubles the bits that are right; three are at first.
        let mut inverse = odd;
        for _ in 0..4 {
            let error = 2u32.wrapping_sub(odd.wrapping_mul(inverse));
            inverse = inverse.wrapping_mul(error);
        }
        self.times(x, inverse as i32, false);
        if power > 0 {
            self.shift(SHIFT_RIGHT, x, power as u8, false);
        }
    }

    /// `x = x · by`, of 64 bits if `wide`, else of 32.
    fn times(&mut self, x: Gpr, by: i32, wide: bool) {
        let prefix = sized(rex(x.0 >> 3, x.0 >> 3), wide);
        let operand = 0xc0 | (x.0 & 7) << 3 | (x.0 & 7);
        self.bytes.extend([prefix, 0x69, operand]);
        self.bytes.extend(by.to_le_bytes());
    }

    /// Shifts the 64 bits of `x` if `wide`, else the low 32.
    fn shift(&mut self, op: u8, x: Gpr, amount: u8, wide: bool) {
        let prefix = sized(rex(0, x.0 >> 3), wide);
        let operand = 0xc0 | op << 3 | (x.0 & 7);
        self.bytes.extend([prefix, 0xc1, operand, amount]);
    }

    pub(super) fn set(&mut self, to: Gpr, value: i32) {
        self.bytes
            .extend([rex(0, to.0 >> 3), 0xc7, 0xc0 | (to.0 & 7)]);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn add(&mut self, to: Gpr, value: i32) {
        self.arithmetic(0, to, value);
    }

    pub(super) fn and(&mut self, to: Gpr, value: i32) {
        self.arithmetic(4, to, value);
    }

    pub(super) fn compare(&mut self, x: Gpr, value: i32) {
        self.arithmetic(7, x, value);
    }

    /// Compares the 64 bits of `x` if `wide`, else the low 32.
    pub(super) fn compare_sized(&mut self, x: Gpr, value: i32, wide: bool) {
        let prefix = sized(rex(0, x.0 >> 3), wide);
        self.bytes.extend([prefix, 0x81, 0xc0 | 7 << 3 | (x.0 & 7)]);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn compare_with(&mut self, x: Gpr, y: Gpr) {
        let operand = 0xc0 | (y.0 & 7) << 3 | (x.0 & 7);
        self.bytes.extend([rex(y.0 >> 3, x.0 >> 3), 0x39, operand]);
    }

    /// `x = x - y`
    pub(super) fn subtract(&mut self, x: Gpr, y: Gpr) {
        let operand = 0xc0 | (y.0 & 7) << 3 | (x.0 & 7);
        self.bytes.extend([rex(y.0 >> 3, x.0 >> 3), 0x29, operand]);
    }

    pub(super) fn copy(&mut self, to: Gpr, from: Gpr) {
        self.move_register(to, from, true);
    }

    /// The low 32 bits of `from`, with zeros above them.
    pub(super) fn copy_lower_half(&mut self, to: Gpr, from: Gpr) {
        self.move_register(to, from, false);
    }

    fn move_register(&mut self, to: Gpr, from: Gpr, wide: bool) {
        let operand = 0xc0 | (from.0 & 7) << 3 | (to.0 & 7);
        let prefix = sized(rex(from.0 >> 3, to.0 >> 3), wide);
        self.bytes.extend([prefix, 0x89, operand]);
    }

    /// `x = x / 2³²`, unsigned.
    pub(super) fn take_upper_half(&mut self, x: Gpr) {
        self.shift(SHIFT_RIGHT, x, 32, true);
    }

    fn arithmetic(&mut self, op: u8, to: Gpr, value: i32) {
        let operand = 0xc0 | op << 3 | (to.0 & 7);
        let prefix = rex(0, to.0 >> 3);
        match i8::try_from(value) {
            Ok(short) => self.bytes.extend([prefix, 0x83, operand, short as u8]),
            Err(_) => {
                self.bytes.extend([prefix, 0x81, operand]);
                self.bytes.extend(value.to_le_bytes());
            }
        }
    }

    pub(super) fn push(&mut self, x: Gpr) {
        self.bytes.extend([0x40 | x.0 >> 3, 0x50 | (x.0 & 7)]);
    }

    pub(super) fn pop(&mut self, x: Gpr) {
        self.bytes.extend([0x40 | x.0 >> 3, 0x58 | (x.0 & 7)]);
    }

    pub(super) fn ret(&mut self) {
        self.bytes.push(0xc3);
    }

    /// A label here.
    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.put(label);
        label
    }

    /// A label that is put somewhere by [`Assembler::put`].
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub(super) fn put(&mut self, label: Label) {
        self.labels[label.0] = Some(self.bytes.len());
    }

    /// Gives up all code, if `holds` does not.
    pub(super) fn require(&mut self, holds: bool) {
        self.is_refused |= !holds;
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.bytes.push(0xe9);
        self.distance(to);
    }

    pub(super) fn jump_if(&mut self, condition: Condition, to: Label) {
        self.bytes.extend([0x0f, 0x80 | condition as u8]);
        self.distance(to);
    }

    fn distance(&mut self, to: Label) {
        self.jumps.push((self.bytes.len(), to));
        self.bytes.extend([0; 4]);
    }

    /// The code, with the pool behind it at a multiple of 64; `None` if something in it was refused.
    pub(super) fn finish(mut self, pool: &[u8]) -> Option<Vec<u8>> {
        if self.is_refused {
            return None;
        }
        for &(at, label) in &self.jumps {
            let distance = i64::try_from(self.labels[label.0]?).ok()? - (at as i64 + 4);
            let distance = i32::try_from(distance).ok()?;
            self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        if pool.is_empty() {
            return self.pool_uses.is_empty().then_some(self.bytes);
        }
        // All distances are then far below what a field holds.
        i32::try_from(self.bytes.len().checked_add(pool.len())?).ok()?;
        let start = self.bytes.len().next_multiple_of(64);
        for &(at, end) in &self.pool_uses {
            let field = &mut self.bytes[at..at + 4];
            let offset = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
            if offset as usize >= pool.len() {
                return None;
            }
            let distance = start as u32 + offset - end as u32;
            field.copy_from_slice(&distance.to_le_bytes());
        }
        self.bytes.resize(start, 0xcc);
        self.bytes.extend(pool);
        Some(self.bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

fn base_bit(memory: Memory) -> u8 {
    match memory {
        Memory::At { base, .. } | Memory::Indexed { base, .. } => base.0 >> 3,
        Memory::Pool(_) => 0,
    }
}

/// The digits of ModRM for shifts by a constant.
const SHIFT_LEFT: u8 = 4;
const SHIFT_RIGHT: u8 = 5;

/// The bit of the REX prefix for operands of 64 bits.
const REX_WIDE: u8 = 8;

fn rex(register: u8, base: u8) -> u8 {
    0x40 | REX_WIDE | (register & 1) << 2 | (base & 1)
}

/// The same prefix for operands of 64 bits if `wide`, else of 32.
fn sized(rex: u8, wide: bool) -> u8 {
    if wide { rex } else { rex & !REX_WIDE }
}
