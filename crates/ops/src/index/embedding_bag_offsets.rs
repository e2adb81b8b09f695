//! `EmbeddingBagOffsets`, `EmbeddingBagOffsetsSum`: bag `b` is `indices[offsets[b] .. offsets[b + 1]]`,
//! the last one up to the end; what comes before `offsets[0]` is in no bag.
//!
//! Specification: EmbeddingBagOffsets-15 and EmbeddingBagOffsetsSum-3; see [`super::embedding`]. An
//! offset outside `0..=len(indices)` is an error. Offsets that decrease have no meaning there; here
//! each index is in at most one bag.

use super::embedding::{self, Reduction};
use super::search::count_passing;
use crate::attrs::NoAttributes;
use crate::op::parse;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Policy;
use vinelift_tensor::{Dim, ElementType::I64};

pub(crate) static DEF: OpDef = version(
    "EmbeddingBagOffsets",
    &["opset15"],
    parse::<EmbeddingBagOffsets>,
);

pub(crate) static SUM: OpDef = version("EmbeddingBagOffsetsSum", &["opset3"], |attributes| {
    let NoAttributes {} = attributes.parse()?;
    Ok(Box::new(EmbeddingBagOffsets {
        reduction: Reduction::Sum,
    }))
});

const fn version(
    name: &'static str,
    versions: &'static [&'static str],
    build: fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>,
) -> OpDef {
    let inputs = &[
        "emb_table",
        "indices",
        "offsets",
        "default_index",
        "per_sample_weights",
    ];
    OpDef {
        name,
        versions,
        signature: Signature::new(inputs).optional(2),
        family: Family::Index,
        build: Build::Op(build),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingBagOffsets {
    #[serde(default)]
    reduction: Reduction,
}

impl Op for EmbeddingBagOffsets {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_rank("indices", 1)?;
        cx.expect_integer("offsets")?;
        cx.expect_rank("offsets", 1)?;
        embedding::check_default(cx)?;
        let bags = cx.dims("offsets").map_or(Dim::ANY, |d| d[0]);
        embedding::infer(cx, self.reduction, bags)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let positions = cx.extents("indices");
        let bags = cx.extents("offsets");
        let starts = cx.temporary("starts", I64, &bags);
        cx.define(starts, |cx, b| {
            let offset = cx.load("offsets", b);
            cx.wrap(
                offset,
                positions[0].sum(1.into()),
                Policy::CHECK,
                "offsets",
                b,
            )
        });
        let bag = cx.temporary("bag", I64, &positions);
        cx.define(bag, |cx, i| {
            let begun = |b: &_| {
                cx.load_from(starts, std::slice::from_ref(b))
                    .le(i[0].clone())
            };
            count_passing(bags[0], begun) - 1
        });
        embedding::lower(cx, self.reduction, bag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    fn table() -> Tensor {
        f32s(
            &[5, 2],
            &[-0.2, -0.6, -0.1, -0.4, -1.9, -1.8, -1.0, 1.5, 0.8, -0.7],
        )
    }

    fn close(found: &Tensor, want: &[f32]) {
        let found = found.as_slice::<f32>().unwrap();
        let near = found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(
            near && found.len() == want.len(),
            "{found:?}, expected {want:?}"
        );
    }

    /// Examples 1 to 3 of the specification of -15; the first is that of -3.
    #[test]
    fn bags() {
        let inputs = |default: i32, weights: &[f32]| {
            let default = i32s(&[], &[default]);
            [
                table(),
                i32s(&[4], &[0, 2, 3, 4]),
                i32s(&[3], &[0, 2, 2]),
                default,
                f32s(&[4], weights),
            ]
        };
        for def in [&DEF, &SUM] {
            close(
                &run(def, &[], &inputs(0, &[0.5; 4])),
                &[-1.05, -1.2, -0.2, -0.6, -0.1, 0.4],
            );
            let out = run(def, &[], &inputs(-1, &[0.5, 0.2, -2.0, 1.0]));
            close(&out, &[-0.48, -0.66, 0.0, 0.0, 2.8, -3.7]);
        }
        let out = run(&DEF, &[("reduction", "mean")], &inputs(0, &[0.0; 4])[..3]);
        close(&out, &[-1.05, -1.2, 0.0, 0.0, -0.1, 0.4]);
    }

    #[test]
    fn empty_bags_everywhere() {
        let rows = i32s(&[2, 1], &[10, 20]);
        let run = |indices: &[i32], offsets: &[i32]| {
            let (n, b) = (indices.len(), offsets.len());
            run(
                &SUM,
                &[],
                &[
                    rows.clone(),
                    i32s(&[n], indices),
                    i32s(&[b], offsets),
                    i32s(&[], &[1]),
                ],
            )
        };
        assert_eq!(run(&[0, 1], &[0, 2]), i32s(&[2, 1], &[30, 20]));
        assert_eq!(run(&[], &[0, 0]), i32s(&[2, 1], &[20, 20]));
        assert_eq!(
            run(&[0, 0, 1], &[0, 0, 2, 2]),
            i32s(&[4, 1], &[20, 20, 20, 20])
        );
        // Index 9, before the first offset, is not looked up.
        assert_eq!(run(&[9, 0, 1], &[1]), i32s(&[1, 1], &[30]));
        assert_eq!(run(&[], &[]), i32s(&[0, 1], &[]));
    }

    #[test]
    fn integer_means_truncate() {
        let rows = Tensor::from_slice(&[2], &[-100i8, -101]).unwrap();
        let out = run(
            &DEF,
            &[("reduction", "mean")],
            &[rows, i32s(&[2], &[0, 1]), i32s(&[1], &[0])],
        );
        assert_eq!(out, Tensor::from_slice(&[1], &[-100i8]).unwrap());
    }

    #[test]
    fn bad_indices_and_offsets_are_errors() {
        let message = |indices: &[i64], offsets: &[i64], default: i64| {
            let [indices, offsets] = [indices, offsets].map(|v| i64s(&[v.len()], v));
            error(
                &SUM,
                &[],
                &[table(), indices, offsets, i64s(&[], &[default])],
            )
        };
        let layer = "layer 'op' (EmbeddingBagOffsetsSum, opset3)";
        assert_eq!(
            message(&[0, 5], &[0], 0),
            format!("{layer}: `indices`[1] is 5, expected 0..=4")
        );
        assert_eq!(
            message(&[0, 1], &[0, 3], 0),
            format!("{layer}: `offsets`[1] is 3, expected 0..=2")
        );
        assert_eq!(
            message(&[0], &[0, 0], -2),
            format!("{layer}: `default_index`[] is -2, expected 0..=4")
        );
    }

    #[test]
    fn weights_are_for_sums() {
        let inputs = |weights: &[f32]| {
            let weights = f32s(&[weights.len()], weights);
            [
                table(),
                i32s(&[2], &[0, 1]),
                i32s(&[1], &[0]),
                i32s(&[], &[-1]),
                weights,
            ]
        };
        let message = "`per_sample_weights` need reduction sum, found mean";
        assert_eq!(
            error(&DEF, &[("reduction", "mean")], &inputs(&[1.0; 2])),
            message
        );
        let message = "`per_sample_weights` [3] must have the shape of `indices` [2]";
        assert_eq!(error(&DEF, &[], &inputs(&[1.0; 3])), message);
    }
}
