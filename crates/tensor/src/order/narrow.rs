//! Keys of 32 bits.

use half::{bf16, f16};
use zerocopy::Unalign;

use super::Direction;
use crate::{Element, ElementType, Tensor, float8, packed};
use ElementType::*;

/// The keys of a tensor's elements, as [`super::keys`] gives them, in 32 bits. They are made when they are read: a
/// block of them stays in the cache, where those of a whole tensor would not.
#[derive(Clone, Copy, Debug)]
pub(super) struct NarrowKeys<'a> {
    tensor: &'a Tensor,
    direction: Direction,
}

impl NarrowKeys<'_> {
    /// `None` if the elements are of 64 bits.
    pub(super) fn of(tensor: &Tensor, direction: Direction) -> Option<NarrowKeys<'_>> {
        let narrow = tensor.element_type().bits() <= 32;
        narrow.then_some(NarrowKeys { tensor, direction })
    }

    /// Puts the keys of the elements from `start` on into `keys`: `width` of them, then as many `stride` elements
    /// further, and so on.
    pub(super) fn read(&self, start: usize, stride: usize, width: usize, keys: &mut [i32]) {
        let ty = self.tensor.element_type();
        let bytes = self.tensor.bytes();
        let rows = keys.chunks_mut(width.max(1)).enumerate();
        let rows = rows.map(|(r, row)| (start + r * stride, row));
        // A key's complement sorts the other way round.
        let flip = -i32::from(self.direction == Direction::Descending);
        match ty {
            Boolean => self.each::<u8>(rows, |x| i32::from(x != 0) ^ flip),
            U8 => self.each::<u8>(rows, |x| i32::from(x) ^ flip),
            I8 => self.each::<i8>(rows, |x| i32::from(x) ^ flip),
            U16 => self.each::<u16>(rows, |x| i32::from(x) ^ flip),
            I16 => self.each::<i16>(rows, |x| i32::from(x) ^ flip),
            U32 => self.each::<u32>(rows, |x| x.cast_signed() ^ i32::MIN ^ flip),
            I32 => self.each::<i32>(rows, |x| x ^ flip),
            F16 => self.each::<f16>(rows, |x| {
                let bits = i32::from(x.to_bits().cast_signed());
                float_key(bits, bits & 0x7fff, 0x7c00, flip)
            }),
            BF16 => self.each::<bf16>(rows, |x| {
                let bits = i32::from(x.to_bits().cast_signed());
                float_key(bits, bits & 0x7fff, 0x7f80, flip)
            }),
            F32 => self.each::<f32>(rows, |x| single_key(x, flip)),
            _ => {
                let key = |code: u8| match (float8::decode(ty, code), ty) {
                    (Some(x), _) => single_key(x, flip),
                    (None, I4) => i32::from(packed::sign_extend_i4(code)) ^ flip,
                    (None, _) => i32::from(code) ^ flip,
                };
                for (from, row) in rows {
                    let keys = (from..).map(|k| key(packed::get(ty, bytes, k)));
                    row.iter_mut().zip(keys).for_each(|(to, key)| *to = key);
                }
            }
        }
    }

    fn each<'k, T: Element>(
        &self,
        rows: impl Iterator<Item = (usize, &'k mut [i32])>,
        key: impl Fn(T) -> i32,
    ) {
        let all: &[Unalign<T>] = self.tensor.elements();
        for (from, row) in rows {
            let from = all.get(from..).unwrap_or_default();
            for (to, x) in row.iter_mut().zip(from) {
                *to = key(x.get());
            }
        }
    }
}

#[inline]
pub(super) fn single_key(x: f32, flip: i32) -> i32 {
    let bits = x.to_bits().cast_signed();
    float_key(bits, bits & i32::MAX, 0x7f80_0000, flip)
}

/// The key of a float of these bits, of which `magnitude` is without the sign: it is negated for a sign, and once
/// more if `flip` is all ones. So both zeros have the same one. `infinity` is the magnitude that NaNs are above.
#[inline]
fn float_key(bits: i32, magnitude: i32, infinity: i32, flip: i32) -> i32 {
    let sign = (bits >> 31) ^ flip;
    let key = (magnitude ^ sign).wrapping_sub(sign);
    if magnitude > infinity { i32::MAX } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::keys;

    /// Numbers may differ from those of [`keys`], their order and which are equal may not.
    fn same_order(tensor: &Tensor) {
        for direction in [Direction::Ascending, Direction::Descending] {
            let wide = keys(tensor, direction).unwrap();
            let mut narrow = vec![0; wide.len()];
            let keys = NarrowKeys::of(tensor, direction).unwrap();
            keys.read(0, 0, wide.len(), &mut narrow);
            let mut order: Vec<usize> = (0..wide.len()).collect();
            order.sort_by_key(|k| wide[*k]);
            for pair in order.windows(2) {
                let [a, b] = [pair[0], pair[1]];
                let (want, found) = (wide[a].cmp(&wide[b]), narrow[a].cmp(&narrow[b]));
                assert_eq!(found, want, "{tensor} {direction:?} {a} {b}");
            }
        }
    }

    #[test]
    fn every_type_of_at_most_32_bits() {
        for ty in ElementType::ALL {
            let tensor = |count: usize, bytes: Vec<u8>| {
                let used = ty.byte_len(count).unwrap();
                Tensor::from_bytes(ty, &[count], &bytes[..used]).unwrap()
            };
            // All there are of at most 16 bits, and every 0x10001st of 32.
            let tensor = match ty.bits() {
                1..=8 => tensor(256, (0..=255).collect()),
                16 => tensor(1 << 16, (0..=u16::MAX).flat_map(u16::to_le_bytes).collect()),
                32 => tensor(
                    1 << 16,
                    (0..1 << 16)
                        .flat_map(|k: u32| (k * 0x10001).to_le_bytes())
                        .collect(),
                ),
                _ => {
                    let none = Tensor::zeros(ty, &[1]).unwrap();
                    assert!(NarrowKeys::of(&none, Direction::Ascending).is_none());
                    continue;
                }
            };
            same_order(&tensor);
        }
        let inf = f32::INFINITY;
        let ends = [f32::NAN, -f32::NAN, inf, -inf, f32::MAX, f32::MIN];
        let zeros = [0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0];
        same_order(&Tensor::from_slice(&[12], &[ends, zeros].concat()).unwrap());
        same_order(&Tensor::from_slice(&[3], &[i32::MIN, 0, i32::MAX]).unwrap());
        same_order(&Tensor::from_slice(&[3], &[u32::MAX, 0, 1 << 31]).unwrap());
    }

    #[test]
    fn pieces_that_lie_apart() {
        let tensor = Tensor::from_slice(&[3, 4], &[0i16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let tensor = tensor.unwrap();
        let mut found = [0; 4];
        let keys = NarrowKeys::of(&tensor, Direction::Ascending).unwrap();
        keys.read(5, 4, 2, &mut found);
        assert_eq!(found, [5, 6, 9, 10]);
    }
}
