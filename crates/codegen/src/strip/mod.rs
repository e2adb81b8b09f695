//! Strips: vector code of our own for the loops that touch nearly every element, as wide as the
//! machine has registers.
//!
//! Cranelift knows vectors of 128 bits. Where a stage, or the inner part of its loops, is arithmetic
//! on elements whose addresses step by constants, it becomes a [`program::Program`] of loops and
//! instructions on 256 (AVX2) or 512 bits (AVX-512), gets registers by a linear scan, and is a
//! function of its own that the kernel calls. Elements may also lie where indices in memory
//! say ([`indices`]). All else of the kernel stays Cranelift's.
//!
//! Every lane computes what the scalar code computes, bit by bit, and a strip touches no element that
//! the stage does not. A strip ends where it finds an index out of range, and says so: what is to be done
//! then is left to the kernel, which goes through the points of the strip again, one by one.

mod allocate;
mod assemble;
mod encode;
mod indices;
pub(crate) mod program;
#[cfg(test)]
mod tests;

pub(crate) use assemble::{Assembled, assemble};
pub(crate) use encode::{Opcode, opcode};
pub(crate) use indices::limit;

/// The instructions that strips may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// 256 bits: AVX2 and FMA.
    Avx2,
    /// 512 bits, masks and twice the registers: AVX-512 F, VL, BW and DQ.
    Avx512,
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

    /// How many registers values may be in.
    pub(crate) fn registers(self) -> usize {
        match self {
            Target::Avx2 => 14,
            Target::Avx512 => 30,
        }
    }
}

/// Whether the machine has instructions that put bytes in another order.
pub(crate) fn permutes_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512vbmi");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether the machine has all that strips of 256 and of 512 bits consist of.
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
