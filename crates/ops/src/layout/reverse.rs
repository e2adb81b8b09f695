//! `Reverse`: `out[.., i, ..] = data[.., extent - 1 - i, ..]` in some dims.
//!
//! Specification: Reverse-1. `axis` lists the dims (`index`), or has a boolean for each (`mask`). Beyond
//! the specification, negative axes count from the end.

use super::index_map::last;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{MAX_RANK, Scalar};
use vinelift_tensor::{ElementType, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "Reverse",
    versions: &["opset1"],
    signature: Signature::new(&["data", "axis"]),
    family: Family::Layout,
    build: Build::Op(parse::<Reverse>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reverse {
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Index,
    Mask,
}

impl Op for Reverse {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        match self.mode {
            Mode::Index => cx.expect_integer("axis")?,
            Mode::Mask => cx.expect("axis", "boolean", |t| t == ElementType::Boolean)?,
        };
        cx.expect_list("axis", MAX_RANK)?;
        if let (Some(axis), Some(rank)) = (cx.constant("axis"), cx.shape("data").rank()) {
            self.reversed(axis, rank)?;
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let Some(axis) = cx.constant("axis") else {
            return;
        };
        let reversed = self.reversed(axis, shape.len()).unwrap_or_default();
        cx.define(cx.output(0), |cx, at| {
            let place = |(d, i): (usize, &Scalar)| match reversed[d] {
                true => last(shape[d]) - i,
                false => i.clone(),
            };
            let from: Vec<Scalar> = at.iter().enumerate().map(place).collect();
            cx.load("data", &from)
        });
    }
}

impl Reverse {
    /// For each dim, whether it is reversed.
    fn reversed(&self, axis: &Tensor, rank: usize) -> Result<Vec<bool>, OpError> {
        let shape = axis.shape();
        ensure!(
            shape.len() <= 1,
            "`axis` must be one-dimensional, found {shape:?}"
        );
        let values = axis
            .to_i64_vec()
            .map_err(|e| OpError::Shape(format!("`axis`: {e}")))?;
        if self.mode == Mode::Mask {
            ensure!(
                values.len() == rank,
                "`axis` must hold {rank} elements, found {}",
                values.len()
            );
            return Ok(values.iter().map(|v| *v != 0).collect());
        }
        let mut reversed = vec![false; rank];
        for axis in values {
            reversed[normalize_axis(axis, rank)?] = true;
        }
        Ok(reversed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};

    #[test]
    fn by_index_and_by_mask() {
        let x = i32s(&[2, 3], &[0, 1, 2, 3, 4, 5]);
        let by_index = |axes: &[i64]| {
            run(
                &DEF,
                &[("mode", "index")],
                &[x.clone(), i64s(&[axes.len()], axes)],
            )
        };
        assert_eq!(by_index(&[1]), i32s(&[2, 3], &[2, 1, 0, 5, 4, 3]));
        assert_eq!(by_index(&[0, -1]), i32s(&[2, 3], &[5, 4, 3, 2, 1, 0]));
        assert_eq!(by_index(&[]), x);
        let mask = Tensor::from_bools(&[2], &[true, false]).unwrap();
        let out = run(&DEF, &[("mode", "mask")], &[x.clone(), mask]);
        assert_eq!(out, i32s(&[2, 3], &[3, 4, 5, 0, 1, 2]));
    }

    #[test]
    fn what_does_not_fit() {
        let x = i32s(&[2], &[1, 2]);
        let message = error(&DEF, &[("mode", "mask")], &[x.clone(), i64s(&[1], &[0])]);
        assert_eq!(message, "`axis` must be boolean, found i64");
        let mask = Tensor::from_bools(&[2], &[true; 2]).unwrap();
        let message = error(&DEF, &[("mode", "mask")], &[x.clone(), mask]);
        assert_eq!(message, "`axis` must hold 1 elements, found 2");
        let message = error(&DEF, &[("mode", "index")], &[x, i64s(&[1], &[1])]);
        assert_eq!(message, "axis 1 is out of range for rank 1");
    }
}
