//! Packing operands that are kept as they are stored.

use std::ops::Range;

use crate::coded::{Code, Coded, Coding, Decode};
use crate::geometry::{ColumnPanel, parts};
use crate::groups::Side;
use crate::memory::elements;
use crate::packed::Packed;
use crate::points::{MOST_LANES, Points};
use crate::{Element, PreparedContraction};

/// From this many vectors of columns on it does not count what tasks need to make elements of their rows.
pub(crate) const MANY_VECTORS: usize = 16;

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
        let (side, _, count) = self.side(columns);
        let coded = self.coded(coding, side.points.len(), columns)?;
        let code = coded.code;
        elements(bytes, code.stored_bytes(side.needed), 1);
        let one = self.coded_bytes(&coded, columns);
        let length = if count == 0 {
            0
        } else {
            one.checked_mul(side.copies)?
        };
        let more = MOST_LANES * code.bytes();
        let mut packed = Packed::coded(length, more, columns, coded)?;
        if count > 0 {
            let panels = self.panels(columns);
            let places: Vec<usize> = panels.iter().map(|p| self.place(&packed, p)).collect();
            let to = packed.as_mut_slice();
            for batch in 0..self.batch.points() {
                let [row_offset, column_offset, _, row_copy, column_copy] = self.batch.at(batch);
                let (offset, copy) = match columns {
                    true => (column_offset, column_copy),
                    false => (row_offset, row_copy),
                };
                for (panel, place) in panels.iter().zip(&places) {
                    pack_panel(
                        code,
                        side,
                        panel,
                        (bytes, offset),
                        &mut to[copy * one + place..],
                    );
                }
            }
        }
        match self.stays_coded(columns) {
            true => Some(packed),
            false => self.decoded(&packed, columns),
        }
    }

    /// The coding of an operand of `points`, if it fits.
    fn coded(&self, coding: &Coding, points: usize, columns: bool) -> Option<Coded> {
        let group = coding.group.clamp(1, self.k.max(1));
        let groups = self.k.div_ceil(group).max(1);
        let fits =
            |values: &Option<Vec<f32>>| values.as_ref().is_none_or(|v| v.len() == points * groups);
        let is_whole = group * groups == self.k || self.k == 0 || groups == 1;
        // A byte of two codes belongs to one group.
        let is_even = groups == 1 || group.is_multiple_of(coding.code.depth());
        let fits = fits(&coding.zero) && fits(&coding.scale) && is_whole && is_even;
        if self.element != Element::F32 || !fits {
            return None;
        }
        let panels = self.panels(columns);
        let pad = |values: &Option<Vec<f32>>, default: f32| {
            let mut all = vec![0.0; self.packed_points(columns) * groups + MOST_LANES];
            for panel in &panels {
                let first = panel.before * groups;
                for group in 0..groups {
                    let to = &mut all[first + group * panel.width..][..panel.points.len()];
                    match values {
                        Some(from) => {
                            let from = &from[group * points + panel.points.start..];
                            to.copy_from_slice(&from[..to.len()]);
                        }
                        None => to.fill(default),
                    }
                }
            }
            all
        };
        // Without tiles for codes a machine may have no instruction for it.
        let is_fused = self.engine::<f32>().coded.is_some() && coding.can_fuse();
        let scale = pad(&coding.scale, 1.0);
        let zero = || pad(&coding.zero, 0.0);
        let points = match is_fused {
            true => {
                let zero = coding.zero.as_ref().map(|_| zero());
                Points::fused(coding.code.is_integer(), zero, scale)
            }
            false => Points::Wide {
                shift: zero().into(),
                scale: scale.into(),
            },
        };
        Some(Coded {
            code: coding.code,
            group,
            groups,
            is_plain: coding.zero.is_none() && coding.scale.is_none(),
            is_fused,
            points,
        })
    }

    /// The bytes of one batch of a packed operand of codes.
    pub(crate) fn coded_bytes(&self, code: &Coded, columns: bool) -> usize {
        code.place(self.packed_points(columns), self.k, 0, 0)
    }

    /// How many codes the lines of all panels of one batch have, together.
    fn packed_points(&self, columns: bool) -> usize {
        match columns {
            true => self.packed.vectors.len() * self.lanes,
            false => self.rows.points.len(),
        }
    }

    /// Where a panel starts in a packed operand of codes, in bytes.
    fn place(&self, packed: &Packed, panel: &PackedPanel) -> usize {
        let place = |code: &Coded| code.place(panel.before, self.k, 0, panel.width);
        packed.code().map_or(0, place)
    }

    /// The elements of a packed operand of codes.
    fn decoded(&self, packed: &Packed, columns: bool) -> Option<Packed> {
        let (Some(code), Some(decode)) = (packed.code(), self.engine::<f32>().decode) else {
            unreachable!("there are codes, and every engine of `f32` makes elements of them");
        };
        let (side, one, count) = self.side(columns);
        let bytes = self.coded_bytes(code, columns);
        let copies = if count == 0 { 0 } else { side.copies };
        let from = packed.elements(copies * bytes, 1, columns);
        let mut elements = Packed::zeroed(count.checked_mul(size_of::<f32>())?, columns)?;
        let to: *mut f32 = elements.as_mut_ptr().cast();
        let panels = self.panels(columns);
        for copy in 0..copies {
            for panel in &panels {
                let place = copy * bytes + self.place(packed, panel);
                let points = code.group_place(panel.before, 0, 0);
                let lines = Decode {
                    to: to.wrapping_add(copy * one + panel.before * self.k),
                    width: panel.width,
                    k: self.k,
                    ..code.lines(from, (place, points), panel.width, 0)
                };
                // SAFETY: the panel lies there in both operands, and after the codes is as much as a vector
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
                    before: panel.first_vector as usize * self.lanes,
                }
            };
            return self.packed.panels.iter().map(of).collect();
        }
        let of = |rows: Range<usize>| PackedPanel {
            width: rows.len(),
            before: rows.start,
            points: rows,
        };
        let rows = parts(self.rows.points.len(), self.row_panels);
        rows.map(of).collect()
    }
}

