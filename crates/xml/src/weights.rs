//! The `.bin` file: the bytes of all constants, one after the other.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;

use crate::Error;

/// A view on the bytes of a `.bin` file, which may be a mapping of it, or parts of it that lie apart. Nothing is
/// copied.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Each part with the offset of its first byte, in order.
    parts: Vec<(u64, Bytes)>,
    len: u64,
}

impl Weights {
    /// A view on these bytes.
    pub fn new(bytes: Bytes) -> Weights {
        Weights::of_parts([bytes])
    }

    /// A view on parts, one after the other, as if they were one file. A constant lies in one of them.
    pub fn of_parts(parts: impl IntoIterator<Item = Bytes>) -> Weights {
        let mut weights = Weights::default();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let len = part.len() as u64;
            weights.parts.push((weights.len, part));
            weights.len += len;
        }
        weights
    }

    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes, as in a model without constants.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `size` bytes from `offset` on, at any alignment.
    pub fn slice(&self, offset: u64, size: u64) -> Result<Bytes, Error> {
        self.find(offset, size).ok_or(Error::Weights {
            offset,
            size,
            len: self.len,
        })
    }

    fn find(&self, offset: u64, size: u64) -> Option<Bytes> {
        if size == 0 {
            return (offset <= self.len).then(Bytes::new);
        }
        let next = self.parts.partition_point(|(start, _)| *start <= offset);
        let (first, part) = self.parts.get(next.checked_sub(1)?)?;
        let start = usize::try_from(offset - first).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        (end <= part.len()).then(|| part.slice(start..end))
    }
}

/// Puts constants together to a `.bin` file; equal ones are kept once.
#[derive(Debug, Default)]
pub struct WeightsBuilder {
    bytes: Vec<u8>,
    hasher: RandomState,
    /// Where constants of a hash lie.
    placed: HashMap<u64, Vec<Placed>>,
}

/// Where a constant lies in the `.bin` file: the attributes `offset` and `size` of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where it starts.
    pub offset: u64,
    /// Its length in bytes.
    pub size: u64,
}

impl WeightsBuilder {
    /// No constants yet.
    pub fn new() -> WeightsBuilder {
        WeightsBuilder::default()
    }

    /// Adds a constant, unless it is there already. One of no elements takes a byte of zero, as in
    /// OpenVINO's files, where no size is 0.
    pub fn add(&mut self, constant: &[u8]) -> Placed {
        let constant = if constant.is_empty() { &[0] } else { constant };
        let of_same_hash = self
            .placed
            .entry(self.hasher.hash_one(constant))
            .or_default();
        let bytes = &self.bytes;
        let equal = |placed: &&Placed| {
            let start = placed.offset as usize;
            bytes.get(start..start + placed.size as usize) == Some(constant)
        };
        if let Some(placed) = of_same_hash.iter().find(equal) {
            return *placed;
        }
        let placed = Placed {
            offset: self.bytes.len() as u64,
            size: constant.len() as u64,
        };
        of_same_hash.push(placed);
        self.bytes.extend_from_slice(constant);
        placed
    }

    /// The bytes of the file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_inside() {
        let weights = Weights::new(Bytes::from_static(b"0123456789"));
        assert_eq!(weights.slice(2, 3).unwrap(), &b"234"[..]);
        assert_eq!(weights.slice(10, 0).unwrap(), &b""[..]);
        assert_eq!(
            weights.slice(8, 3).unwrap_err().to_string(),
            "constant at offset 8 of 3 bytes exceeds the weights of 10 bytes"
        );
        for (offset, size) in [(11, 0), (u64::MAX, 2), (1, u64::MAX), (u64::MAX, u64::MAX)] {
            assert!(weights.slice(offset, size).is_err());
        }
    }

    #[test]
    fn parts_are_as_one_file() {
        let parts = ["0123", "", "45", "6789"].map(|part| Bytes::from_static(part.as_bytes()));
        let weights = Weights::of_parts(parts);
        assert_eq!(weights.len(), 10);
        for (offset, size, expected) in [(0, 4, "0123"), (4, 2, "45"), (5, 1, "5"), (7, 3, "789")] {
            assert_eq!(weights.slice(offset, size).unwrap(), expected.as_bytes());
        }
        assert_eq!(weights.slice(10, 0).unwrap(), &b""[..]);
        for (offset, size) in [(3, 2), (5, 2), (10, 1), (11, 0), (u64::MAX, u64::MAX)] {
            assert!(weights.slice(offset, size).is_err(), "{offset} {size}");
        }
    }

    #[test]
    fn equal_constants_are_kept_once() {
        let mut builder = WeightsBuilder::new();
        assert_eq!(builder.add(b"abc"), Placed { offset: 0, size: 3 });
        assert_eq!(builder.add(b"d"), Placed { offset: 3, size: 1 });
        assert_eq!(builder.add(b"abc"), Placed { offset: 0, size: 3 });
        assert_eq!(builder.add(b""), Placed { offset: 4, size: 1 });
        assert_eq!(builder.add(b"ab"), Placed { offset: 5, size: 2 });
        assert_eq!(builder.into_bytes(), b"abcd\0ab");
    }
}
