//! Tensors of some elements of others.

use crate::memory::{room_for, text};
use crate::tensor::check_count;
use crate::{Tensor, TensorError, element_count, packed};

impl Tensor {
    /// The elements at `positions`, in their order, as a tensor of `shape`.
    ///
    /// # Panics
    /// If there is no element at a position.
    pub fn take(&self, shape: &[usize], positions: &[usize]) -> Result<Tensor, TensorError> {
        check_count(self.element_type(), shape, positions.len())?;
        self.take_each(shape, &positions)
    }

    /// Of a tensor whose dims are `[outer, extent, inner]` once some are joined, elements that lie along the second:
    /// `taken[o, j, i] = self[o, positions[o, j, i], i]`, as a tensor of `shape`.
    ///
    /// # Panics
    /// If there is no element at a position.
    pub fn take_along(
        &self,
        dims: [usize; 3],
        shape: &[usize],
        positions: &[i64],
    ) -> Result<Tensor, TensorError> {
        check_count(self.element_type(), shape, positions.len())?;
        self.take_each(shape, &Along { dims, positions })
    }

    fn take_each(&self, shape: &[usize], places: &impl Places) -> Result<Tensor, TensorError> {
        let ty = self.element_type();
        if let Some(strings) = self.strings() {
            let mut taken = room_for(element_count(shape).unwrap_or(0))?;
            let mut done = Ok(());
            places.each(|place| match text(&strings[place]) {
                Ok(text) => taken.push(text),
                Err(error) => done = Err(error),
            });
            done?;
            return Tensor::from_strings(shape, taken);
        }
        let mut taken = Tensor::zeros(ty, shape)?;
        let (from, to) = (self.bytes(), taken.make_mut()?);
        match ty.bits() / 8 {
            _ if ty.is_packed() => {
                let mut k = 0;
                places.each(|place| {
                    packed::set(ty, to, k, packed::get(ty, from, place));
                    k += 1;
                });
            }
            1 => of_width::<1>(from, places, to),
            2 => of_width::<2>(from, places, to),
            4 => of_width::<4>(from, places, to),
            _ => of_width::<8>(from, places, to),
        }
        Ok(taken)
    }
}

/// Copies elements that have `WIDTH` bytes each.
fn of_width<const WIDTH: usize>(from: &[u8], places: &impl Places, to: &mut [u8]) {
    let from = from.as_chunks::<WIDTH>().0;
    let mut to = to.as_chunks_mut::<WIDTH>().0.iter_mut();
    places.each(|place| {
        if let Some(to) = to.next() {
            *to = from[place];
        }
    });
}

/// Which elements are taken, in their order.
trait Places {
    /// Calls `f` with each.
    fn each(&self, f: impl FnMut(usize));
}

impl Places for &[usize] {
    fn each(&self, f: impl FnMut(usize)) {
        self.iter().copied().for_each(f);
    }
}

struct Along<'a> {
    dims: [usize; 3],
    positions: &'a [i64],
}

impl Places for Along<'_> {
    fn each(&self, mut f: impl FnMut(usize)) {
        let [outer, extent, inner] = self.dims;
        // That of all slices of one `o`; none are empty if there is one.
        let count = self.positions.len() / outer.max(1);
        for (o, slices) in self.positions.chunks(count.max(1)).enumerate() {
            let start = o * extent * inner;
            let mut i = 0;
            for position in slices {
                let position = *position as usize;
                assert!(position < extent, "no element at position {position}");
                f(start + position * inner + i);
                i = if i + 1 < inner { i + 1 } else { 0 };
            }
        }
    }
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

    #[test]
    fn elements_along_a_dim() {
        let values: Vec<i16> = (0..12).collect();
        let from = Tensor::from_slice(&[2, 3, 2], &values).unwrap();
        let taken = from.take_along([2, 3, 2], &[2, 1, 2], &[2, 0, 1, 1]);
        let want = Tensor::from_slice(&[2, 1, 2], &[4i16, 1, 8, 9]).unwrap();
        assert_eq!(taken.unwrap(), want);
        let taken = from.take_along([4, 3, 1], &[4, 2], &[0, 2, 1, 0, 2, 2, 0, 1]);
        let want = [0i16, 2, 4, 3, 8, 8, 9, 10];
        assert_eq!(taken.unwrap(), Tensor::from_slice(&[4, 2], &want).unwrap());
        let none = Tensor::zeros(ElementType::I16, &[2, 0]).unwrap();
        assert_eq!(none.take_along([2, 0, 1], &[2, 0], &[]).unwrap(), none);
        assert!(from.take_along([2, 3, 2], &[3], &[0]).is_err());
    }
}
