//! `Transpose`: `out[i_0, …] = arg[…]` with `out.shape[k] = arg.shape[order[k]]`.
//!
//! Specification: Transpose-1. An empty `input_order` reverses the dims.

use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::PartialShape;

pub(crate) static DEF: OpDef = OpDef {
    name: "Transpose",
    versions: &["opset1"],
    signature: Signature::new(&["arg", "input_order"]),
    family: Family::Layout,
    build: Build::Op(parse::<Transpose>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transpose {}

impl Op for Transpose {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let order = cx.integers("input_order")?;
        let shape = match (order, cx.dims("arg")) {
            (Some(order), Some(dims)) => {
                let order = permutation(&order, dims.len())?;
                PartialShape::ranked(order.iter().map(|&d| dims[d]).collect())
            }
            (None, Some(dims)) => PartialShape::any_of_rank(dims.len()),
            _ => PartialShape::DYNAMIC,
        };
        Ok(vec![TensorType::new(cx.element("arg"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let rank = cx.extents("arg").len();
        let order = cx.integers("input_order").unwrap_or_default();
        let order = permutation(&order, rank).unwrap_or_default();
        cx.define(cx.output(0), |cx, at| {
            let mut from = at.to_vec();
            for (k, &d) in order.iter().enumerate() {
                from[d] = at[k].clone();
            }
            cx.load("arg", &from)
        });
    }
}

fn permutation(order: &[i64], rank: usize) -> Result<Vec<usize>, OpError> {
    if order.is_empty() {
        return Ok((0..rank).rev().collect());
    }
    ensure!(
        order.len() == rank,
        "`input_order` {order:?} must have {rank} elements"
    );
    normalize_axes(order, rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};

    #[test]
    fn permutes_and_reverses() {
        let data = i32s(&[2, 3], &[0, 1, 2, 3, 4, 5]);
        let want = i32s(&[3, 2], &[0, 3, 1, 4, 2, 5]);
        assert_eq!(run(&DEF, &[], &[data.clone(), i64s(&[2], &[1, 0])]), want);
        assert_eq!(run(&DEF, &[], &[data, i64s(&[0], &[])]), want);
    }

    #[test]
    fn the_order_must_be_a_permutation() {
        let data = i32s(&[2, 3], &[0; 6]);
        assert_eq!(
            error(&DEF, &[], &[data, i64s(&[2], &[1, 1])]),
            "axis 1 occurs twice in [1, 1]"
        );
    }
}
