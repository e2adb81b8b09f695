//! Tiles of rows of bytes by packed codes of 4 or 8 bits, in vectors of any width.
//!
//! A tile of `H` rows has `N` vectors of totals in each. They may wait in memory while the lines of a group are summed.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

pub(super) mod words;

use crate::codes::Codes;
use crate::grouped_tile::{AHEAD, LINE_BYTES, PANEL, Steps, Tile};
use crate::lanes::Simd;

/// Vectors of `i32` with as many lanes as those of `f32`.
///
/// # Safety
/// of every function: the machine has the instructions, and of pointers as many elements may be read as there are lanes.
pub(super) trait Integers {
    type Floats: Codes;
    type V: Copy;
    unsafe fn zero() -> Self::V;
    unsafe fn splat(number: i32) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// `a · b`, where `a` is from [`load_unsigned`](Integers::load_unsigned), of numbers of 16 bits with signs.
    unsafe fn mul_short(a: Self::V, b: Self::V) -> Self::V;
    /// Numbers of 16 bits, and `shift` added to each.
    unsafe fn load(from: *const i16, shift: i16) -> Self::V;
    /// As [`load`](Integers::load), but that the high halves of lanes are zero.
    unsafe fn load_unsigned(from: *const i16, shift: i16) -> Self::V;
    unsafe fn floats(v: Self::V) -> <Self::Floats as Simd>::V;
}

/// How lines of codes are multiplied.
pub(super) trait LineCodes {
    type Integers: Integers;
    /// How much larger the numbers that are multiplied are than the packed codes.
    const SHIFT: i16 = 0;

    /// The sums of the products of some lines.
    ///
    /// # Safety
    /// The machine has the instructions, and all lines and as many elements of each row may be read.
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[Sums<Self>; N]; H];
}

pub(super) type Sums<C> = <<C as LineCodes>::Integers as Integers>::V;

type FloatsOf<C> = <<C as LineCodes>::Integers as Integers>::Floats;

type Totals<C> = <FloatsOf<C> as Simd>::V;

/// Lines of a group.
pub(super) struct Lines<const H: usize> {
    /// The first line of the first panel, and how much further its next one is.
    codes: *const u8,
    line_step: usize,
    /// From where on a tile prefetches a line for each that it takes, of `panels` panels at a time. `None`: it prefetches what is
    /// [`AHEAD`] bytes after each.
    ahead: Option<*const u8>,
    panels: usize,
    /// The elements of each row.
    rows: [*const i8; H],
    /// How many lines there are.
    pub(super) count: usize,
}

impl<const H: usize> Lines<H> {
    /// Where a line of a panel is. For each a tile prefetches one that comes later.
    ///
    /// # Safety
    /// The machine has the instructions of `F`.
    #[inline(always)]
    pub(super) unsafe fn line<F: Codes>(&self, line: usize, panel: usize) -> *const u8 {
        let from = (self.codes).wrapping_add(line * self.line_step + panel * LINE_BYTES);
        let ahead = match self.ahead {
            Some(ahead) => ahead.wrapping_add((line * self.panels + panel) * LINE_BYTES),
            None => from.wrapping_add(AHEAD),
        };
        // SAFETY: the caller's; fetching reads nothing.
        unsafe { F::fetch_codes(ahead) }
        from
    }

    /// Four elements of a row, as a word.
    ///
    /// # Safety
    /// as [`LineCodes::sums`].
    #[inline(always)]
    pub(super) unsafe fn elements(&self, row: usize, k: usize) -> i32 {
        let from: *const i32 = self.rows[row].wrapping_add(k).cast();
        // SAFETY: the caller's.
        unsafe { from.read_unaligned() }
    }
}

