//! Element types of less than a byte: where element `k` lies in the packed bytes.
//!
//! | type | order within its group |
//! |---|---|
//! | `u1` | eight to a byte, the first in the highest bit |
//! | `u2` | four to a byte, the first in the lowest bits |
//! | `u4` `i4` `nf4` `f4e2m1` | two to a byte, the first in the low nibble |
//! | `u3` | eight to three bytes: two bytes of the low 2 bits of each, highest first, one of the high bits |
//! | `u6` | four to three bytes: two bytes of the low nibble of each, highest first, one of the high 2 bits |

use crate::ElementType;

/// The bits of element `k`, which has at most 8 of them, in the low bits of the result.
///
/// The type says which number a code stands for: `i4` is two's complement ([`sign_extend_i4`]), and the
/// floats are decoded by [`float8::decode`](crate::float8::decode).
///
/// # Panics
/// If the bytes are too short to have an element `k`.
pub fn get(element_type: ElementType, bytes: &[u8], k: usize) -> u8 {
    match Layout::of(element_type) {
        Layout::Within { bits, shift } => bytes[k * bits / 8] >> shift(k) & mask(bits),
        Layout::Split { group, low } => {
            let at = split(group, low, k);
            let high_bits = 8 / group;
            let low_part = bytes[at.low_byte] >> at.low_shift & mask(low);
            low_part | (bytes[at.high_byte] >> at.high_shift & mask(high_bits)) << low
        }
    }
}

/// Sets the bits of element `k` to the low bits of `code`; the bits of its neighbours stay.
///
/// # Panics
/// If the bytes are too short to have an element `k`.
pub fn set(element_type: ElementType, bytes: &mut [u8], k: usize, code: u8) {
    match Layout::of(element_type) {
        Layout::Within { bits, shift } => put(&mut bytes[k * bits / 8], bits, shift(k), code),
        Layout::Split { group, low } => {
            let at = split(group, low, k);
            put(&mut bytes[at.low_byte], low, at.low_shift, code);
            put(
                &mut bytes[at.high_byte],
                8 / group,
                at.high_shift,
                code >> low,
            );
        }
    }
}

/// The value of an `i4` code.
pub const fn sign_extend_i4(code: u8) -> i8 {
    ((code << 4) as i8) >> 4
}

enum Layout {
    /// Each element within one byte.
    Within {
        bits: usize,
        shift: fn(usize) -> usize,
    },
    /// Three bytes to a group of elements: `low` bits of each in the first two, the rest in the third.
    Split { group: usize, low: usize },
}

impl Layout {
    fn of(element_type: ElementType) -> Layout {
        match element_type.bits() {
            1 => Layout::Within {
                bits: 1,
                shift: |k| 7 - k % 8,
            },
            2 => Layout::Within {
                bits: 2,
                shift: |k| k % 4 * 2,
            },
            3 => Layout::Split { group: 8, low: 2 },
            4 => Layout::Within {
                bits: 4,
                shift: |k| k % 2 * 4,
            },
            6 => Layout::Split { group: 4, low: 4 },
            bits => {
                debug_assert_eq!(bits, 8, "{element_type} has no code of at most 8 bits");
                Layout::Within {
                    bits: 8,
                    shift: |_| 0,
                }
            }
        }
    }
}

struct SplitAt {
    low_byte: usize,
    low_shift: usize,
    high_byte: usize,
    high_shift: usize,
}

fn split(group: usize, low: usize, k: usize) -> SplitAt {
    let (start, j) = (k / group * 3, k % group);
    let (per_low, per_high) = (8 / low, 8 / group);
    SplitAt {
        low_byte: start + j / per_low,
        low_shift: (per_low - 1 - j % per_low) * low,
        high_byte: start + 2,
        high_shift: (group - 1 - j) * per_high,
    }
}

fn put(byte: &mut u8, bits: usize, shift: usize, code: u8) {
    let mask = mask(bits) << shift;
    *byte = *byte & !mask | code << shift & mask;
}

const fn mask(bits: usize) -> u8 {
    u8::MAX >> (8 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::*;

    /// The bytes are what OpenVINO 2026.4.1 writes for these values.
    #[test]
    fn measured_packings() {
        for (ty, codes, bytes) in [
            (U4, &[0, 1, 2, 3, 4][..], &[0x10, 0x32, 0x04][..]),
            (I4, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]),
            (NF4, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]),
            (F4E2M1, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]),
            (U2, &[0, 1, 2, 3, 1], &[0xe4, 0x01]),
            (U1, &[1, 0, 0, 0, 0, 0, 0, 0, 1], &[0x80, 0x80]),
            (U3, &[7, 0, 0, 0, 0, 0, 0, 1], &[0xc0, 0x01, 0x80]),
            (U6, &[63, 0, 0, 32], &[0xf0, 0x00, 0xc2]),
        ] {
            let mut packed = vec![0; ty.byte_len(codes.len()).unwrap()];
            for (k, &code) in codes.iter().enumerate() {
                set(ty, &mut packed, k, code);
            }
            assert_eq!(packed, bytes, "{ty}");
            let read: Vec<u8> = (0..codes.len()).map(|k| get(ty, bytes, k)).collect();
            assert_eq!(read, codes, "{ty}");
        }
    }

    #[test]
    fn every_element_has_bits_of_its_own() {
        for ty in ElementType::ALL.into_iter().filter(|t| t.bits() <= 8) {
            let all = mask(ty.bits());
            for k in 0..17 {
                let mut bytes = vec![0; ty.byte_len(17).unwrap()];
                set(ty, &mut bytes, k, 0xff);
                assert_eq!(
                    bytes.iter().map(|b| b.count_ones()).sum::<u32>() as usize,
                    ty.bits()
                );
                for j in 0..17 {
                    assert_eq!(
                        get(ty, &bytes, j),
                        if j == k { all } else { 0 },
                        "{ty} {k} {j}"
                    );
                }
                set(ty, &mut bytes, k, 0);
                assert!(bytes.iter().all(|&b| b == 0));
            }
        }
    }

    #[test]
    fn i4_is_twos_complement() {
        assert_eq!([0, 7, 8, 15].map(sign_extend_i4), [0, 7, -8, -1]);
    }
}
