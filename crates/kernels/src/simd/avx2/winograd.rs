//! Vectors of Winograd's transforms.

use super::{Halves, Words};
use crate::winograd_tile::{self, ImageTile, ResultTile, Transforms, Vectors};
use std::arch::x86_64::*;

pub(in crate::simd) static TRANSFORMS: Transforms = Transforms {
    name: "avx2",
    image,
    results,
};

/// # Safety
/// as [`winograd_tile::image`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn image(tile: &ImageTile) {
    // SAFETY: the caller's.
    unsafe { winograd_tile::image::<Words<Halves>>(tile) }
}

/// # Safety
/// as [`winograd_tile::results`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn results(tile: &ResultTile) {
    // SAFETY: the caller's.
    unsafe { winograd_tile::results::<Words<Halves>>(tile) }
}

impl Vectors for Words<Halves> {
    type Halves = __m256i;

    #[inline(always)]
    unsafe fn widen<const SIGNED: bool>(from: *const u8) -> __m256i {
        // SAFETY: the caller's machine has the instructions, and 16 bytes may be read.
        unsafe {
            let bytes = _mm_loadu_si128(from.cast());
            match SIGNED {
                true => _mm256_cvtepi8_epi16(bytes),
                false => _mm256_cvtepu8_epi16(bytes),
            }
        }
    }
    #[inline(always)]
    unsafe fn store_halves(to: *mut i16, v: __m256i) {
        // SAFETY: as `widen`, and all lanes may be written.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
    #[inline(always)]
    unsafe fn add_halves(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `widen`.
        unsafe { _mm256_add_epi16(a, b) }
    }
    #[inline(always)]
    unsafe fn sub_halves(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `widen`.
        unsafe { _mm256_sub_epi16(a, b) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `widen`.
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as `widen`.
        unsafe { _mm256_sub_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn quarter(v: __m256i) -> __m256i {
        // SAFETY: as `widen`.
        unsafe { _mm256_srai_epi32::<2>(v) }
    }
}
