//! The buffers of a run: checked addressing, and elements as bits.

use super::{BufferBytes, InterpretError};
use crate::analysis::Effects;
use crate::ir::{Buffer, BufferId, Nest, Role};
use std::string::String;
use std::sync::Arc;
use vinelift_tensor::AlignedBytes;
use vinelift_tensor::ElementType::{self, *};

/// The value of a wrap that reads zero and is out of range. No extent is as large.
pub(super) const MISSING: u64 = i64::MIN as u64;

/// The buffers of a nest and their bytes.
pub(super) struct Memory<'a> {
    cells: Vec<Cell<'a>>,
}

struct Cell<'a> {
    name: String,
    ty: ElementType,
    shape: Vec<usize>,
    bytes: Bytes<'a>,
}

/// Elements of a buffer that are equally far apart.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) first: usize,
    pub(super) step: usize,
}

impl Line {
    /// From element `start` of it on.
    pub(super) fn from(self, start: usize) -> Line {
        let first = self.first + start * self.step;
        Line { first, ..self }
    }
}

enum Bytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Owned(AlignedBytes),
    /// A temporary that no stage uses.
    Unused,
    Table(Arc<[u8]>),
}

impl<'a> Memory<'a> {
    /// The first buffers of `nest` are those handed in; tables that follow came with `legalize`.
    pub(super) fn new(
        nest: &Nest,
        handed: &'a mut [BufferBytes<'_>],
    ) -> Result<Memory<'a>, InterpretError> {
        let used = Effects::of(&nest.stages);
        let handed = handed
            .iter_mut()
            .map(Some)
            .chain(std::iter::repeat_with(|| None));
        let cells = nest
            .buffers
            .iter()
            .zip(handed)
            .zip((0..).map(BufferId))
            .map(|((buffer, bytes), id)| Cell::new(buffer, bytes, used.uses(id)));
        Ok(Memory {
            cells: cells.collect::<Result<_, _>>()?,
        })
    }

    /// The extents of buffer `b`.
    pub(super) fn shape(&self, b: usize) -> &[usize] {
        &self.cells[b].shape
    }

    /// The place of element `at` in buffer `b`, or `None` if an index is [`MISSING`].
    pub(super) fn locate(
        &self,
        b: usize,
        at: impl Iterator<Item = u64> + Clone,
    ) -> Result<Option<usize>, InterpretError> {
        if at.clone().any(|index| index == MISSING) {
            return Ok(None);
        }
        let cell = &self.cells[b];
        let mut element = 0;
        for (dim, (index, &extent)) in at.zip(&cell.shape).enumerate() {
            if index >= extent as u64 {
                let (name, index) = (cell.name.clone(), index as i64);
                return Err(InterpretError::Outside {
                    name,
                    dim,
                    index,
                    extent,
                });
            }
            element = element * extent + index as usize;
        }
        Ok(Some(element))
    }

    /// The bits of an element that [`Memory::locate`] has found.
    pub(super) fn get(&self, b: usize, element: usize) -> u64 {
        let cell = &self.cells[b];
        get(cell.bytes(), cell.ty, element)
    }

    /// The bits of as many elements of a line as `to` has, of which [`Memory::locate`] has found the last.
    pub(super) fn get_line(&self, b: usize, Line { first, step }: Line, to: &mut [u64]) {
        let cell = &self.cells[b];
        let (bytes, ty) = (cell.bytes(), cell.ty);
        match ty.bits() {
            8 if ty != Boolean && step == 1 => {
                for (to, byte) in to.iter_mut().zip(&bytes[first..]) {
                    *to = u64::from(*byte);
                }
            }
            16 if step == 1 => {
                for (to, word) in to.iter_mut().zip(bytes[first * 2..].as_chunks().0) {
                    *to = u64::from(u16::from_le_bytes(*word));
                }
            }
            32 if step == 1 => {
                for (to, word) in to.iter_mut().zip(bytes[first * 4..].as_chunks().0) {
                    *to = u64::from(u32::from_le_bytes(*word));
                }
            }
            _ => {
                for (k, to) in to.iter_mut().enumerate() {
                    *to = get(bytes, ty, first + k * step);
                }
            }
        }
    }

    /// Sets the first elements of a line, of which [`Memory::locate`] has found the last.
    pub(super) fn set_line(
        &mut self,
        b: usize,
        Line { first, step }: Line,
        values: &[u64],
    ) -> Result<(), InterpretError> {
        let (ty, bytes) = self.written(b)?;
        match ty.bits() {
            32 if step == 1 => {
                let words = bytes[first * 4..].as_chunks_mut().0;
                for (word, value) in words.iter_mut().zip(values) {
                    *word = (*value as u32).to_le_bytes();
                }
            }
            _ => {
                for (k, value) in values.iter().enumerate() {
                    set(bytes, ty, first + k * step, *value);
                }
            }
        }
        Ok(())
    }

    /// Sets an element that [`Memory::locate`] has found.
    pub(super) fn set(
        &mut self,
        b: usize,
        element: usize,
        value: u64,
    ) -> Result<(), InterpretError> {
        let (ty, bytes) = self.written(b)?;
        set(bytes, ty, element, value);
        Ok(())
    }

    /// The type and the bytes of a buffer that may be written.
    fn written(&mut self, b: usize) -> Result<(ElementType, &mut [u8]), InterpretError> {
        let cell = &mut self.cells[b];
        match &mut cell.bytes {
            Bytes::Write(bytes) => Ok((cell.ty, bytes)),
            Bytes::Owned(bytes) => Ok((cell.ty, bytes.as_mut_slice())),
            Bytes::Read(_) | Bytes::Table(_) | Bytes::Unused => {
                Err(InterpretError::ReadOnly(cell.name.clone()))
            }
        }
    }
}

