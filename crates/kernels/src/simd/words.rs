//! Vectors of words of bytes, as instruction sets with vectors of integers pack them.

use crate::lanes::Simd;
use crate::pack::{Block, store_line};

/// Stores a vector of words of a line, from lane `start` on. Lanes that the line has no room for are those of the line after
/// it, if the vector is the first of its line.
///
/// # Safety
/// The machine has the instructions; all lines may be written, and those after this one are packed after it.
#[inline(always)]
pub(super) unsafe fn store_vector<S: Simd<T = i32>>(
    block: &Block<i32>,
    line: usize,
    start: usize,
    words: S::V,
) {
    let lanes = (block.width - start).min(S::LANES);
    let room = match start == 0 || lanes == S::LANES {
        true => (block.k - line) * block.width - start,
        false => 0,
    };
    // SAFETY: the caller's.
    unsafe {
        let to = block.to.add(line * block.width + start);
        store_line::<S>(to, words, lanes, room);
    }
}
