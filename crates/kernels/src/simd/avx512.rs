//! 512-bit vectors. Every tile keeps at most 28 accumulators, one register for each vector of the
//! column side and one for the row side's element: 31 of the 32 registers.

use std::arch::x86_64::*;

use super::Simd;
use crate::pack::{self, Block};
use crate::tile::{self, Engine, Tile, engine};

/// 16 lanes of `f32`.
pub(super) struct V32;

impl Simd for V32 {
    type T = f32;
    type V = __m512;
    const LANES: usize = 16;

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
}

/// 8 lanes of `f64`.
pub(super) struct V64;

impl Simd for V64 {
    type T = f64;
    type V = __m512d;
    const LANES: usize = 8;

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
    unsafe fn fetch(from: *const f64) {
        // SAFETY: as `zero`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
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
}

/// A mask of the first `lanes` lanes, at most 16.
#[inline(always)]
fn first(lanes: usize) -> __mmask16 {
    ((1u32 << lanes) - 1) as __mmask16
}

/// Lays 16 lines of 16 elements across: lane `i` of the result `j` is lane `j` of line `i`.
#[inline(always)]
unsafe fn transpose(lines: [__m512; 16]) -> [__m512; 16] {
    // Four by four within each 128-bit quarter, then the quarters themselves.
    let mut quarters = lines;
    for i in 0..4 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|line| lines[4 * i + line]);
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
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| quarters[4 * i + j]);
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

/// How many elements ahead of those being packed are fetched.
const AHEAD: usize = 64;

/// [`pack::across`], 16 by 16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
unsafe fn across(block: &Block<f32>) {
    // SAFETY: the caller keeps the contract of `pack::across`: the first `width` lanes of each of
    // the `k` lines may be written, and `k` elements may be read from each point on.
    unsafe {
        for start in (0..block.points.len()).step_by(16) {
            let points = &block.points[start..block.points.len().min(start + 16)];
            for k in (0..block.k).step_by(16) {
                let depth = (block.k - k).min(16);
                let lines = if depth == 16 && points.len() == 16 {
                    // The usual case without branches, so that all lines stay in registers.
                    let points = &*points.as_ptr().cast::<[u32; 16]>();
                    std::array::from_fn(|line| {
                        let from = block.from.add(points[line] as usize + k);
                        // Too many lines for the machine to look ahead by itself.
                        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
                        V32::load(from)
                    })
                } else {
                    std::array::from_fn(|line| match points.get(line) {
                        Some(&point) => {
                            let from = block.from.add(point as usize + k);
                            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
                            V32::load_first(from, depth)
                        }
                        None => V32::zero(),
                    })
                };
                let lines = transpose(lines);
                let lanes = (block.width - start).min(16);
                let to = block.to.add(k * block.width + start);
                if depth == 16 && lanes == 16 {
                    for (line, &v) in lines.iter().enumerate() {
                        V32::store(to.add(line * block.width), v);
                    }
                } else {
                    for (line, &v) in lines.iter().enumerate() {
                        if line < depth {
                            V32::store_first(to.add(line * block.width), v, lanes);
                        }
                    }
                }
            }
        }
    }
}

engine!(
    F32, f32_tiles, V32, across,
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2"),
    1 [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
    2 [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
    3 [1 2 3 4 5 6 7 8 9]
    4 [1 2 3 4 5 6]
    5 [1 2 3 4 5]
    6 [1 2 3 4]
    7 [1 2 3]
    8 [1 2]
);

engine!(
    F64, f64_tiles, V64, pack::across,
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2"),
    1 [1 2 3 4 5 6 7 8 9 10 11 12]
    2 [1 2 3 4 5 6 7 8]
    3 [1 2 3 4 5]
    4 [1 2 3 4]
    5 [1 2 3]
    6 [1 2]
    7 [1 2]
    8 [1]
);
