//! Operands of `f32` whose elements come to runs as numbers of 16 bits, as the keys and values do that a language model
//! keeps. They are the column side, which is packed within the run: each element is made of its number on the way.

use crate::lanes::Number;
use half::{bf16, f16};

/// How the elements of an operand of `f32` are stored, which each holds exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Narrow {
    /// `f16`.
    F16,
    /// `bf16`.
    BF16,
}

/// A panel to be packed of numbers of 16 bits: as [`Block`](crate::pack::Block) says.
pub(crate) struct NarrowBlock<'a> {
    pub(crate) narrow: Narrow,
    pub(crate) from: *const u16,
    pub(crate) to: *mut f32,
    pub(crate) width: usize,
    /// The offset of each point, at most `width` of them.
    pub(crate) points: &'a [u32],
    /// How many lines.
    pub(crate) k: usize,
    /// The offset of each line.
    pub(crate) offsets: &'a [u32],
    /// Whether each offset is its number.
    pub(crate) unit: bool,
}

impl Narrow {
    /// The bytes of an element.
    pub const BYTES: usize = 2;

    /// The element that a number stands for.
    pub(crate) fn element(self, bits: u16) -> f32 {
        match self {
            Narrow::F16 => f16::from_bits(bits).to_f32(),
            Narrow::BF16 => bf16::from_bits(bits).to_f32(),
        }
    }
}

impl NarrowBlock<'_> {
    /// Packs the points from number `start` on, and zeros past the last, of `lines`, element by element.
    ///
    /// # Safety
    /// Every point of every line may be read, and all lines written.
    pub(crate) unsafe fn one_by_one(&self, start: usize, lines: std::ops::Range<usize>) {
        for k in lines {
            let from = self.from.wrapping_add(self.offsets[k] as usize);
            for lane in start..self.width {
                // SAFETY: the caller's.
                unsafe {
                    let element = match self.points.get(lane) {
                        Some(&point) => {
                            let bits = from.wrapping_add(point as usize).read_unaligned();
                            self.narrow.element(bits)
                        }
                        None => f32::ZERO,
                    };
                    let to = self.to.add(k * self.width + lane);
                    to.write_unaligned(element);
                }
            }
        }
    }
}

/// Packs a block, whatever the machine has.
///
/// # Safety
/// as [`NarrowBlock::one_by_one`].
pub(crate) unsafe fn widen(block: &NarrowBlock) {
    // SAFETY: the caller's.
    unsafe { block.one_by_one(0, 0..block.k) }
}
