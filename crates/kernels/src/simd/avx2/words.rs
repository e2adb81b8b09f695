//! Words of two numbers of 16 bits, or of four bytes, made of bytes that follow each other.

use std::arch::x86_64::*;

use super::{Halves, Words};
use crate::lanes::Simd;
use crate::pack::Block;
use crate::pack::runs::Runs;
use crate::pack::words::{Along, WidenBytes, WordLayouts, across_of, clear, words};
use crate::simd::words::store_vector;

/// The lines that are laid across at a time, and the most points.
const SQUARE: usize = 4;

/// Vectors of words. They are stored alike, whatever they hold.
type Vectors = Words<Halves>;

/// [`words`] of `GROUP` bytes, 2 or 4, whose lines of consecutive bytes are packed in squares of four words, and those of
/// consecutive points by vectors of eight words.
///
/// # Safety
/// as that.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
pub(in crate::simd) unsafe fn pack_words<const GROUP: usize>(block: &Block<i32>, points: &[u32]) {
    let layouts = WordLayouts {
        across: across::<GROUP>,
        along: Some(Along {
            lanes: Vectors::LANES,
            pack: along::<GROUP>,
        }),
    };
    // SAFETY: the caller's.
    unsafe { words::<GROUP>(block, points, &layouts) }
}

/// [`pack::words::widen_bytes`](crate::pack::words::widen_bytes).
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
pub(super) unsafe fn widen_bytes(bytes: &WidenBytes) {
    // SAFETY: the caller's.
    unsafe { crate::pack::words::widen_bytes(bytes) }
}

/// [`Along::pack`].
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn along<const GROUP: usize>(block: &Block<i32>, vectors: &[Runs]) {
    for (number, runs) in vectors.iter().enumerate() {
        let start = number * Vectors::LANES;
        // SAFETY: the caller's.
        unsafe {
            match block.signed {
                true => vector_of::<GROUP, true>(block, runs, start),
                false => vector_of::<GROUP, false>(block, runs, start),
            }
        }
    }
}

/// # Safety
/// as [`along`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn vector_of<const GROUP: usize, const SIGNED: bool>(
    block: &Block<i32>,
    runs: &Runs,
    start: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        match (runs.is_one(), usize::from(runs.lanes), runs.step) {
            (true, Vectors::LANES, 1) => vector::<GROUP, SIGNED, true, 1>(block, runs, start),
            (true, Vectors::LANES, _) => vector::<GROUP, SIGNED, true, 2>(block, runs, start),
            (true, ..) => vector::<GROUP, SIGNED, true, ANY>(block, runs, start),
            (false, _, 1) => vector::<GROUP, SIGNED, false, 1>(block, runs, start),
            (false, ..) => vector::<GROUP, SIGNED, false, 2>(block, runs, start),
        }
    }
}

/// In place of a step: one that is not known, of fewer lanes than a vector has.
const ANY: usize = 0;

/// Packs a vector of words for each line, from lane `start` on.
///
/// # Safety
/// as [`along`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn vector<const GROUP: usize, const SIGNED: bool, const IS_ONE: bool, const STEP: usize>(
    block: &Block<i32>,
    runs: &Runs,
    start: usize,
) {
    let first = block.from.wrapping_add(runs.first as usize);
    let second = block.from.wrapping_add(runs.second as usize);
    let is_second = _mm_cvtsi64_si128(bytes_from(runs.split));
    let row = |offset: u32| {
        // SAFETY: the caller lets read all lanes of both runs.
        unsafe {
            let of = |run: *const u8| bytes::<STEP>(run.wrapping_add(offset as usize), runs);
            match IS_ONE {
                true => of(first),
                false => _mm_blendv_epi8(of(first), of(second), is_second),
            }
        }
    };
    for (line, offsets) in block.offsets.chunks(GROUP).enumerate().take(block.k) {
        let mut rows = [_mm_setzero_si128(); GROUP];
        for (to, &offset) in rows.iter_mut().zip(offsets) {
            *to = row(offset);
        }
        let words = interleaved::<GROUP, SIGNED>(rows);
        // SAFETY: the caller lets write all lines, and they are packed in order.
        unsafe { store_vector::<Vectors>(block, line, start, words) }
    }
}

