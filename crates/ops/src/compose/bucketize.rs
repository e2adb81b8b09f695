//! `Bucketize`: `out` is the number of `buckets` below `x`; of those not above it if the buckets include
//! their left edge and not (`with_right_bound`) the right one.
//!
//! Specification: Bucketize-3. The two types may differ: numbers are compared by value, of a float
//! and an integer as `f64`.

use crate::attrs::{element_type, index_type};
use crate::elementwise::widened;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::zero;
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::ElementType;

pub(crate) static DEF: OpDef = OpDef {
    name: "Bucketize",
    versions: &["opset3"],
    signature: Signature::new(&["data", "buckets"]),
    family: Family::Compose,
    build: Build::Op(parse::<Bucketize>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bucketize {
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    output_type: ElementType,
    #[serde(default = "crate::attrs::yes")]
    with_right_bound: bool,
}

impl Op for Bucketize {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        for name in ["data", "buckets"] {
            cx.expect(name, "a numeric type", |t| t.is_integer() || t.is_float())?;
        }
        cx.expect_rank("buckets", 1)?;
        let ty = index_type("output_type", self.output_type)?;
        Ok(vec![TensorType::new(ty, cx.shape("data").clone())])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let buckets = cx.extents("buckets");
        cx.define(cx.output(0), |cx, at| {
            let x = widened(cx.load("data", at));
            let count = cx.reduce(Binary::Add, &buckets, zero(ElementType::I64), |cx, k| {
                let edge = widened(cx.load("buckets", k));
                let counts = match self.with_right_bound {
                    true => below(&edge, &x),
                    false => !below(&x, &edge),
                };
                counts.cast(ElementType::I64)
            });
            count.cast(self.output_type)
        });
    }
}

/// `a < b` by value.
fn below(a: &Scalar, b: &Scalar) -> Scalar {
    let both = |ty| a.clone().cast(ty).lt(b.clone().cast(ty));
    let (left, right) = (a.ty(), b.ty());
    if left == right {
        return a.lt(b.clone());
    }
    if left.is_float() || right.is_float() {
        return both(ElementType::F64);
    }
    match (left, right) {
        (ElementType::U64, signed) if signed.is_signed_integer() => {
            b.gt(zero(signed)) & both(ElementType::U64)
        }
        (signed, ElementType::U64) if signed.is_signed_integer() => {
            a.lt(zero(signed)) | both(ElementType::U64)
        }
        (ElementType::U64, _) | (_, ElementType::U64) => both(ElementType::U64),
        _ => both(ElementType::I64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    /// The example of the specification, and its other side.
    #[test]
    fn either_edge() {
        let inputs = [i32s(&[2, 2], &[3, 50, 10, -1]), i32s(&[3], &[0, 5, 10])];
        assert_eq!(run(&DEF, &[], &inputs), i64s(&[2, 2], &[1, 3, 2, 0]));
        let left = [("with_right_bound", "false"), ("output_type", "i32")];
        assert_eq!(run(&DEF, &left, &inputs), i32s(&[2, 2], &[1, 3, 3, 0]));
        let inputs = [f32s(&[1], &[3.0]), i32s(&[0], &[])];
        assert_eq!(run(&DEF, &[], &inputs), i64s(&[1], &[0]));
        let message = "attribute `output_type` must be i32 or i64, found `u8`";
        assert_eq!(error(&DEF, &[("output_type", "u8")], &inputs), message);
    }

    #[test]
    fn types_are_compared_by_value() {
        let x = Tensor::from_slice(&[2], &[u64::MAX, 1]).unwrap();
        let out = run(&DEF, &[], &[x, i32s(&[3], &[-2, 0, 1])]);
        assert_eq!(out, i64s(&[2], &[3, 2]));
        let edges = Tensor::from_slice(&[2], &[1u64, 1 << 63]).unwrap();
        let out = run(&DEF, &[], &[i64s(&[2], &[-1, 2]), edges]);
        assert_eq!(out, i64s(&[2], &[0, 1]));
        let out = run(&DEF, &[], &[f32s(&[1], &[1.5]), i64s(&[2], &[1, 2])]);
        assert_eq!(out, i64s(&[1], &[1]));
    }
}
