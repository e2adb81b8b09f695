//! Positions in row-major order: from coordinates and back.

use vinelift_nest::{Scalar, build::index, row_major};

/// The position of `at` in a tensor of `shape`: `Σ at[d] · stride[d]`.
pub(crate) fn flatten(at: &[Scalar], shape: &[usize]) -> Scalar {
    let strides = row_major(shape);
    let mut flat: Option<Scalar> = None;
    for (d, i) in at.iter().enumerate().filter(|(d, _)| shape[*d] != 1) {
        let term = if strides[d] == 1 {
            i.clone()
        } else {
            i * extent(strides[d])
        };
        flat = Some(match flat {
            Some(sum) => sum + term,
            None => term,
        });
    }
    flat.unwrap_or_else(|| index(0))
}

/// The coordinates of position `flat` in a tensor of `shape`: `flat / stride[d] % shape[d]`.
///
/// `flat` must lie within the tensor, so that the outermost dim needs no remainder.
pub(crate) fn unflatten(flat: &Scalar, shape: &[usize]) -> Vec<Scalar> {
    if shape.contains(&0) {
        return vec![index(0); shape.len()];
    }
    let strides = row_major(shape);
    let outermost = shape.iter().position(|&n| n != 1);
    let coordinate = |(d, &n): (usize, &usize)| {
        if n == 1 {
            return index(0);
        }
        let whole = if strides[d] == 1 {
            flat.clone()
        } else {
            flat / extent(strides[d])
        };
        if outermost == Some(d) {
            whole
        } else {
            whole.rem(index(extent(n)))
        }
    };
    shape.iter().enumerate().map(coordinate).collect()
}

/// An extent or stride as an index. It only saturates where a tensor is empty.
pub(crate) fn extent(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_nest::Nest;

    /// Each position of [2, 1, 3], taken apart and put together again as text.
    #[test]
    fn coordinates_and_positions() {
        let mut nest = Nest::new();
        let at: Vec<Scalar> = nest
            .axes(&[2, 1, 3])
            .iter()
            .map(|a| Scalar::axis(a.id))
            .collect();
        let flat = flatten(&at, &[2, 1, 3]);
        assert_eq!(flat, &at[0] * 3 + &at[2]);
        assert_eq!(unflatten(&flat, &[3, 2]), [&flat / 2, flat.rem(index(2))]);
        assert_eq!(unflatten(&flat, &[6, 1]), [flat.clone(), index(0)]);
        assert_eq!(flatten(&[], &[]), index(0));
        assert_eq!(unflatten(&index(0), &[0, 2]), [index(0), index(0)]);
    }
}
