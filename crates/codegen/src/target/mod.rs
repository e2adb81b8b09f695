//! Back ends of vector loops.
//!
//! Cranelift knows vectors of 128 bits: with these, a [`Program`] becomes part of the kernel ([`clif128`]). Where a
//! stage, or the inner part of its loops, is arithmetic on elements whose addresses step by constants, its program runs
//! on 256 (AVX2) or 512 bits (AVX-512): a function of its own that the kernel calls.

pub(crate) mod clif128;
mod x86;

use crate::vector_ir::program::Program;

/// A machine with vectors wider than Cranelift's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// 256 bits: AVX2 and FMA.
    Avx2,
    /// 512 bits, masks and twice the registers: AVX-512 F, VL, BW and DQ.
    Avx512,
}

/// The machine code of a vector loop, with its constants behind it.
pub(crate) struct Assembled {
    pub(crate) bytes: Vec<u8>,
    /// How many of them are instructions.
    pub(crate) code: usize,
    /// Labels of the instructions from an offset on, in the order of the offsets.
    pub(crate) marks: Vec<Mark>,
}

/// A label of instructions of a vector loop, for whoever reads them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The offset of the first of them, in bytes.
    pub(crate) offset: usize,
    pub(crate) what: &'static str,
    /// The argument that points to the memory they reach, and how far from there on, in bytes.
    pub(crate) memory: Option<(u32, i32)>,
}

impl Target {
    /// The best that this machine has.
    pub(crate) fn of_host() -> Option<Target> {
        let (is_256, is_512) = features();
        match (is_256, is_512) {
            (true, true) => Some(Target::Avx512),
            (true, false) => Some(Target::Avx2),
            (false, _) => None,
        }
    }

    /// Bytes of its registers.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Target::Avx2 => 32,
            Target::Avx512 => 64,
        }
    }

    /// Registers that values may be in.
    pub(crate) fn registers(self) -> usize {
        match self {
            Target::Avx2 => 14,
            Target::Avx512 => 30,
        }
    }

    /// How many rows of a fold to try side by side: more load hardly less of what they share. Where registers are few,
    /// four leave more of them to the weights of a small window, which eight would load again for each row.
    pub(crate) fn jammed_rows(self) -> [usize; 3] {
        match self {
            Target::Avx2 => [4, 8, 2],
            Target::Avx512 => [8, 4, 2],
        }
    }

    /// Whether lanes can be left out of loads and stores.
    pub(crate) fn has_masks(self) -> bool {
        self == Target::Avx512
    }

    /// Whether the look-ups of a program with `lanes` and `parts` may be in a table of `extent` elements of `width`
    /// bytes that stays in registers, by indices of `index_bytes`.
    pub(crate) fn holds_table(
        self,
        [lanes, parts]: [usize; 2],
        extent: usize,
        width: u8,
        index_bytes: u8,
    ) -> bool {
        x86::holds_table(self, [lanes, parts], extent, width, index_bytes)
    }

    /// The function `fn(arguments: *const u64) -> u32`, by the calling convention of System V: 1 if an index is out
    /// of range. `None` if something has no instruction, or there are too few registers and values may not spill.
    pub(crate) fn compile(self, program: &Program, may_spill: bool) -> Option<Assembled> {
        x86::compile(program, self, may_spill)
    }
}

/// Whether the machine has all that vector loops of 256 and of 512 bits consist of.
#[cfg(target_arch = "x86_64")]
fn features() -> (bool, bool) {
    use std::arch::is_x86_feature_detected as has;
    (
        has!("avx2") && has!("fma") && has!("f16c"),
        has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq"),
    )
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> (bool, bool) {
    (false, false)
}
