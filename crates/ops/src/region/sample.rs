//! Reading between the elements of a feature map.

use crate::Lower;
use crate::layout::index_map::{extent_float, last, last_float};
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, number};
use vinelift_tensor::{ElementType, Extent};

/// The float `x` cut to `low..=high`, and `low` if it is NaN.
pub(crate) fn cut(x: &Scalar, low: f64, high: Scalar) -> Scalar {
    x.max(number(low, x.ty())).min(high)
}

/// The float `x`, which is an integer, as one in `0..=high`.
pub(super) fn bounded(x: &Scalar, high: Extent) -> Scalar {
    let whole = cut(x, 0.0, extent_float(high, x.ty())).cast(ElementType::I64);
    whole.max(index(0)).min(Scalar::extent(high))
}

/// `low <= x <= high`, and not NaN.
pub(super) fn within(x: &Scalar, low: f64, high: Scalar) -> Scalar {
    x.ge(number(low, x.ty())) & x.le(high)
}

/// The elements of a dim on both sides of a position, and how near it is to the second.
struct Neighbours {
    low: Scalar,
    high: Scalar,
    fraction: Scalar,
}

impl Neighbours {
    /// A position outside of the dim counts as its first or last element.
    fn new(position: &Scalar, n: Extent) -> Neighbours {
        let position = cut(position, 0.0, last_float(n, position.ty()));
        let low = position.floor();
        // In range already; the verifier does not follow floats.
        let element = |x: &Scalar| x.clone().cast(ElementType::I64).max(index(0)).min(last(n));
        Neighbours {
            fraction: &position - &low,
            high: element(&position.ceil()),
            low: element(&low),
        }
    }
}

/// The value at `(y, x)` of a feature map of extents `dims`, interpolated between the four elements
/// around it, each of which `load` gives.
pub(crate) fn bilinear(
    cx: &Lower<'_>,
    [y, x]: [&Scalar; 2],
    dims: [Extent; 2],
    load: impl Fn(&Lower<'_>, &Scalar, &Scalar) -> Scalar,
) -> Scalar {
    let (y, x) = (Neighbours::new(y, dims[0]), Neighbours::new(x, dims[1]));
    let (to_y, to_x) = (&y.fraction, &x.fraction);
    let one = number(1.0, to_y.ty());
    let (from_y, from_x) = (&one - to_y, &one - to_x);
    let term = |y: &Scalar, x: &Scalar, weight: Scalar| weight * load(cx, y, x);
    term(&y.low, &x.low, &from_y * &from_x)
        + term(&y.low, &x.high, &from_y * to_x)
        + term(&y.high, &x.low, to_y * &from_x)
        + term(&y.high, &x.high, to_y * to_x)
}
