//! Parts of tensors along an axis: cutting out, and putting side by side.

use vinelift_tensor::{ElementType, Tensor, TensorError, packed};

/// `tensor[…, offset..offset + count, …]` along `axis`, which must have them.
pub(super) fn part(
    tensor: &Tensor,
    axis: usize,
    offset: usize,
    count: usize,
) -> Result<Tensor, TensorError> {
    let mut shape = tensor.shape().to_vec();
    let (extent, inner) = (shape[axis], inner(&shape, axis));
    shape[axis] = count;
    let mut out = Tensor::zeros(tensor.element_type(), &shape)?;
    // The product of the other dims may be too large to count with where one is 0.
    if out.element_count() == 0 {
        return Ok(out);
    }
    let rows = Rows {
        ty: tensor.element_type(),
        outer: shape[..axis].iter().product(),
        length: count * inner,
    };
    let from = (offset * inner, extent * inner);
    rows.copy(tensor.bytes(), from, out.make_mut()?, (0, count * inner));
    Ok(out)
}

/// Copies a part of `whole` to `offset` along `axis`: its elements, which have this extent there.
pub(super) fn put(
    part: &[u8],
    extent: usize,
    whole: &mut Tensor,
    (axis, offset): (usize, usize),
) -> Result<(), TensorError> {
    let (ty, shape) = (whole.element_type(), whole.shape());
    if whole.element_count() == 0 {
        return Ok(());
    }
    let (inner, step) = (inner(shape, axis), shape[axis]);
    let rows = Rows {
        ty,
        outer: shape[..axis].iter().product(),
        length: extent * inner,
    };
    let to = (offset * inner, step * inner);
    rows.copy(part, (0, extent * inner), whole.make_mut()?, to);
    Ok(())
}

fn inner(shape: &[usize], axis: usize) -> usize {
    let after = shape[axis + 1..].iter().copied();
    after.fold(1, usize::saturating_mul)
}

/// Runs of elements at equal distances.
struct Rows {
    ty: ElementType,
    outer: usize,
    length: usize,
}

impl Rows {
    /// Copies the rows that begin at `from`, then every `from` further, and likewise for `to`.
    fn copy(&self, source: &[u8], from: (usize, usize), target: &mut [u8], to: (usize, usize)) {
        for row in 0..self.outer {
            let (a, b) = (from.0 + row * from.1, to.0 + row * to.1);
            if self.ty.is_packed() {
                for k in 0..self.length {
                    let code = packed::get(self.ty, source, a + k);
                    packed::set(self.ty, target, b + k, code);
                }
            } else {
                let width = self.ty.bits() / 8;
                let bytes = &source[a * width..(a + self.length) * width];
                target[b * width..(b + self.length) * width].copy_from_slice(bytes);
            }
        }
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
