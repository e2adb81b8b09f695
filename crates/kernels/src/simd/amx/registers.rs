//! The matrix registers of a thread: their shapes, and what can be done with them.

use std::arch::asm;
use std::cell::Cell;

pub(super) use crate::geometry::MATRIX_LINES as LINES;

/// The most bytes of a line.
pub(super) const LINE: usize = 64;

/// The shape of a tile.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// How many rows it has, the low ones and the high ones.
    pub(super) rows: [u8; 2],
    /// How many words of `k` a product takes.
    pub(super) words: u8,
}

thread_local! {
    /// The tile that the matrix registers of this thread are set to; `None` while they are released.
    static SHAPED: Cell<Option<Shape>> = const { Cell::new(None) };
}

/// The shapes of the matrix registers, as `LDTILECFG` reads them.
#[repr(C, align(64))]
struct Registers {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    line_bytes: [u16; 16],
    lines: [u8; 16],
}

impl Shape {
    fn registers(self) -> Registers {
        let Shape {
            rows: [low, high],
            words,
        } = self;
        let mut registers = Registers {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            line_bytes: [0; 16],
            lines: [0; 16],
        };
        let of_rows = u16::from(words) * 4;
        let line = LINE as u16;
        let shapes = [
            (low, line),
            (low, line),
            (high, line),
            (high, line),
            (low, of_rows),
            (high, of_rows),
            (words, line),
            (words, line),
        ];
        for (register, (lines, bytes)) in shapes.into_iter().enumerate() {
            if lines > 0 {
                registers.lines[register] = lines;
                registers.line_bytes[register] = bytes;
            }
        }
        registers
    }

    /// Gives the matrix registers the shapes for such a tile.
    ///
    /// # Safety
    /// The machine has the instructions; no number is larger than [`LINES`], and there are low rows and words.
    #[inline(always)]
    pub(super) unsafe fn set(self) {
        if SHAPED.get() != Some(self) {
            SHAPED.set(Some(self));
            // SAFETY: the caller's.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &self.registers(), options(nostack, preserves_flags, readonly));
            }
        }
    }
}

/// Leaves the matrix registers to others: the system has nothing to save, and who uses them next gives them shapes of its own.
///
/// # Safety
/// The machine has the instructions.
pub(super) unsafe fn release() {
    if SHAPED.take().is_some() {
        // SAFETY: the caller's.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) }
    }
}

/// Loads a matrix register with lines that are `$step` bytes apart.
macro_rules! load {
    ($register:literal, $from:expr, $step:expr) => {
        asm!(
            concat!("tileloadd ", $register, ", [{from} + {step}]"),
            from = in(reg) $from, step = in(reg) $step,
            options(nostack, preserves_flags, readonly)
        )
    };
}

/// Stores a matrix register as lines that are `$step` bytes apart.
macro_rules! store {
    ($register:literal, $to:expr, $step:expr) => {
        asm!(
            concat!("tilestored [{to} + {step}], ", $register),
            to = in(reg) $to, step = in(reg) $step,
            options(nostack, preserves_flags)
        )
    };
}

/// An instruction that has nothing to do with memory.
macro_rules! instruction {
    ($($text:expr),+) => {
        asm!(concat!($($text),+), options(nostack, preserves_flags, nomem))
    };
}

/// Adds the product of two matrix registers to a third one. `$signed`: the first one has signs, otherwise the second.
macro_rules! multiply {
    ($signed:expr, $sums:literal, $rows:literal, $columns:literal) => {
        match $signed {
            true => instruction!("tdpbsud ", $sums, ", ", $rows, ", ", $columns),
            false => instruction!("tdpbusd ", $sums, ", ", $rows, ", ", $columns),
        }
    };
}

pub(super) use {instruction, load, multiply, store};
