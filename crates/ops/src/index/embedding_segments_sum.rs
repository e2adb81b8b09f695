//! `EmbeddingSegmentsSum`: position `i` of `indices` is in bag `segment_ids[i]` of `num_segments`.
//!
//! Specification: EmbeddingSegmentsSum-3; see [`super::embedding`]. Segment ids of `num_segments` or
//! more are in no bag, negative ones are an error; they need not be sorted.

use super::embedding::{self, Reduction};
use super::segments;
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "EmbeddingSegmentsSum",
    versions: &["opset3"],
    signature: Signature::new(&[
        "emb_table",
        "indices",
        "segment_ids",
        "num_segments",
        "default_index",
        "per_sample_weights",
    ])
    .optional(2),
    family: Family::Index,
    build: Build::Op(parse::<EmbeddingSegmentsSum>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingSegmentsSum {}

impl Op for EmbeddingSegmentsSum {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_rank("indices", 1)?;
        cx.expect_integer("segment_ids")?;
        cx.expect_rank("segment_ids", 1)?;
        ensure!(
            cx.shape("segment_ids")
                .intersect(cx.shape("indices"))
                .is_some(),
            "`segment_ids` {} must have the shape of `indices` {}",
            cx.shape("segment_ids"),
            cx.shape("indices")
        );
        embedding::check_default(cx)?;
        embedding::infer(cx, Reduction::Sum, segments::count(cx)?)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let count = cx.extents_of(cx.output(0))[0];
        let segment = segments::of_positions(cx, count);
        embedding::lower(cx, Reduction::Sum, segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, run};

    /// The example of the specification, with weights and table in binary fractions.
    #[test]
    fn sums_by_segment() {
        let table = f32s(
            &[5, 2],
            &[-0.5, -0.25, 9.0, 9.0, -1.5, -1.75, -1.0, 1.5, 0.5, -0.5],
        );
        let inputs = [
            table,
            i32s(&[4], &[0, 2, 3, 4]),
            i32s(&[4], &[0, 0, 2, 2]),
            i32s(&[], &[3]),
            i32s(&[], &[0]),
            f32s(&[4], &[0.5; 4]),
        ];
        let want = f32s(&[3, 2], &[-1.0, -1.0, -0.5, -0.25, -0.25, 0.5]);
        assert_eq!(run(&DEF, &[], &inputs), want);
    }

    #[test]
    fn ids_past_the_last_segment_are_dropped() {
        let run = |count: i64| {
            let ids = i64s(&[3], &[0, 2, 5]);
            run(
                &DEF,
                &[],
                &[
                    i32s(&[3], &[1, 2, 3]),
                    i64s(&[3], &[1, 2, 99]),
                    ids,
                    i64s(&[], &[count]),
                ],
            )
        };
        assert_eq!(run(3), i32s(&[3], &[2, 0, 3]));
        assert_eq!(run(0), i32s(&[0], &[]));
    }

    #[test]
    fn negative_ids_and_counts_are_errors() {
        let message = |id: i32, count: i32| {
            let inputs = [
                i32s(&[1], &[1]),
                i32s(&[1], &[0]),
                i32s(&[1], &[id]),
                i32s(&[], &[count]),
            ];
            error(&DEF, &[], &inputs)
        };
        let layer = "layer 'op' (EmbeddingSegmentsSum, opset3)";
        assert_eq!(
            message(-1, 1),
            format!("{layer}: `segment_ids`[0] is -1, expected 0..=1")
        );
        assert_eq!(
            message(0, -1),
            "`num_segments` must not be negative, found -1"
        );
    }
}
