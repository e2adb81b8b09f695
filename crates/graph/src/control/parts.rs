//! Parts of tensors along an axis: cutting out, and putting side by side.

use vinelift_tensor::memory::collected;
use vinelift_tensor::{ElementType, Tensor, TensorError, packed};

/// `tensor[…, offset..offset + count, …]` along `axis`, which must have them.
pub(super) fn part(
    tensor: &Tensor,
    axis: usize,
    offset: usize,
    count: usize,
) -> Result<Tensor, TensorError> {
    let mut shape = tensor.shape().to_vec();
    shape[axis] = count;
    let mut out = Tensor::zeros(tensor.element_type(), &shape)?;
    // The product of the other dims may be too large to count with where one is 0.
    if out.element_count() == 0 {
        return Ok(out);
    }
    let (rows, from) = rows_in(tensor.shape(), count, (axis, offset));
    let to = (0, rows.length);
    if let Some(strings) = tensor.strings() {
        let places = rows.places(from, to).map(|(from, _)| strings[from].clone());
        return Tensor::from_strings(&shape, collected(places)?);
    }
    rows.copy(
        tensor.element_type(),
        tensor.bytes(),
        from,
        out.make_mut()?,
        to,
    );
    Ok(out)
}

/// Copies a part of `whole` to `offset` along `axis`: its elements, which have this extent there.
pub(super) fn put(
    part: &[u8],
    extent: usize,
    whole: &mut Tensor,
    (axis, offset): (usize, usize),
) -> Result<(), TensorError> {
    if whole.element_count() == 0 {
        return Ok(());
    }
    let ty = whole.element_type();
    let (rows, to) = rows_in(whole.shape(), extent, (axis, offset));
    rows.copy(ty, part, (0, rows.length), whole.make_mut()?, to);
    Ok(())
}

/// As [`put`], of strings, which are moved to those of a whole of this shape.
pub(super) fn put_strings(
    part: &mut [String],
    extent: usize,
    (whole, shape): (&mut [String], &[usize]),
    (axis, offset): (usize, usize),
) {
    if !whole.is_empty() {
        let (rows, to) = rows_in(shape, extent, (axis, offset));
        for (from, to) in rows.places((0, rows.length), to) {
            whole[to] = std::mem::take(&mut part[from]);
        }
    }
}

/// The rows of a part of this extent along `axis` of a whole of this shape, with the places that they have there from `offset`
/// on.
fn rows_in(
    shape: &[usize],
    extent: usize,
    (axis, offset): (usize, usize),
) -> (Rows, (usize, usize)) {
    let inner = inner(shape, axis);
    let rows = Rows {
        outer: shape[..axis].iter().product(),
        length: extent * inner,
    };
    (rows, (offset * inner, shape[axis] * inner))
}

fn inner(shape: &[usize], axis: usize) -> usize {
    let after = shape[axis + 1..].iter().copied();
    after.fold(1, usize::saturating_mul)
}

/// Runs of elements at equal distances.
#[derive(Clone, Copy)]
struct Rows {
    outer: usize,
    length: usize,
}

impl Rows {
    /// Copies the rows that begin at `from`, then every `from` further, and likewise for `to`.
    fn copy(
        self,
        ty: ElementType,
        source: &[u8],
        from: (usize, usize),
        target: &mut [u8],
        to: (usize, usize),
    ) {
        if ty.is_packed() {
            for (from, to) in self.places(from, to) {
                packed::set(ty, target, to, packed::get(ty, source, from));
            }
            return;
        }
        let width = ty.bits() / 8;
        for row in 0..self.outer {
            let (a, b) = (from.0 + row * from.1, to.0 + row * to.1);
            let bytes = &source[a * width..(a + self.length) * width];
            target[b * width..(b + self.length) * width].copy_from_slice(bytes);
        }
    }

    /// Where each element is and where it goes, as [`Rows::copy`] copies them.
    fn places(
        self,
        from: (usize, usize),
        to: (usize, usize),
    ) -> impl Iterator<Item = (usize, usize)> {
        let rows = (0..self.outer).map(move |row| (from.0 + row * from.1, to.0 + row * to.1));
        rows.flat_map(move |(a, b)| (0..self.length).map(move |k| (a + k, b + k)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole() {
        let data: Vec<i32> = (0..12).collect();
        let data = Tensor::from_slice(&[2, 3, 2], &data).unwrap();
        let middle = part(&data, 1, 1, 1).unwrap();
        assert_eq!(*middle.as_slice::<i32>().unwrap(), [2, 3, 8, 9]);
        let mut whole = Tensor::zeros(ElementType::I32, &[2, 3, 2]).unwrap();
        for (offset, count) in [(1, 2), (0, 1)] {
            let part = part(&data, 1, offset, count).unwrap();
            put(part.bytes(), count, &mut whole, (1, offset)).unwrap();
        }
        assert_eq!(whole, data);
    }

    #[test]
    fn parts_of_nothing_have_any_extents() {
        let nothing = Tensor::zeros(ElementType::U8, &[1 << 40, 1 << 40, 0]).unwrap();
        let part = part(&nothing, 1, 5, 1).unwrap();
        assert_eq!(part.shape(), [1 << 40, 1, 0]);
        let mut whole = nothing.clone();
        put(part.bytes(), 1, &mut whole, (1, 5)).unwrap();
        assert_eq!(whole, nothing);
    }

    #[test]
    fn elements_of_less_than_a_byte() {
        let data = Tensor::from_bytes(ElementType::U4, &[2, 3], [0x10, 0x32, 0x54]).unwrap();
        let right = part(&data, 1, 1, 2).unwrap();
        assert_eq!(right.to_i64_vec().unwrap(), [1, 2, 4, 5]);
        let left = part(&data, 1, 0, 1).unwrap();
        let mut whole = Tensor::zeros(ElementType::U4, &[2, 3]).unwrap();
        put(right.bytes(), 2, &mut whole, (1, 1)).unwrap();
        put(left.bytes(), 1, &mut whole, (1, 0)).unwrap();
        assert_eq!(whole, data);
    }
}
