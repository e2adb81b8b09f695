//! `SearchSorted`: `out[p.., j] = how many of sorted[p.., ..] are < values[p.., j]`, or `<=` with
//! `right_mode`.
//!
//! Specification: SearchSorted-15. A one-dimensional `sorted` serves every row of `values`. A NaN to
//! be found gives 0, since no comparison with it holds.

use super::search::count_passing;
use crate::attrs::{element_type, index_type};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_tensor::{Dim, ElementType, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "SearchSorted",
    versions: &["opset15"],
    signature: Signature::new(&["sorted", "values"]),
    family: Family::Index,
    build: Build::Op(parse::<SearchSorted>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchSorted {
    #[serde(default)]
    right_mode: bool,
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    output_type: ElementType,
}

impl Op for SearchSorted {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("sorted", "a numeric type", |t| {
            t.is_integer() || t.is_float()
        })?;
        cx.expect_same("sorted", "values")?;
        let result = index_type("output_type", self.output_type)?;
        if let Some(sorted) = cx.dims("sorted") {
            ensure!(
                !sorted.is_empty(),
                "`sorted` must have rank at least 1, found []"
            );
            let mut rows = sorted.to_vec();
            rows[sorted.len() - 1] = Dim::ANY;
            ensure!(
                rows.len() == 1
                    || cx
                        .shape("values")
                        .intersect(&PartialShape::ranked(rows))
                        .is_some(),
                "`sorted` {} and `values` {} must be equal in all dims but the last",
                cx.shape("sorted"),
                cx.shape("values")
            );
        }
        Ok(vec![TensorType::new(result, cx.shape("values").clone())])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let sorted = cx.extents("sorted");
        let Some((&extent, rows)) = sorted.split_last() else {
            return;
        };
        let compute = cx.element("sorted").compute();
        cx.define(cx.output(0), |cx, at| {
            let value = cx.load("values", at).cast(compute);
            let before = |position: &Scalar| {
                let from = [&at[..rows.len()], std::slice::from_ref(position)].concat();
                let element = cx.load("sorted", &from).cast(compute);
                if self.right_mode {
                    element.le(value.clone())
                } else {
                    element.lt(value.clone())
                }
            };
            count_passing(extent, before).cast(self.output_type)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, run};

    const RIGHT: &[(&str, &str)] = &[("right_mode", "true"), ("output_type", "i32")];

    #[test]
    fn agrees_with_counting() {
        for n in 0..20 {
            let sorted: Vec<i32> = (0..n).map(|i| i / 3 * 2).collect();
            let values: Vec<i32> = (-1..n + 2).collect();
            let inputs = [
                i32s(&[sorted.len()], &sorted),
                i32s(&[values.len()], &values),
            ];
            let count = |keep: fn(i32, i32) -> bool| -> Vec<usize> {
                values
                    .iter()
                    .map(|&v| sorted.iter().filter(|&&s| keep(s, v)).count())
                    .collect()
            };
            let left: Vec<i64> = count(|s, v| s < v).iter().map(|&n| n as i64).collect();
            assert_eq!(run(&DEF, &[], &inputs), i64s(&[values.len()], &left));
            let right: Vec<i32> = count(|s, v| s <= v).iter().map(|&n| n as i32).collect();
            assert_eq!(run(&DEF, RIGHT, &inputs), i32s(&[values.len()], &right));
        }
    }

    #[test]
    fn rows_and_floats() {
        let sorted = f32s(&[2, 3], &[1.0, 2.0, f32::INFINITY, 5.0, 5.0, 5.0]);
        let values = f32s(&[2, 2], &[f32::INFINITY, f32::NAN, 5.0, -0.0]);
        assert_eq!(
            run(&DEF, &[], &[sorted.clone(), values.clone()]),
            i64s(&[2, 2], &[2, 0, 0, 0])
        );
        assert_eq!(
            run(&DEF, RIGHT, &[sorted, values]),
            i32s(&[2, 2], &[3, 0, 3, 0])
        );
        let out = run(&DEF, &[], &[f32s(&[2], &[1.0, 2.0]), f32s(&[], &[1.5])]);
        assert_eq!(out, i64s(&[], &[1]));
    }

    #[test]
    fn shapes_must_fit() {
        let inputs = [i32s(&[2, 3], &[0; 6]), i32s(&[3, 2], &[0; 6])];
        let message = "`sorted` [2, 3] and `values` [3, 2] must be equal in all dims but the last";
        assert_eq!(error(&DEF, &[], &inputs), message);
        let message = "attribute `output_type` must be i32 or i64, found `f32`";
        assert_eq!(error(&DEF, &[("output_type", "f32")], &inputs), message);
    }
}
