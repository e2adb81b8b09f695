//! Arithmetic on dims and shapes that says when it does not fit.

use crate::OpError;
use crate::error::ensure;
use vinelift_tensor::{Dim, Extent, Formula, PartialShape, element_count, example, symbols};

/// `shape`, whose elements can be counted.
pub(crate) fn countable(shape: PartialShape) -> Result<PartialShape, OpError> {
    if let Some(extents) = shape.to_extents() {
        ensure!(
            element_count(&example(&extents)).is_some(),
            "an output of shape {shape} is too large"
        );
    }
    Ok(shape)
}

/// The values of a list of extents, each at least `least`.
pub(crate) fn naturals(name: &str, values: &[i64], least: usize) -> Result<Vec<usize>, OpError> {
    let fits = |v: &i64| usize::try_from(*v).ok().filter(|v| *v >= least);
    let all: Option<Vec<usize>> = values.iter().map(fits).collect();
    all.ok_or_else(|| OpError::Shape(format!("`{name}` {values:?} must be at least {least}")))
}

/// As [`naturals`] of at least 0, of elements that may have symbols.
pub(crate) fn natural_extents(name: &str, values: &[Formula]) -> Result<Vec<Extent>, OpError> {
    let all: Option<Vec<Extent>> = values.iter().map(|v| Extent::of(*v)).collect();
    all.ok_or_else(|| {
        let values: Vec<i64> = values.iter().filter_map(symbols::example).collect();
        OpError::Shape(format!("`{name}` {values:?} must be at least 0"))
    })
}

/// `dim + by`, cut off at 0.
pub(crate) fn grown(dim: Dim, by: i128) -> Dim {
    if let (Some(extent), Ok(less)) = (dim.extent(), usize::try_from(-by)) {
        return extent.difference(less.into()).into();
    }
    if let (Some(extent), Ok(more)) = (dim.extent(), usize::try_from(by))
        && extent.is_symbolic()
    {
        return extent.sum(more.into()).into();
    }
    let add = |n: usize| usize::try_from((n as i128 + by).max(0)).unwrap_or(usize::MAX);
    Dim::between(add(dim.min()), dim.max().map(add))
}

/// `dim / by`, `None` if that leaves a remainder for every extent.
pub(crate) fn divided(dim: Dim, by: usize) -> Option<Dim> {
    if let Some(whole) = dim.extent().filter(|n| n.is_symbolic()) {
        return whole_quotient(whole, by.into()).map(Dim::from);
    }
    let (min, max) = (dim.min().div_ceil(by), dim.max().map(|max| max / by));
    max.is_none_or(|max| min <= max)
        .then_some(Dim::between(min, max))
}

/// `whole / by`, `None` if that leaves a remainder.
pub(crate) fn whole_quotient(whole: Extent, by: Extent) -> Option<Extent> {
    let part = whole.quotient(by);
    part.product(by).same(whole).then_some(part)
}

/// Whether there are extents of both dims such that the first is at most the second.
pub(crate) fn may_be_at_most(a: Dim, b: Dim) -> bool {
    match (a.extent(), b.extent()) {
        (Some(a), Some(b)) => a.at_most(b),
        _ => b.max().is_none_or(|max| a.min() <= max),
    }
}

/// The product of extents; an error if it does not fit.
pub(crate) fn product(name: &str, extents: &[usize]) -> Result<usize, OpError> {
    let product = extents.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    product
        .ok_or_else(|| OpError::Shape(format!("the product of `{name}` {extents:?} is too large")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let dim = Dim::between(3, Some(10));
        assert_eq!(grown(dim, -4), Dim::between(0, Some(6)));
        assert_eq!(grown(Dim::fixed(1), i128::MAX >> 1), Dim::fixed(usize::MAX));
        assert_eq!(divided(dim, 4), Some(Dim::between(1, Some(2))));
        assert_eq!(divided(Dim::fixed(5), 2), None);
    }

    #[test]
    fn what_does_not_fit() {
        let error = |r: Result<usize, OpError>| r.unwrap_err().to_string();
        let big = [1 << 40, 1 << 40];
        let message = "the product of `x` [1099511627776, 1099511627776] is too large";
        assert_eq!(error(product("x", &big)), message);
        let message = naturals("x", &[1, -1], 0).unwrap_err().to_string();
        assert_eq!(message, "`x` [1, -1] must be at least 0");
        let shape = countable(PartialShape::from(&big[..]))
            .unwrap_err()
            .to_string();
        assert_eq!(
            shape,
            "an output of shape [1099511627776, 1099511627776] is too large"
        );
    }
}
