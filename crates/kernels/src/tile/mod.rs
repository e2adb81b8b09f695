//! The micro-kernel: a tile of `H` rows by `N` vectors of `out`, kept in registers over all `k`.
//!
//! For each `k` (or word of several) it loads `N` vectors of the column side and, for each of the `H` rows, spreads one
//! element of the row side over a register, then does `H · N` fused multiply-adds. Each lane is one
//! element of `out`, so that its sum is taken in the order of `k` whatever the tile.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

mod across;
mod coded;
mod sums;

pub(crate) use across::{Square, across_tile};
pub(crate) use coded::coded_tile;
pub(crate) use sums::{EdgeFunctions, load_sums, store_sums};

use crate::lanes::{Number, Simd, Vector};
use crate::points::PointsAt;
use std::ops::Range;
use sums::{finish, start};

/// The operands of a tile.
#[derive(Clone, Copy)]
pub(crate) struct Tile<T> {
    /// How many steps of `k`.
    pub(crate) k: usize,
    /// The elements of the row side: `H` for each `k`, and from one `k` to the next `rows_step`.
    pub(crate) rows: *const T,
    pub(crate) rows_step: usize,
    /// Where they lie apart: the offset of each row, and of each `k`.
    pub(crate) row_points: *const u32,
    pub(crate) row_steps: *const u32,
    /// The steps that are taken, if these are not all: `row_steps` and `columns` are those of step 0 then.
    pub(crate) live: *const u32,
    /// How many words of a row lie beside each other from each step of a multiple of as many on; 0 if that is of no use.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "tiles of matrix registers read it")
    )]
    pub(crate) row_line: usize,
    /// The column side: packed (`N` vectors for each `k`), maybe in numbers, or plain.
    pub(crate) columns: *const T,
    /// How many elements ahead the rows are fetched into the second cache.
    pub(crate) rows_ahead: usize,
    /// Which packed columns are fetched into it.
    pub(crate) next: Next<T>,
    /// How far, in elements or bytes of codes, it is between panels of two vectors, where a tile takes several.
    pub(crate) panel_step: usize,
    /// Where it is coded: the shift and the scale of each lane, how far it is to those of the next group of `k`, and
    /// how many `k` a group has.
    pub(crate) points: PointsAt,
    pub(crate) points_step: usize,
    /// How far it is to those of the next panel, where a tile takes several.
    pub(crate) points_panel_step: usize,
    pub(crate) group: usize,
    /// Where it is plain, or laid across by the tile: the offset of each `k`.
    pub(crate) offsets: *const u32,
    /// Where the tile lays it across: the offset of each column from the first one on, and how many there are.
    pub(crate) column_points: *const u32,
    pub(crate) column_count: usize,
    /// `N` vectors.
    pub(crate) vectors: *const Vector,
    pub(crate) out: *mut T,
    /// The offset in `out` of each row.
    pub(crate) row_offsets: *const u32,
    /// Where `out` is not contiguous along the columns: the offset of each column; a vector's `to`
    /// is then the number of its first column. Null otherwise.
    pub(crate) scatter: *const u32,
    /// How many lanes of the last vector are valid, if these are its first ones, all lanes of the vectors before it are, and
    /// `out` is contiguous along each vector; otherwise 0.
    pub(crate) last: usize,
    /// Whether the sums start at zero, and not with what is in `out`.
    pub(crate) fresh: bool,
}

/// Packed columns that come after a tile's: at each `k` as many vectors as the tile has are fetched, coded ones or not,
/// from `from` on.
#[derive(Clone, Copy)]
pub(crate) struct Next<T> {
    pub(crate) from: *const T,
    /// How many elements further the next `k` goes on: fewer than those vectors have if other tiles fetch the rest, and
    /// none if nothing comes after. Coded ones go on where the last `k` ended.
    pub(crate) step: usize,
}

