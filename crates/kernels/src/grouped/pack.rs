//! Packing codes.

use super::GroupedProduct;
use crate::grouped_tile::{GroupedCodes, LINE_BYTES, PANEL, Zero};
use crate::memory::elements;
use crate::packed::Packed;
use crate::{Code, Coding};
use std::ops::Range;

impl GroupedProduct {
    /// Packs the codes, with the zero points and scales of their groups. `None` if there is no memory, or the coding does not
    /// fit: it has other codes or groups, or zero points that are no integers from -255 to 255.
    ///
    /// # Panics
    /// if there are too few codes.
    pub fn pack(&self, codes: &[u8], coding: &Coding) -> Option<Packed> {
        elements(codes, self.code.stored_bytes(self.codes_needed), 1);
        let points = self.points(coding)?;
        let grouped = GroupedCodes {
            shape: self.shape,
            zero: points.zero,
            has_scales: coding.scale.is_some(),
        };
        let mut packed = Packed::grouped(grouped)?;
        if self.shape.k == 0 {
            return Some(packed);
        }
        let panels = packed.as_mut_slice();
        for (panel, to) in panels.chunks_exact_mut(grouped.panel_bytes()).enumerate() {
            let first = panel * PANEL;
            let columns = first..self.shape.n.min(first + PANEL);
            for (group, to) in to.chunks_exact_mut(grouped.group_bytes()).enumerate() {
                let start = group * self.shape.n;
                let points_of = start + columns.start..start + columns.end;
                let (head, lines) = to.split_at_mut(grouped.points_bytes());
                let (zeros, scales) = head.split_at_mut(grouped.zero_bytes());
                if points.zero == Zero::Each {
                    let numbers = &points.zeros[points_of.clone()];
                    put(zeros, numbers, i16::to_le_bytes);
                }
                if let Some(numbers) = &coding.scale {
                    put(scales, &numbers[points_of], f32::to_le_bytes);
                }
                self.pack_lines(codes, columns.clone(), group * self.shape.group, lines);
            }
        }
        Some(packed)
    }

    /// Packs lines of some columns from number `k` on.
    fn pack_lines(&self, codes: &[u8], columns: Range<usize>, mut k: usize, lines: &mut [u8]) {
        for line in lines.chunks_exact_mut(LINE_BYTES) {
            for (column, to) in columns.clone().zip(line.chunks_exact_mut(4)) {
                let word = self.word(codes, column * self.column_step + k * self.k_step);
                to.copy_from_slice(&word.to_le_bytes());
            }
            k += self.shape.depth;
        }
    }

    /// The zero points, if the coding fits.
    fn points(&self, coding: &Coding) -> Option<ZeroPoints> {
        let shape = &self.shape;
        let has_points = coding.zero.is_some() || coding.scale.is_some();
        let is_whole = shape.k == 0 || !has_points || coding.group.min(shape.k) == shape.group;
        let count = shape.n * shape.groups();
        let fits = |values: &Option<Vec<f32>>| {
            shape.k == 0 || values.as_ref().is_none_or(|v| v.len() == count)
        };
        if coding.code != self.code || !is_whole || !fits(&coding.zero) || !fits(&coding.scale) {
            return None;
        }
        let shift = self.shift();
        let number = |zero: &f32| {
            let is_short = zero.fract() == 0.0 && (-255.0..=255.0).contains(zero);
            is_short.then_some(*zero as i16 + shift)
        };
        let zeros = coding.zero.iter().flatten().map(number);
        let zeros: Vec<i16> = zeros.collect::<Option<_>>()?;
        let first = zeros.first().copied().unwrap_or(shift);
        Some(match zeros.iter().all(|zero| *zero == first) {
            true => ZeroPoints {
                zero: Zero::Same(first.into()),
                zeros: Vec::new(),
            },
            false => ZeroPoints {
                zero: Zero::Each,
                zeros,
            },
        })
    }

    /// How much larger packed codes are than the numbers they stand for.
    fn shift(&self) -> i16 {
        match self.code {
            Code::I4 => 8,
            Code::U8 => -128,
            _ => 0,
        }
    }

    /// 4 bytes of a line: the codes of a column from the element of number `at` on.
    fn word(&self, codes: &[u8], at: usize) -> u32 {
        let is_line = self.k_step == 1;
        match self.code {
            Code::I4 | Code::U4 => {
                // Codes in the order of `k`, the first in the lowest bits.
                let word = match is_line && at.is_multiple_of(2) {
                    true => four_bytes(&codes[at / 2..]),
                    false => (0..8).rev().fold(0, |word, k| {
                        let element = at + k * self.k_step;
                        let code = codes[element / 2] >> (element % 2 * 4) & 15;
                        word << 4 | u32::from(code)
                    }),
                };
                let sign = if self.code == Code::I4 {
                    0x8888_8888
                } else {
                    0
                };
                let bytes = spread(word & 0xffff) | spread(word >> 16) << 4;
                bytes ^ sign
            }
            _ => {
                let word = match is_line {
                    true => four_bytes(&codes[at..]),
                    false => (0..4).rev().fold(0, |word, k| {
                        word << 8 | u32::from(codes[at + k * self.k_step])
                    }),
                };
                let sign = if self.code == Code::U8 {
                    0x8080_8080
                } else {
                    0
                };
                word ^ sign
            }
        }
    }
}

/// Zero points, as they are packed.
struct ZeroPoints {
    zero: Zero,
    /// For each group one for each column; none if all are the same.
    zeros: Vec<i16>,
}

/// Puts numbers of `SIZE` bytes one after another.
fn put<T: Copy, const SIZE: usize>(to: &mut [u8], numbers: &[T], bytes: fn(T) -> [u8; SIZE]) {
    for (to, number) in to.chunks_exact_mut(SIZE).zip(numbers) {
        to.copy_from_slice(&bytes(*number));
    }
}

fn four_bytes(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The four halves of bytes of 16 bits, each in a byte of its own.
fn spread(halves: u32) -> u32 {
    let pairs = (halves | halves << 8) & 0x00ff_00ff;
    (pairs | pairs << 4) & 0x0f0f_0f0f
}
