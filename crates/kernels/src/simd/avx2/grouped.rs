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
use crate::grouped::{LINE_BYTES, MOST_ROWS, PANEL, Tile, TileFn, Tiles, Zero};
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

/// How many bytes ahead of those that a tile takes codes of a panel are fetched: as far as memory is slow.
const AHEAD: usize = 1 << 10;

/// Up to this many elements of a row have a sum of 16 bits.
const SHORT: usize = i16::MAX as usize / 127;

/// How lines of codes are multiplied.
trait LineCodes {
    /// How many `k` a line has.
    const DEPTH: usize;

    /// Adds the products of these lines.
    ///
    /// # Safety
    /// The machine has AVX2, and all lines and as many elements of each row may be read.
    unsafe fn add<const H: usize, const N: usize>(lines: &Lines<H>, sums: &mut [[__m256i; N]; H]);
}

/// Lines of a group.
struct Lines<const H: usize> {
    /// The first line of the first panel, and how much further that of the next one is.
    codes: *const u8,
    panel_step: usize,
    /// The elements of each row.
    rows: [*const i8; H],
    count: usize,
    /// How far ahead lines are fetched.
    ahead: usize,
}

impl<const H: usize> Lines<H> {
    /// The vectors of a line of a panel.
    ///
    /// # Safety
    /// as [`LineCodes::add`].
    #[inline(always)]
    unsafe fn load(&self, line: usize, panel: usize) -> [__m256i; VECTORS] {
        let from = self
            .codes
            .wrapping_add(panel * self.panel_step + line * LINE_BYTES);
        // SAFETY: the caller's; fetching reads nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(self.ahead).cast());
            let from: *const __m256i = from.cast();
            [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))]
        }
    }

    /// Four elements of a row, in all lanes.
    ///
    /// # Safety
    /// as [`LineCodes::add`].
    #[inline(always)]
    unsafe fn elements(&self, row: usize, k: usize) -> __m256i {
        // SAFETY: the caller's.
        unsafe {
            _mm256_set1_epi32(
                self.rows[row]
                    .wrapping_add(k)
                    .cast::<i32>()
                    .read_unaligned(),
            )
        }
    }
}

/// Codes from 0 to 15, of 8 `k` a line.
struct Halves;

impl Halves {
    /// How many lines have sums of 16 bits: of 4 products of at most 15 · 127 each.
    const CHAIN: usize = i16::MAX as usize / (4 * 15 * 127);
}

impl LineCodes for Halves {
    const DEPTH: usize = 8;

    #[inline(always)]
    unsafe fn add<const H: usize, const N: usize>(lines: &Lines<H>, sums: &mut [[__m256i; N]; H]) {
        // SAFETY: the caller's.
        unsafe {
            let (mask, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
            let mut line = 0;
            while line < lines.count {
                let until = lines.count.min(line + Halves::CHAIN);
                let mut chains = [[_mm256_setzero_si256(); N]; H];
                while line < until {
                    let k = line * Self::DEPTH;
                    for panel in 0..N / VECTORS {
                        let j = panel * VECTORS;
                        let [first, second] = lines.load(line, panel);
                        let low = [
                            _mm256_and_si256(first, mask),
                            _mm256_and_si256(second, mask),
                        ];
                        for i in 0..H {
                            let elements = lines.elements(i, k);
                            for v in 0..VECTORS {
                                let products = _mm256_maddubs_epi16(low[v], elements);
                                chains[i][j + v] = _mm256_add_epi16(chains[i][j + v], products);
                            }
                        }
                        let high = [
                            _mm256_and_si256(_mm256_srli_epi16::<4>(first), mask),
                            _mm256_and_si256(_mm256_srli_epi16::<4>(second), mask),
                        ];
                        for i in 0..H {
                            let elements = lines.elements(i, k + 4);
                            for v in 0..VECTORS {
                                let products = _mm256_maddubs_epi16(high[v], elements);
                                chains[i][j + v] = _mm256_add_epi16(chains[i][j + v], products);
                            }
                        }
                    }
                    line += 1;
                }
                for i in 0..H {
                    for j in 0..N {
                        let words = _mm256_madd_epi16(chains[i][j], ones);
                        sums[i][j] = _mm256_add_epi32(sums[i][j], words);
                    }
                }
            }
        }
    }
}

/// Codes from -128 to 127, of 4 `k` a line.
struct Bytes;

impl LineCodes for Bytes {
    const DEPTH: usize = 4;

    /// A product of a code and an element is that of the code's size and the element with the code's sign. Two of them
    /// have a sum of 16 bits: 2 · 128 · 127.
    #[inline(always)]
    unsafe fn add<const H: usize, const N: usize>(lines: &Lines<H>, sums: &mut [[__m256i; N]; H]) {
        // SAFETY: the caller's.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut totals = *sums;
            for line in 0..lines.count {
                for panel in 0..N / VECTORS {
                    let j = panel * VECTORS;
                    let codes = lines.load(line, panel);
                    let sizes = [_mm256_abs_epi8(codes[0]), _mm256_abs_epi8(codes[1])];
                    for i in 0..H {
                        let elements = lines.elements(i, line * Self::DEPTH);
                        for v in 0..VECTORS {
                            let signed = _mm256_sign_epi8(elements, codes[v]);
                            let pairs = _mm256_maddubs_epi16(sizes[v], signed);
                            let words = _mm256_madd_epi16(pairs, ones);
                            totals[i][j + v] = _mm256_add_epi32(totals[i][j + v], words);
                        }
                    }
                }
            }
            *sums = totals;
        }
    }
}

