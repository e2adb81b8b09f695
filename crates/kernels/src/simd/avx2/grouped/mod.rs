//! Tiles of rows of bytes by packed codes of 4 or 8 bits.
//!
//! Tiles keep 8 vectors of sums: two to a panel and row. The totals of groups wait in memory while lines are summed.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

mod lines;

use std::arch::x86_64::*;

use super::V32;
use crate::grouped_tile::{LINE_BYTES, MOST_ROWS, PANEL, Steps, Tile, TileFn, Tiles};
use crate::lanes::Simd;
use lines::{Bytes, Halves, LineCodes, Lines, VECTORS};

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

/// Up to this many elements of a row have a sum of 16 bits.
const SHORT: usize = i16::MAX as usize / 127;

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

/// [`group_sums`](crate::grouped_tile::group_sums), 32 by 32.
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
