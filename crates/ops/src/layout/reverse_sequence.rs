//! `ReverseSequence`: the first `n` elements along `seq_axis` in reverse, where `n` is
//! `seq_lengths[b]` at place `b` of `batch_axis`:
//! `out[.., b, .., i, ..] = data[.., b, .., i < n ? n - 1 - i : i, ..]`.
//!
//! Specification: ReverseSequence-1. Lengths are data, of any numeric type; one that is longer than
//! the dim, or negative, is an error. Beyond the specification, 0 is allowed and reverses nothing.

use super::index_map::last;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Policy;
use vinelift_nest::build::{index, select};
use vinelift_tensor::{ElementType, Extent};

pub(crate) static DEF: OpDef = OpDef {
    name: "ReverseSequence",
    versions: &["opset1"],
    signature: Signature::new(&["data", "seq_lengths"]),
    family: Family::Layout,
    build: Build::Op(parse::<ReverseSequence>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReverseSequence {
    #[serde(default)]
    batch_axis: i64,
    #[serde(default = "crate::attrs::one")]
    seq_axis: i64,
}

impl Op for ReverseSequence {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("seq_lengths", "a numeric type", |t| {
            t.is_integer() || t.is_float()
        })?;
        cx.expect_rank("seq_lengths", 1)?;
        if let Some(dims) = cx.dims("data") {
            let batch = normalize_axis(self.batch_axis, dims.len())?;
            normalize_axis(self.seq_axis, dims.len())?;
            let fits = cx
                .dims("seq_lengths")
                .is_none_or(|n| n[0].intersect(dims[batch]).is_some());
            let (data, lengths) = (cx.shape("data"), cx.shape("seq_lengths"));
            ensure!(
                fits,
                "`seq_lengths` {lengths} must have an element for each of dim {batch} of `data` {data}"
            );
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let batch = normalize_axis(self.batch_axis, shape.len()).unwrap_or_default();
        let seq = normalize_axis(self.seq_axis, shape.len()).unwrap_or_default();
        cx.define(cx.output(0), |cx, at| {
            let place = [at[batch].clone()];
            let n = cx.load("seq_lengths", &place);
            let n = if n.ty().is_float() {
                n.cast(ElementType::I64)
            } else {
                n
            };
            let n = cx.wrap(
                n,
                shape[seq].sum(Extent::ONE),
                Policy::CHECK,
                "seq_lengths",
                &place,
            );
            let mut from = at.to_vec();
            let mirrored = (&n - 1 - &at[seq]).max(index(0)).min(last(shape[seq]));
            from[seq] = select(at[seq].lt(n), mirrored, at[seq].clone());
            cx.load("data", &from)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};

    #[test]
    fn reverses_what_is_asked_for() {
        let x = i32s(&[3, 3], &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let out = run(&DEF, &[], &[x.clone(), i32s(&[3], &[1, 2, 3])]);
        assert_eq!(out, i32s(&[3, 3], &[0, 1, 2, 4, 3, 5, 8, 7, 6]));
        let other = [("batch_axis", "-1"), ("seq_axis", "0")];
        let out = run(&DEF, &other, &[x, f32s(&[3], &[2.0, 0.0, 3.0])]);
        assert_eq!(out, i32s(&[3, 3], &[3, 1, 8, 0, 4, 5, 6, 7, 2]));
    }

    #[test]
    fn lengths_must_fit() {
        let x = i32s(&[2, 3], &[0; 6]);
        let message = "layer 'op' (ReverseSequence, opset1): `seq_lengths`[1] is 4, expected 0..=3";
        assert_eq!(error(&DEF, &[], &[x.clone(), i32s(&[2], &[1, 4])]), message);
        let message = "`seq_lengths` [3] must have an element for each of dim 0 of `data` [2, 3]";
        assert_eq!(error(&DEF, &[], &[x, i32s(&[3], &[1; 3])]), message);
    }
}
