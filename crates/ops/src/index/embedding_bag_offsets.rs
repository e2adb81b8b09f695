//! `EmbeddingBagOffsets`, `EmbeddingBagOffsetsSum`: bag `b` is `indices[offsets[b] .. offsets[b + 1]]`,
//! the last one up to the end; what comes before `offsets[0]` is in no bag.
//!
//! Specification: EmbeddingBagOffsets-15 and EmbeddingBagOffsetsSum-3; see [`super::embedding`]. An
//! offset outside `0..=len(indices)` is an error. Offsets that decrease have no meaning there; here
//! a bag that would begin before the last one begins where that does, so that each index is in at most
//! one bag.

use super::embedding::{self, Reduction};
use crate::attrs::NoAttributes;
use crate::op::parse;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, select};
use vinelift_nest::{Mode, Policy, Scalar};
use vinelift_tensor::{Dim, ElementType::I64, Extent};

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
        let positions = cx.extents("indices")[0];
        let bags = cx.extents("offsets");
        let starts = cx.temporary("starts", I64, &[bags[0].sum(1.into())]);
        // A bag that would begin before the last one does begins where that does.
        cx.stage(&bags, starts, Mode::Set, |cx, b| {
            let offset = cx.load("offsets", b);
            let most = positions.sum(1.into());
            let offset = cx.wrap(offset, most, Policy::CHECK, "offsets", b);
            let before = cx.load_from(starts, &[&b[0] - 1]);
            let later = before.max(offset.clone());
            (b.to_vec(), select(b[0].gt(index(0)), later, offset))
        });
        cx.stage(&[Extent::ONE; 0], starts, Mode::Set, |_, _| {
            (vec![Scalar::extent(bags[0])], Scalar::extent(positions))
        });
        embedding::lower_ranges(cx, self.reduction, starts);
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
    fn a_table_without_rows() {
        let inputs = [i32s(&[0, 2], &[]), i32s(&[0], &[]), i32s(&[2], &[0, 0])];
        assert_eq!(run(&SUM, &[], &inputs), i32s(&[2, 2], &[0; 4]));
        let inputs = [i32s(&[0, 2], &[]), i32s(&[1], &[0]), i32s(&[1], &[0])];
        assert_eq!(
            error(&SUM, &[], &inputs),
            "layer 'op' (EmbeddingBagOffsetsSum, opset3): `indices`[0] is 0, but the dim it indexes is empty"
        );
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

    /// Row by row and in their order, as the formula says.
    fn summed(
        table: &[[f32; 2]],
        (indices, weights): (&[usize], Option<&[f32]>),
        offsets: &[usize],
        default: Option<i64>,
    ) -> Vec<f32> {
        let mut out = Vec::new();
        let mut begin = 0;
        for (b, offset) in offsets.iter().enumerate() {
            begin = begin.max(*offset);
            let next = offsets.get(b + 1).copied().unwrap_or(indices.len());
            let mut sum = [0.0, 0.0];
            for i in begin..next.max(begin) {
                let row = table[indices[i]].map(|x| weights.map_or(x, |w| x * w[i]));
                sum = [sum[0] + row[0], sum[1] + row[1]];
            }
            match default.and_then(|row| usize::try_from(row).ok()) {
                Some(row) if next <= begin => out.extend(table[row]),
                _ => out.extend(sum),
            }
        }
        out
    }

    #[test]
    fn any_offsets_in_any_order() {
        let table = [
            [1.5, 7.25],
            [-0.0, 1e30],
            [3e38, -1.0],
            [1e-3, 0.1],
            [-7.0, f32::INFINITY],
        ];
        let mut state = 1u64;
        let mut below = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % n
        };
        let numbers =
            |x: &[usize]| i64s(&[x.len()], &x.iter().map(|x| *x as i64).collect::<Vec<_>>());
        for case in 0..400 {
            let n = below(30);
            let indices: Vec<usize> = (0..n).map(|_| below(5)).collect();
            let mut offsets: Vec<usize> = (0..below(8)).map(|_| below(n + 1)).collect();
            if case % 2 == 0 {
                offsets.sort_unstable();
            }
            let weights: Vec<f32> = (0..n).map(|_| below(9) as f32 - 3.5).collect();
            let weights = (case % 3 == 0).then_some(&weights[..]);
            // Weights come after the default index.
            let default = (case % 5 > 0 || weights.is_some()).then(|| below(6) as i64 - 1);
            let mut inputs = vec![
                f32s(&[5, 2], table.as_flattened()),
                numbers(&indices),
                numbers(&offsets),
            ];
            inputs.extend(default.map(|row| i64s(&[], &[row])));
            inputs.extend(weights.map(|weights| f32s(&[n], weights)));
            let found = run(&SUM, &[], &inputs);
            let want = summed(&table, (&indices, weights), &offsets, default);
            assert_eq!(found, f32s(&[offsets.len(), 2], &want), "{case}");
        }
    }
}
