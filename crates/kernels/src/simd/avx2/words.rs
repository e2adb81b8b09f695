//! Words of two numbers of 16 bits, made of bytes that follow each other.

use std::arch::x86_64::*;

use super::Halves;
use crate::lanes::Simd;
use crate::pack::Block;
use crate::pack::words::{WordLayouts, across_of, clear, words};

/// The lines that are laid across at a time, and the most points.
const SQUARE: usize = 4;

/// [`words`], whose lines of consecutive bytes are packed in squares of four words, and those of consecutive points by
/// vectors of eight words.
///
/// # Safety
/// as that.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
pub(super) unsafe fn pack_words(block: &Block<i32>, points: &[u32]) {
    const LAYOUTS: WordLayouts = WordLayouts {
        across,
        along: Some(along),
    };
    // SAFETY: the caller's.
    unsafe { words::<2>(block, points, &LAYOUTS) }
}

/// [`WordLayouts::along`].
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn along(block: &Block<i32>, run: usize) {
    for start in (0..block.width).step_by(Halves::LANES) {
        // SAFETY: the caller's.
        unsafe {
            match (block.signed, run >= start + Halves::LANES) {
                (true, true) => vectors::<true, true>(block, start),
                (true, false) => vectors::<true, false>(block, start),
                (false, true) => vectors::<false, true>(block, start),
                (false, false) => vectors::<false, false>(block, start),
            }
        }
    }
}

/// Packs a vector of words for each line, from lane `start` on. `IS_WHOLE`: as many bytes may be read as that has lanes.
///
/// # Safety
/// as [`along`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn vectors<const SIGNED: bool, const IS_WHOLE: bool>(block: &Block<i32>, start: usize) {
    let first = block.from.wrapping_add(block.points[start] as usize);
    let lanes = (block.width - start).min(Halves::LANES);
    let bytes = |offset: u32| {
        let from = first.wrapping_add(offset as usize);
        if IS_WHOLE {
            // SAFETY: the caller's.
            return unsafe { _mm_loadl_epi64(from.cast()) };
        }
        let mut bytes = [0; Halves::LANES];
        for (lane, byte) in bytes.iter_mut().enumerate().take(lanes) {
            // SAFETY: the caller's.
            *byte = unsafe { from.add(lane).read() };
        }
        _mm_cvtsi64_si128(i64::from_le_bytes(bytes))
    };
    for line in 0..block.k {
        let second = match block.offsets.get(2 * line + 1) {
            Some(offset) => bytes(*offset),
            None => _mm_setzero_si128(),
        };
        let pairs = _mm_unpacklo_epi8(bytes(block.offsets[2 * line]), second);
        let words = match SIGNED {
            true => _mm256_cvtepi8_epi16(pairs),
            false => _mm256_cvtepu8_epi16(pairs),
        };
        let room = (block.k - line) * block.width - start;
        // SAFETY: the caller lets write the line, and those after it. Lanes too many are of the line after it, which is
        // written later, unless this is not the first vector.
        unsafe {
            let to = block.to.add(line * block.width + start);
            match room >= Halves::LANES && (start == 0 || lanes == Halves::LANES) {
                true => Halves::store(to, words),
                false => Halves::store_first(to, words, lanes),
            }
        }
    }
}

/// [`WordLayouts::across`].
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn across(block: &Block<i32>, from: *const u8, lines: usize) {
    // SAFETY: the caller's.
    unsafe {
        match block.signed {
            true => all::<true>(block, from, lines),
            false => all::<false>(block, from, lines),
        }
        clear(block, block.to, lines);
    }
}

/// # Safety
/// as [`across`], without the lanes that have no point.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn all<const SIGNED: bool>(block: &Block<i32>, from: *const u8, lines: usize) {
    if lines < SQUARE {
        // SAFETY: the caller's.
        return unsafe { across_of::<2, SIGNED>(block, from, lines) };
    }
    let mut to = block.to;
    for points in block.points.chunks(SQUARE) {
        // SAFETY: the caller's; `to` is the first lane of these points.
        unsafe {
            match points.len() {
                1 => squares::<SIGNED, 1>(points, from, to, lines, block.width),
                2 => squares::<SIGNED, 2>(points, from, to, lines, block.width),
                3 => squares::<SIGNED, 3>(points, from, to, lines, block.width),
                _ => squares::<SIGNED, SQUARE>(points, from, to, lines, block.width),
            }
        }
        to = to.wrapping_add(points.len());
    }
}

/// The lines of `LANES` points, at least [`SQUARE`], to lines that are `width` words apart. The last square begins early enough
/// to be whole.
///
/// # Safety
/// They may be read, and written.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn squares<const SIGNED: bool, const LANES: usize>(
    points: &[u32],
    from: *const u8,
    to: *mut i32,
    lines: usize,
    width: usize,
) {
    let mut places = [from; LANES];
    for at in 0..LANES {
        places[at] = from.wrapping_add(points[at] as usize);
    }
    for line in (0..lines).step_by(SQUARE) {
        let line = line.min(lines - SQUARE);
        let mut rows = [_mm_setzero_si128(); SQUARE];
        for at in 0..LANES {
            // SAFETY: the eight bytes of four lines, which the caller lets read.
            let bytes = unsafe { _mm_loadl_epi64(places[at].add(2 * line).cast()) };
            rows[at] = match SIGNED {
                true => _mm_cvtepi8_epi16(bytes),
                false => _mm_cvtepu8_epi16(bytes),
            };
        }
        let [a, b, c, d] = rows;
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        let columns = [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab_high, cd_high),
            _mm_unpackhi_epi64(ab_high, cd_high),
        ];
        for (number, &column) in columns.iter().enumerate() {
            // SAFETY: as many words of a line as there are points, which the caller lets write.
            unsafe {
                let to = to.add((line + number) * width);
                match LANES {
                    1 => to.write_unaligned(_mm_cvtsi128_si32(column)),
                    2 => _mm_storel_epi64(to.cast(), column),
                    3 => {
                        _mm_storel_epi64(to.cast(), column);
                        to.add(2).write_unaligned(_mm_extract_epi32::<2>(column));
                    }
                    _ => _mm_storeu_si128(to.cast(), column),
                }
            }
        }
    }
}
