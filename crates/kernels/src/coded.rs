//! Operands that are kept as they are stored: numbers of 8 or 16 bits, of which tasks make elements.
//!
//! > `element[k, p] = (number[k, p] - zero[p]) · scale[p]`, each operation rounded to `f32`
//!
//! So the weights of a network take a quarter or half of the memory, and of the time to come from there.

use std::ops::Range;

use crate::geometry::{ColumnPanel, parts};
use crate::packed::Packed;
use crate::prepared::Side;
use crate::run::elements;
use crate::simd::Simd;
use crate::{Element, PreparedContraction};

/// How the elements of an operand of `f32` are stored, before it is packed.
#[derive(Clone, Debug)]
pub struct Coding {
    /// The type of the codes.
    pub code: Code,
    /// The zero points, which are subtracted: one for each point of the operand's `m` or `n`, or none.
    pub zero: Option<Vec<f32>>,
    /// The scales, which the differences are multiplied by.
    pub scale: Option<Vec<f32>>,
}

/// Numbers that are exact as `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// `i8`.
    I8,
    /// `u8`.
    U8,
    /// `f16`.
    F16,
}

impl Code {
    /// The size of a number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Code::I8 | Code::U8 => 1,
            Code::F16 => 2,
        }
    }
}

/// The codes of a packed operand, with the zero points and scales that make elements of them.
#[derive(Debug)]
pub(crate) struct Coded {
    pub(crate) code: Code,
    /// For each point, and a vector more: 0 and 1 if nothing was said.
    pub(crate) zero: Box<[f32]>,
    pub(crate) scale: Box<[f32]>,
    /// Whether tiles can take the numbers: see [`crate::tile::coded_tile`].
    pub(crate) in_tiles: bool,
}

impl Coded {
    /// Lines of packed numbers that start at number `place`, `step` numbers apart, of the points from `point`
    /// on. Where they go is not said yet.
    pub(crate) fn lines<T>(
        &self,
        from: *const u8,
        place: usize,
        step: usize,
        point: usize,
    ) -> Decode<T> {
        let size = self.code.bytes();
        Decode {
            from: from.wrapping_add(place * size),
            step: step * size,
            code: self.code,
            zero: self.zero[point..].as_ptr(),
            scale: self.scale[point..].as_ptr(),
            to: std::ptr::null_mut(),
            width: 0,
            k: 0,
        }
    }
}

/// Up to this many tiles each make elements of the same numbers; more would take longer than reading elements.
pub(crate) const FEW_PANELS: usize = 3;

/// From this many vectors of columns on it does not count what tasks need to make elements of their rows.
pub(crate) const MANY_VECTORS: usize = 16;

/// The most lanes of a vector of `f32`, which are read at once even where fewer count.
const MOST_LANES: usize = 16;

impl PreparedContraction {
    /// As [`pack_left`](PreparedContraction::pack_left), of coded elements: either as they are, or as `f32` where tasks would
    /// make elements too often. `None` if that is not for this kernel.
    ///
    /// # Panics
    /// as there.
    pub fn pack_left_coded(&self, left: &[u8], coding: &Coding) -> Option<Packed> {
        self.pack_coded(left, coding, self.exchanged)
    }

    /// As [`pack_left_coded`](PreparedContraction::pack_left_coded), of the right operand.
    ///
    /// # Panics
    /// as there.
    pub fn pack_right_coded(&self, right: &[u8], coding: &Coding) -> Option<Packed> {
        self.pack_coded(right, coding, !self.exchanged)
    }

