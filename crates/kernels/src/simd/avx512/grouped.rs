//! Tiles of rows of bytes by packed codes, for machines that [multiply bytes](crate::isa::has_byte_products): a line is a vector.

use std::arch::x86_64::*;

use super::V32;
use crate::grouped_tile::{MOST_ROWS, Tile, TileFn, Tiles};
use crate::simd::avx2::grouped::group_sums;
use crate::simd::grouped::words::{BytesOfWords, HalvesOfWords, Words};
use crate::simd::grouped::{self, Integers, LineCodes};

/// Tiles of codes of 4 bits.
pub(in crate::simd) static HALVES: Tiles = tiles::<HalvesOfWords<I32>>();

/// Tiles of codes of 8 bits.
pub(in crate::simd) static BYTES: Tiles = tiles::<BytesOfWords<I32>>();

const fn tiles<C: LineCodes>() -> Tiles {
    let narrow: [TileFn; MOST_ROWS] = [
        tile::<C, 1, 1, 1>,
        tile::<C, 2, 1, 1>,
        tile::<C, 3, 1, 1>,
        tile::<C, 4, 1, 1>,
    ];
    Tiles {
        name: "avx512",
        shift: C::SHIFT,
        wide: [
            (4, tile::<C, 1, 4, 4>),
            (4, tile::<C, 2, 4, 4>),
            (4, tile::<C, 3, 4, 4>),
            (4, tile::<C, 4, 4, 4>),
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
unsafe fn tile<C: LineCodes, const H: usize, const N: usize, const P: usize>(tile: &Tile) {
    // SAFETY: the caller's.
    unsafe { grouped::tile::<C, H, N, P>(tile) }
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

impl Words for I32 {
    #[inline(always)]
    unsafe fn load_codes(from: *const u8) -> __m512i {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn halves(codes: __m512i) -> [__m512i; 2] {
        // SAFETY: as `zero`.
        unsafe {
            let mask = _mm512_set1_epi8(15);
            let high = _mm512_srli_epi16::<4>(codes);
            [_mm512_and_si512(codes, mask), _mm512_and_si512(high, mask)]
        }
    }
    #[inline(always)]
    unsafe fn unsigned(codes: __m512i) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_xor_si512(codes, _mm512_set1_epi8(i8::MIN)) }
    }
    #[inline(always)]
    unsafe fn add_products(sum: __m512i, unsigned: __m512i, signed: __m512i) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_dpbusd_epi32(sum, unsigned, signed) }
    }
}
