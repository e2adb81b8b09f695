//! Packing of numbers of 16 bits, 8 at a time. Engines of wider vectors pack so, too: what is packed is the same.

use std::arch::x86_64::*;

use super::V32;
use crate::coded::{self, Load};
use crate::lanes::Simd;
use crate::narrow::{Narrow, NarrowBlock};
use crate::tile::Square;

/// How many elements ahead of those being packed are fetched.
const AHEAD: usize = 128;

/// [`widen`](crate::narrow::widen), 8 by 8.
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,f16c,fma,bmi1,bmi2")]
pub(in crate::simd) unsafe fn widen(block: &NarrowBlock) {
    // SAFETY: the caller's.
    unsafe {
        match block.narrow {
            Narrow::F16 => widen_as::<coded::F16>(block),
            Narrow::BF16 => widen_as::<coded::BF16>(block),
        }
    }
}

/// # Safety
/// as [`widen`].
#[inline(always)]
unsafe fn widen_as<L: Load<V32>>(block: &NarrowBlock) {
    let (eights, _) = block.points.as_chunks::<8>();
    let is_run = |points: &[u32; 8]| points.is_sorted_by(|a, b| a + 1 == *b);
    // SAFETY: the caller's: all points of all lines may be read, and the lines written.
    unsafe {
        if eights.iter().all(is_run) {
            along::<L>(block, eights);
        } else if block.unit {
            for (number, points) in eights.iter().enumerate() {
                across::<L>(block, points, 8 * number);
            }
        } else {
            return block.one_by_one(0..block.width, 0..block.k);
        }
        if 8 * eights.len() < block.width {
            block.one_by_one(8 * eights.len()..block.width, 0..block.k);
        }
    }
}

/// Packs points that follow each other, in eights.
///
/// # Safety
/// as [`widen`].
#[inline(always)]
unsafe fn along<L: Load<V32>>(block: &NarrowBlock, eights: &[[u32; 8]]) {
    for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
        let from = block.from.wrapping_add(offset as usize);
        for (number, points) in eights.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe {
                let [v, _] = L::load(from.wrapping_add(points[0] as usize).cast());
                V32::store(block.to.add(k * block.width + 8 * number), v);
            }
        }
    }
}

/// Packs 8 points, the first of which goes to lane `lane`, whose lines follow each other.
///
/// # Safety
/// as [`widen`].
#[inline(always)]
unsafe fn across<L: Load<V32>>(block: &NarrowBlock, points: &[u32; 8], lane: usize) {
    let whole = block.k - block.k % 8;
    // SAFETY: the caller's.
    unsafe {
        for k in (0..whole).step_by(8) {
            let mut lines = [V32::zero(); 8];
            for (line, v) in lines.iter_mut().enumerate() {
                let from = block.from.wrapping_add(points[line] as usize + k);
                // Too many lines for the machine to look ahead by itself.
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
                [*v, _] = L::load(from.cast());
            }
            for (line, &v) in V32::transpose(lines).iter().enumerate() {
                V32::store(block.to.add((k + line) * block.width + lane), v);
            }
        }
        block.one_by_one(lane..lane + 8, whole..block.k);
    }
}
