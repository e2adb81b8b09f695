//! Packing codes.

use super::GroupedProduct;
use crate::grouped_tile::{GroupedCodes, GroupedRows, LINE_BYTES, PANEL, Points, STRIP, Zero};
use crate::memory::elements;
use crate::packed::Packed;
use crate::prepack_coded::lay_square;
use crate::{Code, Coding};
use std::ops::Range;
use vinelift_tensor::half::f16;

/// How many columns, and bytes of each, [`lay_square`] lays across.
const SQUARE: usize = 8;

impl GroupedProduct {
    /// Packs the codes, with the zero points and scales of their groups. `None` if there is no memory, or the coding does not
    /// fit: it has other codes or groups, or, for rows of bytes, zero points that are no integers from -255 to 255.
    ///
    /// # Panics
    /// if there are too few codes.
    pub fn pack(&self, codes: &[u8], coding: &Coding) -> Option<Packed> {
        elements(codes, self.code.stored_bytes(self.codes_needed), 1);
        if !self.fits(coding) {
            return None;
        }
        let values = match self.shape.rows {
            GroupedRows::Bytes => self.points_of_bytes(coding)?,
            GroupedRows::Floats => self.points_of_floats(coding),
        };
        let grouped = GroupedCodes {
            shape: self.shape,
            points: values.points,
        };
        let mut packed = Packed::grouped(grouped)?;
        if self.shape.k == 0 {
            return Some(packed);
        }
        let strips = packed.as_mut_slice();
        let mut lines = vec![0; self.shape.lines() * LINE_BYTES];
        for (strip, to) in strips.chunks_mut(STRIP * grouped.panel_bytes()).enumerate() {
            let panels = to.len() / grouped.panel_bytes();
            let groups = to.chunks_exact_mut(panels * grouped.group_bytes());
            for (group, to) in groups.enumerate() {
                let (points, to) = to.split_at_mut(panels * grouped.points_bytes());
                for panel in 0..panels {
                    let first = (strip * STRIP + panel) * PANEL;
                    let columns = first..self.shape.n.min(first + PANEL);
                    let start = group * self.shape.n;
                    let points_of = start + columns.start..start + columns.end;
                    let head = &mut points[panel * grouped.points_bytes()..];
                    let (zeros, scales) = head.split_at_mut(grouped.zero_bytes());
                    values.zeros.put(zeros, points_of.clone());
                    values.scales.put(scales, points_of);
                    if columns.len() < PANEL {
                        // A last panel of fewer columns: the codes of those that it lacks are zero.
                        lines.fill(0);
                    }
                    self.pack_lines(codes, columns, group * self.shape.group, &mut lines);
                    let own = to[panel * LINE_BYTES..].chunks_mut(panels * LINE_BYTES);
                    for (line, to) in lines.chunks_exact(LINE_BYTES).zip(own) {
                        to[..LINE_BYTES].copy_from_slice(line);
                    }
                }
            }
        }
        Some(packed)
    }

    /// Packs lines of some columns from number `k` on.
    fn pack_lines(&self, codes: &[u8], columns: Range<usize>, k: usize, lines: &mut [u8]) {
        match self.shape.rows {
            GroupedRows::Bytes => self.pack_words(codes, columns, k, lines),
            GroupedRows::Floats => self.pack_bytes(codes, columns, k, lines),
        }
    }

    /// As [`pack_lines`](GroupedProduct::pack_lines), for rows of bytes: the bytes of a column lie together in a line.
    fn pack_words(&self, codes: &[u8], columns: Range<usize>, mut k: usize, lines: &mut [u8]) {
        for line in lines.chunks_exact_mut(LINE_BYTES) {
            for (column, to) in columns.clone().zip(line.chunks_exact_mut(4)) {
                let word = self.word_of_bytes(codes, self.element(column, k));
                to.copy_from_slice(&word.to_le_bytes());
            }
            k += self.shape.depth;
        }
    }

