//! `GroupNormalization`: `out = scale · (x - μ) / √(σ² + epsilon) + bias`, where `scale` and `bias` have one
//! value for each channel, which is dim 1, and `μ` and `σ²` are mean and variance over the channels of
//! a group and all dims after them.
//!
//! Specification: GroupNormalization-12.

use super::batch_norm::per_channel;
use super::slices::Slices;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::divided;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{number, zero};
use vinelift_nest::{Binary, Scalar};

pub(crate) static DEF: OpDef = OpDef {
    name: "GroupNormalization",
    versions: &["opset12"],
    signature: Signature::new(&["data", "scale", "bias"]),
    family: Family::Compose,
    build: Build::Op(parse::<GroupNormalization>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupNormalization {
    num_groups: usize,
    epsilon: f64,
}

impl Op for GroupNormalization {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a float type", |t| t.is_float())?;
        let shape = per_channel(cx, cx.shape("data").clone(), "scale")?;
        let shape = per_channel(cx, shape, "bias")?;
        let groups = self.num_groups;
        ensure!(groups > 0, "`num_groups` must be at least 1, found 0");
        if let Some(dims) = shape.dims() {
            ensure!(
                divided(dims[1], groups).is_some(),
                "the channels of `data` {shape} must be a multiple of `num_groups` {groups}"
            );
        }
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        if shape.iter().any(|n| *n == 0) {
            return;
        }
        let wide = ty.compute();
        // `infer` has seen to it that nothing remains.
        let each = shape[1].quotient(self.num_groups.into());
        let members = [&[each], &shape[2..]].concat();
        let points = Slices::new(&members, &(0..members.len()).collect::<Vec<usize>>());
        let count = points.count(wide);
        let groups = [shape[0], self.num_groups.into()];
        let member = |group: &[Scalar], k: &[Scalar]| {
            let channel = &group[1] * Scalar::extent(each) + &k[0];
            [&[group[0].clone(), channel], &k[1..]].concat()
        };
        let mean = cx.temporary("mean", wide, &groups);
        cx.define(mean, |cx, group| {
            let sum = cx.reduce(Binary::Add, &members, zero(wide), |cx, k| {
                widened(cx.load("data", &member(group, k)))
            });
            sum / count.clone()
        });
        let deviation = cx.temporary("deviation", wide, &groups);
        cx.define(deviation, |cx, group| {
            let sum = cx.reduce(Binary::Add, &members, zero(wide), |cx, k| {
                let x = widened(cx.load("data", &member(group, k))) - cx.load_from(mean, group);
                &x * &x
            });
            (sum / count + number(self.epsilon, wide)).sqrt()
        });
        cx.define(cx.output(0), |cx, at| {
            let group = [at[0].clone(), &at[1] / Scalar::extent(each)];
            let x = widened(cx.load("data", at)) - cx.load_from(mean, &group);
            let x = x / cx.load_from(deviation, &group);
            let [scale, bias] = ["scale", "bias"].map(|n| widened(cx.load(n, &at[1..2])));
            (x * scale + bias).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, f32s, run};
    use vinelift_tensor::ElementType;

    /// Values of NumPy.
    #[test]
    fn two_groups() {
        let x = f32s(&[1, 4, 1], &[1.0, 3.0, 10.0, 14.0]);
        let inputs = [
            x,
            f32s(&[4], &[1.0, 2.0, 1.0, 1.0]),
            f32s(&[4], &[0.0, 1.0, 0.0, 0.0]),
        ];
        let attributes = |groups| [("num_groups", groups), ("epsilon", "0")];
        let want = f32s(&[1, 4, 1], &[-1.0, 3.0, -1.0, 1.0]);
        assert_eq!(run(&DEF, &attributes("2"), &inputs), want);
        let message = "the channels of `data` [1, 4, 1] must be a multiple of `num_groups` 3";
        assert_eq!(error(&DEF, &attributes("3"), &inputs), message);
    }

    /// The class gives what each shape gives alone, and has none whose channels do not divide into groups.
    #[test]
    fn a_class_of_channels() {
        let attributes = [("num_groups", "2"), ("epsilon", "0.1")];
        let class = Class::new(&DEF, &attributes, &[4, 3], |s| {
            let per_channel = (ElementType::F32, vec![s[0]], None);
            let data = vec![2.into(), s[0], s[1]];
            vec![
                (ElementType::F32, data, None),
                per_channel.clone(),
                per_channel,
            ]
        });
        let inputs = |channels: usize, n: usize| {
            let wave = |shape: &[usize]| {
                let count = shape.iter().product::<usize>();
                f32s(
                    shape,
                    &(0..count)
                        .map(|k| ((k * k) as f32).sin())
                        .collect::<Vec<_>>(),
                )
            };
            [
                wave(&[2, channels, n]),
                wave(&[channels]),
                wave(&[channels]),
            ]
        };
        for [channels, n] in [[4, 3], [6, 5], [10, 2]] {
            let inputs = inputs(channels, n);
            let found = class.run(&[channels, n], &inputs).unwrap();
            assert_eq!(found, [run(&DEF, &attributes, &inputs)]);
        }
        assert_eq!(class.run(&[5, 3], &inputs(5, 3)), None);
        let message = "the channels of `data` [2, 5, 3] must be a multiple of `num_groups` 2";
        assert_eq!(error(&DEF, &attributes, &inputs(5, 3)), message);
    }
}
