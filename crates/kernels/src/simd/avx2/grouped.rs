//! Tiles of rows of bytes by packed codes of 4 or 8 bits.
//!
//! Tiles keep 8 vectors of sums: two to a panel and row. Of codes of 4 bits these are of 16 bits, as long as no sum may be
//! larger, and those of 32 bits wait in memory meanwhile.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use std::arch::x86_64::*;

use super::V32;
use crate::grouped::{LINE_BYTES, MOST_ROWS, PANEL, Steps, Tile, TileFn, Tiles};
use crate::lanes::Simd;

/// Tiles of codes of 4 bits.
pub(in crate::simd) static HALVES: Tiles = tiles::<Halves>();

/// Tiles of codes of 8 bits.
pub(in crate::simd) static BYTES: Tiles = tiles::<Bytes>();

const fn tiles<C: LineCodes>() -> Tiles {
    let narrow: [TileFn; MOST_ROWS] = [
        tile::<C, 1, 2>,
        tile::<C, 2, 2>,
        tile::<C, 3, 2>,
        tile::<C, 4, 2>,
    ];
    Tiles {
        name: "avx2",
        wide: [
            (4, tile::<C, 1, 8>),
            (2, tile::<C, 2, 4>),
            (1, narrow[2]),
            (1, narrow[3]),
        ],
        narrow,
        group_sums,
    }
}

/// The vectors of a panel.
const VECTORS: usize = PANEL / V32::LANES;

/// How many lines ahead of those that a tile takes the lines of a panel are fetched: as far as memory is slow.
const AHEAD: usize = 16;

/// Up to this many elements of a row have a sum of 16 bits.
const SHORT: usize = i16::MAX as usize / 127;

/// How lines of codes are multiplied.
trait LineCodes {
    /// The sums of the products of some lines.
    ///
    /// # Safety
    /// The machine has AVX2, and all lines and as many elements of each row may be read.
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m256i; N]; H];
}

/// Lines of a group.
struct Lines<const H: usize> {
    /// The first line of the first panel, and how much further that of the next one is.
    codes: *const u8,
    panel_step: usize,
    /// The elements of each row.
    rows: [*const i8; H],
    count: usize,
    /// How many lines the first panel has left, and how much further the panels after the tile's are than those after it.
    left: usize,
    others: usize,
}

impl<const H: usize> Lines<H> {
    /// How far ahead of a line the panels are fetched: after their last lines come those of the panels that follow.
    #[inline(always)]
    fn ahead(&self, line: usize) -> usize {
        match line + AHEAD < self.left {
            true => AHEAD * LINE_BYTES,
            false => AHEAD * LINE_BYTES + self.others,
        }
    }

    /// The vectors of a line of a panel, of which what is so far `ahead` is fetched.
    ///
    /// # Safety
    /// as [`LineCodes::sums`].
    #[inline(always)]
    unsafe fn load(&self, line: usize, panel: usize, ahead: usize) -> [__m256i; VECTORS] {
        let place = panel * self.panel_step + line * LINE_BYTES;
        let from = self.codes.wrapping_add(place);
        // SAFETY: the caller's; fetching reads nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(ahead).cast());
            let from: *const __m256i = from.cast();
            [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))]
        }
    }

    /// Four elements of a row, in all lanes.
    ///
    /// # Safety
    /// as [`LineCodes::sums`].
    #[inline(always)]
    unsafe fn elements(&self, row: usize, k: usize) -> __m256i {
        let from: *const i32 = self.rows[row].wrapping_add(k).cast();
        // SAFETY: the caller's.
        unsafe { _mm256_set1_epi32(from.read_unaligned()) }
    }
}

/// Codes from 0 to 15, of 8 `k` a line.
struct Halves;

impl Halves {
    /// How many lines have sums of 16 bits: of 4 products of at most 15 · 127 each.
    const CHAIN: usize = i16::MAX as usize / (4 * 15 * 127);

