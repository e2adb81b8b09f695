//! `BatchNormInference`: `out = gamma · (x - mean) / √(variance + epsilon) + beta`, all but `x` having one
//! value for each channel, which is dim 1.
//!
//! Specifications: BatchNormInference-1 and -5. Files have the inputs of -1 in the order gamma, beta,
//! data, mean, variance, whatever its specification says.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::number;
use vinelift_tensor::PartialShape;

pub(crate) static V1: OpDef = version(&["opset1"], &["gamma", "beta", "data", "mean", "variance"]);
pub(crate) static V5: OpDef = version(&["opset5"], &["data", "gamma", "beta", "mean", "variance"]);

const fn version(versions: &'static [&'static str], names: &'static [&'static str]) -> OpDef {
    OpDef {
        name: "BatchNormInference",
        versions,
        signature: Signature::new(names),
        family: Family::Compose,
        build: Build::Op(parse::<BatchNorm>),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchNorm {
    epsilon: f64,
}

impl Op for BatchNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a float type", |t| t.is_float())?;
        let mut shape = cx.shape("data").clone();
        for name in ["gamma", "beta", "mean", "variance"] {
            shape = per_channel(cx, shape, name)?;
        }
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("data");
        let epsilon = number(self.epsilon, ty.compute());
        cx.define(cx.output(0), |cx, at| {
            let [gamma, beta, mean, variance] =
                ["gamma", "beta", "mean", "variance"].map(|name| widened(cx.load(name, &at[1..2])));
            let x = (widened(cx.load("data", at)) - mean) / (variance + epsilon).sqrt();
            (gamma * x + beta).cast(ty)
        });
    }
}

/// The shape of the data, narrowed by input `name` having one value for each of its channels.
pub(super) fn per_channel(
    cx: &Infer<'_>,
    shape: PartialShape,
    name: &'static str,
) -> Result<PartialShape, OpError> {
    cx.expect_same("data", name)?;
    cx.expect_rank(name, 1)?;
    let Some(dims) = shape.dims() else {
        return Ok(shape);
    };
    ensure!(dims.len() >= 2, "`data` {shape} must have rank at least 2");
    let mut dims = dims.to_vec();
    if let Some(own) = cx.dims(name) {
        let both = dims[1].intersect(own[0]);
        ensure!(
            both.is_some(),
            "`{name}` {} must have an element for each channel of `data` {shape}",
            cx.shape(name)
        );
        dims[1] = both.unwrap_or(dims[1]);
    }
    Ok(PartialShape::ranked(dims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    /// Values of NumPy.
    #[test]
    fn inputs_in_both_orders() {
        let x = f32s(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let [gamma, beta] = [f32s(&[2], &[1.0, 2.0]), f32s(&[2], &[0.0, 1.0])];
        let [mean, variance] = [f32s(&[2], &[1.0, 3.0]), f32s(&[2], &[0.0, 3.0])];
        let want = f32s(&[1, 2, 2], &[0.0, 1.0, 1.0, 2.0]);
        let epsilon = [("epsilon", "1")];
        let rest = [mean, variance];
        let inputs = [&[x.clone(), gamma.clone(), beta.clone()], &rest[..]].concat();
        assert_eq!(run(&V5, &epsilon, &inputs), want);
        let inputs = [&[gamma, beta, x], &rest[..]].concat();
        assert_eq!(run(&V1, &epsilon, &inputs), want);
        let mut inputs = inputs;
        inputs[3] = f32s(&[3], &[0.0; 3]);
        let message = "`mean` [3] must have an element for each channel of `data` [1, 2, 2]";
        assert_eq!(error(&V1, &epsilon, &inputs), message);
    }
}
