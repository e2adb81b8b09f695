//! Reading between the elements of a feature map.

use crate::Lower;
use crate::layout::index_map::extent;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, number};
use vinelift_tensor::ElementType;

/// The float `x` cut to `low..=high`, and `low` if it is NaN.
pub(crate) fn cut(x: &Scalar, low: f64, high: f64) -> Scalar {
    let of = |n| number(n, x.ty());
    x.max(of(low)).min(of(high))
}

/// The float `x`, which is an integer, as one in `low..=high`.
pub(super) fn bounded(x: &Scalar, low: i64, high: i64) -> Scalar {
    let whole = cut(x, low as f64, high as f64).cast(ElementType::I64);
    whole.max(index(low)).min(index(high))
}

/// `low <= x <= high`, and not NaN.
pub(super) fn within(x: &Scalar, low: f64, high: f64) -> Scalar {
    x.ge(number(low, x.ty())) & x.le(number(high, x.ty()))
}

/// The elements of a dim on both sides of a position, and how near it is to the second.
struct Neighbours {
    low: Scalar,
    high: Scalar,
    fraction: Scalar,
}

impl Neighbours {
    /// A position outside of the dim counts as its first or last element.
    fn new(position: &Scalar, n: usize) -> Neighbours {
        let last = extent(n) - 1;
        let position = cut(position, 0.0, last as f64);
        let low = position.floor();
        // In range already; the verifier does not follow floats.
        let element = |x: &Scalar| {
            x.clone()
                .cast(ElementType::I64)
                .max(index(0))
                .min(index(last))
        };
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
    dims: [usize; 2],
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
