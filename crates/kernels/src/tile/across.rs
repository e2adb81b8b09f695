//! Tiles whose columns are lines of `k` in the operand: each lays squares of them across in registers, where few rows do not make
//! up for storing them first.

use super::sums::{finish, start};
use super::{EdgeFunctions, Tile};
use crate::lanes::Simd;
use crate::pack::AHEAD;

/// Up to this many `k`, tiles prefetch the lines of the columns after theirs. Of longer ones machines find the beginning by
/// themselves, and a constant distance is faster.
const SHORT: usize = 2 * AHEAD;

/// Vectors that lie across others.
pub(crate) trait Square<const LANES: usize>: Simd {
    /// Lane `i` of the result `j` is lane `j` of line `i`.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn transpose(lines: [Self::V; LANES]) -> [Self::V; LANES];
}

/// The micro-kernel of `H` rows and `N` vectors of columns. From the offset of every `LANES`-th `k` on, as many follow.
///
/// # Safety
/// as [`TileFn`](super::TileFn).
#[inline(always)]
pub(crate) unsafe fn across_tile<
    S: Square<LANES>,
    const H: usize,
    const N: usize,
    const LANES: usize,
>(
    tile: &Tile<S::T>,
    parts: EdgeFunctions<S>,
) {
    // SAFETY: by the contract of `TileFn` all that is read and written here may be.
    unsafe {
        let mut lines = [[tile.columns; LANES]; N];
        for j in 0..N {
            for lane in 0..LANES {
                // Lanes after the last column have it once more, and are not stored.
                let column = (j * LANES + lane).min(tile.column_count - 1);
                let point = *tile.column_points.add(column) as usize;
                lines[j][lane] = tile.columns.wrapping_add(point);
            }
        }
        let mut sums = start::<S, H, N>(tile, &parts);
        let whole = tile.k / LANES * LANES;
        if tile.k > SHORT {
            for k in (0..whole).step_by(LANES) {
                add_squares::<S, H, N, LANES>(tile, &lines, &mut sums, k, (LANES, AHEAD));
            }
        } else {
            // Where the lines of as many columns as these begin after them, if they follow each other equally far apart.
            let at =
                |number: usize| *tile.column_points.add(number.min(tile.column_count - 1)) as usize;
            let next = (at(N * LANES - 1) + at(1)).wrapping_sub(2 * at(0));
            for k in (0..whole).step_by(LANES) {
                // At the end of short lines, the beginning of these.
                let ahead = match k + AHEAD < tile.k {
                    true => AHEAD,
                    false => next.wrapping_add(AHEAD).wrapping_sub(tile.k),
                };
                add_squares::<S, H, N, LANES>(tile, &lines, &mut sums, k, (LANES, ahead));
            }
        }
        if whole < tile.k {
            let rest = (tile.k - whole, 0);
            add_squares::<S, H, N, LANES>(tile, &lines, &mut sums, whole, rest);
        }
        finish::<S, H, N>(tile, &parts, sums);
    }
}

/// Adds to `sums` the products of every row with every column, for `count` consecutive `k` from number `k` on, and fetches what is so
/// many elements `ahead`. `lines` says where each column begins; `count` is at most `LANES`.
///
/// # Safety
/// as [`TileFn`](super::TileFn).
#[inline(always)]
unsafe fn add_squares<S: Square<LANES>, const H: usize, const N: usize, const LANES: usize>(
    tile: &Tile<S::T>,
    lines: &[[*const S::T; LANES]; N],
    sums: &mut [[S::V; N]; H],
    k: usize,
    (count, ahead): (usize, usize),
) {
    // SAFETY: the caller's.
    unsafe {
        let offset = *tile.offsets.add(k) as usize;
        let rows = tile.rows.wrapping_add(k * tile.rows_step);
        for j in 0..N {
            let mut square = [S::zero(); LANES];
            for lane in 0..LANES {
                let from = lines[j][lane].add(offset);
                square[lane] = if count == LANES {
                    S::fetch_first(from.wrapping_add(ahead));
                    S::load(from)
                } else {
                    S::load_first(from, count)
                };
            }
            let columns = S::transpose(square);
            for k in 0..LANES {
                if k < count {
                    for i in 0..H {
                        let row = S::splat(rows.wrapping_add(k * tile.rows_step + i));
                        sums[i][j] = S::fma(row, columns[k], sums[i][j]);
                    }
                }
            }
        }
    }
}
