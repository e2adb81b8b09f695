//! Tiles of rows of bytes by packed codes: at most 8 vectors of sums at a time, two to a panel and row.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use std::arch::x86_64::*;

use super::V32;
use crate::grouped_tile::{MOST_ROWS, PANEL, Tile, TileFn, Tiles};
use crate::simd::grouped::{self, Integers, LineCodes, Lines};

/// Defines the tiles of an instruction set with vectors of 256 bits: its name and its attribute.
macro_rules! define_tiles {
    ($name:literal, $feature:meta) => {
        const fn tiles<C: LineCodes>() -> Tiles {
            let narrow: [TileFn; MOST_ROWS] = [
                tile::<C, 1, 2, 2>,
                tile::<C, 2, 2, 2>,
                tile::<C, 3, 2, 2>,
                tile::<C, 4, 2, 2>,
            ];
            Tiles {
                name: $name,
                shift: C::SHIFT,
                wide: [
                    (4, tile::<C, 1, 8, 8>),
                    (4, tile::<C, 2, 8, 4>),
                    (4, tile::<C, 3, 8, 2>),
                    (4, tile::<C, 4, 8, 2>),
                ],
                narrow,
                group_sums,
            }
        }

        /// [`grouped::tile`].
        ///
        /// # Safety
        /// as that; the machine has the instructions.
        #[$feature]
        unsafe fn tile<C: LineCodes, const H: usize, const N: usize, const P: usize>(tile: &Tile) {
            // SAFETY: the caller's.
            unsafe { grouped::tile::<C, H, N, P>(tile) }
        }
    };
}
pub(in crate::simd) use define_tiles;

/// Tiles of codes of 4 bits.
pub(in crate::simd) static HALVES: Tiles = tiles::<Halves>();

/// Tiles of codes of 8 bits.
pub(in crate::simd) static BYTES: Tiles = tiles::<Bytes>();

define_tiles!("avx2", target_feature(enable = "avx2,fma,bmi1,bmi2"));

/// The vectors of a panel.
const VECTORS: usize = PANEL / 8;

/// 8 lanes of `i32`.
pub(in crate::simd) struct I32;

impl Integers for I32 {
    type Floats = V32;
    type V = __m256i;

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn splat(number: i32) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { _mm256_set1_epi32(number) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { _mm256_mullo_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_short(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { _mm256_madd_epi16(a, b) }
    }
    #[inline(always)]
    unsafe fn load(from: *const i16, shift: i16) -> __m256i {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm256_cvtepi16_epi32(load_shifted(from, shift)) }
    }
    #[inline(always)]
    unsafe fn load_unsigned(from: *const i16, shift: i16) -> __m256i {
        // SAFETY: as `load`.
        unsafe { _mm256_cvtepu16_epi32(load_shifted(from, shift)) }
    }
    #[inline(always)]
    unsafe fn floats(v: __m256i) -> __m256 {
        // SAFETY: as `zero`.
        unsafe { _mm256_cvtepi32_ps(v) }
    }
}

/// # Safety
/// as [`Integers::load`].
#[inline(always)]
unsafe fn load_shifted(from: *const i16, shift: i16) -> __m128i {
    // SAFETY: the caller's.
    unsafe { _mm_add_epi16(_mm_loadu_si128(from.cast()), _mm_set1_epi16(shift)) }
}

/// The vectors of a line of a panel.
///
/// # Safety
/// as [`LineCodes::sums`].
#[inline(always)]
unsafe fn load<const H: usize>(lines: &Lines<H>, line: usize, panel: usize) -> [__m256i; VECTORS] {
    // SAFETY: the caller's.
    unsafe {
        let from: *const __m256i = lines.line::<V32>(line, panel).cast();
        [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))]
    }
}

/// Codes from 0 to 15, of 8 `k` a line.
struct Halves;

impl Halves {
    /// How many lines have sums of 16 bits: of 4 products of at most 15 · 127 each.
    const CHAIN: usize = i16::MAX as usize / (4 * 15 * 127);

