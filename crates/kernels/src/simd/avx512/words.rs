//! Words of four bytes that follow each other.

use std::arch::x86_64::*;

use super::{Bytes, first, lay_across};
use crate::lanes::Simd;
use crate::pack::Block;
use crate::pack::runs::Runs;
use crate::pack::words::{Along, WordLayouts, words};
use crate::simd::words::store_vector;

/// Vectors of words. They are stored alike, whether their bytes have signs or not.
type Words = Bytes<true>;

/// [`words`], whose lines of consecutive bytes are packed 16 by 16, and those of consecutive points by vectors.
///
/// # Safety
/// as that.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
pub(in crate::simd) unsafe fn pack_words(block: &Block<i32>, points: &[u32]) {
    const LAYOUTS: WordLayouts = WordLayouts {
        across: lay_across::<i32>,
        along: Some(Along {
            lanes: Words::LANES,
            pack: along,
        }),
    };
    // SAFETY: the caller's.
    unsafe { words::<4>(block, points, &LAYOUTS) }
}

/// [`Along::pack`].
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
unsafe fn along(block: &Block<i32>, vectors: &[Runs]) {
    for (number, runs) in vectors.iter().enumerate() {
        let start = number * Words::LANES;
        // SAFETY: the caller's.
        unsafe {
            match (runs.is_one(), runs.step) {
                (true, 1) => vector::<true, 1>(block, runs, start),
                (true, _) => vector::<true, 2>(block, runs, start),
                (false, 1) => vector::<false, 1>(block, runs, start),
                (false, _) => vector::<false, 2>(block, runs, start),
            }
        }
    }
}

/// Packs a vector of words for each line, from lane `start` on.
///
/// # Safety
/// as [`along`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
unsafe fn vector<const IS_ONE: bool, const STEP: usize>(
    block: &Block<i32>,
    runs: &Runs,
    start: usize,
) {
    let first_run = block.from.wrapping_add(runs.first as usize);
    let second_run = block.from.wrapping_add(runs.second as usize);
    let count = usize::from(runs.lanes);
    let is_second = !first(runs.split.into());
    for (line, offsets) in block.offsets.chunks(4).enumerate().take(block.k) {
        let mut rows = [_mm_setzero_si128(); 4];
        for (row, &offset) in rows.iter_mut().zip(offsets) {
            // SAFETY: the caller lets read all lanes of both runs.
            unsafe {
                *row = bytes::<STEP>(first_run.wrapping_add(offset as usize), count);
                if !IS_ONE {
                    let second = bytes::<STEP>(second_run.wrapping_add(offset as usize), count);
                    *row = _mm_mask_blend_epi8(is_second, *row, second);
                }
            }
        }
        let words = interleaved(rows);
        // SAFETY: the caller lets write all lines, and they are packed in order.
        unsafe { store_vector::<Words>(block, line, start, words) }
    }
}

/// `count` bytes that are `STEP` apart, and zeros.
///
/// # Safety
/// They may be read, and those between them; they are at most 16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
#[inline]
unsafe fn bytes<const STEP: usize>(from: *const u8, count: usize) -> __m128i {
    // SAFETY: the caller's; bytes whose bit is not set are not read.
    unsafe {
        match STEP {
            1 => _mm_maskz_loadu_epi8(first(count), from.cast()),
            _ => {
                let there = u32::MAX >> (33 - 2 * count);
                _mm256_cvtepi16_epi8(_mm256_maskz_loadu_epi8(there, from.cast()))
            }
        }
    }
}

/// A word for each lane, of one byte of each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn interleaved([a, b, c, d]: [__m128i; 4]) -> __m512i {
    let (ab, cd) = (_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
    let (ab_high, cd_high) = (_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d));
    let low = _mm256_set_m128i(_mm_unpackhi_epi16(ab, cd), _mm_unpacklo_epi16(ab, cd));
    let high = _mm256_set_m128i(
        _mm_unpackhi_epi16(ab_high, cd_high),
        _mm_unpacklo_epi16(ab_high, cd_high),
    );
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}