    /// As [`pack_lines`](GroupedProduct::pack_lines), for rows of floats: the bytes of all columns lie across.
    fn pack_bytes(&self, codes: &[u8], columns: Range<usize>, k: usize, lines: &mut [u8]) {
        if self.column_step == 1 {
            return self.pack_rows(codes, columns, k, lines);
        }
        let columns: Vec<usize> = columns.collect();
        let is_half = self.code.depth() == 2;
        for (number, columns) in columns.chunks(SQUARE).enumerate() {
            let first = |column: &usize| self.element(*column, k);
            let are_bytes = self.k_step == 1
                && columns.len() == SQUARE
                && !(is_half && columns.iter().any(|c| first(c) % 2 > 0));
            // Squares of bytes are laid across as a whole, and what is left over line by line.
            let whole = match are_bytes {
                true => lines.len() / (SQUARE * PANEL) * SQUARE,
                false => 0,
            };
            for byte in (0..whole).step_by(SQUARE) {
                let from = std::array::from_fn(|at| {
                    let start = columns.get(at).map_or(0, first);
                    &codes[start / self.code.depth() + byte..]
                });
                lay_square::<1>(from, &mut lines[byte * PANEL + number * SQUARE..], PANEL);
            }
            let mut k = k + whole * self.code.depth();
            let rest = &mut lines[whole * PANEL..];
            for line in rest.chunks_exact_mut(LINE_BYTES) {
                for (at, column) in columns.iter().enumerate() {
                    let word = self.word(codes, self.element(*column, k));
                    for (part, byte) in word.to_le_bytes().into_iter().enumerate() {
                        line[part * PANEL + number * SQUARE + at] = byte;
                    }
                }
                k += self.shape.depth;
            }
        }
    }

    /// As [`pack_bytes`](GroupedProduct::pack_bytes), of columns that lie side by side among the codes.
    fn pack_rows(&self, codes: &[u8], columns: Range<usize>, k: usize, lines: &mut [u8]) {
        let depth = self.code.depth();
        for (part, to) in lines.chunks_exact_mut(PANEL).enumerate() {
            let to = &mut to[..columns.len()];
            let [first, second] =
                [0, 1].map(|at| self.element(columns.start, k + part * depth + at));
            match depth {
                1 => to.copy_from_slice(&codes[first..first + columns.len()]),
                _ => put_halves(to, codes, [first, second]),
            }
        }
    }

    /// The number of the element that a column has for `k`.
    fn element(&self, column: usize, k: usize) -> usize {
        column * self.column_step + k * self.k_step
    }

    /// Whether a coding is of these codes, with zero points and scales for these groups or none.
    fn fits(&self, coding: &Coding) -> bool {
        let shape = &self.shape;
        let has_points = coding.zero.is_some() || coding.scale.is_some();
        let is_whole = shape.k == 0 || !has_points || coding.group.min(shape.k) == shape.group;
        let count = shape.n * shape.groups();
        let has_all = |values: &Option<Vec<f32>>| {
            shape.k == 0 || values.as_ref().is_none_or(|v| v.len() == count)
        };
        coding.code == self.code && is_whole && has_all(&coding.zero) && has_all(&coding.scale)
    }

    /// The zero points and scales as rows of bytes need them.
    fn points_of_bytes(&self, coding: &Coding) -> Option<PointValues> {
        let shift = self.shift();
        let number = |zero: &f32| {
            let is_short = zero.fract() == 0.0 && (-255.0..=255.0).contains(zero);
            is_short.then_some(*zero as i16 + shift)
        };
        let zeros = coding.zero.iter().flatten().map(number);
        let zeros: Vec<i16> = zeros.collect::<Option<_>>()?;
        let first = zeros.first().copied().unwrap_or(shift);
        let is_same = zeros.iter().all(|zero| *zero == first);
        Some(PointValues {
            points: Points::OfBytes {
                zero: match is_same {
                    true => Zero::Same(first.into()),
                    false => Zero::Each,
                },
                has_scales: coding.scale.is_some(),
            },
            zeros: match is_same {
                true => Values::None,
                false => Values::I16(zeros),
            },
            scales: match &coding.scale {
                Some(scales) => Values::F32(scales.clone()),
                None => Values::None,
            },
        })
    }

