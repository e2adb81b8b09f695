//! `MVN`: `out = (x - μ) / √(σ² + eps)`, or `(x - μ) / (√σ² + eps)` with `eps_mode` `outside_sqrt`, where `μ`
//! and `σ²` are mean and variance over the reduced axes; `x - μ` without `normalize_variance`.
//!
//! Specifications: MVN-1, which the IR calls opset1 or opset2, and MVN-6. In MVN-1 `reduction_axes` come before
//! `across_channels`, where a file has both.

use super::slices::Slices;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::number;

pub(crate) static V2: OpDef = version(
    &["opset1", "opset2"],
    Signature::new(&["data"]),
    Build::Op(|attributes| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            #[serde(default)]
            across_channels: bool,
            #[serde(default)]
            reduction_axes: Vec<i64>,
            normalize_variance: bool,
            eps: f64,
        }
        let a: Attrs = attributes.parse()?;
        Ok(Box::new(Mvn {
            axes: match (a.reduction_axes.is_empty(), a.across_channels) {
                (false, _) => Axes::These(a.reduction_axes),
                (true, true) => Axes::From(1),
                (true, false) => Axes::From(2),
            },
            normalize_variance: a.normalize_variance,
            eps: a.eps,
            eps_mode: EpsMode::InsideSqrt,
        }))
    }),
);

pub(crate) static V6: OpDef = version(
    &["opset6"],
    Signature::new(&["data", "axes"]),
    Build::Op(|attributes| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            normalize_variance: bool,
            eps: f64,
            eps_mode: EpsMode,
        }
        let a: Attrs = attributes.parse()?;
        Ok(Box::new(Mvn {
            axes: Axes::Input,
            normalize_variance: a.normalize_variance,
            eps: a.eps,
            eps_mode: a.eps_mode,
        }))
    }),
);

const fn version(versions: &'static [&'static str], signature: Signature, build: Build) -> OpDef {
    OpDef {
        name: "MVN",
        versions,
        signature,
        family: Family::Compose,
        build,
    }
}

#[derive(Debug)]
struct Mvn {
    axes: Axes,
    normalize_variance: bool,
    eps: f64,
    eps_mode: EpsMode,
}

/// Where the reduced axes come from.
#[derive(Debug)]
enum Axes {
    /// These.
    These(Vec<i64>),
    /// All from this one on.
    From(usize),
    /// The input `axes`.
    Input,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum EpsMode {
    InsideSqrt,
    OutsideSqrt,
}

impl Op for Mvn {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("data", "a float type", |t| t.is_float())?;
        let input = match self.axes {
            Axes::Input => cx.integers("axes")?,
            _ => None,
        };
        if let Some(rank) = cx.shape("data").rank() {
            match (&self.axes, input) {
                (Axes::These(axes), _) => drop(normalize_axes(axes, rank)?),
                (Axes::Input, Some(axes)) => drop(normalize_axes(&axes, rank)?),
                (Axes::From(first), _) => ensure!(
                    rank >= *first,
                    "`data` {} must have rank at least {first}",
                    cx.shape("data")
                ),
                (Axes::Input, None) => {}
            }
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        let rank = shape.len();
        let axes = match &self.axes {
            Axes::These(axes) => normalize_axes(axes, rank).unwrap_or_default(),
            Axes::From(first) => (*first..rank).collect(),
            Axes::Input => {
                let axes = cx.integers("axes").unwrap_or_default();
                normalize_axes(&axes, rank).unwrap_or_default()
            }
        };
        let wide = ty.compute();
        let slices = Slices::new(&shape, &axes);
        let mean = slices.per_slice(cx, "mean", wide, |cx, slice| {
            let sum = slices.sum(cx, slice, wide, |cx, at| widened(cx.load("data", at)));
            sum / slices.count(wide)
        });
        let centred = |cx: &mut Lower<'_>, at: &[vinelift_nest::Scalar]| {
            widened(cx.load("data", at)) - cx.load_from(mean, &slices.slice_of(at))
        };
        if !self.normalize_variance {
            cx.define(cx.output(0), |cx, at| centred(cx, at).cast(ty));
            return;
        }
        let deviation = slices.per_slice(cx, "deviation", wide, |cx, slice| {
            let sum = slices.sum(cx, slice, wide, |cx, at| {
                let x = centred(cx, at);
                &x * &x
            });
            let variance = sum / slices.count(wide);
            let eps = number(self.eps, wide);
            match self.eps_mode {
                EpsMode::InsideSqrt => (variance + eps).sqrt(),
                EpsMode::OutsideSqrt => variance.sqrt() + eps,
            }
        });
        cx.define(cx.output(0), |cx, at| {
            let deviation = cx.load_from(deviation, &slices.slice_of(at));
            (centred(cx, at) / deviation).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape};

    /// Values of NumPy.
    #[test]
    fn where_eps_goes_and_which_axes() {
        let x = f32s(&[1, 1, 2, 2], &[1.0, 3.0, 5.0, 7.0]);
        let of = |mode: &str, axes: &[i64]| {
            let attributes = [
                ("normalize_variance", "true"),
                ("eps", "4"),
                ("eps_mode", mode),
            ];
            run(&V6, &attributes, &[x.clone(), i64s(&[axes.len()], axes)])
        };
        let rows = f32s(&[1, 1, 2, 2], &[-1.0, 1.0, -1.0, 1.0].map(|x| x / 5.0));
        assert_eq!(of("OUTSIDE_SQRT", &[-1]), rows);
        let all = [-3.0, -1.0, 1.0, 3.0].map(|x| x / 3.0);
        assert_eq!(of("inside_sqrt", &[2, 3]), f32s(&[1, 1, 2, 2], &all));
        let attributes = [("normalize_variance", "true"), ("eps", "4")];
        let both = [("across_channels", "true"), ("reduction_axes", "2, 3")];
        let out = run(
            &V2,
            &[&attributes[..], &both].concat(),
            std::slice::from_ref(&x),
        );
        assert_eq!(out, f32s(&[1, 1, 2, 2], &all));
        let attributes = [
            ("normalize_variance", "false"),
            ("eps", "4"),
            ("across_channels", "0"),
        ];
        let want = f32s(&[1, 1, 2, 2], &[-3.0, -1.0, 1.0, 3.0]);
        assert_eq!(run(&V2, &attributes, &[x]), want);
    }

    #[test]
    fn axes_must_exist() {
        let attributes = [
            ("normalize_variance", "1"),
            ("eps", "1"),
            ("eps_mode", "inside_sqrt"),
        ];
        let inputs = [f32s(&[1], &[0.0]), i64s(&[1], &[1])];
        let message = "axis 1 is out of range for rank 1";
        assert_eq!(error(&V6, &attributes, &inputs), message);
        let data = (ElementType::F16, PartialShape::DYNAMIC, None);
        let axes = (ElementType::I64, PartialShape::any_of_rank(1), None);
        let want = ("f16[...]".to_owned(), vec![1]);
        assert_eq!(infer(&V6, &attributes, &[data, axes]), want);
    }
}
