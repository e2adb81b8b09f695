//! `Eye`: `out[.., r, c] = (c - r = diagonal_index) ? 1 : 0`.
//!
//! Specification: Eye-9. The diagonal is data, the rest shapes the output.

use super::extent::{countable, naturals};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::{Dim, ElementType, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Eye",
    versions: &["opset9"],
    signature: Signature::new(&["num_rows", "num_columns", "diagonal_index", "batch_shape"])
        .optional(1),
    family: Family::Layout,
    build: Build::Op(parse::<Eye>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Eye {
    #[serde(deserialize_with = "crate::attrs::element_type")]
    output_type: ElementType,
}

impl Op for Eye {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let ty = self.output_type;
        ensure!(
            ty != ElementType::String,
            "`output_type` must be a numeric type, found {ty}"
        );
        cx.expect_integer("diagonal_index")?;
        let diagonal = cx.shape("diagonal_index");
        let one = diagonal
            .dims()
            .is_none_or(|dims| dims.iter().all(|d| d.contains(1)));
        ensure!(
            one,
            "`diagonal_index` must hold one element, found {diagonal}"
        );
        let mut sides = Vec::new();
        for name in ["num_rows", "num_columns"] {
            let extent = cx
                .integer(name)?
                .map(|n| naturals(name, &[n], 0))
                .transpose()?;
            let likely = cx.extents(name).and_then(|dims| dims.first().copied());
            sides.push(extent.map_or(likely.unwrap_or(Dim::ANY), |n| Dim::fixed(n[0])));
        }
        let batch = match cx.integers("batch_shape")? {
            Some(batch) => Some(
                naturals("batch_shape", &batch, 0)?
                    .into_iter()
                    .map(Dim::fixed)
                    .collect(),
            ),
            None if cx.has("batch_shape") => {
                let any = || cx.length("batch_shape").map(|n| vec![Dim::ANY; n]);
                cx.extents("batch_shape").or_else(any)
            }
            None => Some(Vec::new()),
        };
        let ranked = |batch: Vec<Dim>| PartialShape::ranked([batch, sides].concat());
        let shape = countable(batch.map_or(PartialShape::DYNAMIC, ranked))?;
        Ok(vec![TensorType::new(ty, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        cx.define(cx.output(0), |cx, at| {
            let (row, column) = (&at[at.len() - 2], &at[at.len() - 1]);
            let diagonal = cx.load_only("diagonal_index").cast(ElementType::I64);
            (column - row).eq(diagonal).cast(self.output_type)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    fn eye(ty: &str, rows: i64, columns: i64, diagonal: i64, batch: Option<&[i64]>) -> Tensor {
        let mut inputs = vec![
            i64s(&[], &[rows]),
            i64s(&[1], &[columns]),
            i64s(&[], &[diagonal]),
        ];
        inputs.extend(batch.map(|b| i64s(&[b.len()], b)));
        run(&DEF, &[("output_type", ty)], &inputs)
    }

    /// The examples of the specification.
    #[test]
    fn of_the_specification() {
        let want = i32s(&[3, 4], &[0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(eye("i32", 3, 4, 2, None), want);
        let want = i32s(&[3, 4], &[0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(eye("i32", 3, 4, -1, Some(&[])), want);
        let out = eye("f16", 2, 2, 5, Some(&[1, 2]));
        assert_eq!(
            (out.shape(), out.bytes()),
            (&[1usize, 2, 2, 2][..], &[0u8; 16][..])
        );
        assert_eq!(eye("i32", 0, 3, i64::MIN, None), i32s(&[0, 3], &[]));
    }

    #[test]
    fn extents_are_natural() {
        let inputs = [-1, 1, 0].map(|n| i64s(&[], &[n]));
        let message = "`num_rows` [-1] must be at least 0";
        assert_eq!(error(&DEF, &[("output_type", "f32")], &inputs), message);
    }
}
