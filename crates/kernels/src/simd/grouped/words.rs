//! Lines of codes on machines that multiply words of four bytes.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use std::marker::PhantomData;

use super::{Integers, LineCodes, Lines};
use crate::grouped_tile::PANEL;
use crate::lanes::Simd;

/// Vectors whose lanes are words of four bytes.
///
/// # Safety
/// of every function: as [`Integers`].
pub(in crate::simd) trait Words: Integers {
    unsafe fn load_codes(from: *const u8) -> Self::V;
    /// The low halves of all bytes, and the high ones.
    unsafe fn halves(codes: Self::V) -> [Self::V; 2];
    /// All bytes with the other sign bit: numbers from -128 to 127 become those from 0 to 255.
    unsafe fn unsigned(codes: Self::V) -> Self::V;
    /// `sum`, and the products of the bytes of each word: those of `unsigned` without signs, and those of `signed`.
    unsafe fn add_products(sum: Self::V, unsigned: Self::V, signed: Self::V) -> Self::V;
}

/// The vectors of a line of a panel.
const fn vectors<W: Words>() -> usize {
    PANEL / <W::Floats as Simd>::LANES
}

/// Codes from 0 to 15, of 8 `k` a line.
pub(in crate::simd) struct HalvesOfWords<W>(PhantomData<W>);

impl<W: Words> LineCodes for HalvesOfWords<W> {
    type Integers = W;

    /// In tiles of few sums, low and high halves have sums of their own, so that more of them are under way.
    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[W::V; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let mut sums = [[[W::zero(); N]; H]; 2];
            for line in 0..lines.count {
                for panel in 0..N / vectors::<W>() {
                    let from = lines.line::<W::Floats>(line, panel);
                    for v in 0..vectors::<W>() {
                        let j = panel * vectors::<W>() + v;
                        let bytes = v * size_of::<W::V>();
                        let halves = W::halves(W::load_codes(from.wrapping_add(bytes)));
                        for half in 0..2 {
                            for i in 0..H {
                                let elements = W::splat(lines.elements(i, 8 * line + 4 * half));
                                let sum = &mut sums[if H * N < 8 { half } else { 0 }][i][j];
                                *sum = W::add_products(*sum, halves[half], elements);
                            }
                        }
                    }
                }
            }
            let [mut low, high] = sums;
            for i in 0..H {
                for j in 0..N {
                    low[i][j] = W::add(low[i][j], high[i][j]);
                }
            }
            low
        }
    }
}

/// Codes from -128 to 127, of 4 `k` a line. They are multiplied as numbers from 0 to 255, which have the other sign bit.
pub(in crate::simd) struct BytesOfWords<W>(PhantomData<W>);

impl<W: Words> LineCodes for BytesOfWords<W> {
    type Integers = W;
    const SHIFT: i16 = 128;

    #[inline(always)]
    unsafe fn sums<const H: usize, const N: usize>(lines: &Lines<H>) -> [[W::V; N]; H] {
        // SAFETY: the caller's.
        unsafe {
            let mut sums = [[W::zero(); N]; H];
            for line in 0..lines.count {
                for panel in 0..N / vectors::<W>() {
                    let from = lines.line::<W::Floats>(line, panel);
                    for v in 0..vectors::<W>() {
                        let j = panel * vectors::<W>() + v;
                        let bytes = v * size_of::<W::V>();
                        let numbers = W::unsigned(W::load_codes(from.wrapping_add(bytes)));
                        for i in 0..H {
                            let elements = W::splat(lines.elements(i, 4 * line));
                            sums[i][j] = W::add_products(sums[i][j], numbers, elements);
                        }
                    }
                }
            }
            sums
        }
    }
}
