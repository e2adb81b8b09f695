//! Where the rows of a tile lie, in the operand and in `out`.

use std::arch::x86_64::*;

use super::registers::{LINE, LINES};
use crate::simd::avx512::first;
use crate::tile::Tile;

/// How far it is from each of up to 16 offsets to the next, if equally far.
///
/// # Safety
/// There are `count`; the machine has the instructions.
#[inline(always)]
unsafe fn step_of(offsets: *const u32, count: usize) -> Option<usize> {
    // SAFETY: the caller's; lanes whose bit is not set are not read.
    unsafe {
        if count < 2 {
            return Some(0);
        }
        let start = *offsets;
        let step = (*offsets.add(1)).checked_sub(start)?;
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let expected = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(step as i32));
        let expected = _mm512_add_epi32(expected, _mm512_set1_epi32(start as i32));
        let found = _mm512_maskz_loadu_epi32(first(count), offsets.cast());
        let are_equal = _mm512_mask_cmpeq_epi32_mask(first(count), found, expected);
        // Offsets that rise are no sums that have wrapped around.
        let pairs = first(count - 1);
        let after = _mm512_maskz_loadu_epi32(pairs, offsets.add(1).cast());
        let rise = _mm512_mask_cmple_epu32_mask(pairs, found, after);
        (are_equal == first(count) && rise == pairs).then_some(step as usize)
    }
}

/// The low rows of a tile, or the high ones.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The offset of the first one in the operand, and in `out`.
    points: *const u32,
    offsets: *const u32,
    /// How far it is from each to the next in the operand.
    pub(super) step: usize,
    pub(super) count: usize,
}

impl Rows {
    /// `count` rows of a tile from number `start` on, if they are equally far apart.
    ///
    /// # Safety
    /// The tile has as many; the machine has the instructions.
    #[inline(always)]
    unsafe fn of(t: &Tile<i32>, start: usize, count: usize) -> Option<Rows> {
        let points = t.row_points.wrapping_add(start);
        Some(Rows {
            points,
            offsets: t.row_offsets.wrapping_add(start),
            // SAFETY: the caller's.
            step: unsafe { step_of(points, count) }?,
            count,
        })
    }

    /// The low and the high rows of a tile of `h` rows: as many low ones as there can be, or half of them.
    ///
    /// # Safety
    /// as [`Rows::of`].
    #[inline(always)]
    pub(super) unsafe fn low_and_high(t: &Tile<i32>, h: usize) -> Option<[Rows; 2]> {
        // SAFETY: the caller's.
        unsafe {
            for low in [h.min(LINES), h / 2] {
                if let (Some(low_rows), Some(high_rows)) =
                    (Rows::of(t, 0, low), Rows::of(t, low, h - low))
                {
                    return Some([low_rows, high_rows]);
                }
            }
        }
        None
    }

    /// The bytes of the first row from an offset on.
    ///
    /// # Safety
    /// There is a row.
    #[inline(always)]
    pub(super) unsafe fn at(&self, t: &Tile<i32>, offset: usize) -> *const u8 {
        // SAFETY: the caller's.
        let point = unsafe { *self.points } as usize;
        t.rows.cast::<u8>().wrapping_add(point + offset)
    }

    /// Where the sums of the rows are in `out`, if they are equally far apart there.
    ///
    /// # Safety
    /// as [`Rows::of`]; the tile has `N` vectors.
    #[inline(always)]
    pub(super) unsafe fn out<const N: usize>(&self, t: &Tile<i32>) -> Option<Sums<N>> {
        // SAFETY: the caller's.
        unsafe {
            let step = 4 * step_of(self.offsets, self.count)?;
            let mut at = [t.out; N];
            if self.count > 0 {
                for (j, at) in at.iter_mut().enumerate() {
                    let to = *self.offsets as usize + (*t.vectors.add(j)).to as usize;
                    *at = t.out.wrapping_add(to);
                }
            }
            Some(Sums { at, step })
        }
    }
}

/// Where the sums of the low or the high rows are, of each vector, and how many bytes it is from row to row.
pub(super) struct Sums<const N: usize> {
    pub(super) at: [*mut i32; N],
    pub(super) step: usize,
}

impl<const N: usize> Sums<N> {
    /// In memory from `start` on, `N` vectors for each row.
    #[inline(always)]
    pub(super) fn own(start: *mut i32) -> Sums<N> {
        let mut at = [start; N];
        for (j, at) in at.iter_mut().enumerate() {
            *at = start.wrapping_add(j * LINES);
        }
        Sums { at, step: N * LINE }
    }
}
