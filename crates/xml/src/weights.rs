//! The `.bin` file: the bytes of all constants, one after the other.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;

use crate::Error;

/// A view on the bytes of a `.bin` file, which may be a mapping of it. Nothing is copied.
#[derive(Clone, Debug, Default)]
pub struct Weights(Bytes);

impl Weights {
    /// A view on these bytes.
    pub fn new(bytes: Bytes) -> Weights {
        Weights(bytes)
    }

    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether there are no bytes, as in a model without constants.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `size` bytes from `offset` on, at any alignment.
    pub fn slice(&self, offset: u64, size: u64) -> Result<Bytes, Error> {
        let range = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        let range = range.and_then(|(start, size)| Some(start..start.checked_add(size)?));
        match range.filter(|range| range.end <= self.0.len()) {
            Some(range) => Ok(self.0.slice(range)),
            None => Err(Error::Weights {
                offset,
                size,
                len: self.len(),
            }),
        }
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
