//! `GatherTree`: the beams of a beam search, followed from their last steps back to the first.
//!
//! With `T` steps and `length = min(T, max_seq_len[batch])`:
//! ```text
//! beam[t] = w                                      at t = length - 1
//!         = parent_ids[t + 1, batch, beam[t + 1]]  before
//! out[t, batch, w] = end_token                     at t >= length, and after the first end_token
//!                  = step_ids[t, batch, beam[t]]   otherwise
//! ```
//! Specification: GatherTree-1. A parent out of range is an error. A sequence of length 0, which the
//! specification leaves undefined, is all `end_token`.

use crate::error::ensure;
use crate::layout::index_map::last;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, select};
use vinelift_nest::{Mode, Policy, Scalar};
use vinelift_tensor::ElementType::{self, I64};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "GatherTree",
    versions: &["opset1"],
    signature: Signature::new(&["step_ids", "parent_ids", "max_seq_len", "end_token"]),
    family: Family::Index,
    build: Build::Op(parse::<GatherTree>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatherTree {}

impl Op for GatherTree {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let numeric = |t: ElementType| t.is_integer() || t.is_float();
        let element = cx.expect("step_ids", "a numeric type", numeric)?;
        for input in ["parent_ids", "max_seq_len", "end_token"] {
            cx.expect_same("step_ids", input)?;
        }
        cx.expect_rank("step_ids", 3)?;
        cx.expect_rank("parent_ids", 3)?;
        cx.expect_rank("max_seq_len", 1)?;
        ensure!(
            cx.length("end_token").is_none_or(|n| n == 1),
            "`end_token` must hold one element, found {}",
            cx.shape("end_token")
        );
        let batch = cx.dims("max_seq_len").map_or(Dim::ANY, |d| d[0]);
        let lengths = PartialShape::ranked(vec![Dim::ANY, batch, Dim::ANY]);
        let shape = cx.shape("step_ids").intersect(cx.shape("parent_ids"));
        let shape = shape.and_then(|s| s.intersect(&lengths));
        ensure!(
            shape.is_some(),
            "`step_ids` {}, `parent_ids` {} and `max_seq_len` {} do not fit",
            cx.shape("step_ids"),
            cx.shape("parent_ids"),
            cx.shape("max_seq_len")
        );
        Ok(vec![TensorType::new(
            element,
            shape.unwrap_or(PartialShape::DYNAMIC),
        )])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("step_ids");
        let [steps, _, width] = shape[..] else { return };
        let (end, widest) = (last(steps), last(width));

        // beams[r, ..] is `beam` at t = last - r, so that each step is computed from the one before.
        let beams = cx.temporary("beams", I64, &shape);
        cx.define(beams, |cx, at| {
            let [r, batch, w] = at else { return index(0) };
            let t = &end - r;
            let follows = t.lt(length(cx, batch, steps) - 1);
            let next = cx.load_from(beams, &[(r - 1).max(index(0)), batch.clone(), w.clone()]);
            let next = next.max(index(0)).min(widest.clone());
            let from = [(&t + 1).min(end.clone()), batch.clone(), next];
            let parent = as_index(cx.load("parent_ids", &from));
            select(
                follows,
                cx.wrap(parent, width, Policy::CHECK, "parent_ids", &from),
                w.clone(),
            )
        });

        let out = cx.output(0);
        cx.stage(&shape, out, Mode::Set, |cx, at| {
            let [t, batch, w] = at else {
                return (at.to_vec(), cx.load_only("end_token"));
            };
            let token = cx.load_only("end_token");
            let before = cx.load_from(out, &[(t - 1).max(index(0)), batch.clone(), w.clone()]);
            let compute = token.ty().compute();
            let ended = before.cast(compute).eq(token.clone().cast(compute));
            let over = t.ge(length(cx, batch, steps)) | (t.gt(index(0)) & ended);
            let beam = cx.load_from(beams, &[&end - t, batch.clone(), w.clone()]);
            let beam = beam.max(index(0)).min(widest);
            let id = cx.load("step_ids", &[t.clone(), batch.clone(), beam]);
            (at.to_vec(), select(over, token, id))
        });
    }
}

/// Steps of a batch's sequences, cut to `0..=steps`.
fn length(cx: &Lower<'_>, batch: &Scalar, steps: Extent) -> Scalar {
    as_index(cx.load("max_seq_len", std::slice::from_ref(batch)))
        .max(index(0))
        .min(Scalar::extent(steps))
}

/// An id, which may come as a float.
fn as_index(id: Scalar) -> Scalar {
    let compute = id.ty().compute();
    id.cast(compute).cast(I64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};

    /// TensorFlow Addons' test of `gather_tree`: 9 is the end token.
    #[test]
    fn follows_parents_from_the_last_step() {
        let ids = i32s(&[4, 1, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1]);
        let parents = i32s(&[4, 1, 3], &[0, 0, 0, 0, 1, 1, 2, 1, 2, -1, -1, -1]);
        let out = run(
            &DEF,
            &[],
            &[ids, parents, i32s(&[1], &[3]), i32s(&[], &[10])],
        );
        assert_eq!(
            out,
            i32s(&[4, 1, 3], &[2, 2, 2, 6, 5, 6, 7, 8, 9, 10, 10, 10])
        );
    }

    #[test]
    fn all_is_end_token_after_the_first_and_past_the_length() {
        let ids = f32s(&[3, 2, 1], &[1.0, 2.0, 9.0, 3.0, 5.0, 4.0]);
        let parents = f32s(&[3, 2, 1], &[0.0; 6]);
        let lengths = f32s(&[2], &[7.0, 0.0]);
        let out = run(&DEF, &[], &[ids, parents, lengths, f32s(&[], &[9.0])]);
        assert_eq!(out, f32s(&[3, 2, 1], &[1.0, 9.0, 9.0, 9.0, 9.0, 9.0]));
    }

    #[test]
    fn a_parent_out_of_range_is_an_error() {
        let ids = i32s(&[2, 1, 2], &[1, 2, 3, 4]);
        let parents = i32s(&[2, 1, 2], &[7, 7, 0, 2]);
        let found = error(
            &DEF,
            &[],
            &[ids, parents, i32s(&[1], &[2]), i32s(&[], &[0])],
        );
        let message = "layer 'op' (GatherTree, opset1): `parent_ids`[1, 0, 1] is 2, expected 0..=1";
        assert_eq!(found, message);
    }

    #[test]
    fn shapes_must_fit() {
        let ids = i32s(&[2, 1, 2], &[0; 4]);
        let found = error(
            &DEF,
            &[],
            &[
                ids.clone(),
                ids.clone(),
                i32s(&[3], &[0; 3]),
                i32s(&[], &[0]),
            ],
        );
        let message =
            "`step_ids` [2, 1, 2], `parent_ids` [2, 1, 2] and `max_seq_len` [3] do not fit";
        assert_eq!(found, message);
        let found = error(
            &DEF,
            &[],
            &[ids.clone(), ids, i32s(&[1], &[0]), f32s(&[], &[0.0])],
        );
        assert_eq!(
            found,
            "`end_token` must be of the type of `step_ids`, i32, found f32"
        );
    }
}
