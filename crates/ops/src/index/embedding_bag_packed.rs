//! `EmbeddingBagPacked`, `EmbeddingBagPackedSum`: bag `b` is row `b` of the two-dimensional `indices`.
//!
//! `out[b, j..] = Σ per_sample_weights[b, k] * emb_table[indices[b, k], j..]` over `k`, or the mean.
//!
//! Specification: EmbeddingBagPacked-15 and EmbeddingBagPackedSum-3; see [`super::embedding`]. Bags of
//! no indices give zeros.

use super::embedding::{self, Reduction};
use crate::attrs::NoAttributes;
use crate::layout::index_map::extent;
use crate::op::parse;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{integer, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::Dim;

pub(crate) static DEF: OpDef = version(
    "EmbeddingBagPacked",
    &["opset15"],
    parse::<EmbeddingBagPacked>,
);

pub(crate) static SUM: OpDef = version("EmbeddingBagPackedSum", &["opset3"], |attributes| {
    let NoAttributes {} = attributes.parse()?;
    Ok(Box::new(EmbeddingBagPacked {
        reduction: Reduction::Sum,
    }))
});

const fn version(
    name: &'static str,
    versions: &'static [&'static str],
    build: fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>,
) -> OpDef {
    OpDef {
        name,
        versions,
        signature: Signature::new(&["emb_table", "indices", "per_sample_weights"]).optional(1),
        family: Family::Index,
        build: Build::Op(build),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingBagPacked {
    #[serde(default)]
    reduction: Reduction,
}

impl Op for EmbeddingBagPacked {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_rank("indices", 2)?;
        let bags = cx.dims("indices").map_or(Dim::ANY, |d| d[0]);
        embedding::infer(cx, self.reduction, bags)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let size = cx.extents("indices")[1];
        let ty = cx.element("emb_table");
        let wide = embedding::sum_type(ty, self.reduction);
        let count = match size.number() {
            Some(size) => integer(extent(size), wide),
            None => Scalar::extent(size).cast(wide),
        };
        cx.define(cx.output(0), |cx, at| {
            let (bag, rest) = at.split_at(1);
            let sum = cx.reduce(Binary::Add, &[size], zero(wide), |cx, k| {
                embedding::row(cx, &[bag, k].concat(), rest, wide)
            });
            let value = match self.reduction {
                Reduction::Mean if size != 0 => sum / count,
                _ => sum,
            };
            value.cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};
    use vinelift_tensor::Tensor;

    /// The examples of the specification of -15; the first two are those of -3.
    #[test]
    fn bags() {
        let table = f32s(
            &[5, 2],
            &[-0.2, -0.6, -0.1, -0.4, -1.9, -1.8, -1.0, 1.5, 0.8, -0.7],
        );
        let inputs = [
            table,
            i32s(&[3, 2], &[0, 2, 1, 2, 3, 4]),
            f32s(&[3, 2], &[0.5; 6]),
        ];
        let close = |found: &Tensor, want: [f32; 6]| {
            let found = found.as_slice::<f32>().unwrap();
            assert!(
                found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6),
                "{found:?}"
            );
        };
        for def in [&DEF, &SUM] {
            close(
                &run(def, &[], &inputs[..2]),
                [-2.1, -2.4, -2.0, -2.2, -0.2, 0.8],
            );
            close(
                &run(def, &[], &inputs),
                [-1.05, -1.2, -1.0, -1.1, -0.1, 0.4],
            );
        }
        let mean = run(&DEF, &[("reduction", "mean")], &inputs[..2]);
        close(&mean, [-1.05, -1.2, -1.0, -1.1, -0.1, 0.4]);
    }

    #[test]
    fn means_of_bytes_do_not_overflow() {
        let table = Tensor::from_slice(&[2], &[200u8, 251]).unwrap();
        let out = run(
            &DEF,
            &[("reduction", "mean")],
            &[table, i32s(&[1, 2], &[0, 1])],
        );
        assert_eq!(out, Tensor::from_slice(&[1], &[225u8]).unwrap());
    }

    #[test]
    fn empty_bags_and_bad_indices() {
        let table = f32s(&[2, 1], &[1.0, 2.0]);
        let out = run(
            &DEF,
            &[("reduction", "mean")],
            &[table.clone(), i32s(&[2, 0], &[])],
        );
        assert_eq!(out, f32s(&[2, 1], &[0.0; 2]));
        let message =
            "layer 'op' (EmbeddingBagPacked, opset15): `indices`[0, 1] is -1, expected 0..=1";
        assert_eq!(error(&DEF, &[], &[table, i32s(&[1, 2], &[0, -1])]), message);
    }
}
