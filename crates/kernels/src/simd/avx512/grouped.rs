//! Tiles of rows of bytes by packed codes, for machines that [multiply bytes](super::has_byte_products): a line is a vector.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use std::arch::x86_64::*;

use super::V32;
use crate::grouped_tile::{MOST_ROWS, Tile, TileFn, Tiles};
use crate::simd::avx2::grouped::group_sums;
use crate::simd::grouped::{self, Integers, LineCodes, Lines};

/// Tiles of codes of 4 bits.
pub(in crate::simd) static HALVES: Tiles = tiles::<Halves>();

/// Tiles of codes of 8 bits.
pub(in crate::simd) static BYTES: Tiles = tiles::<Bytes>();

const fn tiles<C: LineCodes>() -> Tiles {
    let narrow: [TileFn; MOST_ROWS] = [
        tile::<C, 1, 1>,
        tile::<C, 2, 1>,
        tile::<C, 3, 1>,
        tile::<C, 4, 1>,
    ];
    Tiles {
        name: "avx512",
        shift: C::SHIFT,
        wide: [
            (4, tile::<C, 1, 4>),
            (4, tile::<C, 2, 4>),
            (4, tile::<C, 3, 4>),
            (4, tile::<C, 4, 4>),
        ],
        narrow,
        group_sums,
    }
}

/// [`grouped::tile`].
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,bmi1,bmi2")]
unsafe fn tile<C: LineCodes, const H: usize, const N: usize>(tile: &Tile) {
    // SAFETY: the caller's.
    unsafe { grouped::tile::<C, H, N>(tile) }
}

/// 16 lanes of `i32`.
struct I32;

impl Integers for I32 {
    type Floats = V32;
    type V = __m512i;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn splat(number: i32) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_set1_epi32(number) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_mullo_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_short(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_madd_epi16(a, b) }
    }
    #[inline(always)]
    unsafe fn load(from: *const i16, shift: i16) -> __m512i {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm512_cvtepi16_epi32(load_shifted(from, shift)) }
    }
    #[inline(always)]
    unsafe fn load_unsigned(from: *const i16, shift: i16) -> __m512i {
        // SAFETY: as `load`.
        unsafe { _mm512_cvtepu16_epi32(load_shifted(from, shift)) }
    }
    #[inline(always)]
    unsafe fn floats(v: __m512i) -> __m512 {
        // SAFETY: as `zero`.
        unsafe { _mm512_cvtepi32_ps(v) }
    }
}

/// # Safety
/// as [`Integers::load`].
#[inline(always)]
unsafe fn load_shifted(from: *const i16, shift: i16) -> __m256i {
    // SAFETY: the caller's.
    unsafe { _mm256_add_epi16(_mm256_loadu_si256(from.cast()), _mm256_set1_epi16(shift)) }
}

/// Codes from 0 to 15, of 8 `k` a line.
struct Halves;

impl LineCodes for Halves {
    type Integers = I32;

    /// In tiles of few sums, low and high halves have sums of their own, so that more of them are under way.
    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m512i; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let mask = _mm512_set1_epi8(15);
            let mut sums = [[[I32::zero(); N]; H]; 2];
            for line in 0..lines.count {
                let ahead = lines.ahead(line);
                for j in 0..N {
                    let codes = _mm512_loadu_si512(lines.line::<V32>(line, j, ahead).cast());
                    for half in 0..2 {
                        let halves = match half {
                            0 => _mm512_and_si512(codes, mask),
                            _ => _mm512_and_si512(_mm512_srli_epi16::<4>(codes), mask),
                        };
                        for i in 0..H {
                            let elements = I32::splat(lines.elements(i, 8 * line + 4 * half));
                            let sum = &mut sums[if H * N < 8 { half } else { 0 }][i][j];
                            *sum = _mm512_dpbusd_epi32(*sum, halves, elements);
                        }
                    }
                }
            }
            let [mut low, high] = sums;
            for i in 0..H {
                for j in 0..N {
                    low[i][j] = I32::add(low[i][j], high[i][j]);
                }
            }
            low
        }
    }
}

/// Codes from -128 to 127, of 4 `k` a line. They are multiplied as numbers from 0 to 255, which have the other sign bit.
struct Bytes;

impl LineCodes for Bytes {
    type Integers = I32;
    const SHIFT: i16 = 128;

    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m512i; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let sign = _mm512_set1_epi8(i8::MIN);
            let mut sums = [[I32::zero(); N]; H];
            for line in 0..lines.count {
                let ahead = lines.ahead(line);
                for j in 0..N {
                    let codes = _mm512_loadu_si512(lines.line::<V32>(line, j, ahead).cast());
                    let numbers = _mm512_xor_si512(codes, sign);
                    for i in 0..H {
                        let elements = I32::splat(lines.elements(i, 4 * line));
                        sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], numbers, elements);
                    }
                }
            }
            sums
        }
    }
}
