//! `LRN`: `out = x / (bias + alpha / sizeⁿ · Σ x²)^beta`, the sum being over a box of side `size` around
//! the element in the `n` dims of `axes`.
//!
//! Specification: LRN-1. Its two texts differ for an even `size`; here the box has that side, with
//! one element fewer before the centre than behind it.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{Binary, Scalar};

pub(crate) static DEF: OpDef = OpDef {
    name: "LRN",
    versions: &["opset1"],
    signature: Signature::new(&["data", "axes"]),
    family: Family::Compose,
    build: Build::Op(parse::<Lrn>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lrn {
    alpha: f64,
    beta: f64,
    bias: f64,
    size: u32,
}

impl Op for Lrn {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("data", "a float type", |t| t.is_float())?;
        ensure!(self.size > 0, "`size` must be at least 1, found 0");
        if let (Some(axes), Some(rank)) = (cx.integers("axes")?, cx.shape("data").rank()) {
            normalize_axes(&axes, rank)?;
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        let axes = cx.integers("axes").unwrap_or_default();
        let axes = normalize_axes(&axes, shape.len()).unwrap_or_default();
        let wide = ty.compute();
        let before = i64::from((self.size - 1) / 2);
        let region = vec![self.size as usize; axes.len()];
        let scale = self.alpha / f64::from(self.size).powi(axes.len() as i32);
        cx.define(cx.output(0), |cx, at| {
            let sum = cx.reduce(Binary::Add, &region, zero(wide), |cx, k| {
                let mut from = at.to_vec();
                let mut guard = None;
                for (&axis, k) in axes.iter().zip(k) {
                    from[axis] = &at[axis] + k - before;
                    let i = &from[axis];
                    let within = i.ge(index(0)) & i.lt(Scalar::extent(shape[axis]));
                    guard = Some(match guard {
                        Some(guard) => guard & within,
                        None => within,
                    });
                }
                let x = widened(cx.load("data", &from));
                let square = &x * &x;
                match guard {
                    Some(guard) => select(guard, square, zero(wide)),
                    None => square,
                }
            });
            let base = number(self.bias, wide) + sum * number(scale, wide);
            (widened(cx.load("data", at)) / base.pow(number(self.beta, wide))).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, run};

    /// Values of NumPy by the formula of the specification.
    #[test]
    fn over_one_axis_and_none() {
        let attributes = |size| [("alpha", "3"), ("beta", "1"), ("bias", "1"), ("size", size)];
        let x = f32s(&[1, 3], &[1.0, 2.0, 3.0]);
        let inputs = [x.clone(), i64s(&[1], &[1])];
        let out = run(&DEF, &attributes("3"), &inputs);
        let want = [1.0 / 6.0, 2.0 / 15.0, 3.0 / 14.0];
        for (found, want) in out.to_f64_vec().unwrap().iter().zip(want) {
            assert!((found - want).abs() < 1e-6, "{found}");
        }
        let message = "`size` must be at least 1, found 0";
        assert_eq!(error(&DEF, &attributes("0"), &inputs), message);
        let out = run(&DEF, &attributes("3"), &[x, i64s(&[0], &[])]);
        assert!((out.to_f64_vec().unwrap()[0] - 0.25).abs() < 1e-6);
    }
}
