//! Where a tile's sums come from and go to.

use super::Tile;
use crate::lanes::{Number, Simd, Vector};

/// How all micro-kernels of an engine load and store the sums of tiles whose vectors are not all whole, `h` by
/// `n` vectors, unless only the last one is not and is stored. These are functions of their own, so that there is one copy for
/// all tiles.
pub(crate) struct EdgeFunctions<S: Simd> {
    /// [`load_sums`].
    pub(crate) load: unsafe fn(&Tile<S::T>, *mut S::V, usize, usize),
    /// [`store_sums`].
    pub(crate) store: unsafe fn(&Tile<S::T>, *const S::V, usize, usize),
}

/// The sums that a tile starts with.
///
/// # Safety
/// as [`TileFn`](super::TileFn).
#[inline(always)]
pub(super) unsafe fn start<S: Simd, const H: usize, const N: usize>(
    tile: &Tile<S::T>,
    parts: &EdgeFunctions<S>,
) -> [[S::V; N]; H] {
    // SAFETY: by the contract of `TileFn` all that is read here may be.
    unsafe {
        let mut sums = [[S::zero(); N]; H];
        if tile.fresh {
            return sums;
        }
        if tile.last == S::LANES {
            let vectors = *tile.vectors.cast::<[Vector; N]>();
            for i in 0..H {
                let row = tile.out.wrapping_add(*tile.row_offsets.add(i) as usize);
                for j in 0..N {
                    sums[i][j] = S::load(row.add(vectors[j].to as usize));
                }
            }
        } else {
            let mut stored = sums;
            (parts.load)(tile, stored.as_mut_ptr().cast(), H, N);
            sums = stored;
        }
        sums
    }
}

/// Stores the sums of a tile.
///
/// # Safety
/// as [`TileFn`](super::TileFn).
#[inline(always)]
pub(super) unsafe fn finish<S: Simd, const H: usize, const N: usize>(
    tile: &Tile<S::T>,
    parts: &EdgeFunctions<S>,
    sums: [[S::V; N]; H],
) {
    // SAFETY: by the contract of `TileFn` all that is written here may be.
    unsafe {
        let vectors = *tile.vectors.cast::<[Vector; N]>();
        if tile.last == S::LANES {
            for i in 0..H {
                let row = tile.out.wrapping_add(*tile.row_offsets.add(i) as usize);
                for j in 0..N {
                    S::store(row.add(vectors[j].to as usize), sums[i][j]);
                }
            }
        } else if tile.last > 0 {
            for i in 0..H {
                let row = tile.out.wrapping_add(*tile.row_offsets.add(i) as usize);
                for j in 0..N - 1 {
                    S::store(row.add(vectors[j].to as usize), sums[i][j]);
                }
                let to = row.add(vectors[N - 1].to as usize);
                S::store_first(to, sums[i][N - 1], tile.last);
            }
        } else if H * N <= 8 && tile.scatter.is_null() {
            // Few enough to be written out: small tiles are stored often.
            for i in 0..H {
                let row = tile.out.wrapping_add(*tile.row_offsets.add(i) as usize);
                for j in 0..N {
                    let compressed = S::compress(sums[i][j], vectors[j].valid);
                    let to = row.add(vectors[j].to as usize);
                    S::store_first(to, compressed, vectors[j].elements as usize);
                }
            }
        } else {
            let stored = sums;
            (parts.store)(tile, stored.as_ptr().cast(), H, N);
        }
    }
}

/// Loads the sums of a tile whose vectors are not all whole.
///
/// # Safety
/// as [`TileFn`](super::TileFn); `sums` has room for `h · n` vectors.
#[inline(always)]
pub(crate) unsafe fn load_sums<S: Simd>(tile: &Tile<S::T>, sums: *mut S::V, h: usize, n: usize) {
    for i in 0..h {
        for j in 0..n {
            // SAFETY: by the caller's contract; the elements of a vector are as many as its valid
            // lanes, at most `LANES`.
            unsafe {
                let vector = *tile.vectors.add(j);
                let row = tile.out.wrapping_add(*tile.row_offsets.add(i) as usize);
                let compressed = if tile.scatter.is_null() {
                    S::load_first(row.add(vector.to as usize), vector.elements as usize)
                } else {
                    let mut lanes = [S::T::ZERO; 16];
                    for lane in 0..vector.elements as usize {
                        let offset = *tile.scatter.add(vector.to as usize + lane);
                        lanes[lane] = row.add(offset as usize).read_unaligned();
                    }
                    S::load(lanes.as_ptr())
                };
                *sums.add(i * n + j) = S::expand(compressed, vector.valid);
            }
        }
    }
}

/// Stores the sums of a tile whose vectors are not all whole.
///
/// # Safety
/// as [`TileFn`](super::TileFn); `sums` are `h · n` vectors.
#[inline(always)]
pub(crate) unsafe fn store_sums<S: Simd>(tile: &Tile<S::T>, sums: *const S::V, h: usize, n: usize) {
    for i in 0..h {
        for j in 0..n {
            // SAFETY: as in `load_sums`.
            unsafe {
                let vector = *tile.vectors.add(j);
                let row = tile.out.wrapping_add(*tile.row_offsets.add(i) as usize);
                let compressed = S::compress(*sums.add(i * n + j), vector.valid);
                if tile.scatter.is_null() {
                    S::store_first(
                        row.add(vector.to as usize),
                        compressed,
                        vector.elements as usize,
                    );
                } else {
                    let mut lanes = [S::T::ZERO; 16];
                    S::store(lanes.as_mut_ptr(), compressed);
                    for lane in 0..vector.elements as usize {
                        let offset = *tile.scatter.add(vector.to as usize + lane);
                        row.add(offset as usize).write_unaligned(lanes[lane]);
                    }
                }
            }
        }
    }
}
