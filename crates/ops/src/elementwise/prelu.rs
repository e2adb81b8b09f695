//! `PReLU`: `out = x < 0 ? slope · x : x`.
//!
//! Specification: PReLU-1. A `slope` of one dim that is as long as the second dim of `data` (the
//! first, if it has only one) has one element for each channel; any other is broadcast to `data` by
//! NumPy's rules, or has one element for all, whose dim a scalar need not have.
//!
//! Beyond the specification, which has one type for both, a `slope` of `f32` for `data` of `f16` or `bf16` is taken as it is: so
//! OpenVINO's PyTorch front end writes `leaky_relu` of half models. Either way the product is rounded once, to the type of `data`.

use super::{Class, widened};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, number, select};
use vinelift_tensor::Extent;

pub(crate) static DEF: OpDef = OpDef {
    name: "PReLU",
    versions: &["opset1"],
    signature: Signature::new(&["data", "slope"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<PRelu>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PRelu {}

impl Op for PRelu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", Class::Float.describe(), |t| Class::Float.accepts(t))?;
        if cx.element("slope") != element.compute() {
            cx.expect_same("data", "slope")?;
        }
        let (data, slope) = (cx.shape("data"), cx.shape("slope"));
        if let (Some(x), Some(s)) = (data.to_extents(), slope.to_extents()) {
            let fits = per_channel(&x, &s) || is_single(&s) || stretches(&s, &x);
            ensure!(
                fits,
                "`slope` {slope} must broadcast to `data` {data} or to its channels"
            );
        }
        Ok(vec![TensorType::new(element, data.clone())])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("data");
        let (data, slope) = (cx.extents("data"), cx.extents("slope"));
        cx.define(cx.output(0), |cx, at| {
            let from: Vec<Scalar> = if per_channel(&data, &slope) {
                vec![at[channel(data.len())].clone()]
            } else if is_single(&slope) {
                vec![index(0)]
            } else {
                let last = &at[data.len() - slope.len()..];
                let place = |(i, &n): (&Scalar, &Extent)| if n == 1 { index(0) } else { i.clone() };
                last.iter().zip(&slope).map(place).collect()
            };
            let x = widened(cx.load("data", at));
            let scaled = &x * widened(cx.load("slope", &from));
            select(x.lt(number(0.0, x.ty())), scaled, x).cast(ty)
        });
    }
}

/// The dim of channels.
fn channel(rank: usize) -> usize {
    usize::from(rank > 1)
}

fn per_channel(data: &[Extent], slope: &[Extent]) -> bool {
    let channels = data.get(channel(data.len()));
    slope.len() == 1 && channels.is_some_and(|channels| channels.same(slope[0]))
}

/// Whether there is one dim of one element.
fn is_single(slope: &[Extent]) -> bool {
    matches!(slope, [n] if *n == 1)
}

/// Whether `from` broadcasts to `to`.
fn stretches(from: &[Extent], to: &[Extent]) -> bool {
    from.len() <= to.len()
        && from
            .iter()
            .rev()
            .zip(to.iter().rev())
            .all(|(&n, &m)| n == 1 || n.same(m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};
    use vinelift_tensor::Tensor;

    #[test]
    fn slopes_for_channels() {
        let x = f32s(&[1, 2, 2], &[-1.0, 2.0, -3.0, f32::NAN]);
        let out = run(&DEF, &[], &[x, f32s(&[2], &[0.5, 2.0])])
            .to_f64_vec()
            .unwrap();
        assert_eq!(out[..3], [-0.5, 2.0, -6.0]);
        assert!(out[3].is_nan());
    }

    #[test]
    fn slopes_by_the_rules_of_numpy() {
        let x = f32s(&[2, 3], &[-1.0; 6]);
        let out = run(&DEF, &[], &[x.clone(), f32s(&[2, 1], &[2.0, 3.0])]);
        assert_eq!(out, f32s(&[2, 3], &[-2.0, -2.0, -2.0, -3.0, -3.0, -3.0]));
        let out = run(&DEF, &[], &[x, f32s(&[1], &[2.0])]);
        assert_eq!(out, f32s(&[2, 3], &[-2.0; 6]));
        let out = run(&DEF, &[], &[f32s(&[], &[-1.0]), f32s(&[], &[4.0])]);
        assert_eq!(out, f32s(&[], &[-4.0]));
        let out = run(&DEF, &[], &[f32s(&[], &[-1.0]), f32s(&[1], &[4.0])]);
        assert_eq!(out, f32s(&[], &[-4.0]));
    }

    /// As `torch.nn.functional.leaky_relu` of a tensor of `float16` has it: -3 · 0.1 rounded to `f16`, not -3 · `f16(0.1)`.
    #[test]
    fn a_slope_of_more_bits() {
        let x: Vec<half::f16> = [-3.0, 7.0, -0.5].map(half::f16::from_f32).to_vec();
        let x = Tensor::from_slice(&[3], &x).unwrap();
        let out = run(&DEF, &[], &[x.clone(), f32s(&[1], &[0.1])]);
        let want: Vec<half::f16> = [0xb4cd, 0x4700, 0xaa66].map(half::f16::from_bits).to_vec();
        assert_eq!(out, Tensor::from_slice(&[3], &want).unwrap());

        let message = "`slope` must be of the type of `data`, f32, found f16";
        assert_eq!(error(&DEF, &[], &[f32s(&[3], &[0.0; 3]), x]), message);
    }

    #[test]
    fn the_slope_must_fit() {
        let message = "`slope` [4] must broadcast to `data` [2, 3] or to its channels";
        assert_eq!(
            error(
                &DEF,
                &[],
                &[f32s(&[2, 3], &[0.0; 6]), f32s(&[4], &[0.0; 4])]
            ),
            message
        );
    }
}