    fn pack_coded(&self, bytes: &[u8], coding: &Coding, columns: bool) -> Option<Packed> {
        let (side, one, count) = self.side(columns);
        let points = side.points.len();
        let fits = |values: &Option<Vec<f32>>| values.as_ref().is_none_or(|v| v.len() == points);
        if self.element != Element::F32 || !fits(&coding.zero) || !fits(&coding.scale) {
            return None;
        }
        let size = coding.code.bytes();
        elements::<u8>(bytes, side.needed * size);
        let padded = points.next_multiple_of(MOST_LANES) + MOST_LANES;
        let pad = |mut values: Vec<f32>| {
            values.resize(padded, 0.0);
            values.into()
        };
        let coded = Coded {
            code: coding.code,
            in_tiles: match coding.code {
                Code::I8 => coding.zero.is_none(),
                Code::U8 => true,
                Code::F16 => coding.zero.is_none() && coding.scale.is_none(),
            },
            zero: pad(coding.zero.clone().unwrap_or_else(|| vec![0.0; points])),
            scale: pad(coding.scale.clone().unwrap_or_else(|| vec![1.0; points])),
        };
        let length = count.checked_mul(size)?;
        let mut packed = Packed::coded(length, MOST_LANES * size, columns, coded)?;
        if count > 0 {
            let to = packed.as_mut_slice();
            let panels = self.panels(columns);
            for batch in 0..self.batch.points() {
                let [row_offset, column_offset, _, row_copy, column_copy] = self.batch.at(batch);
                let (offset, copy) = match columns {
                    true => (column_offset, column_copy),
                    false => (row_offset, row_copy),
                };
                let from = &bytes[offset * size..];
                for panel in &panels {
                    let to = &mut to[(copy * one + panel.place) * size..];
                    match size {
                        1 => pack_panel::<1>(side, panel, from, to),
                        _ => pack_panel::<2>(side, panel, from, to),
                    }
                }
            }
        }
        match self.stays_coded(columns) {
            true => Some(packed),
            false => self.decoded(&packed, columns),
        }
    }

    /// The elements of a packed operand of numbers.
    fn decoded(&self, packed: &Packed, columns: bool) -> Option<Packed> {
        let (Some(code), Some(decode)) = (packed.code(), self.engine::<f32>().decode) else {
            unreachable!("there are numbers, and every engine of `f32` makes elements of them");
        };
        let (side, one, count) = self.side(columns);
        let from = packed.elements(count, code.code.bytes(), columns);
        let mut elements = Packed::zeroed(count.checked_mul(size_of::<f32>())?, columns)?;
        let to: *mut f32 = elements.as_mut_ptr().cast();
        let panels = self.panels(columns);
        let copies = if count == 0 { 0 } else { side.copies };
        for copy in 0..copies {
            for panel in &panels {
                let place = copy * one + panel.place;
                let lines = Decode {
                    to: to.wrapping_add(place),
                    width: panel.width,
                    k: self.k,
                    ..code.lines(from, place, panel.width, panel.points.start)
                };
                // SAFETY: the panel lies there in both operands, and after the numbers is as much as a vector
                // may read.
                unsafe { decode(&lines) }
            }
        }
        Some(elements)
    }

    /// The panels of one batch of a packed operand.
    fn panels(&self, columns: bool) -> Vec<PackedPanel> {
        if columns {
            let of = |panel: &ColumnPanel| {
                let first = panel.first_column as usize;
                PackedPanel {
                    points: first..first + panel.columns as usize,
                    width: panel.vectors as usize * self.lanes,
                    place: self.packed_place(panel, self.k),
                }
            };
            return self.packed.panels.iter().map(of).collect();
        }
        let of = |rows: Range<usize>| PackedPanel {
            width: rows.len(),
            place: rows.start * self.k,
            points: rows,
        };
        let rows = parts(self.rows.points.len(), self.row_panels);
        rows.map(of).collect()
    }
}

/// Some points of a packed operand.
struct PackedPanel {
    points: Range<usize>,
    /// Lines are so long, and the first starts here.
    width: usize,
    place: usize,
}

