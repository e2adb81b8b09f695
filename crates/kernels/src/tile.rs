//! The micro-kernel: a tile of `H` rows by `N` vectors of `out`, kept in registers over all `k`.
//!
//! For each `k` (or word of several) it loads `N` vectors of the column side and, for each of the `H` rows, spreads one
//! element of the row side over a register, then does `H · N` fused multiply-adds. Each lane is one
//! element of `out`, so that its sum is taken in the order of `k` whatever the tile.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use crate::coded::Codes;
use crate::lanes::{Number, Simd, Vector};

/// The operands of a tile.
#[derive(Clone, Copy)]
pub(crate) struct Tile<T> {
    /// How many steps of `k`.
    pub(crate) k: usize,
    /// The elements of the row side: `H` for each `k`, and from one `k` to the next `rows_step`.
    pub(crate) rows: *const T,
    pub(crate) rows_step: usize,
    /// The column side: packed (`N` vectors for each `k`), maybe in numbers, or plain.
    pub(crate) columns: *const T,
    /// How many elements ahead the rows are fetched into the second cache.
    pub(crate) rows_ahead: usize,
    /// Which packed columns are fetched into it.
    pub(crate) next: Next<T>,
    /// Where it is coded: for each lane what is subtracted from a number, and what it is then multiplied with.
    pub(crate) zero: *const T,
    pub(crate) scale: *const T,
    /// Where it is coded: where the elements of a `k` go, and how far it is to those of the next.
    pub(crate) made: *mut T,
    pub(crate) made_step: usize,
    /// Where it is plain: the offset of each `k`.
    pub(crate) offsets: *const u32,
    /// `N` vectors.
    pub(crate) vectors: *const Vector,
    pub(crate) out: *mut T,
    /// The offset in `out` of each row.
    pub(crate) row_offsets: *const u32,
    /// Where `out` is not contiguous along the columns: the offset of each column; a vector's `to`
    /// is then the number of its first column. Null otherwise.
    pub(crate) scatter: *const u32,
    /// Whether every lane of every vector is valid and `out` is contiguous along them.
    pub(crate) whole: bool,
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

/// The numbers of a coded column side.
pub(crate) const I8: u8 = 0;
pub(crate) const U8: u8 = 1;
pub(crate) const F16: u8 = 2;

/// How a tile reads its column side.
pub(crate) const PACKED: u8 = 0;
pub(crate) const PLAIN: u8 = 1;
pub(crate) const EDGE: u8 = 2;

/// The rows of a tile that leave time for fetching what comes next; lower ones are all loads.
const LEAST_FETCHING: usize = 4;

/// How all micro-kernels of an engine load and store the sums of tiles whose vectors are not all whole, `h` by
/// `n` vectors. These are functions of their own, so that there is one copy for all tiles.
pub(crate) struct EdgeFunctions<S: Simd> {
    /// [`load_sums`].
    pub(crate) load: unsafe fn(&Tile<S::T>, *mut S::V, usize, usize),
    /// [`store_sums`].
    pub(crate) store: unsafe fn(&Tile<S::T>, *const S::V, usize, usize),
}

/// The micro-kernel of `H` rows and `N` vectors.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
pub(crate) unsafe fn tile<S: Simd, const H: usize, const N: usize, const SIDE: u8>(
    tile: &Tile<S::T>,
    parts: EdgeFunctions<S>,
) {
    // SAFETY: by the contract of `TileFn` all that is read here may be.
    unsafe {
        let vectors = *tile.vectors.cast::<[Vector; N]>();
        let mut packed = tile.columns;
        let mut next = tile.next.from;
        sums::<S, H, N>(
            tile,
            parts,
            #[inline(always)]
            |k| {
                let mut columns = [S::zero(); N];
                if SIDE == PACKED {
                    for j in 0..N {
                        columns[j] = S::load(packed.add(j * S::LANES));
                    }
                    if H >= LEAST_FETCHING {
                        for j in 0..N {
                            S::fetch(next.wrapping_add(j * S::LANES));
                        }
                        next = next.wrapping_add(tile.next.step);
                    }
                    packed = packed.add(N * S::LANES);
                } else {
                    let plain = tile.columns.add(*tile.offsets.add(k) as usize);
                    for j in 0..N {
                        let from = plain.add(vectors[j].from as usize);
                        columns[j] = if SIDE == PLAIN {
                            S::load(from)
                        } else {
                            S::load_first(from, vectors[j].load as usize)
                        };
                    }
                }
                columns
            },
        )
    }
}

/// The micro-kernel of `H` rows and `N` vectors whose columns are packed numbers, of which it makes elements: of
/// `i8` with a scale, `u8` with a zero point and a scale, `f16` with neither.
///
/// # Safety
/// as [`TileFn`].
#[inline(always)]
pub(crate) unsafe fn coded_tile<S: Codes, const H: usize, const N: usize, const CODE: u8>(
    tile: &Tile<f32>,
    parts: EdgeFunctions<S>,
) {
    let size = if CODE == F16 { 2 } else { 1 };
    let mut packed: *const u8 = tile.columns.cast();
    let mut next: *const u8 = tile.next.from.cast();
    let mut made = tile.made;
    // SAFETY: by the contract of `TileFn` all that is read here may be.
    unsafe {
        sums::<S, H, N>(
            tile,
            parts,
            #[inline(always)]
            |_| {
                let mut columns = [S::zero(); N];
                for j in 0..N {
                    let from = packed.add(j * S::LANES * size);
                    let (zero, scale) = (tile.zero.add(j * S::LANES), tile.scale.add(j * S::LANES));
                    columns[j] = match CODE {
                        I8 => S::mul(S::i8(from), S::load(scale)),
                        U8 => S::mul(S::sub(S::u8(from), S::load(zero)), S::load(scale)),
                        _ => S::f16(from),
                    };
                    S::store(made.add(j * S::LANES), columns[j]);
                }
                made = made.wrapping_add(tile.made_step);
                S::fetch(next.cast());
                next = next.wrapping_add(N * S::LANES * size);
                packed = packed.add(N * S::LANES * size);
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
unsafe fn sums<S: Simd, const H: usize, const N: usize>(
    tile: &Tile<S::T>,
    parts: EdgeFunctions<S>,
    mut columns: impl FnMut(usize) -> [S::V; N],
) {
    // SAFETY: by the contract of `TileFn` all that is read and written here may be.
    unsafe {
        let vectors = *tile.vectors.cast::<[Vector; N]>();
        let mut sums = [[S::zero(); N]; H];
        if !tile.fresh {
            if tile.whole {
                for i in 0..H {
                    let row = tile.out.add(*tile.row_offsets.add(i) as usize);
                    for j in 0..N {
                        sums[i][j] = S::load(row.add(vectors[j].to as usize));
                    }
                }
            } else {
                let mut stored = sums;
                (parts.load)(tile, stored.as_mut_ptr().cast(), H, N);
                sums = stored;
            }
        }
        let mut rows = tile.rows;
        for k in 0..tile.k {
            let columns = columns(k);
            if H >= LEAST_FETCHING {
                S::fetch(rows.wrapping_add(tile.rows_ahead));
            }
            for i in 0..H {
                let row = S::splat(rows.add(i));
                for j in 0..N {
                    sums[i][j] = S::fma(row, columns[j], sums[i][j]);
                }
            }
            rows = rows.add(tile.rows_step);
        }
        if tile.whole {
            for i in 0..H {
                let row = tile.out.add(*tile.row_offsets.add(i) as usize);
                for j in 0..N {
                    S::store(row.add(vectors[j].to as usize), sums[i][j]);
                }
            }
        } else if H * N <= 8 && tile.scatter.is_null() {
            // Few enough to be written out: small tiles are stored often.
            for i in 0..H {
                let row = tile.out.add(*tile.row_offsets.add(i) as usize);
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
/// as [`TileFn`]; `sums` has room for `h · n` vectors.
#[inline(always)]
pub(crate) unsafe fn load_sums<S: Simd>(tile: &Tile<S::T>, sums: *mut S::V, h: usize, n: usize) {
    for i in 0..h {
        for j in 0..n {
            // SAFETY: by the caller's contract; the elements of a vector are as many as its valid
            // lanes, at most `LANES`.
            unsafe {
                let vector = *tile.vectors.add(j);
                let row = tile.out.add(*tile.row_offsets.add(i) as usize);
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
/// as [`TileFn`]; `sums` are `h · n` vectors.
#[inline(always)]
pub(crate) unsafe fn store_sums<S: Simd>(tile: &Tile<S::T>, sums: *const S::V, h: usize, n: usize) {
    for i in 0..h {
        for j in 0..n {
            // SAFETY: as in `load_sums`.
            unsafe {
                let vector = *tile.vectors.add(j);
                let row = tile.out.add(*tile.row_offsets.add(i) as usize);
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
