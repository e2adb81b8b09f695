//! `MatMul`: `out[b.., i, j] = Σ_k a[b.., i, k] · b[b.., k, j]`, the batch dims `b` broadcast, the last
//! two dims of an input exchanged first if it is transposed.
//!
//! Specification: MatMul-1. An input of rank 1 is a row on the left and a column on the right,
//! whether transposed or not, and the dim it lacks is left out of the result. Integers wrap.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "MatMul",
    versions: &["opset1"],
    signature: Signature::new(&["a", "b"]),
    family: Family::Compose,
    build: Build::Op(parse::<MatMul>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MatMul {
    #[serde(default)]
    transpose_a: bool,
    #[serde(default)]
    transpose_b: bool,
}

impl Op for MatMul {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("a", "a numeric type", |t| t.is_integer() || t.is_float())?;
        cx.expect_same("a", "b")?;
        Ok(vec![TensorType::new(element, self.shape(cx)?)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (a, b, ty) = (cx.extents("a"), cx.extents("b"), cx.element("a"));
        let depth = match (a.len(), self.transpose_a) {
            (1, _) | (_, false) => a[a.len() - 1],
            (rank, true) => a[rank - 2],
        };
        cx.define(cx.output(0), |cx, at| {
            let mut rest = at.to_vec();
            let column = if b.len() > 1 { rest.pop() } else { None };
            let row = if a.len() > 1 { rest.pop() } else { None };
            let sum = cx.sum_of_products(&[depth], ty.compute(), |cx, k| {
                let left = place(&rest, &a, row, &k[0], self.transpose_a);
                let right = place(&rest, &b, column, &k[0], !self.transpose_b);
                (widened(cx.load("a", &left)), widened(cx.load("b", &right)))
            });
            sum.cast(ty)
        });
    }
}

/// Where an input is read: at `batch`, stretched, then at `outer` and `k`, or the other way round.
fn place(
    batch: &[Scalar],
    shape: &[Extent],
    outer: Option<Scalar>,
    k: &Scalar,
    k_first: bool,
) -> Vec<Scalar> {
    let Some(outer) = outer else {
        return vec![k.clone()];
    };
    let dims = &shape[..shape.len() - 2];
    let own = batch[batch.len() - dims.len()..].iter().zip(dims);
    let mut at: Vec<Scalar> = own
        .map(|(i, &n)| if n == 1 { index(0) } else { i.clone() })
        .collect();
    at.extend(match k_first {
        true => [k.clone(), outer],
        false => [outer, k.clone()],
    });
    at
}

impl MatMul {
    fn shape(&self, cx: &Infer<'_>) -> Result<PartialShape, OpError> {
        for name in ["a", "b"] {
            let rank = cx.shape(name).rank();
            ensure!(
                rank != Some(0),
                "`{name}` must have rank at least 1, found []"
            );
        }
        let (Some(a), Some(b)) = (cx.dims("a"), cx.dims("b")) else {
            return Ok(PartialShape::DYNAMIC);
        };
        let split = |dims: &[Dim], swapped: bool| match dims {
            [batch @ .., x, y] if swapped => (batch.to_vec(), Some(*y), *x),
            [batch @ .., x, y] => (batch.to_vec(), Some(*x), *y),
            _ => (vec![], None, dims[0]),
        };
        let (mut batch, row, depth) = split(a, self.transpose_a);
        let (other, column, depth_b) = split(b, !self.transpose_b);
        let both = format!("`a` {} and `b` {}", cx.shape("a"), cx.shape("b"));
        ensure!(
            depth.intersect(depth_b).is_some(),
            "{both} must be equal in the dim summed over, found {depth} and {depth_b}"
        );
        if row.is_some() && column.is_some() || batch.is_empty() {
            let joined = PartialShape::ranked(batch).broadcast(&PartialShape::ranked(other));
            let joined = joined.as_ref().and_then(PartialShape::dims);
            ensure!(
                joined.is_some(),
                "the batch dims of {both} must broadcast together"
            );
            batch = joined.unwrap_or_default().to_vec();
        }
        batch.extend(row);
        batch.extend(column);
        countable(PartialShape::ranked(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn counting(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        i32s(shape, &(0..n as i32).collect::<Vec<_>>())
    }

    /// Values of NumPy.
    #[test]
    fn matrices_transposed_or_not() {
        let want = i32s(&[2, 2], &[10, 13, 28, 40]);
        let (a, at) = (counting(&[2, 3]), i32s(&[3, 2], &[0, 3, 1, 4, 2, 5]));
        let (b, bt) = (counting(&[3, 2]), i32s(&[2, 3], &[0, 2, 4, 1, 3, 5]));
        let t = |a, b| [("transpose_a", a), ("transpose_b", b)];
        assert_eq!(run(&DEF, &[], &[a.clone(), b.clone()]), want);
        assert_eq!(run(&DEF, &t("true", "false"), &[at.clone(), b]), want);
        assert_eq!(run(&DEF, &t("false", "true"), &[a, bt.clone()]), want);
        assert_eq!(run(&DEF, &t("true", "true"), &[at, bt]), want);
    }

    /// Values of NumPy.
    #[test]
    fn vectors_and_batches() {
        let v = i32s(&[3], &[1, 2, 3]);
        let t = [("transpose_a", "true"), ("transpose_b", "true")];
        assert_eq!(run(&DEF, &t, &[v.clone(), v.clone()]), i32s(&[], &[14]));
        let m = counting(&[2, 2, 3]);
        let out = run(&DEF, &[], &[m.clone(), v.clone()]);
        assert_eq!(out, i32s(&[2, 2], &[8, 26, 44, 62]));
        let out = run(&DEF, &[("transpose_b", "true")], &[v, m.clone()]);
        assert_eq!(out, i32s(&[2, 2], &[8, 26, 44, 62]));
        let out = run(&DEF, &[], &[m, counting(&[1, 3, 1])]);
        assert_eq!(out, i32s(&[2, 2, 1], &[5, 14, 23, 32]));
        let out = run(&DEF, &[], &[counting(&[2, 0]), counting(&[0, 2])]);
        assert_eq!(out, i32s(&[2, 2], &[0; 4]));
        let big = i64s(&[1], &[(1 << 53) + 1]);
        let out = run(&DEF, &[], &[big, i64s(&[1], &[3])]);
        assert_eq!(out, i64s(&[], &[(3 << 53) + 3]));
    }

    #[test]
    fn shapes_must_fit() {
        let message =
            "`a` [2, 3] and `b` [2, 3] must be equal in the dim summed over, found 3 and 2";
        let m = counting(&[2, 3]);
        assert_eq!(error(&DEF, &[], &[m.clone(), m]), message);
        let inputs = [counting(&[2, 1, 1]), counting(&[3, 1, 1])];
        let message = "the batch dims of `a` [2, 1, 1] and `b` [3, 1, 1] must broadcast together";
        assert_eq!(error(&DEF, &[], &inputs), message);
        let message = "`b` must have rank at least 1, found []";
        assert_eq!(error(&DEF, &[], &[counting(&[1]), counting(&[])]), message);
    }

    #[test]
    fn partial_shapes() {
        let a = PartialShape::ranked(vec![Dim::fixed(2), Dim::ANY, Dim::fixed(3)]);
        let of = |b: PartialShape| {
            let inputs = [
                (ElementType::F16, a.clone(), None),
                (ElementType::F16, b, None),
            ];
            infer(&DEF, &[], &inputs).0
        };
        assert_eq!(of(PartialShape::any_of_rank(2)), "f16[2, ?, ?]");
        assert_eq!(of(PartialShape::any_of_rank(1)), "f16[2, ?]");
        assert_eq!(of(PartialShape::DYNAMIC), "f16[...]");
    }
}
