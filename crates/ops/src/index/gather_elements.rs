//! `GatherElements`: `out[.., i, ..] = data[.., indices[.., i, ..], ..]` along `axis`.
//!
//! Specification: GatherElements-6. It does not say that negative indices count from the end; they
//! do here, as in ONNX. An index out of range is an error. Beyond the specification, `indices` may be
//! smaller than `data` along every other dim too (MindSpore's `Tensor.gather`).

use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::layout::extent::may_be_at_most;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Policy;

pub(crate) static DEF: OpDef = OpDef {
    name: "GatherElements",
    versions: &["opset6"],
    signature: Signature::new(&["data", "indices"]),
    family: Family::Index,
    build: Build::Op(parse::<GatherElements>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatherElements {
    axis: i64,
}

impl Op for GatherElements {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_integer("indices")?;
        if let (Some(data), Some(indices)) = (cx.dims("data"), cx.dims("indices")) {
            let rank = data.len();
            ensure!(
                rank == indices.len() && rank > 0,
                "`data` {} and `indices` {} must have the same rank, at least 1",
                cx.shape("data"),
                cx.shape("indices")
            );
            let axis = normalize_axis(self.axis, rank)?;
            let larger = |d: usize| d != axis && !may_be_at_most(indices[d], data[d]);
            ensure!(
                !(0..rank).any(larger),
                "`indices` {} must not be larger than `data` {} off axis {axis}",
                cx.shape("indices"),
                cx.shape("data")
            );
        }
        Ok(vec![TensorType::new(
            cx.element("data"),
            cx.shape("indices").clone(),
        )])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let extents = cx.extents("data");
        let axis = if self.axis < 0 {
            self.axis + extents.len() as i64
        } else {
            self.axis
        } as usize;
        cx.define(cx.output(0), |cx, at| {
            let mut from = at.to_vec();
            from[axis] = cx.index("indices", at, extents[axis], Policy::WRAP);
            cx.load("data", &from)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, run};

    /// Example 2 of the specification.
    #[test]
    fn along_the_last_axis() {
        let data = i32s(&[2, 2], &[1, 7, 4, 3]);
        let indices = i32s(&[2, 3], &[1, 1, 0, 1, 0, 1]);
        let out = run(&DEF, &[("axis", "1")], &[data, indices]);
        assert_eq!(out, i32s(&[2, 3], &[7, 7, 1, 3, 4, 3]));
    }

    #[test]
    fn names_the_index_that_is_out_of_range() {
        let data = i32s(&[3], &[1, 2, 3]);
        let indices = i32s(&[2], &[-3, 3]);
        let message = "layer 'op' (GatherElements, opset6): `indices`[1] is 3, expected -3..=2";
        assert_eq!(error(&DEF, &[("axis", "0")], &[data, indices]), message);
    }

    #[test]
    fn shapes_must_fit() {
        let message = "`indices` [4, 5] must not be larger than `data` [2, 3] off axis 1";
        let inputs = [i32s(&[2, 3], &[0; 6]), i32s(&[4, 5], &[0; 20])];
        assert_eq!(error(&DEF, &[("axis", "1")], &inputs), message);
    }

    /// Examples 1 and 3 of the specification.
    #[test]
    fn along_the_first_axis() {
        let inputs = [i32s(&[2, 2], &[1, 2, 3, 4]), i32s(&[2, 2], &[0, 1, 0, 0])];
        assert_eq!(
            run(&DEF, &[("axis", "0")], &inputs),
            i32s(&[2, 2], &[1, 4, 1, 2])
        );
        let data = i32s(&[3, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let inputs = [data, i32s(&[2, 3], &[1, 0, 1, 1, -1, 0])];
        let want = i32s(&[2, 3], &[4, 2, 6, 4, 8, 3]);
        assert_eq!(run(&DEF, &[("axis", "-2")], &inputs), want);
    }
}
