//! Positions in row-major order: from coordinates and back.

use std::ops::Range;
use vinelift_nest::build::{index, number};
use vinelift_nest::{Scalar, row_major};
use vinelift_tensor::{ElementType, Extent, extents, numbers};

/// The position of `at` in a tensor of `shape`: `Σ at[d] · stride[d]`.
pub(crate) fn flatten(at: &[Scalar], shape: &[impl Into<Extent> + Copy]) -> Scalar {
    let shape = extents(shape);
    let strides = strides(&shape);
    let mut flat: Option<Scalar> = None;
    for (d, i) in at.iter().enumerate().filter(|(d, _)| shape[*d] != 1) {
        let term = if strides[d] == 1 {
            i.clone()
        } else {
            i * &Scalar::extent(strides[d])
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
pub(crate) fn unflatten(flat: &Scalar, shape: &[impl Into<Extent> + Copy]) -> Vec<Scalar> {
    let shape = extents(shape);
    if shape.iter().any(|n| *n == 0) {
        return vec![index(0); shape.len()];
    }
    let strides = strides(&shape);
    let outermost = shape.iter().position(|&n| n != 1);
    let coordinate = |(d, &n): (usize, &Extent)| {
        if n == 1 {
            return index(0);
        }
        let whole = if strides[d] == 1 {
            flat.clone()
        } else {
            flat / &Scalar::extent(strides[d])
        };
        if outermost == Some(d) {
            whole
        } else {
            whole.rem(Scalar::extent(n))
        }
    };
    shape.iter().enumerate().map(coordinate).collect()
}

/// The coordinates in a tensor of shape `from` of the element that has coordinates `at` in one of shape `to`: both have
/// as many elements, in row-major order. Neighbouring dims are taken together only as far as they must be.
pub(crate) fn reshaped(at: &[Scalar], to: &[Extent], from: &[Extent]) -> Vec<Scalar> {
    let mut coordinates = Vec::with_capacity(from.len());
    for (inner, outer) in groups(from, to) {
        let (place, extents) = (&at[outer.clone()], &to[outer]);
        match (&from[inner.clone()], extents) {
            ([n], [m]) if n == m => coordinates.push(place[0].clone()),
            (dims, _) => coordinates.extend(unflatten(&flatten(place, extents), dims)),
        }
    }
    coordinates
}

/// The shortest runs of dims of both shapes that have as many elements as each other.
fn groups(from: &[Extent], to: &[Extent]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut groups = Vec::new();
    let (mut start, mut end) = ([0, 0], [0, 0]);
    let shapes = [from, to];
    while (0..2).any(|side| end[side] < shapes[side].len()) {
        let mut products = [Extent::from(1); 2];
        loop {
            let [a, b] = products;
            let taken = (0..2).all(|side| end[side] > start[side]);
            if taken && a == b {
                break;
            }
            let is_open = |side: usize| end[side] < shapes[side].len();
            let side = match (is_open(0), is_open(1)) {
                (true, true) => usize::from(a.example() > b.example()),
                (true, false) => 0,
                (false, true) => 1,
                (false, false) => break,
            };
            products[side] = products[side].product(shapes[side][end[side]]);
            end[side] += 1;
        }
        groups.push((start[0]..end[0], start[1]..end[1]));
        start = end;
    }
    groups
}

/// Elements between neighbours along each dim of a row-major `shape`.
pub(crate) fn strides(shape: &[Extent]) -> Vec<Extent> {
    if let Some(shape) = numbers(shape) {
        return extents(&row_major(&shape));
    }
    let mut strides = vec![Extent::from(1); shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].product(shape[d]);
    }
    strides
}

/// The last index of a dim of extent `n`.
pub(crate) fn last(n: Extent) -> Scalar {
    match n.number() {
        Some(n) => index(extent(n).saturating_sub(1)),
        None => Scalar::extent(n) - 1,
    }
}

/// [`last`] as a float of type `ty`.
pub(crate) fn last_float(n: Extent, ty: ElementType) -> Scalar {
    match n.number() {
        Some(n) => number(extent(n) as f64 - 1.0, ty),
        None => last(n).cast(ty),
    }
}

/// An extent as a float of type `ty`.
pub(crate) fn extent_float(n: Extent, ty: ElementType) -> Scalar {
    match n.number() {
        Some(n) => number(n as f64, ty),
        None => Scalar::extent(n).cast(ty),
    }
}

/// `0 <= i < n`
pub(crate) fn within_extent(i: &Scalar, n: Extent) -> Scalar {
    i.ge(index(0)) & i.lt(Scalar::extent(n))
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
        assert_eq!(flatten(&[], &[0usize; 0]), index(0));
        assert_eq!(unflatten(&index(0), &[0, 2]), [index(0), index(0)]);
    }

    #[test]
    fn dims_are_taken_together_only_as_far_as_they_must_be() {
        let found = |from: &[usize], to: &[usize]| groups(&extents(from), &extents(to));
        let same = [(0..1, 0..1), (1..2, 1..3)];
        assert_eq!(found(&[5, 384], &[5, 12, 32]), same);
        assert_eq!(found(&[2, 3], &[3, 2]), [(0..2, 0..2)]);
        assert_eq!(found(&[1, 6], &[6]), [(0..2, 0..1)]);
        assert_eq!(found(&[4], &[4, 1]), [(0..1, 0..1), (1..1, 1..2)]);
    }
}