/// Some points of a packed operand.
struct PackedPanel {
    points: Range<usize>,
    /// The length of a line, in codes.
    width: usize,
    /// How many codes lines of all panels before it have, together.
    before: usize,
}

/// Packs a panel of codes that begin at an element of `from`, to where it starts.
fn pack_panel(
    code: Code,
    side: &Side,
    panel: &PackedPanel,
    (from, first): (&[u8], usize),
    to: &mut [u8],
) {
    let points = &side.points[panel.points.clone()];
    match (code.depth(), code.bytes()) {
        (1, 1) => pack_lines::<1>(&side.offsets, points, panel.width, (from, first), to),
        (1, _) => pack_lines::<2>(&side.offsets, points, panel.width, (from, first), to),
        _ => {
            let is_even = |offset: &u32| offset.is_multiple_of(2);
            let is_whole = side.k_line == Some(1) && side.offsets.first().is_none_or(is_even);
            if !(is_whole && first.is_multiple_of(2) && points.iter().all(is_even)) {
                return pack_halves(side, points, panel.width, (from, first), to);
            }
            // Bytes hold two `k` of a point already. Of the last, the high half may be another's; nobody looks at it.
            let half = |offset: &u32| offset / 2;
            let offsets: Vec<u32> = side.offsets.iter().step_by(2).map(half).collect();
            let points: Vec<u32> = points.iter().map(half).collect();
            pack_lines::<1>(&offsets, &points, panel.width, (from, first / 2), to);
        }
    }
}

/// Packs codes of `SIZE` bytes.
fn pack_lines<const SIZE: usize>(
    offsets: &[u32],
    points: &[u32],
    width: usize,
    (from, first): (&[u8], usize),
    to: &mut [u8],
) {
    /// As many lines as one line of the cache has bytes.
    const LINES: usize = 64;
    let from = &from[first * SIZE..];
    let contiguous = points.is_sorted_by(|a, b| a + 1 == *b);
    let lines = offsets.chunks(LINES);
    for (offsets, to) in lines.zip(to.chunks_mut(LINES * width * SIZE)) {
        if contiguous {
            let bytes = points.len() * SIZE;
            for (&offset, line) in offsets.iter().zip(to.chunks_mut(width * SIZE)) {
                let start = (offset as usize + points[0] as usize) * SIZE;
                line[..bytes].copy_from_slice(&from[start..start + bytes]);
            }
            continue;
        }
        let is_line = offsets.is_sorted_by(|a, b| a + 1 == *b);
        let first = offsets.first().map_or(0, |offset| *offset as usize);
        // Squares are laid across as a whole, and what is left over code by code.
        let side = size_of::<u64>() / SIZE;
        for (number, points) in points.chunks(side).enumerate() {
            let whole = match is_line && points.len() == side {
                true => offsets.len() / side * side,
                false => 0,
            };
            for line in (0..whole).step_by(side) {
                let from = std::array::from_fn(|k| match points.get(k) {
                    Some(&point) => &from[(point as usize + first + line) * SIZE..],
                    None => &[][..],
                });
                let to = &mut to[(line * width + number * side) * SIZE..];
                lay_square::<SIZE>(from, to, width);
            }
            for (lane, &point) in (number * side..).zip(points) {
                for (line, &offset) in offsets.iter().enumerate().skip(whole) {
                    let from_at = (offset as usize + point as usize) * SIZE;
                    let to_at = (line * width + lane) * SIZE;
                    to[to_at..to_at + SIZE].copy_from_slice(&from[from_at..from_at + SIZE]);
                }
            }
        }
    }
}

/// Lays 8 bytes of codes of `SIZE` bytes from each of as many places across: to lines that are `width` codes apart.
#[inline(always)]
pub(crate) fn lay_square<const SIZE: usize>(from: [&[u8]; 8], to: &mut [u8], width: usize) {
    let side = size_of::<u64>() / SIZE;
    let mut lines = from.map(|from| {
        from.first_chunk()
            .map_or(0, |codes| u64::from_le_bytes(*codes))
    });
    // Halves of the square change places, then halves of these, until they are single codes.
    let mut half = side / 2;
    while half > 0 {
        let bits = 8 * SIZE * half;
        // The low half of every twice as many bits.
        let mask = u64::MAX / ((1u64 << bits) + 1);
        for low in (0..side).filter(|line| line & half == 0) {
            let moved = (lines[low] >> bits ^ lines[low + half]) & mask;
            lines[low] ^= moved << bits;
            lines[low + half] ^= moved;
        }
        half /= 2;
    }
    for (number, line) in lines.into_iter().enumerate().take(side) {
        to[number * width * SIZE..][..size_of::<u64>()].copy_from_slice(&line.to_le_bytes());
    }
}

/// Packs codes of half a byte, from anywhere.
fn pack_halves(
    side: &Side,
    points: &[u32],
    width: usize,
    (from, first): (&[u8], usize),
    to: &mut [u8],
) {
    let code = |offset: u32, point: u32| {
        let element = first + offset as usize + point as usize;
        from[element / 2] >> (element % 2 * 4) & 15
    };
    for (offsets, line) in side.offsets.chunks(2).zip(to.chunks_mut(width)) {
        for (&point, to) in points.iter().zip(line) {
            let codes = offsets.iter().rev();
            *to = codes.fold(0, |byte, &offset| byte << 4 | code(offset, point));
        }
    }
}