/// The bytes of a line of the cache.
pub(crate) const LINE: usize = 64;

/// A micro-kernel.
///
/// # Safety
/// The machine has the instructions it is made of; the tile has as many rows and vectors as the
/// micro-kernel is for; everything that [`Tile`] says is read may be read, and `out` may be read and
/// written where the vectors and rows say. `PLAIN` tiles read all lanes of their vectors, `EDGE` tiles
/// only the first `load`.
pub(crate) type TileFn<T> = unsafe fn(&Tile<T>);

/// How a tile reads its column side.
pub(crate) const PACKED: u8 = 0;
pub(crate) const PLAIN: u8 = 1;
pub(crate) const EDGE: u8 = 2;
/// From several packed panels of [`SPREAD_WIDTH`] vectors at once, so that few rows keep as many sums under way as the
/// machine adds at a time.
pub(crate) const SPREAD: u8 = 3;
/// As [`PACKED`], with rows that lie apart.
pub(crate) const STRIDED_ROWS: u8 = 4;
/// As [`STRIDED_ROWS`], of those steps that a list names.
pub(crate) const LIVE_STEPS: u8 = 5;

/// The vectors of the panels that tiles take several of.
pub(crate) const SPREAD_WIDTH: usize = 2;

/// The rows of a tile that leave time for fetching what comes next; lower ones are all loads.
const LEAST_FETCHING: usize = 4;

/// The micro-kernel of `H` rows and `N` vectors.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
pub(crate) unsafe fn tile<S: Simd, const H: usize, const N: usize, const SIDE: u8>(
    tile: &Tile<S::T>,
    parts: EdgeFunctions<S>,
) {
    // Each is compiled only where it may be called, and there is one for each way of all tiles.
    // SAFETY: the caller's.
    unsafe {
        if const { H < LEAST_FETCHING || SIDE != PACKED && SIDE != STRIDED_ROWS } {
            packed_or_plain::<S, H, N, SIDE, false>(tile, parts);
        } else if const { S::FETCHES_TAKE_TIME } && tile.next.step == 0 {
            // There is nothing that is not in a cache already.
            packed_or_plain::<S, H, N, SIDE, false>(tile, parts);
        } else {
            packed_or_plain::<S, H, N, SIDE, true>(tile, parts);
        }
    }
}

/// The same, which fetches packed columns that come next if it `IS_FETCHING`.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
unsafe fn packed_or_plain<
    S: Simd,
    const H: usize,
    const N: usize,
    const SIDE: u8,
    const IS_FETCHING: bool,
>(
    tile: &Tile<S::T>,
    parts: EdgeFunctions<S>,
) {
    // SAFETY: by the contract of `TileFn` all that is read here may be.
    unsafe {
        let vectors = *tile.vectors.cast::<[Vector; N]>();
        let mut packed = tile.columns;
        let mut next = tile.next.from;
        sums::<S, H, N, SIDE>(
            tile,
            parts,
            #[inline(always)]
            |k| {
                let mut columns = [S::zero(); N];
                match SIDE {
                    PACKED | STRIDED_ROWS => {
                        for j in 0..N {
                            columns[j] = S::load(packed.add(j * S::LANES));
                        }
                        if IS_FETCHING {
                            for j in 0..N {
                                let at = j * S::LANES;
                                if (at * size_of::<S::T>()).is_multiple_of(LINE) {
                                    S::fetch(next.wrapping_add(at));
                                }
                            }
                            next = next.wrapping_add(tile.next.step);
                        }
                        packed = packed.add(N * S::LANES);
                    }
                    LIVE_STEPS => {
                        let step = tile.columns.add(k * N * S::LANES);
                        for j in 0..N {
                            columns[j] = S::load(step.add(j * S::LANES));
                        }
                    }
                    SPREAD => {
                        for j in 0..N {
                            let panel = packed.add(j / SPREAD_WIDTH * tile.panel_step);
                            columns[j] = S::load(panel.add(j % SPREAD_WIDTH * S::LANES));
                        }
                        packed = packed.add(SPREAD_WIDTH * S::LANES);
                    }
                    _ => {
                        let plain = tile.columns.add(*tile.offsets.add(k) as usize);
                        for j in 0..N {
                            let from = plain.add(vectors[j].from as usize);
                            columns[j] = match SIDE {
                                PLAIN => S::load(from),
                                _ => S::load_first(from, vectors[j].load as usize),
                            };
                        }
                    }
                }
                columns
            },
        )
    }
}

