//! 512-bit vectors. Every tile keeps at most 28 accumulators, one register for each vector of the
//! column side and one for the row side's element: 31 of the 32 registers.

pub(super) mod grouped;
mod words;

pub(super) use words::pack_words;

use std::arch::asm;
use std::arch::x86_64::*;

use crate::coded::{self, Decode};
use crate::codes::Codes;
use crate::engine::{
    self, Engine, define_across_tiles, define_byte_engine, define_coded_tiles, define_engine,
};
use crate::grouped_tile::floats::define_float_tiles;
use crate::lanes::{Number, Simd, Vector};
use crate::pack::{self, AHEAD, Block, Packing};
use crate::tile::{self, Square, Tile};

/// 16 lanes of `f32`.
pub(super) struct V32;

impl Simd for V32 {
    type T = f32;
    type V = __m512;
    const LANES: usize = 16;
    const REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m512 {
        // SAFETY: as `zero`, and `from` may be read.
        unsafe { _mm512_set1_ps(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        // SAFETY: as `zero`, and all lanes may be written.
        unsafe { _mm512_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn fetch(from: *const f32) {
        // SAFETY: as `zero`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
    }
    #[inline(always)]
    unsafe fn fetch_first(from: *const f32) {
        // SAFETY: as `zero`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, lanes: usize) -> __m512 {
        // SAFETY: as `zero`; lanes whose bit is not set are not read.
        unsafe { _mm512_maskz_loadu_ps(first(lanes), from) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut f32, v: __m512, lanes: usize) {
        // SAFETY: as `zero`; lanes whose bit is not set are not written.
        unsafe { _mm512_mask_storeu_ps(to, first(lanes), v) }
    }
    #[inline(always)]
    unsafe fn load_every_second(from: *const f32) -> __m512 {
        // SAFETY: as `zero`; the two overlap in the middle, and the second ends with the last lane.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(15)));
            let lanes =
                _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
            _mm512_permutex2var_ps(low, lanes, high)
        }
    }
    #[inline(always)]
    unsafe fn compress(v: __m512, valid: u16) -> __m512 {
        // SAFETY: as `zero`.
        unsafe { _mm512_maskz_compress_ps(valid, v) }
    }
    #[inline(always)]
    unsafe fn expand(v: __m512, valid: u16) -> __m512 {
        // SAFETY: as `zero`.
        unsafe { _mm512_maskz_expand_ps(valid, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: as `zero`.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn in_turn(vectors: &mut [__m512]) {
        for k in (0..vectors.len()).step_by(2) {
            // SAFETY: as `zero`.
            vectors[k] = unsafe { in_turn(vectors[k], vectors[beside(k, vectors.len())]) };
        }
    }
}

impl Codes for V32 {
    #[inline(always)]
    unsafe fn i8(from: *const u8) -> __m512 {
        // SAFETY: the caller's machine has the instructions, and all lanes may be read.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
    }
    #[inline(always)]
    unsafe fn u8(from: *const u8) -> __m512 {
        // SAFETY: as `i8`.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()))) }
    }
    #[inline(always)]
    unsafe fn f16(from: *const u8) -> __m512 {
        // SAFETY: as `i8`.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn fetch_codes(from: *const u8) {
        // SAFETY: as `i8`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }
    #[inline(always)]
    unsafe fn bf16(from: *const u8) -> __m512 {
        // SAFETY: as `i8`.
        unsafe {
            let halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves))
        }
    }
    #[inline(always)]
    unsafe fn i4(from: *const u8) -> [__m512; 2] {
        // SAFETY: as `i8`.
        unsafe {
            let bytes = _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()));
            let low = _mm512_srai_epi32::<28>(_mm512_slli_epi32::<28>(bytes));
            let high = _mm512_srai_epi32::<4>(bytes);
            [_mm512_cvtepi32_ps(low), _mm512_cvtepi32_ps(high)]
        }
    }
    #[inline(always)]
    unsafe fn u4(from: *const u8) -> [__m512; 2] {
        // SAFETY: as `i8`.
        unsafe {
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
            let low = _mm512_and_si512(bytes, _mm512_set1_epi32(15));
            let high = _mm512_srli_epi32::<4>(bytes);
            [_mm512_cvtepi32_ps(low), _mm512_cvtepi32_ps(high)]
        }
    }
    #[inline(always)]
    unsafe fn table(from: *const u8, table: &[f32; 16]) -> [__m512; 2] {
        // SAFETY: as `i8`; the table is a vector. Permutations look at four bits.
        unsafe {
            let numbers = V32::load(table.as_ptr());
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
            let number = |codes| _mm512_permutexvar_ps(codes, numbers);
            [number(bytes), number(_mm512_srli_epi32::<4>(bytes))]
        }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: as `i8`.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: as `i8`.
        unsafe { _mm512_mul_ps(a, b) }
    }
}

/// 8 lanes of `f64`.
pub(super) struct V64;

impl Simd for V64 {
    type T = f64;
    type V = __m512d;
    const LANES: usize = 8;
    const REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn zero() -> __m512d {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm512_setzero_pd() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f64) -> __m512d {
        // SAFETY: as `zero`, and `from` may be read.
        unsafe { _mm512_set1_pd(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m512d {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm512_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, v: __m512d) {
        // SAFETY: as `zero`, and all lanes may be written.
        unsafe { _mm512_storeu_pd(to, v) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f64, lanes: usize) -> __m512d {
        // SAFETY: as `zero`; lanes whose bit is not set are not read.
        unsafe { _mm512_maskz_loadu_pd(first(lanes) as __mmask8, from) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut f64, v: __m512d, lanes: usize) {
        // SAFETY: as `zero`; lanes whose bit is not set are not written.
        unsafe { _mm512_mask_storeu_pd(to, first(lanes) as __mmask8, v) }
    }
    #[inline(always)]
    unsafe fn compress(v: __m512d, valid: u16) -> __m512d {
        // SAFETY: as `zero`.
        unsafe { _mm512_maskz_compress_pd(valid as __mmask8, v) }
    }
    #[inline(always)]
    unsafe fn expand(v: __m512d, valid: u16) -> __m512d {
        // SAFETY: as `zero`.
        unsafe { _mm512_maskz_expand_pd(valid as __mmask8, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: as `zero`.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn in_turn(vectors: &mut [__m512d]) {
        for k in (0..vectors.len()).step_by(2) {
            let pair = [vectors[k], vectors[beside(k, vectors.len())]];
            // SAFETY: as `zero`.
            unsafe {
                let v = in_turn(_mm512_castpd_ps(pair[0]), _mm512_castpd_ps(pair[1]));
                vectors[k] = _mm512_castps_pd(v);
            }
        }
    }
}

/// 16 words of four bytes each. `SIGNED_ROWS`: those of the row side have signs, otherwise those of the
/// column side.
pub(super) struct Bytes<const SIGNED_ROWS: bool>;

impl<const SIGNED_ROWS: bool> Simd for Bytes<SIGNED_ROWS> {
    type T = i32;
    type V = __m512i;
    const LANES: usize = 16;
    const ROW_BYTES: usize = 1;
    const REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const i32) -> __m512i {
        // SAFETY: as `zero`, and `from` may be read.
        unsafe { _mm512_set1_epi32(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m512i {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm512_loadu_epi32(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut i32, v: __m512i) {
        // SAFETY: as `zero`, and all lanes may be written.
        unsafe { _mm512_storeu_epi32(to, v) }
    }
    #[inline(always)]
    unsafe fn fetch(from: *const i32) {
        // SAFETY: as `zero`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const i32, lanes: usize) -> __m512i {
        // SAFETY: as `zero`; lanes whose bit is not set are not read.
        unsafe { _mm512_maskz_loadu_epi32(first(lanes), from) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut i32, v: __m512i, lanes: usize) {
        // SAFETY: as `zero`; lanes whose bit is not set are not written.
        unsafe { _mm512_mask_storeu_epi32(to, first(lanes), v) }
    }
    #[inline(always)]
    unsafe fn compress(v: __m512i, valid: u16) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_maskz_compress_epi32(valid, v) }
    }
    #[inline(always)]
    unsafe fn expand(v: __m512i, valid: u16) -> __m512i {
        // SAFETY: as `zero`.
        unsafe { _mm512_maskz_expand_epi32(valid, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        // The first factor has no signs, the second has.
        let (unsigned, signed) = if SIGNED_ROWS { (b, a) } else { (a, b) };
        // SAFETY: as `zero`; engines of bytes are for machines with `isa::has_byte_products`.
        unsafe { _mm512_dpbusd_epi32(c, unsigned, signed) }
    }
    #[inline(always)]
    unsafe fn in_turn(vectors: &mut [__m512i]) {
        for k in (0..vectors.len()).step_by(2) {
            let pair = [vectors[k], vectors[beside(k, vectors.len())]];
            // SAFETY: as `zero`.
            unsafe {
                let v = in_turn(_mm512_castsi512_ps(pair[0]), _mm512_castsi512_ps(pair[1]));
                vectors[k] = _mm512_castps_si512(v);
            }
        }
    }
}

/// `v`, once `other` is there, too. The compiler takes it that this writes memory and changes `v`: left to itself it has the
/// elements of all rows of a tile loaded first, for which there are too few registers. Two vectors at once, as the compiler
/// leaves loops over the rows of a tile as they are if their bodies are longer.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn in_turn(mut v: __m512, other: __m512) -> __m512 {
    // SAFETY: there is no instruction, but for a comment.
    unsafe {
        asm!("/* {0} {1} */", inout(zmm_reg) v, in(zmm_reg) other, options(nomem, nostack, preserves_flags));
    }
    v
}

/// The number of a vector beside number `k` of `count`.
#[inline(always)]
fn beside(k: usize, count: usize) -> usize {
    match k + 1 < count {
        true => k + 1,
        false => k.saturating_sub(1),
    }
}

/// A mask of the first `lanes` lanes, at most 16.
#[inline(always)]
pub(super) fn first(lanes: usize) -> __mmask16 {
    ((1u32 << lanes) - 1) as __mmask16
}

/// Without closures, which would be functions that have no vectors.
impl Square<16> for V32 {
    #[inline(always)]
    unsafe fn transpose(lines: [__m512; 16]) -> [__m512; 16] {
        // Four by four within each 128-bit quarter, then the quarters themselves.
        let mut quarters = lines;
        for i in 0..4 {
            let (a, b) = (lines[4 * i], lines[4 * i + 1]);
            let (c, d) = (lines[4 * i + 2], lines[4 * i + 3]);
            // SAFETY: the caller's machine has the instructions.
            unsafe {
                let (ab_low, ab_high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                quarters[4 * i] = _mm512_shuffle_ps::<0x44>(ab_low, cd_low);
                quarters[4 * i + 1] = _mm512_shuffle_ps::<0xee>(ab_low, cd_low);
                quarters[4 * i + 2] = _mm512_shuffle_ps::<0x44>(ab_high, cd_high);
                quarters[4 * i + 3] = _mm512_shuffle_ps::<0xee>(ab_high, cd_high);
            }
        }
        let mut across = lines;
        for j in 0..4 {
            let (a, b) = (quarters[j], quarters[4 + j]);
            let (c, d) = (quarters[8 + j], quarters[12 + j]);
            // SAFETY: the caller's machine has the instructions.
            unsafe {
                let (ab_low, ab_high) = (
                    _mm512_shuffle_f32x4::<0x88>(a, b),
                    _mm512_shuffle_f32x4::<0xdd>(a, b),
                );
                let (cd_low, cd_high) = (
                    _mm512_shuffle_f32x4::<0x88>(c, d),
                    _mm512_shuffle_f32x4::<0xdd>(c, d),
                );
                across[j] = _mm512_shuffle_f32x4::<0x88>(ab_low, cd_low);
                across[8 + j] = _mm512_shuffle_f32x4::<0xdd>(ab_low, cd_low);
                across[4 + j] = _mm512_shuffle_f32x4::<0x88>(ab_high, cd_high);
                across[12 + j] = _mm512_shuffle_f32x4::<0xdd>(ab_high, cd_high);
            }
        }
        across
    }
}

/// [`pack::across`], 16 by 16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
unsafe fn across(block: &Block<f32>) {
    // SAFETY: the caller's.
    unsafe { lay_across::<f32>(block, block.from, block.k) }
}

/// The first `count` lines of a block of 32-bit elements that follow each other in the operand.
///
/// # Safety
/// as [`pack::across`]: the first `width` lanes of each of the lines may be written, and `count` elements may
/// be read from each point on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
unsafe fn lay_across<T: Number>(block: &Block<T>, from: *const T::Item, count: usize) {
    let to: *mut f32 = block.to.cast();
    let line_from = |point: u32, k: usize| {
        let from = from.wrapping_add(point as usize).cast::<f32>();
        from.wrapping_add(k)
    };
    // SAFETY: the caller's.
    unsafe {
        for start in (0..block.points.len()).step_by(16) {
            let points = &block.points[start..block.points.len().min(start + 16)];
            for k in (0..count).step_by(16) {
                let depth = (count - k).min(16);
                let lanes = (block.width - start).min(16);
                let to = to.add(k * block.width + start);
                if depth == 16 && points.len() == lanes {
                    // Lines that are not there are the first once more, and are not stored.
                    let mut from = [line_from(points[0], k); 16];
                    for (line, &point) in points.iter().enumerate() {
                        from[line] = line_from(point, k);
                    }
                    lay_tile(&from, to, block.width, lanes);
                    continue;
                }
                let mut lines = [V32::zero(); 16];
                for (line, &point) in points.iter().enumerate() {
                    let from = line_from(point, k);
                    V32::fetch_first(from.wrapping_add(AHEAD));
                    lines[line] = V32::load_first(from, depth);
                }
                for (line, &v) in V32::transpose(lines).iter().enumerate().take(depth) {
                    V32::store_first(to.add(line * block.width), v, lanes);
                }
            }
        }
    }
}

/// Lays a tile across: 16 elements from each of 16 places on, to lines of `lanes` elements that are `width` apart. A
/// function of its own, so that all lines stay in registers.
///
/// # Safety
/// They may be read, and written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
#[inline(never)]
unsafe fn lay_tile(from: &[*const f32; 16], to: *mut f32, width: usize, lanes: usize) {
    // SAFETY: the caller's.
    unsafe {
        let mut lines = [V32::zero(); 16];
        for (line, &from) in from.iter().enumerate() {
            // Too many lines for the machine to look ahead by itself.
            V32::fetch_first(from.wrapping_add(AHEAD));
            lines[line] = V32::load(from);
        }
        for (line, &v) in V32::transpose(lines).iter().enumerate() {
            V32::store_first(to.add(line * width), v, lanes);
        }
    }
}

/// [`coded::decode`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
unsafe fn decode(lines: &Decode<f32>) {
    // SAFETY: the caller's.
    unsafe { coded::decode::<V32>(lines) }
}

define_engine!(
    F32, f32_tiles, V32, across, across_tiles::TILES, Some(coded_tiles::of), Some(decode), Some(super::avx2::narrow::widen),
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2"),
    spread [1: 8 2: 8 3: 6 4: 6 5: 4 6: 4]
    1 [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
    2 [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
    3 [1 2 3 4 5 6 7 8 9]
    4 [1 2 3 4 5 6]
    5 [1 2 3 4 5]
    6 [1 2 3 4]
    7 [1 2 3]
    8 [1 2]
);

define_across_tiles!(
    across_tiles, V32, 16,
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2"),
    1 [1 2 3 4]
    2 [1 2 3 4]
    3 [1]
    4 [1]
    5 [1]
    6 [1]
    7 [1]
    8 [1]
    9 [1]
    10 [1]
    11 [1]
    12 [1]
);

define_coded_tiles!(
    coded_tiles, V32,
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2"),
    1: 8 2: 8
);

define_engine!(
    F64, f64_tiles, V64, pack::across, &[], None, None, None,
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2"),
    spread [1: 8 2: 8 3: 6 4: 4]
    1 [1 2 3 4 5 6 7 8 9 10 11 12]
    2 [1 2 3 4 5 6 7 8]
    3 [1 2 3 4 5]
    4 [1 2 3 4]
);

/// The engines of bytes, for rows with and without signs.
macro_rules! bytes {
    ($name:ident, $module:ident, $simd:ty) => {
        define_byte_engine!(
            $name, $module, $simd, 4, pack_words, None,
            target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,bmi1,bmi2"),
            spread [1: 8 2: 8 3: 6 4: 6]
            1 [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
            2 [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
            3 [1 2 3 4]
            4 [1 2 3 4]
        );
    };
}

bytes!(I8U8, i8u8_tiles, Bytes<true>);
bytes!(U8I8, u8i8_tiles, Bytes<false>);

define_float_tiles!(
    FLOATS, float_tiles, "avx512", V32,
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,bmi1,bmi2"),
    1, wide 4 [4 4], made 1 [1 2 3 4 5 6 7 8] 2 [1 2 3 4 5 6 7 8]
);