/// The tile of `H` rows and `N` vectors of columns.
///
/// # Safety
/// as [`TileFn`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn tile<C: LineCodes, const H: usize, const N: usize>(tile: &Tile) {
    // SAFETY: by the contract of `TileFn` all that is read and written here may be.
    unsafe {
        let (shape, points) = (tile.codes.shape, PointsAt::new(tile));
        let panel_step = tile.codes.panel_bytes();
        let count = tile.group / C::DEPTH;
        let mut totals = [[V32::zero(); N]; H];
        let mut rows = [tile.rows[0].elements; H];
        for i in 0..H {
            rows[i] = tile.rows[i].elements;
        }
        let (mut at, mut number) = (0, 0);
        for group in 0..shape.groups() {
            at += tile.codes.points_bytes();
            for _ in 0..shape.group / tile.group {
                let mut sums = points.start::<H, N>(group, number);
                // After the last lines come those of the panels that follow.
                let is_last = panel_step - at <= AHEAD;
                let others = if is_last {
                    (N / VECTORS - 1) * panel_step
                } else {
                    0
                };
                let lines = Lines {
                    codes: tile.panel.wrapping_add(at),
                    panel_step,
                    rows,
                    count,
                    ahead: AHEAD + others,
                };
                C::add::<H, N>(&lines, &mut sums);
                points.add::<H, N>(group, number, &sums, &mut totals);
                for i in 0..H {
                    rows[i] = rows[i].wrapping_add(tile.group);
                }
                at += count * LINE_BYTES;
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

/// Where zero points and scales are, and what they are for.
struct PointsAt<'a> {
    tile: &'a Tile,
    /// The zero points of the first group of the first panel, if each group has its own.
    zeros: Option<*const i16>,
    /// The scales of the first group, and how many bytes further those of the next panel and of the next group are.
    scales: *const f32,
    steps: [usize; 2],
}

/// The scales where there are none.
static ONES: [f32; PANEL] = [1.0; PANEL];

impl<'a> PointsAt<'a> {
    #[inline(always)]
    fn new(tile: &'a Tile) -> PointsAt<'a> {
        let codes = &tile.codes;
        let zeros = match codes.zero {
            Zero::Same(_) => None,
            Zero::Each => Some(tile.panel.cast()),
        };
        let (scales, steps) = match codes.has_scales {
            true => (
                tile.panel.wrapping_add(codes.zero_bytes()).cast(),
                [codes.panel_bytes(), codes.group_bytes()],
            ),
            false => (ONES.as_ptr(), [0, 0]),
        };
        PointsAt {
            tile,
            zeros,
            scales,
            steps,
        }
    }

    /// What the zero points of a group take away from the sums of group `number` of the rows.
    ///
    /// # Safety
    /// as [`TileFn`].
    #[inline(always)]
    unsafe fn start<const H: usize, const N: usize>(
        &self,
        group: usize,
        number: usize,
    ) -> [[__m256i; N]; H] {
        let codes = &self.tile.codes;
        // SAFETY: the caller's.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); N]; H];
            for i in 0..H {
                let sum = _mm256_set1_epi32(*self.tile.rows[i].sums.add(number));
                sums[i] = [sum; N];
            }
            let Some(zeros) = self.zeros else {
                return sums;
            };
            let from = zeros.wrapping_byte_add(group * codes.group_bytes());
            for j in 0..N {
                let panel = from.wrapping_byte_add(j / VECTORS * codes.panel_bytes());
                let zero = panel.wrapping_add(j % VECTORS * V32::LANES);
                let zero = _mm_loadu_si128(zero.cast());
                for i in 0..H {
                    sums[i][j] = match self.tile.group <= SHORT {
                        // The high half of a lane is zero, whatever the sum has there.
                        true => _mm256_madd_epi16(_mm256_cvtepu16_epi32(zero), sums[i][j]),
                        false => _mm256_mullo_epi32(_mm256_cvtepi16_epi32(zero), sums[i][j]),
                    };
                }
            }
            sums
        }
    }

    /// Adds the sums of a group to the totals, scaled.
    ///
    /// # Safety
    /// as [`TileFn`].
    #[inline(always)]
    unsafe fn add<const H: usize, const N: usize>(
        &self,
        group: usize,
        number: usize,
        sums: &[[__m256i; N]; H],
        totals: &mut [[__m256; N]; H],
    ) {
        let from = self.scales.wrapping_byte_add(group * self.steps[1]);
        // SAFETY: the caller's.
        unsafe {
            for j in 0..N {
                let panel = from.wrapping_byte_add(j / VECTORS * self.steps[0]);
                let scale = V32::load(panel.wrapping_add(j % VECTORS * V32::LANES));
                for i in 0..H {
                    let row_scale = V32::splat(self.tile.rows[i].scales.wrapping_add(number));
                    let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[i][j]), scale);
                    totals[i][j] = V32::fma(row_scale, scaled, totals[i][j]);
                }
            }
        }
    }
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
