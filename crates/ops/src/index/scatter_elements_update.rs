//! `ScatterElementsUpdate`: a copy of `data` into which each `updates[i..]` is folded at `i..` with
//! the coordinate along `axis` replaced by `indices[i..]`.
//!
//! Specification: ScatterElementsUpdate-3 and -12. Negative indices count from the end (-3 forbids
//! them; they do there too), and an index out of range is an error. Without a reduction the last
//! update of an element stays. With `use_init_val="false"` the updates of an element are reduced
//! among themselves; elements without updates keep their value. The mean of integers is rounded
//! down; `sum` of booleans is `or`, `prod` is `and`.

use super::scatter::{Fold, by_type, scatter};
use crate::attrs::NoAttributes;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::layout::extent::may_be_at_most;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{Binary, Policy};
use vinelift_tensor::ElementType;

pub(crate) static V3: OpDef = version(&["opset3"], |attributes| {
    let NoAttributes {} = attributes.parse()?;
    Ok(Box::new(ScatterElementsUpdate {
        reduction: Reduction::None,
        use_init_val: true,
    }))
});

pub(crate) static V12: OpDef = version(&["opset12"], crate::op::parse::<ScatterElementsUpdate>);

const fn version(
    versions: &'static [&'static str],
    build: fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>,
) -> OpDef {
    OpDef {
        name: "ScatterElementsUpdate",
        versions,
        signature: Signature::new(&["data", "indices", "updates", "axis"]),
        family: Family::Index,
        build: Build::Op(build),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScatterElementsUpdate {
    #[serde(default)]
    reduction: Reduction,
    #[serde(default = "crate::attrs::yes")]
    use_init_val: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Reduction {
    #[default]
    None,
    Sum,
    Prod,
    Min,
    Max,
    Mean,
}

impl Op for ScatterElementsUpdate {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_integer("indices")?;
        let element = match self.reduction {
            Reduction::None => cx.element("data"),
            Reduction::Mean => cx.expect("data", "a numeric type for reduction mean", |t| {
                t.is_integer() || t.is_float()
            })?,
            _ => cx.expect("data", "a numeric type or boolean for a reduction", |t| {
                t != ElementType::String
            })?,
        };
        cx.expect_same("data", "updates")?;
        let axis = cx.integer("axis")?;
        let indices = cx.shape("indices").intersect(cx.shape("updates"));
        ensure!(
            indices.is_some(),
            "`indices` {} and `updates` {} must have the same shape",
            cx.shape("indices"),
            cx.shape("updates")
        );
        if let (Some(data), Some(indices)) =
            (cx.dims("data"), indices.as_ref().and_then(|s| s.dims()))
        {
            let rank = data.len();
            ensure!(
                rank == indices.len() && rank > 0,
                "`data` {} and `indices` {} must have the same rank, at least 1",
                cx.shape("data"),
                cx.shape("indices")
            );
            if let Some(axis) = axis {
                let axis = normalize_axis(axis, rank)?;
                let larger = |d: usize| d != axis && !may_be_at_most(indices[d], data[d]);
                ensure!(
                    !(0..rank).any(larger),
                    "`indices` {} must not be larger than `data` {} off axis {axis}",
                    cx.shape("indices"),
                    cx.shape("data")
                );
            }
        }
        Ok(vec![TensorType::new(element, cx.shape("data").clone())])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let extents = cx.extents("data");
        let axis = cx.integer("axis").unwrap_or_default();
        let axis = normalize_axis(axis, extents.len()).unwrap_or_default();
        let domain = cx.extents("indices");
        scatter(
            cx,
            self.fold(cx.element("data")),
            &domain,
            |cx, p| {
                let mut at = p.to_vec();
                at[axis] = cx.index("indices", p, extents[axis], Policy::WRAP);
                at
            },
            |cx, p| cx.load("updates", p),
        );
    }
}

impl ScatterElementsUpdate {
    fn fold(&self, ty: ElementType) -> Fold {
        let initial = self.use_init_val;
        let op = match self.reduction {
            Reduction::None => return Fold::Replace,
            Reduction::Mean => return Fold::Mean { initial },
            Reduction::Sum => by_type(ty, Binary::Add, Binary::Or),
            Reduction::Prod => by_type(ty, Binary::Mul, Binary::And),
            Reduction::Min => by_type(ty, Binary::Min, Binary::And),
            Reduction::Max => by_type(ty, Binary::Max, Binary::Or),
        };
        Fold::Combine { op, initial }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, run, run_all};
    use vinelift_tensor::Tensor;

    /// Examples 1 and 2 of the specification of -12.
    #[test]
    fn sums_with_and_without_the_data() {
        let data = i32s(&[4], &[2, 3, 4, 6]);
        let updates = i32s(&[6], &[10, 20, 30, 40, 70, 60]);
        let indices = i32s(&[6], &[1, 0, 0, -2, -1, 2]);
        let inputs = [data.clone(), indices, updates, i32s(&[1], &[0])];
        assert_eq!(
            run(&V12, &[("reduction", "sum")], &inputs),
            i32s(&[4], &[52, 13, 104, 76])
        );
        let without = [("reduction", "sum"), ("use_init_val", "false")];
        assert_eq!(run(&V12, &without, &inputs), i32s(&[4], &[50, 10, 100, 70]));
    }

    /// Examples 3 to 5 of the specification of -12.
    #[test]
    fn along_the_second_axis() {
        let run = |reduction: &str, data: i32, indices: [i32; 4]| {
            let updates = i32s(&[2, 2], &[11, 12, 13, 14]);
            let inputs = [
                i32s(&[3, 4], &[data; 12]),
                i32s(&[2, 2], &indices),
                updates,
                i32s(&[], &[1]),
            ];
            run(&V12, &[("reduction", reduction)], &inputs)
        };
        let want = [0, 11, 12, 0, 13, 0, 0, 14, 0, 0, 0, 0];
        assert_eq!(run("none", 0, [1, 2, 0, 3]), i32s(&[3, 4], &want));
        let want = [1, 24, 1, 1, 14, 1, 1, 15, 1, 1, 1, 1];
        assert_eq!(run("sum", 1, [1, 1, 0, 3]), i32s(&[3, 4], &want));
        let want = [2, 264, 2, 2, 26, 2, 2, 28, 2, 2, 2, 2];
        assert_eq!(run("prod", 2, [1, 1, 0, 3]), i32s(&[3, 4], &want));
    }

    /// The ONNX documentation of ScatterElements.
    #[test]
    fn without_reduction() {
        let data = f32s(&[3, 3], &[0.0; 9]);
        let indices = i64s(&[2, 3], &[1, 0, 2, 0, 2, 1]);
        let updates = f32s(&[2, 3], &[1.0, 1.1, 1.2, 2.0, 2.1, 2.2]);
        let out = run(&V3, &[], &[data, indices, updates, i64s(&[], &[0])]);
        assert_eq!(
            out,
            f32s(&[3, 3], &[2.0, 1.1, 0.0, 1.0, 0.0, 2.2, 0.0, 2.1, 1.2])
        );
        let data = i32s(&[2], &[1, 2]);
        let updates = i32s(&[3], &[5, 6, 7]);
        let out = run(
            &V3,
            &[],
            &[data, i32s(&[3], &[1, -1, 1]), updates, i64s(&[], &[0])],
        );
        assert_eq!(out, i32s(&[2], &[1, 7]));
    }

    #[test]
    fn means_round_down_and_count_the_data_if_it_takes_part() {
        let data = i32s(&[3], &[-4, 7, 9]);
        let inputs = [
            data,
            i32s(&[3], &[0, 0, 1]),
            i32s(&[3], &[-2, -1, 4]),
            i32s(&[], &[0]),
        ];
        // (-4 - 2 - 1) / 3 and (7 + 4) / 2
        assert_eq!(
            run(&V12, &[("reduction", "mean")], &inputs),
            i32s(&[3], &[-3, 5, 9])
        );
        // (-2 - 1) / 2 and 4 / 1
        let without = [("reduction", "mean"), ("use_init_val", "false")];
        assert_eq!(run(&V12, &without, &inputs), i32s(&[3], &[-2, 4, 9]));
        let bytes = |values: &[i8]| Tensor::from_slice(&[values.len()], values).unwrap();
        let inputs = [
            bytes(&[100]),
            bytes(&[0, 0]),
            bytes(&[120, 110]),
            bytes(&[0]),
        ];
        assert_eq!(run(&V12, &[("reduction", "mean")], &inputs), bytes(&[110]));
    }

    #[test]
    fn extremes_and_booleans() {
        let inputs = [
            i32s(&[2], &[5, -5]),
            i32s(&[3], &[0, 1, 1]),
            i32s(&[3], &[9, 7, 8]),
            i32s(&[], &[0]),
        ];
        assert_eq!(
            run(&V12, &[("reduction", "min")], &inputs),
            i32s(&[2], &[5, -5])
        );
        let without = |reduction| [("reduction", reduction), ("use_init_val", "false")];
        assert_eq!(run(&V12, &without("min"), &inputs), i32s(&[2], &[9, 7]));
        assert_eq!(run(&V12, &without("max"), &inputs), i32s(&[2], &[9, 8]));
        assert_eq!(run(&V12, &without("prod"), &inputs), i32s(&[2], &[9, 56]));
        let bools = |values: &[bool]| Tensor::from_bools(&[values.len()], values).unwrap();
        let inputs = [
            bools(&[true, true]),
            i32s(&[2], &[0, 0]),
            bools(&[false, false]),
            i32s(&[], &[0]),
        ];
        assert_eq!(
            run(&V12, &[("reduction", "sum")], &inputs),
            bools(&[true, true])
        );
        assert_eq!(
            run(&V12, &[("reduction", "prod")], &inputs),
            bools(&[false, true])
        );
        assert_eq!(run(&V12, &without("max"), &inputs), bools(&[false, true]));
        let message = "`data` must be a numeric type for reduction mean, found boolean";
        assert_eq!(error(&V12, &[("reduction", "mean")], &inputs), message);
    }

    #[test]
    fn names_the_index_that_is_out_of_range() {
        let data = i32s(&[2, 3], &[0; 6]);
        let inputs = [
            data.clone(),
            i32s(&[1, 2], &[2, -4]),
            i32s(&[1, 2], &[1, 2]),
            i32s(&[], &[1]),
        ];
        let message =
            "layer 'op' (ScatterElementsUpdate, opset12): `indices`[0, 1] is -4, expected -3..=2";
        assert_eq!(error(&V12, &[("reduction", "mean")], &inputs), message);
        let zero = run_all(&V12, &[], &inputs, IndexPolicy::Zero).unwrap();
        assert_eq!(zero, [i32s(&[2, 3], &[0, 0, 1, 0, 0, 0])]);
    }

    #[test]
    fn shapes_must_fit() {
        let message = |indices: &[usize], updates: &[usize]| {
            let zeros = |shape: &[usize]| Tensor::zeros(ElementType::I32, shape).unwrap();
            error(
                &V3,
                &[],
                &[
                    zeros(&[2, 3]),
                    zeros(indices),
                    zeros(updates),
                    i32s(&[], &[1]),
                ],
            )
        };
        let expected = "`indices` [3, 1] must not be larger than `data` [2, 3] off axis 1";
        assert_eq!(message(&[3, 1], &[3, 1]), expected);
        let expected = "`indices` [2, 1] and `updates` [1, 2] must have the same shape";
        assert_eq!(message(&[2, 1], &[1, 2]), expected);
        let expected = "`data` [2, 3] and `indices` [2] must have the same rank, at least 1";
        assert_eq!(message(&[2], &[2]), expected);
    }
}