    /// The sums of at most so many lines.
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
                let ahead = lines.ahead(line);
                for panel in 0..N / VECTORS {
                    let j = panel * VECTORS;
                    let codes = lines.load(line, panel, ahead);
                    for half in 0..2 {
                        let mut halves = codes;
                        for v in 0..VECTORS {
                            if half == 1 {
                                halves[v] = _mm256_srli_epi16::<4>(halves[v]);
                            }
                            halves[v] = _mm256_and_si256(halves[v], mask);
                        }
                        for i in 0..H {
                            let elements = lines.elements(i, 8 * line + 4 * half);
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
    /// A product of a code and an element is that of the code's size and the element with the code's sign. Two of them
    /// have a sum of 16 bits: 2 · 128 · 127.
    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m256i; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut sums = [[_mm256_setzero_si256(); N]; H];
            for line in 0..lines.count {
                let ahead = lines.ahead(line);
                for panel in 0..N / VECTORS {
                    let j = panel * VECTORS;
                    let codes = lines.load(line, panel, ahead);
                    let sizes = [_mm256_abs_epi8(codes[0]), _mm256_abs_epi8(codes[1])];
                    for i in 0..H {
                        let elements = lines.elements(i, 4 * line);
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

/// The tile of `H` rows and `N` vectors of columns.
///
/// # Safety
/// as [`TileFn`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn tile<C: LineCodes, const H: usize, const N: usize>(tile: &Tile) {
    let steps = tile.steps;
    // SAFETY: by the contract of `TileFn` all that is read and written here may be.
    unsafe {
        let mut totals = [[V32::zero(); N]; H];
        let mut rows = [tile.rows[0].elements; H];
        for i in 0..H {
            rows[i] = tile.rows[i].elements;
        }
        let (mut codes, mut number) = (tile.panel, 0);
        let end = tile.panel.wrapping_add(steps.panel_bytes);
        for _ in 0..steps.groups {
            let points = codes;
            codes = codes.wrapping_add(steps.points_bytes);
            for _ in 0..steps.row_groups {
                let lines = Lines {
                    codes,
                    panel_step: steps.panel_bytes,
                    rows,
                    count: steps.lines,
                    left: (end.addr() - codes.addr()) / LINE_BYTES,
                    others: (N / VECTORS - 1) * steps.panel_bytes,
                };
                let sums = C::sums::<H, N>(&lines);
                add_group(tile, points, number, sums, &mut totals);
                for i in 0..H {
                    rows[i] = rows[i].wrapping_add(steps.row_group);
                }
                codes = codes.wrapping_add(steps.lines * LINE_BYTES);
                number += 1;
            }
        }
        for i in 0..H {
            for j in 0..N {
                let lanes = tile.columns.saturating_sub(j * V32::LANES).min(V32::LANES);
                let to = tile.rows[i].out.wrapping_add(j * V32::LANES);
                match lanes == V32::LANES {
                    true => V32::store(to, totals[i][j]),
                    false => V32::store_first(to, totals[i][j], lanes),
                }
            }
        }
    }
}

/// The scales where there are none.
static ONES: [f32; PANEL] = [1.0; PANEL];

/// Adds the sums of group `number` of the rows to the totals, scaled; `points` are the zero points and scales of the first
/// panel.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
unsafe fn add_group<const H: usize, const N: usize>(
    tile: &Tile,
    points: *const u8,
    number: usize,
    mut sums: [[__m256i; N]; H],
    totals: &mut [[__m256; N]; H],
) {
    let steps = &tile.steps;
    let (scales, scales_step): (*const f32, usize) = match steps.has_scales {
        true => (
            points.wrapping_add(steps.zero_bytes).cast(),
            steps.panel_bytes,
        ),
        false => (ONES.as_ptr(), 0),
    };
    // SAFETY: the caller's.
    unsafe {
        let mut taken = [_mm256_setzero_si256(); H];
        for i in 0..H {
            taken[i] = _mm256_set1_epi32(*tile.rows[i].sums.add(number));
        }
        if !steps.has_zeros() {
            for i in 0..H {
                for j in 0..N {
                    sums[i][j] = _mm256_add_epi32(sums[i][j], taken[i]);
                }
            }
        } else if steps.row_group <= SHORT {
            for j in 0..N {
                // The high half of a lane is zero, whatever the sum of the row has there.
                let zeros = _mm256_cvtepu16_epi32(load_zeros(points, steps, j));
                for i in 0..H {
                    let taken = _mm256_madd_epi16(zeros, taken[i]);
                    sums[i][j] = _mm256_add_epi32(sums[i][j], taken);
                }
            }
        } else {
            for j in 0..N {
                let zeros = _mm256_cvtepi16_epi32(load_zeros(points, steps, j));
                for i in 0..H {
                    let taken = _mm256_mullo_epi32(zeros, taken[i]);
                    sums[i][j] = _mm256_add_epi32(sums[i][j], taken);
                }
            }
        }
        for j in 0..N {
            let panel = scales.wrapping_byte_add(j / VECTORS * scales_step);
            let scale = V32::load(panel.wrapping_add(j % VECTORS * V32::LANES));
            for i in 0..H {
                let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[i][j]), scale);
                let row_scale = V32::splat(tile.rows[i].scales.wrapping_add(number));
                totals[i][j] = V32::fma(row_scale, scaled, totals[i][j]);
            }
        }
    }
}

/// The zero points of vector `j` of the columns, where those of the first panel start at `points`.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
unsafe fn load_zeros(points: *const u8, steps: &Steps, j: usize) -> __m128i {
    let panel: *const i16 = points.wrapping_add(j / VECTORS * steps.panel_bytes).cast();
    // SAFETY: the caller's.
    unsafe { _mm_loadu_si128(panel.wrapping_add(j % VECTORS * V32::LANES).cast()) }
}

/// [`group_sums`](crate::grouped::group_sums), 32 by 32.
///
/// # Safety
/// as that; the machine has the instructions.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn group_sums(mut row: *const i8, group: usize, factor: i32, sums: &mut [i32]) {
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
