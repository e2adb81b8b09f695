//! Tiles of rows of bytes by packed codes: 8 vectors of sums, two to a panel and row.

use std::arch::x86_64::*;

use crate::grouped_tile::{MOST_ROWS, Tile, TileFn, Tiles};
use crate::simd::avx2::grouped::{I32, define_tiles, group_sums};
use crate::simd::grouped::words::{BytesOfWords, HalvesOfWords, Words};
use crate::simd::grouped::{self, LineCodes};

/// Tiles of codes of 4 bits.
pub(in crate::simd) static HALVES: Tiles = tiles::<HalvesOfWords<I32>>();

/// Tiles of codes of 8 bits.
pub(in crate::simd) static BYTES: Tiles = tiles::<BytesOfWords<I32>>();

define_tiles!(
    "avx-vnni",
    target_feature(enable = "avx2,avxvnni,fma,bmi1,bmi2")
);

impl Words for I32 {
    #[inline(always)]
    unsafe fn load_codes(from: *const u8) -> __m256i {
        // SAFETY: the caller's: all lanes may be read.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn halves(codes: __m256i) -> [__m256i; 2] {
        // SAFETY: the caller's machine has the instructions.
        unsafe {
            let mask = _mm256_set1_epi8(15);
            let high = _mm256_srli_epi16::<4>(codes);
            [_mm256_and_si256(codes, mask), _mm256_and_si256(high, mask)]
        }
    }
    #[inline(always)]
    unsafe fn unsigned(codes: __m256i) -> __m256i {
        // SAFETY: as `halves`.
        unsafe { _mm256_xor_si256(codes, _mm256_set1_epi8(i8::MIN)) }
    }
    #[inline(always)]
    unsafe fn add_products(sum: __m256i, unsigned: __m256i, signed: __m256i) -> __m256i {
        // SAFETY: as `halves`.
        unsafe { _mm256_dpbusd_avx_epi32(sum, unsigned, signed) }
    }
}
