//! `NormalizeL2`: `out = x / √(Σ x² + eps)` over the axes, or `x / √(max(Σ x², eps))` with `eps_mode` `max`.
//! `GRN`: the first, over axis 1.
//!
//! Specifications: NormalizeL2-1, where without axes each element is a sum of its own, and GRN-1.

use super::slices::Slices;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::number;

pub(crate) static DEF: OpDef = OpDef {
    name: "NormalizeL2",
    versions: &["opset1"],
    signature: Signature::new(&["data", "axes"]),
    family: Family::Compose,
    build: Build::Op(|attributes| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            eps: f64,
            eps_mode: EpsMode,
        }
        let Attrs { eps, eps_mode } = attributes.parse()?;
        Ok(Box::new(Normalize {
            eps,
            eps_mode,
            channels: false,
        }))
    }),
};

pub(crate) static GRN: OpDef = OpDef {
    name: "GRN",
    versions: &["opset1"],
    signature: Signature::new(&["data"]),
    family: Family::Compose,
    build: Build::Op(|attributes| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            bias: f64,
        }
        let Attrs { bias } = attributes.parse()?;
        Ok(Box::new(Normalize {
            eps: bias,
            eps_mode: EpsMode::Add,
            channels: true,
        }))
    }),
};

#[derive(Debug)]
struct Normalize {
    eps: f64,
    eps_mode: EpsMode,
    /// Over axis 1, not those of an input.
    channels: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum EpsMode {
    Add,
    Max,
}

impl Op for Normalize {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("data", "a float type", |t| t.is_float())?;
        let rank = cx.shape("data").rank();
        if self.channels {
            ensure!(
                rank.is_none_or(|rank| rank >= 2),
                "`data` {} must have rank at least 2",
                cx.shape("data")
            );
        } else if let (Some(axes), Some(rank)) = (cx.integers("axes")?, rank) {
            normalize_axes(&axes, rank)?;
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        let axes = match self.channels {
            true => vec![1],
            false => cx.integers("axes").unwrap_or_default(),
        };
        let axes = normalize_axes(&axes, shape.len()).unwrap_or_default();
        let wide = ty.compute();
        let slices = Slices::new(&shape, &axes);
        let norm = slices.per_slice(cx, "norm", wide, |cx, slice| {
            let sum = slices.sum(cx, slice, wide, |cx, at| {
                let x = widened(cx.load("data", at));
                &x * &x
            });
            let eps = number(self.eps, wide);
            match self.eps_mode {
                EpsMode::Add => sum + eps,
                EpsMode::Max => sum.max(eps),
            }
            .sqrt()
        });
        cx.define(cx.output(0), |cx, at| {
            let norm = cx.load_from(norm, &slices.slice_of(at));
            (widened(cx.load("data", at)) / norm).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, run};

    /// Values of NumPy.
    #[test]
    fn where_eps_goes() {
        let x = f32s(&[1, 2, 2], &[3.0, 0.0, 4.0, 0.0]);
        let of = |eps, mode, axes: &[i64]| {
            let attributes = [("eps", eps), ("eps_mode", mode)];
            run(&DEF, &attributes, &[x.clone(), i64s(&[axes.len()], axes)])
        };
        let want = f32s(&[1, 2, 2], &[0.6, 0.0, 0.8, 0.0]);
        assert_eq!(of("4", "max", &[1]), want);
        let want = f32s(&[1, 2, 2], &[0.3, 0.0, 0.4, 0.0]);
        assert_eq!(of("75", "add", &[0, 1, 2]), want);
        assert_eq!(of("100", "max", &[-1, -2]), want);
        let want = f32s(&[1, 2, 2], &[0.6, 0.0, 4.0 / 32f32.sqrt(), 0.0]);
        assert_eq!(of("16", "add", &[]), want);
        let out = run(&GRN, &[("bias", "75")], std::slice::from_ref(&x));
        assert_eq!(out, f32s(&[1, 2, 2], &[0.3, 0.0, 0.4, 0.0]));
        let message = "attribute missing field `bias`";
        assert_eq!(error(&GRN, &[], &[x]), message);
    }
}
