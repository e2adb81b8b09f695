//! `SoftMax`: `out = exp(x - m) / Σ exp(x - m)` along `axis`, `m` being the largest `x` there.
//!
//! Specifications: SoftMax-1, whose axis is not negative, and SoftMax-8. Where all `x` are `-inf` the
//! result is NaN.

use super::slices::Slices;
use crate::attrs::Attributes;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::dim_of_axis;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

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
            (widened(cx.load("data", at)) - largest).exp()
        });
        let sum = rows.per_slice(cx, "sum", ty.compute(), |cx, row| {
            rows.sum(cx, row, ty.compute(), |cx, at| cx.load_from(powers, at))
        });
        cx.define(cx.output(0), |cx, at| {
            let sum = cx.load_from(sum, &rows.slice_of(at));
            (cx.load_from(powers, at) / sum).cast(ty)
        });
    }
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
    use vinelift_tensor::{ElementType, PartialShape, Tensor};

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