impl<'a> Cell<'a> {
    fn new(
        buffer: &Buffer,
        handed: Option<&'a mut BufferBytes<'_>>,
        is_used: bool,
    ) -> Result<Cell<'a>, InterpretError> {
        let name = buffer.name.clone();
        let count = buffer
            .shape
            .iter()
            .try_fold(1usize, |n, &extent| n.checked_mul(extent.example()));
        let count = if buffer.shape.iter().any(|n| *n == 0) {
            Some(0)
        } else {
            count
        };
        let Some(expected) = count.and_then(|n| buffer.ty.byte_len(n)) else {
            return Err(InterpretError::Malformed(format!(
                "buffer `{name}` is too large"
            )));
        };
        let bytes = match (&buffer.role, handed) {
            (Role::Table(table), _) => Bytes::Table(table.clone()),
            (_, Some(BufferBytes::Read(bytes))) => Bytes::Read(bytes),
            (_, Some(BufferBytes::Write(bytes))) => Bytes::Write(bytes),
            (Role::Temporary, Some(BufferBytes::Temporary)) if is_used => {
                let memory = AlignedBytes::zeros(expected);
                Bytes::Owned(memory.map_err(|_| InterpretError::Memory {
                    name: name.clone(),
                    bytes: expected,
                })?)
            }
            (Role::Temporary, Some(BufferBytes::Temporary)) => Bytes::Unused,
            (_, Some(BufferBytes::Temporary) | None) => Bytes::Read(&[]),
        };
        let cell = Cell {
            name,
            ty: buffer.ty,
            shape: buffer.example(),
            bytes,
        };
        match cell.bytes().len() {
            found if found == expected || matches!(cell.bytes, Bytes::Unused) => Ok(cell),
            found => Err(InterpretError::Buffer {
                name: cell.name,
                expected,
                found,
            }),
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Read(bytes) => bytes,
            Bytes::Write(bytes) => bytes,
            Bytes::Owned(bytes) => bytes.as_slice(),
            Bytes::Table(bytes) => bytes,
            Bytes::Unused => &[],
        }
    }
}

/// Element `k` of packed bytes, in the low bits. A boolean is 0 or 1 whatever the byte is.
pub(super) fn get(bytes: &[u8], ty: ElementType, k: usize) -> u64 {
    match (ty, ty.bits()) {
        (Boolean, _) => (bytes[k] != 0).into(),
        (U3 | U6, bits) => Split::new(bits, k).get(bytes),
        (_, bits @ 8..) => {
            let mut word = [0; 8];
            let n = bits / 8;
            word[..n].copy_from_slice(&bytes[k * n..][..n]);
            u64::from_le_bytes(word)
        }
        (_, bits) => {
            let shift = shift_in_byte(ty, k);
            u64::from(bytes[k * bits / 8] >> shift) & ((1 << bits) - 1)
        }
    }
}

