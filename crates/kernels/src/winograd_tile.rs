//! Tiles of [`WinogradConvolution`](crate::WinogradConvolution): the transforms of their pixels, windows and sums.
//!
//! > `Bᵀ = (1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1)`, `2·G = (2 0 0; 1 1 1; 1 -1 1; 0 0 2)`, `Aᵀ = (1 1 1 0; 0 1 -1 -1)`

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use crate::lanes::Simd;
use crate::points::MOST_LANES;

/// The positions of a tile of four by four.
pub(crate) const POSITIONS: usize = 16;

/// The channels of a vector of numbers of 16 bits.
pub(crate) const HALVES: usize = 16;

/// The windows of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Windows {
    pub(crate) channels: usize,
    pub(crate) results: usize,
    /// How far a step is along channels, results, rows and columns.
    pub(crate) steps: [usize; 4],
    /// Whether the bytes have signs.
    pub(crate) is_signed: bool,
    /// How many elements there must be.
    pub(crate) needed: usize,
}

/// The transforms of an instruction set.
pub(crate) struct Transforms {
    pub(crate) name: &'static str,
    pub(crate) image: unsafe fn(&ImageTile),
    pub(crate) results: unsafe fn(&ResultTile),
}

/// The pixels of a tile.
pub(crate) struct ImageTile {
    /// The first channel of each.
    pub(crate) from: [*const u8; POSITIONS],
    /// How many there are, at least [`HALVES`], and how far it is to the next one.
    pub(crate) channels: usize,
    pub(crate) channel_step: usize,
    pub(crate) is_signed: bool,
    /// Where the transformed channels of the first position go, side by side, and how far it is to those of the next one.
    pub(crate) to: *mut i16,
    pub(crate) step: usize,
}

/// The sums of a tile for a panel of columns.
pub(crate) struct ResultTile {
    /// The sums of the first position, side by side, and how far it is to those of the next one.
    pub(crate) from: *const i32,
    pub(crate) step: usize,
    /// How many columns there are.
    pub(crate) columns: usize,
    /// Where the first column of each result goes, null if it is none of the picture's; and how far it is to the next column.
    pub(crate) to: [*mut i32; 4],
    pub(crate) to_step: usize,
}

/// Vectors of words, and of [`HALVES`] numbers of 16 bits. Results are modulo 2^32 and 2^16.
///
/// # Safety
/// of every function: the machine has the instructions, and what is read or written may be. Pointers need no alignment.
pub(crate) trait Vectors: Simd<T = i32> {
    type Halves: Copy;

    /// Bytes, with signs or without.
    unsafe fn widen<const SIGNED: bool>(from: *const u8) -> Self::Halves;
    unsafe fn store_halves(to: *mut i16, v: Self::Halves);
    unsafe fn add_halves(a: Self::Halves, b: Self::Halves) -> Self::Halves;
    unsafe fn sub_halves(a: Self::Halves, b: Self::Halves) -> Self::Halves;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// A fourth of multiples of four.
    unsafe fn quarter(v: Self::V) -> Self::V;
}

/// `Bᵀ · d · B` for each channel.
///
/// # Safety
/// The machine has the instructions of `V`; the channels of all pixels may be read, and those of all positions written.
#[inline(always)]
pub(crate) unsafe fn image<V: Vectors>(tile: &ImageTile) {
    // SAFETY: the caller's.
    unsafe {
        match (tile.is_signed, tile.channel_step == 1) {
            (true, true) => image_of::<V, true, true>(tile),
            (true, false) => image_of::<V, true, false>(tile),
            (false, true) => image_of::<V, false, true>(tile),
            (false, false) => image_of::<V, false, false>(tile),
        }
    }
}

/// # Safety
/// as [`image`].
#[inline(always)]
unsafe fn image_of<V: Vectors, const SIGNED: bool, const TOGETHER: bool>(tile: &ImageTile) {
    for channel in (0..tile.channels).step_by(HALVES) {
        // The last vector begins early enough to be whole.
        let channel = channel.min(tile.channels - HALVES);
        // SAFETY: the caller's.
        unsafe {
            let mut lines = [[pixel::<V, SIGNED, TOGETHER>(tile, 0, channel); 4]; 4];
            for row in 0..4 {
                for column in 0..4 {
                    let at = 4 * row + column;
                    lines[row][column] = pixel::<V, SIGNED, TOGETHER>(tile, at, channel);
                }
                lines[row] = line_of_image::<V>(lines[row]);
            }
            for column in 0..4 {
                let [a, b, c, d] = lines;
                let transformed = line_of_image::<V>([a[column], b[column], c[column], d[column]]);
                for row in 0..4 {
                    let to = tile.to.add((4 * row + column) * tile.step + channel);
                    V::store_halves(to, transformed[row]);
                }
            }
        }
    }
}