/// A word for each lane, of one byte of each row.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
#[inline]
fn interleaved<const GROUP: usize, const SIGNED: bool>(rows: [__m128i; GROUP]) -> __m256i {
    let first = _mm_unpacklo_epi8(rows[0], rows[1]);
    match (GROUP, SIGNED) {
        (2, true) => _mm256_cvtepi8_epi16(first),
        (2, false) => _mm256_cvtepu8_epi16(first),
        _ => {
            let second = _mm_unpacklo_epi8(rows[2], rows[3]);
            let low = _mm_unpacklo_epi16(first, second);
            _mm256_set_m128i(_mm_unpackhi_epi16(first, second), low)
        }
    }
}

/// A mask of the bytes of a vector's lanes from `split` on.
fn bytes_from(split: u8) -> i64 {
    (-1_i64).checked_shl(8 * u32::from(split)).unwrap_or(0)
}

/// The bytes of a run from `from` on, `STEP` apart: of all lanes, or, if it is [`ANY`], of those that there are, and zeros.
///
/// # Safety
/// They may be read, and those between them.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
#[inline]
unsafe fn bytes<const STEP: usize>(from: *const u8, runs: &Runs) -> __m128i {
    // SAFETY: the caller's. The second eight end with the last lane.
    unsafe {
        match STEP {
            1 => _mm_loadl_epi64(from.cast()),
            2 => {
                let even = _mm_set_epi64x(0, 0x0604_0200);
                let odd = _mm_set_epi64x(0, 0x0705_0301);
                let low = _mm_shuffle_epi8(_mm_loadl_epi64(from.cast()), even);
                let high = _mm_shuffle_epi8(_mm_loadl_epi64(from.wrapping_add(7).cast()), odd);
                _mm_unpacklo_epi32(low, high)
            }
            _ => {
                let mut bytes = [0; Vectors::LANES];
                for (lane, byte) in bytes.iter_mut().enumerate().take(runs.lanes.into()) {
                    *byte = from.add(lane * usize::from(runs.step)).read();
                }
                _mm_cvtsi64_si128(i64::from_le_bytes(bytes))
            }
        }
    }
}

/// [`WordLayouts::across`].
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn across<const GROUP: usize>(block: &Block<i32>, from: *const u8, lines: usize) {
    // SAFETY: the caller's.
    unsafe {
        match block.signed {
            true => all::<GROUP, true>(block, from, lines),
            false => all::<GROUP, false>(block, from, lines),
        }
        clear(block, block.to, lines);
    }
}

/// # Safety
/// as [`across`], without the lanes that have no point.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn all<const GROUP: usize, const SIGNED: bool>(
    block: &Block<i32>,
    from: *const u8,
    lines: usize,
) {
    if lines < SQUARE {
        // SAFETY: the caller's.
        return unsafe { across_of::<GROUP, SIGNED>(block, from, lines) };
    }
    let mut to = block.to;
    for points in block.points.chunks(SQUARE) {
        // SAFETY: the caller's; `to` is the first lane of these points.
        unsafe {
            match points.len() {
                1 => squares::<GROUP, SIGNED, 1>(points, from, to, lines, block.width),
                2 => squares::<GROUP, SIGNED, 2>(points, from, to, lines, block.width),
                3 => squares::<GROUP, SIGNED, 3>(points, from, to, lines, block.width),
                _ => squares::<GROUP, SIGNED, SQUARE>(points, from, to, lines, block.width),
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
unsafe fn squares<const GROUP: usize, const SIGNED: bool, const LANES: usize>(
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
            // SAFETY: the bytes of four lines, which the caller lets read.
            rows[at] = unsafe {
                let from = places[at].add(GROUP * line).cast();
                match (GROUP, SIGNED) {
                    (2, true) => _mm_cvtepi8_epi16(_mm_loadl_epi64(from)),
                    (2, false) => _mm_cvtepu8_epi16(_mm_loadl_epi64(from)),
                    _ => _mm_loadu_si128(from),
                }
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
