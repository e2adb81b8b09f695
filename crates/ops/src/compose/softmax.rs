//! `SoftMax`: `out = exp(x - m) / Σ exp(x - m)` along `axis`, `m` being the largest `x` there.
//!
//! Specifications: SoftMax-1, whose axis is not negative, and SoftMax-8. Where all `x` are `-inf` the
//! result is NaN. An `exp` that would be subnormal is 0 ([`power`]).

use super::slices::Slices;
use crate::attrs::Attributes;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::dim_of_axis;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{lowest, number, select};
use vinelift_tensor::ElementType;

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Op(|attributes| {
        let op: SoftMax = attributes.parse()?;
        ensure!(op.axis >= 0, "axis {} must be at least 0", op.axis);
        Ok(Box::new(op))
    }),
);

pub(crate) static V8: OpDef = version(
    &["opset8"],
    Build::Op(|attributes: &Attributes<'_>| Ok(Box::new(attributes.parse::<SoftMax>()?))),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "SoftMax",
        versions,
        signature: Signature::new(&["data"]),
        family: Family::Compose,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoftMax {
    #[serde(default = "one")]
    axis: i64,
}

/// The axis if none is given.
pub(super) fn one() -> i64 {
    1
}

impl Op for SoftMax {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx, self.axis)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let ty = cx.element("data");
        let axis = dim_of_axis(self.axis, shape.len()).unwrap_or_default();
        let rows = Slices::new(&shape, axis.as_slice());
        let largest = rows.largest(cx, "data");
        let powers = cx.temporary("powers", ty.compute(), &shape);
        cx.define(powers, |cx, at| {
            let largest = cx.load_from(largest, &rows.slice_of(at));
            power(widened(cx.load("data", at)), largest)
        });
        let factor = rows.per_slice(cx, "factor", ty.compute(), |cx, row| {
            let sum = rows.sum(cx, row, ty.compute(), |cx, at| cx.load_from(powers, at));
            factor(sum)
        });
        cx.define(cx.output(0), |cx, at| {
            let factor = cx.load_from(factor, &rows.slice_of(at));
            (cx.load_from(powers, at) * factor).cast(ty)
        });
    }
}

/// `exp(x - largest)` of one of the values of which `largest` is the largest; 0 where an `f32` would be less than the least
/// normal number, `2^-126`. The sum of such is at least 1, and products with subnormal numbers, which a mask of `-100` makes
/// many of, take a hundred cycles each.
pub(super) fn power(x: Scalar, largest: Scalar) -> Scalar {
    let difference = x - largest;
    if difference.ty() != ElementType::F32 {
        return difference.exp();
    }
    let least = f64::from(f32::MIN_POSITIVE).ln();
    let is_subnormal = difference.lt(number(least, ElementType::F32));
    select(is_subnormal, lowest(ElementType::F32), difference).exp()
}

/// `1 / sum`, by which each power is multiplied. Multiplying is several times as fast as dividing each power by `sum`, and adds less
/// than the rounding error of [`power`].
pub(super) fn factor(sum: Scalar) -> Scalar {
    number(1.0, sum.ty()) / sum
}

/// Floats, and an axis that exists.
pub(super) fn infer(cx: &Infer<'_>, axis: i64) -> Result<Vec<TensorType>, OpError> {
    cx.expect("data", "a float type", |t| t.is_float())?;
    if let Some(rank) = cx.shape("data").rank() {
        dim_of_axis(axis, rank)?;
    }
    Ok(vec![cx.input("data").clone()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, infer, run};
    use vinelift_tensor::{PartialShape, Tensor};

    /// Values of NumPy.
    #[test]
    fn along_any_axis() {
        let ln = f32::ln;
        let x = f32s(&[2, 2], &[ln(1.0), ln(3.0), ln(2.0), ln(6.0)]);
        let near = |found: Tensor, want: &[f64]| {
            let found = found.to_f64_vec().unwrap();
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
            assert!(found.iter().zip(want).all(close), "{found:?}");
        };
        near(
            run(&V8, &[], std::slice::from_ref(&x)),
            &[0.25, 0.75, 0.25, 0.75],
        );
        let third = 1.0 / 3.0;
        let columns = [third, third, 2.0 * third, 2.0 * third];
        near(
            run(&V8, &[("axis", "-2")], std::slice::from_ref(&x)),
            &columns,
        );
        near(run(&V1, &[("axis", "0")], &[x]), &columns);
    }

    #[test]
    fn large_numbers_and_infinities() {
        let inf = f32::INFINITY;
        let x = f32s(&[1, 3], &[1000.0, 1000.0, -inf]);
        assert_eq!(run(&V8, &[], &[x]), f32s(&[1, 3], &[0.5, 0.5, 0.0]));
        let out = run(&V8, &[], &[f32s(&[1, 2], &[-inf, -inf])]);
        assert!(out.to_f64_vec().unwrap().iter().all(|x| x.is_nan()));
        let out = run(&V8, &[], &[f32s(&[2, 0], &[])]);
        assert_eq!(out, f32s(&[2, 0], &[]));
    }

    /// `e^-87.3` is a normal `f32`, `e^-87.4` is not.
    #[test]
    fn no_share_is_subnormal_by_its_power() {
        let x = f32s(&[1, 4], &[100.0, 12.7, 12.6, 0.0]);
        let out = run(&V8, &[], &[x]).to_f64_vec().unwrap();
        assert_eq!([out[0], out[2], out[3]], [1.0, 0.0, 0.0]);
        let want = (-87.3f64).exp();
        assert!((out[1] / want - 1.0).abs() < 1e-5, "{}", out[1]);
    }

    /// A scalar is a row of one element.
    #[test]
    fn of_scalars() {
        for axis in ["0", "-1"] {
            let of = |x: f32| run(&V8, &[("axis", axis)], &[f32s(&[], &[x])]);
            assert_eq!(of(3.0), f32s(&[], &[1.0]));
            assert!(of(f32::INFINITY).to_f64_vec().unwrap()[0].is_nan());
        }
        let message = "axis 1 is out of range for rank 1";
        assert_eq!(error(&V8, &[], &[f32s(&[], &[0.0])]), message);
    }

    #[test]
    fn the_axis_must_exist() {
        let x = f32s(&[2], &[0.0; 2]);
        let message = "axis 1 is out of range for rank 1";
        assert_eq!(error(&V8, &[], std::slice::from_ref(&x)), message);
        let message = "axis -1 must be at least 0";
        assert_eq!(error(&V1, &[("axis", "-1")], &[x]), message);
        let dynamic = (ElementType::F16, PartialShape::DYNAMIC, None);
        assert_eq!(infer(&V8, &[], &[dynamic]).0, "f16[...]");
    }
}