/// Channels of a pixel from number `channel` on.
///
/// # Safety
/// as [`image`]; there are as many.
#[inline(always)]
unsafe fn pixel<V: Vectors, const SIGNED: bool, const TOGETHER: bool>(
    tile: &ImageTile,
    number: usize,
    channel: usize,
) -> V::Halves {
    // SAFETY: the caller's.
    unsafe {
        if TOGETHER {
            return V::widen::<SIGNED>(tile.from[number].add(channel));
        }
        let from = tile.from[number].add(channel * tile.channel_step);
        let mut bytes = [0; HALVES];
        for at in 0..HALVES {
            bytes[at] = from.add(at * tile.channel_step).read();
        }
        V::widen::<SIGNED>(bytes.as_ptr())
    }
}

/// `Bᵀ · d`
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn line_of_image<V: Vectors>([a, b, c, d]: [V::Halves; 4]) -> [V::Halves; 4] {
    // SAFETY: the caller's.
    unsafe {
        [
            V::sub_halves(a, c),
            V::add_halves(b, c),
            V::sub_halves(c, b),
            V::sub_halves(b, d),
        ]
    }
}

/// `2·G · g · 2·Gᵀ` of `N` windows, whose element in row `r` and column `c` is `g[3·r + c]`.
pub(crate) fn windows<const N: usize>(g: &[[i16; N]; 9]) -> [[i16; N]; POSITIONS] {
    let mut positions = [[0; N]; POSITIONS];
    for at in 0..N {
        let mut lines = [[0; 4]; 3];
        for row in 0..3 {
            lines[row] = line_of_window([g[3 * row][at], g[3 * row + 1][at], g[3 * row + 2][at]]);
        }
        for column in 0..4 {
            let [a, b, c] = lines;
            let transformed = line_of_window([a[column], b[column], c[column]]);
            for row in 0..4 {
                positions[4 * row + column][at] = transformed[row];
            }
        }
    }
    positions
}

/// `2·G · g`
#[inline(always)]
fn line_of_window([a, b, c]: [i16; 3]) -> [i16; 4] {
    [2 * a, a + b + c, a - b + c, 2 * c]
}

/// A fourth of `Aᵀ · m · A` for each column.
///
/// # Safety
/// The machine has the instructions of `V`; vectors of all columns may be read, and all columns written where they are not null.
#[inline(always)]
pub(crate) unsafe fn results<V: Vectors>(tile: &ResultTile) {
    for column in (0..tile.columns).step_by(V::LANES) {
        let lanes = tile.columns - column;
        // SAFETY: the caller's.
        unsafe {
            let mut lines = [[V::load(tile.from); 4]; 2];
            for at in 0..4 {
                let mut m = [lines[0][0]; 4];
                for row in 0..4 {
                    m[row] = V::load(tile.from.add((4 * row + at) * tile.step + column));
                }
                let [top, bottom] = line_of_results::<V>(m);
                lines[0][at] = top;
                lines[1][at] = bottom;
            }
            for row in 0..2 {
                let results = line_of_results::<V>(lines[row]);
                for at in 0..2 {
                    let to = tile.to[2 * row + at];
                    if to.is_null() {
                        continue;
                    }
                    let to = to.add(column * tile.to_step);
                    let result = V::quarter(results[at]);
                    match lanes.min(V::LANES) {
                        lanes if tile.to_step != 1 => scatter::<V>(to, tile.to_step, result, lanes),
                        lanes if lanes < V::LANES => V::store_first(to, result, lanes),
                        _ => V::store(to, result),
                    }
                }
            }
        }
    }
}

/// Stores the first lanes of a vector `step` words apart.
///
/// # Safety
/// The machine has the instructions of `V`, which has as many lanes, and the words may be written.
#[inline(always)]
unsafe fn scatter<V: Vectors>(to: *mut i32, step: usize, v: V::V, lanes: usize) {
    let mut words = [0; MOST_LANES];
    // SAFETY: the caller's; a vector has no more lanes.
    unsafe {
        V::store(words.as_mut_ptr(), v);
        for lane in 0..lanes {
            to.add(lane * step).write_unaligned(words[lane]);
        }
    }
}

/// `Aᵀ · m`
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn line_of_results<V: Vectors>([a, b, c, d]: [V::V; 4]) -> [V::V; 2] {
    // SAFETY: the caller's.
    unsafe { [V::add(V::add(a, b), c), V::sub(V::sub(b, c), d)] }
}
