//! Vectors of coded elements. Tiles of few rows need more than 16 registers for their sums, shifts and scales; what is
//! left in memory is said here, since a compiler would have sums wait in memory instead.

use std::arch::asm;
use std::arch::x86_64::*;

use super::V32;
use crate::codes::Codes;
use crate::lanes::Simd;

impl Codes for V32 {
    #[inline(always)]
    unsafe fn i8(from: *const u8) -> __m256 {
        // SAFETY: the caller's machine has the instructions, and all lanes may be read.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
    }
    #[inline(always)]
    unsafe fn u8(from: *const u8) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()))) }
    }
    #[inline(always)]
    unsafe fn f16(from: *const u8) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    unsafe fn fetch_codes(from: *const u8) {
        // SAFETY: as `i8`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }
    #[inline(always)]
    unsafe fn bf16(from: *const u8) -> __m256 {
        // SAFETY: as `i8`.
        unsafe {
            let halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
        }
    }
    #[inline(always)]
    unsafe fn i4(from: *const u8) -> [__m256; 2] {
        // SAFETY: as `i8`.
        unsafe {
            let bytes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()));
            let low = _mm256_srai_epi32::<28>(_mm256_slli_epi32::<28>(bytes));
            let high = _mm256_srai_epi32::<4>(bytes);
            [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)]
        }
    }
    #[inline(always)]
    unsafe fn u4(from: *const u8) -> [__m256; 2] {
        // SAFETY: as `i8`.
        unsafe {
            let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
            let low = _mm256_and_si256(bytes, _mm256_set1_epi32(15));
            let high = _mm256_srli_epi32::<4>(bytes);
            [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)]
        }
    }
    #[inline(always)]
    unsafe fn table(from: *const u8, table: &[f32; 16]) -> [__m256; 2] {
        // SAFETY: as `i8`; the table has two vectors. Permutations look at three bits, the fourth chooses the vector.
        unsafe {
            let (first, second) = (V32::load(table.as_ptr()), V32::load(table[8..].as_ptr()));
            let low = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
            let high = _mm256_srli_epi32::<4>(low);
            [choose(first, second, low), choose(first, second, high)]
        }
    }
    #[inline(always)]
    unsafe fn load_anew(from: *const f32) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { load_here(from) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub_from_memory(a: __m256, b: *const f32) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { sub_from_memory(a, b) }
    }
    #[inline(always)]
    unsafe fn fma_from_memory(a: __m256, b: __m256, c: *const f32) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { fma_from_memory(a, b, c) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: as `i8`.
        unsafe { _mm256_mul_ps(a, b) }
    }
}

/// The numbers of 16 that the low four bits of each lane of `codes` choose, of which `first` has the first eight.
#[inline]
#[target_feature(enable = "avx2")]
fn choose(first: __m256, second: __m256, codes: __m256i) -> __m256 {
    let low = _mm256_permutevar8x32_ps(first, codes);
    let high = _mm256_permutevar8x32_ps(second, codes);
    let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(codes));
    _mm256_blendv_ps(low, high, is_high)
}

/// Eight numbers, which are loaded where this stands.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_here(from: *const f32) -> __m256 {
    let loaded;
    // SAFETY: a vector may be read from `from`, says the caller.
    unsafe {
        asm!(
            "vmovups {}, ymmword ptr [{}]",
            lateout(ymm_reg) loaded, in(reg) from,
            options(readonly, nostack, preserves_flags)
        );
    }
    loaded
}

/// `a - b`, where `b` takes no register: tiles need them for their sums.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sub_from_memory(a: __m256, b: *const f32) -> __m256 {
    let difference;
    // SAFETY: a vector may be read from `b`, says the caller.
    unsafe {
        asm!(
            "vsubps {}, {}, ymmword ptr [{}]",
            lateout(ymm_reg) difference, in(ymm_reg) a, in(reg) b,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    difference
}

/// `a · b + c`, where `c` takes no register.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn fma_from_memory(mut a: __m256, b: __m256, c: *const f32) -> __m256 {
    // SAFETY: a vector may be read from `c`, says the caller.
    unsafe {
        asm!(
            "vfmadd213ps {}, {}, ymmword ptr [{}]",
            inlateout(ymm_reg) a, in(ymm_reg) b, in(reg) c,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    a
}
