//! Tensors of some elements of others.

use crate::memory::{collected, room_for, text};
use crate::{Tensor, TensorError, packed};

impl Tensor {
    /// The elements at `positions`, in their order, as a tensor of `shape`.
    ///
    /// # Panics
    /// If there is no element at a position.
    pub fn take(&self, shape: &[usize], positions: &[usize]) -> Result<Tensor, TensorError> {
        let ty = self.element_type();
        if let Some(strings) = self.strings() {
            let mut taken = room_for(positions.len())?;
            for p in positions {
                taken.push(text(&strings[*p])?);
            }
            return Tensor::from_strings(shape, taken);
        }
        let bytes = self.bytes();
        if ty.is_packed() {
            let mut out = Tensor::zeros(ty, shape)?;
            let target = out.make_mut()?;
            for (k, p) in positions.iter().enumerate() {
                packed::set(ty, target, k, packed::get(ty, bytes, *p));
            }
            return Ok(out);
        }
        let taken = match ty.bits() / 8 {
            1 => of_width::<1>(bytes, positions)?,
            2 => of_width::<2>(bytes, positions)?,
            4 => of_width::<4>(bytes, positions)?,
            _ => of_width::<8>(bytes, positions)?,
        };
        Tensor::from_bytes(ty, shape, taken)
    }
}

/// The bytes of elements that have `WIDTH` each.
fn of_width<const WIDTH: usize>(bytes: &[u8], positions: &[usize]) -> Result<Vec<u8>, TensorError> {
    let elements = bytes.as_chunks::<WIDTH>().0;
    let taken = collected(positions.iter().map(|p| elements[*p]))?;
    Ok(taken.into_flattened())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;

    #[test]
    fn elements_of_every_width() {
        for ty in ElementType::ALL
            .into_iter()
            .filter(|t| *t != ElementType::String)
        {
            let used = ty.byte_len(6).unwrap();
            let bytes = [1, 0, 1, 1, 0, 1].repeat(8);
            let from = Tensor::from_bytes(ty, &[6], &bytes[..used]).unwrap();
            let positions = [5, 0, 3, 3];
            let taken = from.take(&[2, 2], &positions).unwrap();
            assert_eq!((taken.element_type(), taken.shape()), (ty, &[2, 2][..]));
            let (all, found) = (from.first_values(6), taken.first_values(4));
            assert_eq!(found, positions.map(|p| all[p].clone()));
        }
        let strings = ["a", "", "c"].map(str::to_owned).to_vec();
        let from = Tensor::from_strings(&[3], strings).unwrap();
        let taken = from.take(&[2], &[2, 0]).unwrap();
        assert_eq!(taken.strings().unwrap(), ["c", "a"]);
    }
}