/// A tile whose `columns` at each `k` are given.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
unsafe fn sums<S: Simd, const H: usize, const N: usize, const SIDE: u8>(
    tile: &Tile<S::T>,
    parts: EdgeFunctions<S>,
    mut columns: impl FnMut(usize) -> [S::V; N],
) {
    let strided = SIDE == STRIDED_ROWS || SIDE == LIVE_STEPS;
    // SAFETY: by the contract of `TileFn` all that is read and written here may be.
    unsafe {
        let mut sums = start::<S, H, N>(tile, &parts);
        let mut rows = tile.rows;
        let mut apart = [tile.rows; H];
        if strided {
            for i in 0..H {
                apart[i] = (tile.rows).byte_add(*tile.row_points.add(i) as usize * S::ROW_BYTES);
            }
        }
        for number in 0..tile.k {
            let k = match SIDE {
                LIVE_STEPS => *tile.live.add(number) as usize,
                _ => number,
            };
            let columns = columns(k);
            let step = match strided {
                true => *tile.row_steps.add(k) as usize * S::ROW_BYTES,
                false => 0,
            };
            if H >= LEAST_FETCHING && !strided {
                S::fetch(rows.wrapping_add(tile.rows_ahead));
            }
            let element = |i: usize| match strided {
                true => apart[i].byte_add(step),
                false => rows.add(i),
            };
            // Two loops: the compiler leaves longer ones as they are.
            add_rows::<S, H, N>(&mut sums, 0..H / 2, &columns, strided, element);
            add_rows::<S, H, N>(&mut sums, H / 2..H, &columns, strided, element);
            if !strided {
                rows = rows.add(tile.rows_step);
            }
        }
        finish::<S, H, N>(tile, &parts, sums);
    }
}

/// Adds the products of some rows' elements and the columns at a `k`.
///
/// # Safety
/// as [`TileFn`]; the rows are among `H`, and their elements may be read.
#[inline(always)]
unsafe fn add_rows<S: Simd, const H: usize, const N: usize>(
    sums: &mut [[S::V; N]; H],
    rows: Range<usize>,
    columns: &[S::V; N],
    strided: bool,
    element: impl Fn(usize) -> *const S::T,
) {
    for i in rows {
        // SAFETY: the caller's.
        unsafe {
            let row = S::splat(element(i));
            for j in 0..N {
                sums[i][j] = S::fma(row, columns[j], sums[i][j]);
            }
            if strided && H * (N + 1) + N > S::REGISTERS {
                S::in_turn(&mut sums[i]);
            }
        }
    }
}

/// How many multiply-adds [`chains`] has under way at a time.
pub(crate) const CHAINS: usize = 12;

/// `steps` multiply-adds in each of [`CHAINS`] registers, and nothing else: the machine's peak.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn chains<S: Simd>(steps: usize) -> S::T {
    let mut lanes = [S::T::ZERO; 16];
    let lane = std::hint::black_box(lanes.as_mut_ptr());
    // SAFETY: `lane` points to 16 elements, as many as a vector may have.
    unsafe {
        let factor = S::load(lane);
        let mut sums = [S::load(lane); CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = S::fma(factor, *sum, factor);
            }
        }
        for sum in sums {
            S::store(lane, std::hint::black_box(sum));
        }
        *lane
    }
}