/// Sets element `k` of packed bytes to the low bits of `value`.
pub(super) fn set(bytes: &mut [u8], ty: ElementType, k: usize, value: u64) {
    match (ty, ty.bits()) {
        (U3 | U6, bits) => Split::new(bits, k).set(bytes, value),
        (_, bits @ 8..) => {
            let n = bits / 8;
            bytes[k * n..][..n].copy_from_slice(&value.to_le_bytes()[..n]);
        }
        (_, bits) => put(&mut bytes[k * bits / 8], shift_in_byte(ty, k), bits, value),
    }
}

/// Types that divide a byte start at its low end, but `u1` at its high end.
fn shift_in_byte(ty: ElementType, k: usize) -> usize {
    let per_byte = 8 / ty.bits();
    match ty {
        U1 => 7 - k % 8,
        _ => k % per_byte * ty.bits(),
    }
}

/// An element of `u3` or `u6`. A group of 24 bits holds the low 2 (4) bits of its elements in its
/// first two bytes, and the high 1 (2) bits of all of them in the third, all from the high end down.
struct Split {
    low_byte: usize,
    low_shift: usize,
    low_bits: usize,
    high_byte: usize,
    high_shift: usize,
    high_bits: usize,
}

impl Split {
    fn new(bits: usize, k: usize) -> Split {
        let (low_bits, high_bits) = (bits / 3 * 2, bits / 3);
        let (group, k) = (k / (24 / bits), k % (24 / bits));
        Split {
            low_byte: group * 3 + k * low_bits / 8,
            low_shift: 8 - low_bits - k * low_bits % 8,
            low_bits,
            high_byte: group * 3 + 2,
            high_shift: 8 - high_bits - k * high_bits,
            high_bits,
        }
    }

    fn get(&self, bytes: &[u8]) -> u64 {
        let low = u64::from(bytes[self.low_byte] >> self.low_shift) & ((1 << self.low_bits) - 1);
        let high =
            u64::from(bytes[self.high_byte] >> self.high_shift) & ((1 << self.high_bits) - 1);
        high << self.low_bits | low
    }

    fn set(&self, bytes: &mut [u8], value: u64) {
        put(
            &mut bytes[self.low_byte],
            self.low_shift,
            self.low_bits,
            value,
        );
        put(
            &mut bytes[self.high_byte],
            self.high_shift,
            self.high_bits,
            value >> self.low_bits,
        );
    }
}

/// Replaces `bits` bits of a byte.
fn put(byte: &mut u8, shift: usize, bits: usize, value: u64) {
    let mask = ((1u16 << bits) - 1) as u8;
    *byte = *byte & !(mask << shift) | (value as u8 & mask) << shift;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_packed_as_the_ir_packs_them() {
        let cases: [(ElementType, &[u64], &[u8]); 6] = [
            (U4, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]),
            (U2, &[0, 1, 2, 3, 1], &[0xe4, 0x01]),
            (U1, &[1, 0, 0, 0, 0, 0, 0, 0, 1], &[0x80, 0x80]),
            (U3, &[7, 0, 0, 0, 0, 0, 0, 1], &[0xc0, 0x01, 0x80]),
            (U6, &[63, 0, 0, 32], &[0xf0, 0x00, 0xc2]),
            (I16, &[1, 0xfffe], &[1, 0, 0xfe, 0xff]),
        ];
        for (ty, elements, packed) in cases {
            let mut bytes = vec![0; packed.len()];
            for (k, &value) in elements.iter().enumerate() {
                set(&mut bytes, ty, k, value);
            }
            assert_eq!(bytes, packed, "{ty}");
            let read: Vec<u64> = (0..elements.len()).map(|k| get(&bytes, ty, k)).collect();
            assert_eq!(read, elements, "{ty}");
        }
    }

    #[test]
    fn setting_an_element_leaves_its_neighbours() {
        for ty in ElementType::ALL {
            let n = 24;
            let mask = u64::MAX >> (64 - ty.bits());
            let mut bytes = vec![0xff; ty.byte_len(n).unwrap()];
            for k in 0..n {
                set(&mut bytes, ty, k, 0);
                for j in 0..n {
                    let full = if ty == Boolean { 1 } else { mask };
                    assert_eq!(
                        get(&bytes, ty, j),
                        if j <= k { 0 } else { full },
                        "{ty} {j} after {k}"
                    );
                }
            }
        }
    }
}
