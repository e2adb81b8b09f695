//! 256-bit vectors. Every tile keeps at most 12 accumulators, one register for each vector of the
//! column side and one for the row side's element: at most 16 registers.

mod codes;
pub(super) mod grouped;
pub(super) mod narrow;
pub(super) mod winograd;
pub(super) mod words;

use std::arch::x86_64::*;
use std::marker::PhantomData;

use crate::coded::{self, Decode};
use crate::engine::{
    self, Engine, define_across_tiles, define_byte_engine, define_coded_tiles, define_engine,
};
use crate::grouped_tile::floats::define_float_tiles;
use crate::lanes::{Simd, Vector};
use crate::pack::{self, AHEAD, Block, Packing};
use crate::tile::{self, Square, Tile};

/// 8 lanes of `f32`.
pub(super) struct V32;

impl Simd for V32 {
    type T = f32;
    type V = __m256;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m256 {
        // SAFETY: as `zero`, and `from` may be read.
        unsafe { _mm256_set1_ps(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256) {
        // SAFETY: as `zero`, and all lanes may be written.
        unsafe { _mm256_storeu_ps(to, v) }
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
    unsafe fn load_first(from: *const f32, lanes: usize) -> __m256 {
        // SAFETY: as `zero`; lanes whose mask is not set are not read.
        unsafe { _mm256_maskload_ps(from, first(lanes)) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut f32, v: __m256, lanes: usize) {
        // SAFETY: as `zero`; the caller's lanes may be written.
        unsafe { store_words(to, v, lanes) }
    }
    #[inline(always)]
    unsafe fn load_every_second(from: *const f32) -> __m256 {
        // SAFETY: as `zero`; the two overlap in the middle, and the second ends with the last lane.
        unsafe {
            let (low, high) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(7)));
            // By halves of a register: even words of the first, odd ones of the second.
            let mixed = _mm256_castps_pd(_mm256_shuffle_ps::<0xd8>(low, high));
            _mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(mixed))
        }
    }
    #[inline(always)]
    unsafe fn compress(v: __m256, valid: u16) -> __m256 {
        // SAFETY: as `zero`.
        unsafe { _mm256_permutevar8x32_ps(v, moves(&COMPRESS, valid)) }
    }
    #[inline(always)]
    unsafe fn expand(v: __m256, valid: u16) -> __m256 {
        // SAFETY: as `zero`.
        unsafe { _mm256_permutevar8x32_ps(v, moves(&EXPAND, valid)) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: as `zero`.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
}

/// 4 lanes of `f64`.
pub(super) struct V64;

impl Simd for V64 {
    type T = f64;
    type V = __m256d;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> __m256d {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm256_setzero_pd() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f64) -> __m256d {
        // SAFETY: as `zero`, and `from` may be read.
        unsafe { _mm256_set1_pd(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m256d {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm256_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, v: __m256d) {
        // SAFETY: as `zero`, and all lanes may be written.
        unsafe { _mm256_storeu_pd(to, v) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f64, lanes: usize) -> __m256d {
        // SAFETY: as `zero`; lanes whose mask is not set are not read.
        unsafe { _mm256_maskload_pd(from, first(2 * lanes)) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut f64, v: __m256d, lanes: usize) {
        // SAFETY: as `zero`; the caller's lanes may be written.
        unsafe { store_words(to.cast(), _mm256_castpd_ps(v), 2 * lanes) }
    }
    #[inline(always)]
    unsafe fn compress(v: __m256d, valid: u16) -> __m256d {
        // SAFETY: as `zero`; each lane moves as two of 32 bits.
        unsafe {
            let halves = _mm256_castpd_ps(v);
            _mm256_castps_pd(_mm256_permutevar8x32_ps(
                halves,
                moves(&COMPRESS, doubled(valid)),
            ))
        }
    }
    #[inline(always)]
    unsafe fn expand(v: __m256d, valid: u16) -> __m256d {
        // SAFETY: as `compress`.
        unsafe {
            let halves = _mm256_castpd_ps(v);
            _mm256_castps_pd(_mm256_permutevar8x32_ps(
                halves,
                moves(&EXPAND, doubled(valid)),
            ))
        }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: as `zero`.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }
}

/// How words are multiplied.
pub(super) trait WordProducts {
    /// [`Simd::ROW_BYTES`].
    const ROW_BYTES: usize;
    /// [`Simd::FETCHES_TAKE_TIME`].
    const FETCHES_TAKE_TIME: bool;

    /// [`Simd::fma`].
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn fma(a: __m256i, b: __m256i, c: __m256i) -> __m256i;
}

/// Of two numbers of 16 bits in each word.
pub(super) struct Halves;

impl WordProducts for Halves {
    const ROW_BYTES: usize = 2;
    const FETCHES_TAKE_TIME: bool = true;

    #[inline(always)]
    unsafe fn fma(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: the caller's.
        unsafe { _mm256_add_epi32(c, _mm256_madd_epi16(a, b)) }
    }
}

/// 8 words.
pub(super) struct Words<P>(PhantomData<P>);

impl<P: WordProducts> Simd for Words<P> {
    type T = i32;
    type V = __m256i;
    const LANES: usize = 8;
    const ROW_BYTES: usize = P::ROW_BYTES;
    const FETCHES_TAKE_TIME: bool = P::FETCHES_TAKE_TIME;

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: the caller's machine has the instruction.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const i32) -> __m256i {
        // SAFETY: as `zero`, and `from` may be read.
        unsafe { _mm256_set1_epi32(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m256i {
        // SAFETY: as `zero`, and all lanes may be read.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut i32, v: __m256i) {
        // SAFETY: as `zero`, and all lanes may be written.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
    #[inline(always)]
    unsafe fn fetch(from: *const i32) {
        // SAFETY: as `zero`; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const i32, lanes: usize) -> __m256i {
        // SAFETY: as `zero`; lanes whose mask is not set are not read.
        unsafe { _mm256_maskload_epi32(from, first(lanes)) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut i32, v: __m256i, lanes: usize) {
        // SAFETY: as `zero`; the caller's lanes may be written.
        unsafe { store_words(to.cast(), _mm256_castsi256_ps(v), lanes) }
    }
    #[inline(always)]
    unsafe fn compress(v: __m256i, valid: u16) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { _mm256_permutevar8x32_epi32(v, moves(&COMPRESS, valid)) }
    }
    #[inline(always)]
    unsafe fn expand(v: __m256i, valid: u16) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { _mm256_permutevar8x32_epi32(v, moves(&EXPAND, valid)) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: as `zero`.
        unsafe { P::fma(a, b, c) }
    }
}

/// Stores the first `count` of eight words of 32 bits: mostly without a mask, which takes AMD's processors a dozen
/// cycles and more.
#[inline(always)]
unsafe fn store_words(to: *mut f32, v: __m256, count: usize) {
    // SAFETY: the caller's machine has the instructions, and may write `count` words; those whose mask is not set
    // are not written.
    unsafe {
        match count {
            8 => _mm256_storeu_ps(to, v),
            4 => _mm_storeu_ps(to, _mm256_castps256_ps128(v)),
            _ => _mm256_maskstore_ps(to, first(count), v),
        }
    }
}

/// A mask of the first `lanes` of eight lanes.
#[inline(always)]
unsafe fn first(lanes: usize) -> __m256i {
    static MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the caller's machine has the instruction, and `lanes` is at most 8.
    unsafe { _mm256_loadu_si256(MASKS.as_ptr().add(8 - lanes).cast()) }
}

/// Every bit of four twice.
#[inline(always)]
fn doubled(valid: u16) -> u16 {
    let spread = (valid & 1) | (valid & 2) << 1 | (valid & 4) << 2 | (valid & 8) << 3;
    spread * 3
}

/// For every set of valid lanes, which lane each lane takes.
type Moves = [[u8; 8]; 256];

static COMPRESS: Moves = {
    let mut table = [[0; 8]; 256];
    let mut valid = 0;
    while valid < 256 {
        let (mut lane, mut front) = (0, 0);
        while lane < 8 {
            if valid >> lane & 1 == 1 {
                table[valid][front] = lane as u8;
                front += 1;
            }
            lane += 1;
        }
        valid += 1;
    }
    table
};

static EXPAND: Moves = {
    let mut table = [[0; 8]; 256];
    let mut valid = 0;
    while valid < 256 {
        let (mut lane, mut front) = (0, 0);
        while lane < 8 {
            if valid >> lane & 1 == 1 {
                table[valid][lane] = front;
                front += 1;
            }
            lane += 1;
        }
        valid += 1;
    }
    table
};

/// The row of a table, one lane of 32 bits for each entry.
#[inline(always)]
unsafe fn moves(table: &Moves, valid: u16) -> __m256i {
    let row = &table[(valid & 255) as usize];
    // SAFETY: the caller's machine has the instruction; a row is 8 bytes.
    unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(row.as_ptr().cast())) }
}

impl Square<8> for V32 {
    #[inline(always)]
    unsafe fn transpose(lines: [__m256; 8]) -> [__m256; 8] {
        let mut halves = lines;
        for i in 0..2 {
            let (a, b) = (lines[4 * i], lines[4 * i + 1]);
            let (c, d) = (lines[4 * i + 2], lines[4 * i + 3]);
            // SAFETY: the caller's machine has the instructions.
            unsafe {
                let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                halves[4 * i] = _mm256_shuffle_ps::<0x44>(ab_low, cd_low);
                halves[4 * i + 1] = _mm256_shuffle_ps::<0xee>(ab_low, cd_low);
                halves[4 * i + 2] = _mm256_shuffle_ps::<0x44>(ab_high, cd_high);
                halves[4 * i + 3] = _mm256_shuffle_ps::<0xee>(ab_high, cd_high);
            }
        }
        let mut across = lines;
        for j in 0..4 {
            // SAFETY: the caller's machine has the instructions.
            unsafe {
                across[j] = _mm256_permute2f128_ps::<0x20>(halves[j], halves[4 + j]);
                across[4 + j] = _mm256_permute2f128_ps::<0x31>(halves[j], halves[4 + j]);
            }
        }
        across
    }
}

/// [`pack::across`], 8 by 8.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn across(block: &Block<f32>) {
    // SAFETY: the caller keeps the contract of `pack::across`: the first `width` lanes of each of
    // the `k` lines may be written, and `k` elements may be read from each point on.
    unsafe {
        for start in (0..block.points.len()).step_by(8) {
            let points = &block.points[start..block.points.len().min(start + 8)];
            for k in (0..block.k).step_by(8) {
                let depth = (block.k - k).min(8);
                let mut lines = [V32::zero(); 8];
                if depth == 8 && points.len() == 8 {
                    // The usual case without branches, so that all lines stay in registers.
                    let points = &*points.as_ptr().cast::<[u32; 8]>();
                    for (line, v) in lines.iter_mut().enumerate() {
                        let from = block.from.wrapping_add(points[line] as usize + k);
                        // Too many lines for the machine to look ahead by itself.
                        V32::fetch_first(from.wrapping_add(AHEAD));
                        *v = V32::load(from);
                    }
                } else {
                    for (line, &point) in points.iter().enumerate() {
                        let from = block.from.wrapping_add(point as usize + k);
                        V32::fetch_first(from.wrapping_add(AHEAD));
                        lines[line] = V32::load_first(from, depth);
                    }
                }
                let lines = V32::transpose(lines);
                let lanes = (block.width - start).min(8);
                let to = block.to.add(k * block.width + start);
                if depth == 8 && lanes == 8 {
                    for (line, &v) in lines.iter().enumerate() {
                        V32::store(to.add(line * block.width), v);
                    }
                } else if block.width <= 8 {
                    for (line, &v) in lines.iter().enumerate().take(depth) {
                        let room = (block.k - k - line) * block.width;
                        pack::store_line::<V32>(to.add(line * block.width), v, lanes, room);
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

/// [`coded::decode`].
#[target_feature(enable = "avx2,f16c,fma,bmi1,bmi2")]
unsafe fn decode(lines: &Decode<f32>) {
    // SAFETY: the caller's.
    unsafe { coded::decode::<V32>(lines) }
}

/// The engine of one element type, with the tiles that 16 registers are enough for.
macro_rules! engine_of {
    ($name:ident, $module:ident, $simd:ty, $across:path, $across_tiles:expr, $coded:expr, $decode:expr, $widen:expr) => {
        define_engine!(
            $name, $module, $simd, $across, $across_tiles, $coded, $decode, $widen,
            target_feature(enable = "avx2,fma,bmi1,bmi2"),
            spread [1: 8 2: 4]
            1 [1 2 3 4 5 6 7 8 9 10 11 12]
            2 [1 2 3 4 5 6]
            3 [1 2 3 4]
            4 [1 2]
            5 [1 2]
            6 [1]
            7 [1]
            8 [1]
        );
    };
}

engine_of!(
    F32,
    f32_tiles,
    V32,
    across,
    across_tiles::TILES,
    Some(coded_tiles::of),
    Some(decode),
    Some(narrow::widen)
);
engine_of!(F64, f64_tiles, V64, pack::across, &[], None, None, None);

define_across_tiles!(
    across_tiles, V32, 8,
    target_feature(enable = "avx2,fma,bmi1,bmi2"),
    1 [1 2 3 4]
    2 [1 2 3 4]
    3 [1 2]
    4 [1 2]
    5 [1]
    6 [1]
    7 [1]
);

define_coded_tiles!(
    coded_tiles, V32,
    target_feature(enable = "avx2,f16c,fma,bmi1,bmi2"),
    1: 4 2: 4
);

define_byte_engine!(
    BYTES, byte_tiles, Words<Halves>, 2, words::pack_words::<2>, Some(words::widen_bytes),
    target_feature(enable = "avx2,fma,bmi1,bmi2"),
    spread [1: 8 2: 4]
    1 [1 2 3 4 5 6 7 8 9 10 11 12]
    2 [1 2 3 4 5 6]
    3 [1 2 3]
    4 [1 2]
);

define_float_tiles!(
    FLOATS, float_tiles, "avx2", V32,
    target_feature(enable = "avx2,f16c,fma,bmi1,bmi2"),
    2, wide 8 [8 4], made 2 [1 2 3 4 5 6]
);