/// Packs a panel of numbers of `SIZE` bytes, to where it starts.
fn pack_panel<const SIZE: usize>(side: &Side, panel: &PackedPanel, from: &[u8], to: &mut [u8]) {
    /// As many lines as one line of the cache has bytes.
    const LINES: usize = 64;
    let (points, width) = (&side.points[panel.points.clone()], panel.width);
    let contiguous = points.is_sorted_by(|a, b| a + 1 == *b);
    let lines = side.offsets.chunks(LINES);
    for (offsets, to) in lines.zip(to.chunks_mut(LINES * width * SIZE)) {
        if contiguous {
            let bytes = points.len() * SIZE;
            for (&offset, line) in offsets.iter().zip(to.chunks_mut(width * SIZE)) {
                let start = (offset as usize + points[0] as usize) * SIZE;
                line[..bytes].copy_from_slice(&from[start..start + bytes]);
            }
            continue;
        }
        for (lane, &point) in points.iter().enumerate() {
            for (line, &offset) in offsets.iter().enumerate() {
                let from_at = (offset as usize + point as usize) * SIZE;
                let to_at = (line * width + lane) * SIZE;
                to[to_at..to_at + SIZE].copy_from_slice(&from[from_at..from_at + SIZE]);
            }
        }
    }
}

/// Packed numbers of which elements are to be made.
pub(crate) struct Decode<T> {
    /// The first number, and how many bytes further each line starts.
    pub(crate) from: *const u8,
    pub(crate) step: usize,
    pub(crate) code: Code,
    /// For each lane, and as many more as make a vector.
    pub(crate) zero: *const f32,
    pub(crate) scale: *const f32,
    /// `k` lines of `width` elements.
    pub(crate) to: *mut T,
    pub(crate) width: usize,
    pub(crate) k: usize,
}

/// Vectors of coded elements.
///
/// # Safety
/// of every function: the machine has the instructions, and of `from` as many numbers may be read as
/// there are lanes.
pub(crate) trait Codes: Simd<T = f32> {
    unsafe fn i8(from: *const u8) -> Self::V;
    unsafe fn u8(from: *const u8) -> Self::V;
    unsafe fn f16(from: *const u8) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
}

/// Makes elements.
///
/// # Safety
/// The machine has the instructions; all lines may be written, and read with a vector more after the
/// last; `zero` and `scale` are as long as [`Decode`] says.
#[inline(always)]
pub(crate) unsafe fn decode<S: Codes>(lines: &Decode<f32>) {
    // SAFETY: the caller's.
    unsafe {
        match lines.code {
            Code::I8 => decode_by::<S>(lines, |from| S::i8(from)),
            Code::U8 => decode_by::<S>(lines, |from| S::u8(from)),
            Code::F16 => decode_by::<S>(lines, |from| S::f16(from)),
        }
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_by<S: Codes>(lines: &Decode<f32>, load: impl Fn(*const u8) -> S::V) {
    for start in (0..lines.width).step_by(S::LANES) {
        // SAFETY: by the caller's contract.
        unsafe {
            let scale = S::load(lines.scale.add(start));
            let zero = S::load(lines.zero.add(start));
            decode_vectors::<S>(lines, start, |from| S::mul(S::sub(load(from), zero), scale));
        }
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_vectors<S: Codes>(
    lines: &Decode<f32>,
    start: usize,
    element: impl Fn(*const u8) -> S::V,
) {
    let lanes = (lines.width - start).min(S::LANES);
    let mut from = lines.from.wrapping_add(start * lines.code.bytes());
    let mut to = lines.to.wrapping_add(start);
    for _ in 0..lines.k {
        // SAFETY: by the caller's contract.
        unsafe {
            S::fetch(from.wrapping_add(AHEAD).cast());
            let v = element(from);
            match lanes == S::LANES {
                true => S::store(to, v),
                false => S::store_first(to, v, lanes),
            }
        }
        from = from.wrapping_add(lines.step);
        to = to.wrapping_add(lines.width);
    }
}

/// How many bytes ahead numbers are fetched.
const AHEAD: usize = 4 << 10;
