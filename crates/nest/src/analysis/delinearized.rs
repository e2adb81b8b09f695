//! Accesses by the digits of one index: what a reshape between dims with symbols reads.
//!
//! > `x[k / (s1·s2), (k / s2) % s1, k % s2]` of `x: [s0, s1, s2]` is element `k`

use crate::analysis::{Linear, Ranges, divide, remainder};
use crate::ir::{Binary, Kind, Scalar};
use vinelift_tensor::Extent;

/// The index `k` whose digits `at` are in a row-major `shape`, so that `k` is the offset of the access; `None` if they
/// are no digits of one index, or if the strides of all dims are numbers.
pub(crate) fn delinearized(at: &[Scalar], shape: &[Extent], ranges: &mut Ranges) -> Option<Scalar> {
    let (first, rest) = at.split_first()?;
    let Kind::Binary(Binary::Div, k, stride) = first.kind() else {
        return None;
    };
    let Kind::Extent(outermost) = stride.kind() else {
        return None;
    };
    if ranges.of(k).low < 0 {
        return None;
    }
    let mut stride = Extent::from(1);
    for (digit, extent) in rest.iter().zip(&shape[1..]).rev() {
        let shifted = quotient(k, stride, ranges);
        if remainder_by(&shifted, *extent, ranges) != *digit {
            return None;
        }
        stride = stride.times(*extent)?;
    }
    (stride == *outermost).then(|| k.clone())
}

/// The dims of an access, each with its extent; neighbours that are `k / n` and `k % n · c + rest`, of which the inner one
/// has `n·c` elements, are one dim, `k·c + rest`. `None` if a dim then has no extent.
pub(crate) fn joined_digits(at: &[Scalar], shape: &[Extent]) -> Option<Vec<(Scalar, Extent)>> {
    let mut dims: Vec<(Scalar, Extent)> = Vec::with_capacity(at.len());
    for (index, extent) in at.iter().zip(shape) {
        let outer = dims.last_mut();
        let whole = outer.and_then(|outer| Some((digits_of(&outer.0, index, *extent)?, outer)));
        match whole {
            Some((whole, outer)) => *outer = (whole, outer.1.times(*extent)?),
            None => dims.push((index.clone(), *extent)),
        }
    }
    Some(dims)
}

/// The index `k·c + rest` if `outer` is `k / n`, and `inner` is `k % n · c + rest` where `n·c` is this extent.
fn digits_of(outer: &Scalar, inner: &Scalar, extent: Extent) -> Option<Scalar> {
    let (whole, n) = divided(outer, Binary::Div)?;
    let mut form = Linear::of(inner);
    let digit = |(atom, _): &(Scalar, i64)| divided(atom, Binary::Rem) == Some((whole, n));
    let digit = form.terms.iter().position(digit)?;
    let (_, factor) = form.terms.remove(digit);
    let rows = usize::try_from(factor).ok()?;
    (n.times(rows.into())? == extent).then(|| whole * factor + form.into_scalar())
}

/// The dividend of a quotient or remainder, and the extent that divides it.
pub(crate) fn divided(x: &Scalar, wanted: Binary) -> Option<(&Scalar, Extent)> {
    let Kind::Binary(op, whole, by) = x.kind() else {
        return None;
    };
    let by = match by.kind() {
        Kind::Extent(extent) => Some(*extent),
        _ => by
            .as_index()
            .and_then(|n| usize::try_from(n).ok())
            .map(Extent::from),
    };
    by.filter(|n| *op == wanted && *n > 0).map(|n| (whole, n))
}

/// `k / n`, in the form that simplification gives.
fn quotient(k: &Scalar, n: Extent, ranges: &mut Ranges) -> Scalar {
    match n.number().filter(|n| *n > 0) {
        Some(number) => divide(k, number as i64, ranges).map(Linear::into_scalar),
        None => None,
    }
    .unwrap_or_else(|| k / Scalar::extent(n))
}

/// `k % n`, in the form that simplification gives.
fn remainder_by(k: &Scalar, n: Extent, ranges: &mut Ranges) -> Scalar {
    match n.number().filter(|n| *n > 0) {
        Some(number) => remainder(k, number as i64, ranges).map(Linear::into_scalar),
        None => None,
    }
    .unwrap_or_else(|| k.rem(Scalar::extent(n)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_tensor::symbols::Symbols;

    #[test]
    fn digits_of_one_index_are_one_index() {
        let mut symbols = Symbols::default();
        let [a, b, c] = [4, 5, 6].map(|n| symbols.add(n).unwrap());
        let (mut ranges, [i, j]) = Ranges::over([60, 60]);
        let k = i * 60 + j;
        let of = |n: Extent| Scalar::extent(n);
        let shape = [a, b, 3.into(), c];
        let plane = c.times(3.into()).unwrap();
        let digits = [
            &k / of(plane.times(b).unwrap()),
            (&k / of(plane)).rem(of(b)),
            (&k / of(c)).rem(crate::build::index(3)),
            k.rem(of(c)),
        ];
        assert_eq!(delinearized(&digits, &shape, &mut ranges), Some(k.clone()));
        for wrong in 0..4 {
            let mut digits = digits.clone();
            digits[wrong] = &digits[wrong] + 1;
            assert_eq!(delinearized(&digits, &shape, &mut ranges), None);
        }
        let other = [a, c, 3.into(), b];
        assert_eq!(delinearized(&digits, &other, &mut ranges), None);
        let negative = k - 1;
        let digits = [&negative / of(c), negative.rem(of(c))];
        assert_eq!(delinearized(&digits, &[a, c], &mut ranges), None);
    }
}