    /// The sums of the lines from `first` up to `until`, at most [`CHAIN`](Halves::CHAIN) of them.
    ///
    /// # Safety
    /// as [`LineCodes::sums`].
    #[inline(always)]
    unsafe fn chain<const H: usize, const N: usize>(
        lines: &Lines<H>,
        first: usize,
        until: usize,
    ) -> [[__m256i; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let (mask, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
            let mut sums = [[_mm256_setzero_si256(); N]; H];
            for line in first..until {
                for panel in 0..N / VECTORS {
                    let j = panel * VECTORS;
                    let codes = load(lines, line, panel);
                    for half in 0..2 {
                        let mut halves = codes;
                        for v in 0..VECTORS {
                            if half == 1 {
                                halves[v] = _mm256_srli_epi16::<4>(halves[v]);
                            }
                            halves[v] = _mm256_and_si256(halves[v], mask);
                        }
                        for i in 0..H {
                            let elements = I32::splat(lines.elements(i, 8 * line + 4 * half));
                            for v in 0..VECTORS {
                                let products = _mm256_maddubs_epi16(halves[v], elements);
                                sums[i][j + v] = _mm256_add_epi16(sums[i][j + v], products);
                            }
                        }
                    }
                }
            }
            for i in 0..H {
                for j in 0..N {
                    sums[i][j] = _mm256_madd_epi16(sums[i][j], ones);
                }
            }
            sums
        }
    }
}

impl LineCodes for Halves {
    type Integers = I32;

    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m256i; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let mut line = Halves::CHAIN.min(lines.count);
            let mut sums = Halves::chain::<H, N>(lines, 0, line);
            while line < lines.count {
                let until = lines.count.min(line + Halves::CHAIN);
                let more = Halves::chain::<H, N>(lines, line, until);
                for i in 0..H {
                    for j in 0..N {
                        sums[i][j] = _mm256_add_epi32(sums[i][j], more[i][j]);
                    }
                }
                line = until;
            }
            sums
        }
    }
}

/// Codes from -128 to 127, of 4 `k` a line.
struct Bytes;

impl LineCodes for Bytes {
    type Integers = I32;

    /// A product of a code and an element is that of the code's size and the element with the code's sign. Two of them
    /// have a sum of 16 bits: 2 · 128 · 127.
    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m256i; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut sums = [[_mm256_setzero_si256(); N]; H];
            for line in 0..lines.count {
                for panel in 0..N / VECTORS {
                    let j = panel * VECTORS;
                    let codes = load(lines, line, panel);
                    let sizes = [_mm256_abs_epi8(codes[0]), _mm256_abs_epi8(codes[1])];
                    for i in 0..H {
                        let elements = I32::splat(lines.elements(i, 4 * line));
                        for v in 0..VECTORS {
                            let signed = _mm256_sign_epi8(elements, codes[v]);
                            let pairs = _mm256_maddubs_epi16(sizes[v], signed);
                            let words = _mm256_madd_epi16(pairs, ones);
                            sums[i][j + v] = _mm256_add_epi32(sums[i][j + v], words);
                        }
                    }
                }
            }
            sums
        }
    }
}

/// [`group_sums`](crate::grouped_tile::group_sums), 32 by 32.
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
pub(in crate::simd) unsafe fn group_sums(
    mut row: *const i8,
    group: usize,
    factor: i32,
    sums: &mut [i32],
) {
    // SAFETY: the caller's: a group has a multiple of 8 elements.
    unsafe {
        let ones = _mm256_set1_epi8(1);
        let (bytes, words) = (_mm256_castsi256_si128(ones), _mm256_set1_epi16(1));
        for to in sums {
            let (mut wide, mut sum) = (_mm256_setzero_si256(), _mm_setzero_si128());
            let mut left = group;
            while left >= 32 {
                let pairs = _mm256_maddubs_epi16(ones, _mm256_loadu_si256(row.cast()));
                wide = _mm256_add_epi32(wide, _mm256_madd_epi16(pairs, words));
                (row, left) = (row.wrapping_add(32), left - 32);
            }
            while left > 0 {
                let pairs = _mm_maddubs_epi16(bytes, _mm_loadl_epi64(row.cast()));
                sum = _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm256_castsi256_si128(words)));
                (row, left) = (row.wrapping_add(8), left - 8);
            }
            sum = _mm_add_epi32(sum, _mm256_castsi256_si128(wide));
            sum = _mm_add_epi32(sum, _mm256_extracti128_si256::<1>(wide));
            sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b1110>(sum));
            sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01>(sum));
            *to = _mm_cvtsi128_si32(sum) * factor;
        }
    }
}
