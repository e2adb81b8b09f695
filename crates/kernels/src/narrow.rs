//! Column operands whose elements are `f16` or `bf16` in memory, as the keys and values that a language model keeps, and `f32`
//! in the product. Each run packs them, and widens each element as it does.

use crate::lanes::Number;
use half::{bf16, f16};
use std::ops::Range;

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
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "element by element it makes no difference")
    )]
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
    /// Packs the points `lanes`, and zeros past the last, of `lines`, element by element.
    ///
    /// # Safety
    /// Every point of every line may be read, and all lines written.
    pub(crate) unsafe fn one_by_one(&self, lanes: Range<usize>, lines: Range<usize>) {
        for k in lines {
            let from = self.from.wrapping_add(self.offsets[k] as usize);
            for lane in lanes.clone() {
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
    unsafe { block.one_by_one(0..block.width, 0..block.k) }
}
