//! Products of bytes of AVX-VNNI, in the 256-bit vectors of AVX2.

pub(super) mod grouped;

use std::arch::x86_64::*;

use super::avx2::{WordProducts, Words, words};
use crate::engine::{self, Engine, define_byte_engine};
use crate::lanes::Simd;
use crate::pack::Packing;
use crate::tile::{self, Tile};

/// Of four bytes in each word. `SIGNED_ROWS`: those of the row side have signs, otherwise those of the column side.
struct Bytes<const SIGNED_ROWS: bool>;

impl<const SIGNED_ROWS: bool> WordProducts for Bytes<SIGNED_ROWS> {
    const ROW_BYTES: usize = 1;
    const FETCHES_TAKE_TIME: bool = false;

    #[inline(always)]
    unsafe fn fma(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        // The first factor has no signs, the second has.
        let (unsigned, signed) = if SIGNED_ROWS { (b, a) } else { (a, b) };
        // SAFETY: the caller's.
        unsafe { _mm256_dpbusd_avx_epi32(c, unsigned, signed) }
    }
}

/// The engines of bytes, for rows with and without signs, with the tiles that 16 registers are enough for.
macro_rules! bytes {
    ($name:ident, $module:ident, $simd:ty) => {
        define_byte_engine!(
            $name, $module, $simd, 4, words::pack_words::<4>, None,
            target_feature(enable = "avx2,avxvnni,fma,bmi1,bmi2"),
            spread [1: 8 2: 4]
            1 [1 2 3 4 5 6 7 8 9 10 11 12]
            2 [1 2 3 4 5 6]
            3 [1 2 3 4]
            4 [1 2]
        );
    };
}

bytes!(I8U8, i8u8_tiles, Words<Bytes<true>>);
bytes!(U8I8, u8i8_tiles, Words<Bytes<false>>);