    /// The zero points and scales as rows of floats need them.
    fn points_of_floats(&self, coding: &Coding) -> PointValues {
        let one = || vec![1.0; self.shape.n * self.shape.groups()];
        let scales = coding.scale.clone().unwrap_or_else(one);
        let short = |value: &f32| f16::from_f32(*value);
        let is_short = |value: &f32| short(value).to_f32().to_bits() == value.to_bits();
        let are_half = coding.zero.iter().flatten().chain(&scales).all(is_short);
        let values = |values: &Vec<f32>| match are_half {
            true => Values::F16(values.iter().map(short).collect()),
            false => Values::F32(values.clone()),
        };
        PointValues {
            points: Points::OfFloats {
                has_zeros: coding.zero.is_some(),
                are_half,
            },
            zeros: coding.zero.as_ref().map_or(Values::None, values),
            scales: values(&scales),
        }
    }

    /// How much larger packed codes are than the numbers they stand for.
    fn shift(&self) -> i16 {
        match self.code {
            Code::I4 => 8,
            Code::U8 => -128,
            _ => 0,
        }
    }

    /// The 4 bytes of a column in a line for rows of bytes, whose codes begin at the element of number `at`.
    fn word_of_bytes(&self, codes: &[u8], at: usize) -> u32 {
        let word = self.word(codes, at);
        match self.code {
            Code::I4 | Code::U4 => {
                let sign = if self.code == Code::I4 {
                    0x8888_8888
                } else {
                    0
                };
                let bytes = spread(word & 0xffff) | spread(word >> 16) << 4;
                bytes ^ sign
            }
            Code::U8 => word ^ 0x8080_8080,
            _ => word,
        }
    }

    /// The codes of a column in a line, which begin at the element of number `at`, in the order of `k`, the first in the lowest
    /// bits.
    fn word(&self, codes: &[u8], at: usize) -> u32 {
        let is_line = self.k_step == 1;
        match self.code {
            Code::I4 | Code::U4 => match is_line && at.is_multiple_of(2) {
                true => four_bytes(&codes[at / 2..]),
                false => (0..8).rev().fold(0, |word, k| {
                    let element = at + k * self.k_step;
                    let code = codes[element / 2] >> (element % 2 * 4) & 15;
                    word << 4 | u32::from(code)
                }),
            },
            _ => match is_line {
                true => four_bytes(&codes[at..]),
                false => (0..4).rev().fold(0, |word, k| {
                    word << 8 | u32::from(codes[at + k * self.k_step])
                }),
            },
        }
    }
}

/// Zero points and scales, as they are packed: for each group one of each column.
struct PointValues {
    points: Points,
    zeros: Values,
    scales: Values,
}

/// Numbers of one type.
enum Values {
    None,
    I16(Vec<i16>),
    F16(Vec<f16>),
    F32(Vec<f32>),
}

impl Values {
    /// Puts some of them one after another, if there are any.
    fn put(&self, to: &mut [u8], which: Range<usize>) {
        match self {
            Values::None => {}
            Values::I16(values) => put(to, &values[which], i16::to_le_bytes),
            Values::F16(values) => put(to, &values[which], f16::to_le_bytes),
            Values::F32(values) => put(to, &values[which], f32::to_le_bytes),
        }
    }
}

/// Puts numbers of `SIZE` bytes one after another.
fn put<T: Copy, const SIZE: usize>(to: &mut [u8], numbers: &[T], bytes: fn(T) -> [u8; SIZE]) {
    for (to, number) in to.chunks_exact_mut(SIZE).zip(numbers) {
        to.copy_from_slice(&bytes(*number));
    }
}

/// Puts a byte for each column, whose low half is a code of the first row and whose high half is one of the second: these are
/// from the given elements on.
fn put_halves(to: &mut [u8], codes: &[u8], [first, second]: [usize; 2]) {
    let half = |element: usize| codes[element / 2] >> (element % 2 * 4) & 15;
    let are_bytes = first.is_multiple_of(2) && second.is_multiple_of(2);
    let pairs = if are_bytes { to.len() / 2 } else { 0 };
    let [low, high] = [first, second].map(|at| &codes[at / 2..][..pairs]);
    for ((to, low), high) in to.chunks_exact_mut(2).zip(low).zip(high) {
        to[0] = low & 15 | high << 4;
        to[1] = low >> 4 | high & 0xf0;
    }
    for (column, to) in to.iter_mut().enumerate().skip(2 * pairs) {
        *to = half(first + column) | half(second + column) << 4;
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