/// The tile of `H` rows and `N` vectors of columns, of which `P` at a time, those of whole panels, have the sums of a group.
///
/// # Safety
/// as [`TileFn`](crate::grouped_tile::TileFn).
#[inline(always)]
pub(super) unsafe fn tile<C: LineCodes, const H: usize, const N: usize, const P: usize>(
    tile: &Tile,
) {
    let steps = tile.steps;
    let (lanes, vectors) = (FloatsOf::<C>::LANES, PANEL / FloatsOf::<C>::LANES);
    // SAFETY: by the contract of `TileFn` all that is read and written here may be.
    unsafe {
        let mut totals = [[FloatsOf::<C>::zero(); N]; H];
        let mut rows = [tile.rows[0].elements; H];
        for i in 0..H {
            rows[i] = tile.rows[i].elements;
        }
        let line_step = tile.strip.line_step();
        let mut number = 0;
        for group in 0..steps.groups {
            let points = tile.strip.points(&steps, group);
            let mut codes = tile.strip.lines(&steps, group);
            for _ in 0..steps.row_groups {
                for first in (0..N).step_by(P) {
                    let panel = first / vectors;
                    let lines = Lines {
                        codes: codes.wrapping_add(panel * LINE_BYTES),
                        line_step,
                        ahead: (P < N).then(|| tile.strip.next_group(&steps, codes, panel)),
                        panels: P / vectors,
                        rows,
                        count: steps.lines,
                    };
                    let sums = C::sums::<H, P>(&lines);
                    let points = points.wrapping_add(panel * steps.points_bytes);
                    let totals = totals.each_mut().map(|all| all.as_mut_ptr().add(first));
                    add_group::<C, H, P>(tile, points, number, sums, totals);
                }
                for i in 0..H {
                    rows[i] = rows[i].wrapping_add(steps.row_group);
                }
                codes = codes.wrapping_add(steps.lines * line_step);
                number += 1;
            }
        }
        for i in 0..H {
            for j in 0..N {
                let count = tile.columns.saturating_sub(j * lanes).min(lanes);
                let place = tile.places[j / vectors] + j % vectors * lanes;
                let to = tile.rows[i].out.wrapping_add(place);
                match count == lanes {
                    true => FloatsOf::<C>::store(to, totals[i][j]),
                    false => FloatsOf::<C>::store_first(to, totals[i][j], count),
                }
            }
        }
    }
}

/// Up to this many elements of a row have a sum of 16 bits.
const SHORT: usize = i16::MAX as usize / 127;

/// The scales where there are none.
static ONES: [f32; PANEL] = [1.0; PANEL];

/// Adds the sums of group `number` of the rows to the totals, scaled; `points` are the zero points and scales of the first of
/// their panels, and `totals` where those of each row begin.
///
/// # Safety
/// as [`tile`].
#[inline(always)]
unsafe fn add_group<C: LineCodes, const H: usize, const N: usize>(
    tile: &Tile,
    points: *const u8,
    number: usize,
    mut sums: [[Sums<C>; N]; H],
    totals: [*mut Totals<C>; H],
) {
    let steps = &tile.steps;
    let (lanes, vectors) = (FloatsOf::<C>::LANES, PANEL / FloatsOf::<C>::LANES);
    let (scales, scales_step): (*const f32, usize) = match steps.has_scales {
        true => (
            points.wrapping_add(steps.zero_bytes).cast(),
            steps.points_bytes,
        ),
        false => (ONES.as_ptr(), 0),
    };
    // SAFETY: the caller's.
    unsafe {
        let mut taken = [C::Integers::zero(); H];
        for i in 0..H {
            taken[i] = C::Integers::splat(*tile.rows[i].sums.add(number));
        }
        if !steps.has_zeros() {
            for i in 0..H {
                for j in 0..N {
                    sums[i][j] = C::Integers::add(sums[i][j], taken[i]);
                }
            }
        } else if steps.row_group <= SHORT {
            for j in 0..N {
                // The high half of a lane is zero, whatever the sum of the row has there.
                let zeros = C::Integers::load_unsigned(zeros_of(points, steps, j, lanes), C::SHIFT);
                for i in 0..H {
                    let taken = C::Integers::mul_short(zeros, taken[i]);
                    sums[i][j] = C::Integers::add(sums[i][j], taken);
                }
            }
        } else {
            for j in 0..N {
                let zeros = C::Integers::load(zeros_of(points, steps, j, lanes), C::SHIFT);
                for i in 0..H {
                    let taken = C::Integers::mul(zeros, taken[i]);
                    sums[i][j] = C::Integers::add(sums[i][j], taken);
                }
            }
        }
        for j in 0..N {
            let panel = scales.wrapping_byte_add(j / vectors * scales_step);
            let scale = FloatsOf::<C>::load(panel.wrapping_add(j % vectors * lanes));
            for i in 0..H {
                let scaled = FloatsOf::<C>::mul(C::Integers::floats(sums[i][j]), scale);
                let row_scale = FloatsOf::<C>::splat(tile.rows[i].scales.wrapping_add(number));
                let total = totals[i].add(j);
                *total = FloatsOf::<C>::fma(row_scale, scaled, *total);
            }
        }
    }
}

/// The zero points of vector `j` of the columns, where those of the first panel start at `points`.
#[inline(always)]
fn zeros_of(points: *const u8, steps: &Steps, j: usize, lanes: usize) -> *const i16 {
    let place = j * lanes;
    let panel: *const i16 = points
        .wrapping_add(place / PANEL * steps.points_bytes)
        .cast();
    panel.wrapping_add(place % PANEL)
}
