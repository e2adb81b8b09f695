//! Sums of lines of codes.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use std::arch::x86_64::*;

use crate::grouped_tile::{LINE_BYTES, PANEL};

/// The vectors of a panel.
pub(super) const VECTORS: usize = PANEL / 8;

/// How many lines ahead of those that a tile takes the lines of a panel are fetched: as far as memory is slow.
const AHEAD: usize = 16;

/// How lines of codes are multiplied.
pub(super) trait LineCodes {
    /// The sums of the products of some lines.
    ///
    /// # Safety
    /// The machine has AVX2, and all lines and as many elements of each row may be read.
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[__m256i; N]; H];
}

/// Lines of a group.
pub(super) struct Lines<const H: usize> {
    /// The first line of the first panel, and how much further that of the next one is.
    pub(super) codes: *const u8,
    pub(super) panel_step: usize,
    /// The elements of each row.
    pub(super) rows: [*const i8; H],
    pub(super) count: usize,
    /// How many lines the first panel has left, and how much further the panels after the tile's are than those after it.
    pub(super) left: usize,
    pub(super) others: usize,
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
pub(super) struct Halves;

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
pub(super) struct Bytes;

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
