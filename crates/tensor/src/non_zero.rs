//! Where a tensor is not zero.

use half::{bf16, f16};

use crate::memory::{collected, extend};
use crate::{Element, ElementType, Tensor, TensorError};
use ElementType::*;

/// How many elements are looked at before what was found is added to the list.
const CHUNK: usize = 64;

impl Tensor {
    /// The positions of the elements that are not zero, of a tensor of any type but `string`. NaN is not zero, -0 is.
    pub fn non_zero(&self) -> Result<Vec<usize>, TensorError> {
        match self.element_type() {
            Boolean | U8 | I8 => self.find::<u8>(|x| x != 0),
            U16 | I16 => self.find::<u16>(|x| x != 0),
            U32 | I32 => self.find::<u32>(|x| x != 0),
            U64 | I64 => self.find::<u64>(|x| x != 0),
            F16 => self.find::<f16>(|x| x.to_bits() << 1 != 0),
            BF16 => self.find::<bf16>(|x| x.to_bits() << 1 != 0),
            F32 => self.find::<f32>(|x| x != 0.0),
            F64 => self.find::<f64>(|x| x != 0.0),
            _ => {
                let values = self.to_f64_vec()?;
                let found = values.iter().enumerate().filter(|(_, x)| **x != 0.0);
                collected(found.map(|(k, _)| k))
            }
        }
    }

    fn find<T: Element>(&self, wanted: impl Fn(T) -> bool) -> Result<Vec<usize>, TensorError> {
        let mut found = Vec::new();
        for (n, chunk) in self.elements::<T>().chunks(CHUNK).enumerate() {
            let mut hits = [0; CHUNK];
            let mut count = 0;
            for (x, position) in chunk.iter().zip(n * CHUNK..) {
                // One that is no hit is overwritten by the next, without a jump.
                hits[count % CHUNK] = position;
                count += usize::from(wanted(x.get()));
            }
            extend(&mut found, hits[..count].iter().copied())?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the elements one by one, of every type, with full, empty and cut chunks.
    #[test]
    fn every_type() {
        for ty in ElementType::ALL.into_iter().filter(|t| *t != String) {
            for count in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 1] {
                let length = ty.byte_len(count).unwrap();
                let mixed = (0..length).map(|k| [0, 0, 0x80, 0, 1, 0, 0xff][k * 5 / 3 % 7]);
                for bytes in [vec![0; length], vec![1; length], mixed.collect()] {
                    let tensor = Tensor::from_bytes(ty, &[count], bytes).unwrap();
                    let values = tensor.to_f64_vec().unwrap();
                    let want: Vec<usize> = (0..count).filter(|k| values[*k] != 0.0).collect();
                    assert_eq!(tensor.non_zero().unwrap(), want, "{tensor}");
                }
            }
        }
        let tensor = Tensor::from_slice(&[4], &[-0.0, f32::NAN, 1e-45, 0.0]).unwrap();
        assert_eq!(tensor.non_zero().unwrap(), [1, 2]);
        let tensor = Tensor::from_slice(&[2], &[-0.0, f64::NAN]).unwrap();
        assert_eq!(tensor.non_zero().unwrap(), [1]);
    }
}
