//! `Unsqueeze`: `data` with dims of extent 1 put in, so that they stand at `axes` of the output.
//!
//! Specification: Unsqueeze-1.

use crate::infer::normalize_axes;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_tensor::{Dim, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Unsqueeze",
    versions: &["opset1"],
    signature: Signature::new(&["data", "axes"]),
    family: Family::Layout,
    build: Build::Op(parse::<Unsqueeze>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unsqueeze {}

impl Op for Unsqueeze {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let axes = cx.integers("axes")?;
        let shape = match (cx.dims("data"), &axes, cx.length("axes")) {
            (Some(dims), Some(axes), _) => {
                let new = inserted(axes, dims.len())?;
                let mut dims = dims.iter();
                let place = |new: bool| {
                    if new {
                        Some(Dim::fixed(1))
                    } else {
                        dims.next().copied()
                    }
                };
                PartialShape::ranked(new.into_iter().filter_map(place).collect())
            }
            (Some(dims), None, Some(count)) => PartialShape::any_of_rank(dims.len() + count),
            _ => PartialShape::DYNAMIC,
        };
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let axes = cx.integers("axes").unwrap_or_default();
        let new = inserted(&axes, cx.extents("data").len()).unwrap_or_default();
        cx.define(cx.output(0), |cx, at| {
            let kept = at.iter().zip(&new).filter(|(_, new)| !**new);
            let from: Vec<Scalar> = kept.map(|(i, _)| i.clone()).collect();
            cx.load("data", &from)
        });
    }
}

/// For each dim of the output, whether it is new.
fn inserted(axes: &[i64], rank: usize) -> Result<Vec<bool>, OpError> {
    let mut new = vec![false; rank + axes.len()];
    for axis in normalize_axes(axes, new.len())? {
        new[axis] = true;
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};

    #[test]
    fn puts_ones_in() {
        let x = i32s(&[2], &[1, 2]);
        let shape = |axes: &[i64]| {
            let out = run(&DEF, &[], &[x.clone(), i64s(&[axes.len()], axes)]);
            assert_eq!(out.bytes(), x.bytes());
            out.shape().to_vec()
        };
        assert_eq!(shape(&[0, 2]), [1, 2, 1]);
        assert_eq!(shape(&[-1]), [2, 1]);
        assert_eq!(shape(&[2, 0]), [1, 2, 1]);
        assert_eq!(
            run(&DEF, &[], &[i32s(&[], &[5]), i64s(&[], &[0])]),
            i32s(&[1], &[5])
        );
    }

    #[test]
    fn axes_are_distinct_and_in_range() {
        let message =
            |axes: &[i64]| error(&DEF, &[], &[i32s(&[2], &[1, 2]), i64s(&[axes.len()], axes)]);
        assert_eq!(message(&[0, -3]), "axis -3 occurs twice in [0, -3]");
        assert_eq!(message(&[2]), "axis 2 is out of range for rank 2");
    }
}
