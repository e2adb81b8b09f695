//! `CumSum`: `out[.., i, ..] = Σ_{k ≤ i} data[.., k, ..]` along `axis`; `Σ_{k < i}` if `exclusive`,
//! from the end if `reverse`.
//!
//! Specification: CumSum-3. Without `axis` it is 0. Integers wrap.
//!
//! The specification has numbers alone. OpenVINO's converter of PyTorch programs also writes sums of `boolean`, by which
//! it means PyTorch's `cumsum`: how many are true, as `i64`.

use crate::infer::dim_of_axis;
use crate::layout::index_map::extent;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, select, zero};
use vinelift_nest::{Mode, Scalar};
use vinelift_tensor::ElementType;

pub(crate) static DEF: OpDef = OpDef {
    name: "CumSum",
    versions: &["opset3"],
    signature: Signature::new(&["data", "axis"]).optional(1),
    family: Family::Compose,
    build: Build::Op(parse::<CumSum>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CumSum {
    #[serde(default)]
    exclusive: bool,
    #[serde(default)]
    reverse: bool,
}

impl Op for CumSum {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let data = cx.input("data").clone();
        cx.expect("data", "a numeric type or boolean", |t| {
            t.is_integer() || t.is_float() || t == ElementType::Boolean
        })?;
        let axis = if cx.has("axis") {
            cx.integer("axis")?
        } else {
            Some(0)
        };
        if let (Some(axis), Some(rank)) = (axis, cx.shape("data").rank()) {
            dim_of_axis(axis, rank)?;
        }
        Ok(vec![TensorType::new(sums_of(data.element), data.shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), sums_of(cx.element("data")));
        let axis = cx.integer("axis").unwrap_or(0);
        let wide = ty.compute();
        let Some(axis) = dim_of_axis(axis, shape.len()).unwrap_or_default() else {
            cx.define(cx.output(0), |cx, at| match self.exclusive {
                true => zero(wide).cast(ty),
                false => cx.load("data", at).cast(ty),
            });
            return;
        };
        let length = shape[axis];
        let sums = if wide == ty {
            cx.output(0)
        } else {
            cx.temporary("sums", wide, &shape)
        };
        // Each point reads what the point before it along the axis has written.
        cx.stage(&shape, sums, Mode::Set, |cx, point| {
            let step = &point[axis];
            let along = |steps_back: i64| {
                let mut at = point.to_vec();
                at[axis] = match (self.reverse, steps_back) {
                    (false, 0) => step.clone(),
                    (false, back) => step - back,
                    (true, back) => match length.number() {
                        Some(n) => index(extent(n).saturating_sub(1) + back) - step,
                        None => Scalar::extent(length) - index(1 - back) - step.clone(),
                    },
                };
                at
            };
            let (here, before) = (along(0), along(1));
            let sum = cx.load_from(sums, &before);
            let (first, next) = if self.exclusive {
                (zero(wide), cx.load("data", &before).cast(wide))
            } else {
                let x = cx.load("data", &here).cast(wide);
                (x.clone(), x)
            };
            (here, select(step.gt(index(0)), sum + next, first))
        });
        if wide != ty {
            cx.define(cx.output(0), |cx, at| cx.load_from(sums, at).cast(ty));
        }
    }
}

/// The type of sums of elements of type `ty`.
fn sums_of(ty: ElementType) -> ElementType {
    match ty {
        ElementType::Boolean => ElementType::I64,
        _ => ty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, infer, run};
    use vinelift_tensor::{PartialShape, Tensor};

    /// The examples of the specification.
    #[test]
    fn both_directions_with_and_without_the_element() {
        let of = |exclusive: &str, reverse: &str| {
            let attributes = [("exclusive", exclusive), ("reverse", reverse)];
            let out = run(&DEF, &attributes, &[i64s(&[5], &[1, 2, 3, 4, 5])]);
            out.to_i64_vec().unwrap()
        };
        assert_eq!(of("false", "false"), [1, 3, 6, 10, 15]);
        assert_eq!(of("true", "false"), [0, 1, 3, 6, 10]);
        assert_eq!(of("false", "true"), [15, 14, 12, 9, 5]);
        assert_eq!(of("true", "true"), [14, 12, 9, 5, 0]);
    }

    #[test]
    fn of_scalars() {
        for (exclusive, sum) in [("false", 3), ("true", 0)] {
            for inputs in [
                vec![i32s(&[], &[3])],
                vec![i32s(&[], &[3]), i64s(&[], &[-1])],
            ] {
                let out = run(&DEF, &[("exclusive", exclusive)], &inputs);
                assert_eq!(out, i32s(&[], &[sum]));
            }
        }
    }

    /// Values of NumPy.
    #[test]
    fn along_any_axis() {
        let x = i32s(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let out = run(&DEF, &[], &[x.clone(), i64s(&[], &[-1])]);
        assert_eq!(out, i32s(&[2, 3], &[1, 3, 6, 4, 9, 15]));
        let out = run(&DEF, &[("reverse", "true")], &[x.clone(), i64s(&[1], &[0])]);
        assert_eq!(out, i32s(&[2, 3], &[5, 7, 9, 4, 5, 6]));
        let message = "axis 2 is out of range for rank 2";
        assert_eq!(error(&DEF, &[], &[x, i64s(&[], &[2])]), message);
        assert_eq!(run(&DEF, &[], &[i32s(&[0], &[])]), i32s(&[0], &[]));
    }

    /// 2048 ones, then more: `f16` alone would stop at 2048.
    #[test]
    fn half_precision_is_rounded_at_the_end() {
        let ones: Vec<u8> = [0x00, 0x3c].repeat(2052);
        let x = Tensor::from_bytes(ElementType::F16, &[2052], &ones).unwrap();
        let out = run(&DEF, &[], &[x]).to_f64_vec().unwrap();
        assert_eq!(out[2051], 2052.0);
    }

    /// Values of PyTorch's `cumsum`: of 300 true elements, more than a byte counts.
    #[test]
    fn counts_what_is_true() {
        let bools = |shape: &[usize], bytes: &[u8]| {
            Tensor::from_bytes(ElementType::Boolean, shape, bytes).unwrap()
        };
        let out = run(&DEF, &[], &[bools(&[5], &[1, 0, 1, 1, 0])]);
        assert_eq!(out, i64s(&[5], &[1, 1, 2, 3, 3]));
        let out = run(&DEF, &[("exclusive", "true")], &[bools(&[3], &[1, 0, 1])]);
        assert_eq!(out, i64s(&[3], &[0, 1, 1]));
        let out = run(&DEF, &[("reverse", "true")], &[bools(&[300], &[1; 300])]);
        assert_eq!(out.to_i64_vec().unwrap()[0], 300);
        assert_eq!(run(&DEF, &[], &[bools(&[], &[1])]), i64s(&[], &[1]));
    }

    #[test]
    fn partial_shapes() {
        let data = (ElementType::F32, PartialShape::any_of_rank(2), None);
        let axis = (ElementType::I32, PartialShape::ranked(vec![]), None);
        let want = ("f32[?, ?]".to_owned(), vec![1]);
        assert_eq!(infer(&DEF, &[], &[data, axis]), want);
    }
}
