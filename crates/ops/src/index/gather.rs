//! `Gather`: `out[p.., i.., q..] = data[p.., indices[p[..batch_dims].., i..], q..]` where `p` runs
//! over the dims of `data` before `axis`, `q` over those after it, and `i` over the dims of
//! `indices` after the first `batch_dims`.
//!
//! Specification: Gather-1, -7 and -8. An index out of range is an error in -1 and -7, where a
//! negative one is out of range too; in -8 negative indices count from the end, and out of range
//! reads 0. A negative `batch_dims` counts from the rank of `indices`.

use crate::attrs::NoAttributes;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Policy;
use vinelift_tensor::PartialShape;

pub(crate) static V1: OpDef = version(&["opset1"], |attributes| {
    let NoAttributes {} = attributes.parse()?;
    Ok(Box::new(Gather {
        batch_dims: 0,
        policy: Policy::CHECK,
    }))
});

pub(crate) static V7: OpDef = version(&["opset7"], |attributes| {
    let BatchDims { batch_dims } = attributes.parse()?;
    Ok(Box::new(Gather {
        batch_dims,
        policy: Policy::CHECK,
    }))
});

pub(crate) static V8: OpDef = version(&["opset8"], |attributes| {
    let BatchDims { batch_dims } = attributes.parse()?;
    Ok(Box::new(Gather {
        batch_dims,
        policy: Policy::WRAP_OR_ZERO,
    }))
});

const fn version(
    versions: &'static [&'static str],
    build: fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>,
) -> OpDef {
    OpDef {
        name: "Gather",
        versions,
        signature: Signature::new(&["data", "indices", "axis"]),
        family: Family::Index,
        build: Build::Op(build),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchDims {
    #[serde(default)]
    batch_dims: i64,
}

#[derive(Debug)]
struct Gather {
    batch_dims: i64,
    policy: Policy,
}

impl Op for Gather {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_integer("indices")?;
        let axis = cx.integer("axis")?;
        Ok(vec![TensorType::new(
            cx.element("data"),
            self.shape(cx, axis)?,
        )])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let extents = cx.extents("data");
        let rank = cx.extents("indices").len();
        let batch = self.batch(rank).unwrap_or_default();
        let axis = cx.integer("axis").unwrap_or_default();
        let axis = normalize_axis(axis, extents.len()).unwrap_or_default();
        let after = axis + rank - batch;
        cx.define(cx.output(0), |cx, at| {
            let position = [&at[..batch], &at[axis..after]].concat();
            let index = cx.index("indices", &position, extents[axis], self.policy);
            cx.load("data", &[&at[..axis], &[index], &at[after..]].concat())
        });
    }
}

impl Gather {
    fn shape(&self, cx: &Infer<'_>, axis: Option<i64>) -> Result<PartialShape, OpError> {
        let (Some(data), Some(indices)) = (cx.dims("data"), cx.dims("indices")) else {
            return Ok(PartialShape::DYNAMIC);
        };
        ensure!(
            !data.is_empty(),
            "`data` must have rank at least 1, found []"
        );
        let batch = self.batch(indices.len())?;
        let mut dims = data.to_vec();
        for d in 0..batch.min(dims.len()) {
            let both = data[d].intersect(indices[d]);
            ensure!(
                both.is_some(),
                "`data` {} and `indices` {} must be equal in batch dim {d}",
                cx.shape("data"),
                cx.shape("indices")
            );
            dims[d] = both.unwrap_or(data[d]);
        }
        let Some(axis) = axis else {
            ensure!(
                batch < data.len(),
                "`batch_dims` {} leaves no axis of `data` {}",
                self.batch_dims,
                cx.shape("data")
            );
            return Ok(PartialShape::any_of_rank(
                data.len() - 1 + indices.len() - batch,
            ));
        };
        let axis = normalize_axis(axis, data.len())?;
        ensure!(
            batch <= axis,
            "`batch_dims` {} is greater than axis {axis}",
            self.batch_dims
        );
        dims.splice(axis..=axis, indices[batch..].iter().copied());
        Ok(PartialShape::ranked(dims))
    }

    /// `batch_dims` counted from the front.
    fn batch(&self, rank: usize) -> Result<usize, OpError> {
        let n = rank as i64;
        let batch = self.batch_dims;
        ensure!(
            (-n..=n).contains(&batch),
            "`batch_dims` {batch} is out of range for `indices` of rank {rank}"
        );
        Ok(if batch < 0 { batch + n } else { batch } as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, i32s, i64s, infer, run, run_all};
    use vinelift_tensor::{Dim, ElementType, Tensor};

    fn axis(axis: i64) -> Tensor {
        i64s(&[], &[axis])
    }

    /// Examples 1 to 3 of the specification of Gather-8.
    #[test]
    fn along_the_axis_after_the_batch_dims() {
        let data = i32s(&[5], &[1, 2, 3, 4, 5]);
        let out = run(&V8, &[], &[data, i32s(&[3], &[0, 0, 4]), axis(0)]);
        assert_eq!(out, i32s(&[3], &[1, 1, 5]));

        let data = i32s(&[2, 5], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let indices = i32s(&[2, 3], &[0, 0, 4, 4, 0, 0]);
        for batch_dims in ["1", "-1"] {
            let inputs = [data.clone(), indices.clone(), axis(1)];
            let out = run(&V8, &[("batch_dims", batch_dims)], &inputs);
            assert_eq!(out, i32s(&[2, 3], &[1, 1, 5, 10, 6, 6]));
        }

        let data: Vec<i32> = (1..=20).collect();
        let indices = i32s(&[2, 2, 3], &[0, 0, 4, 4, 0, 0, 1, 2, 4, 4, 3, 2]);
        let out = run(
            &V8,
            &[("batch_dims", "2")],
            &[i32s(&[2, 2, 5], &data), indices, axis(2)],
        );
        assert_eq!(
            out,
            i32s(&[2, 2, 3], &[1, 1, 5, 10, 6, 6, 12, 13, 15, 20, 19, 18])
        );
    }

    /// Example 4 of the specification of Gather-8.
    #[test]
    fn dims_between_batch_and_axis() {
        let data: Vec<i32> = (1..=40).collect();
        let indices = i32s(&[2, 3], &[1, 2, 4, 4, 3, 2]);
        let inputs = [i32s(&[2, 1, 5, 4], &data), indices, axis(2)];
        let out = run(&V7, &[("batch_dims", "1")], &inputs);
        let rows = [5, 9, 17, 37, 33, 29];
        let want: Vec<i32> = rows.iter().flat_map(|&r| r..r + 4).collect();
        assert_eq!(out, i32s(&[2, 1, 3, 4], &want));
    }

    /// Examples 6 and 7 of the specification of Gather-8; -1 and -7 allow neither.
    #[test]
    fn negative_and_out_of_range() {
        let data = i32s(&[5], &[1, 2, 3, 4, 5]);
        let inputs = [
            data.clone(),
            i64s(&[5], &[-2, 3, 10, -20, 1 << 32]),
            axis(0),
        ];
        assert_eq!(run(&V8, &[], &inputs), i32s(&[5], &[4, 4, 0, 0, 0]));
        let message = "layer 'op' (Gather, opset7): `indices`[0] is -2, expected 0..=4";
        assert_eq!(error(&V7, &[], &inputs), message);
        let message = "layer 'op' (Gather, opset8): `indices`[2] is 10, expected -5..=4";
        assert_eq!(
            run_all(&V8, &[], &inputs, IndexPolicy::Error),
            Err(message.to_owned())
        );
        let inputs = [data, i64s(&[2], &[3, 5]), axis(0)];
        let message = "layer 'op' (Gather, opset1): `indices`[1] is 5, expected 0..=4";
        assert_eq!(error(&V1, &[], &inputs), message);
    }

    #[test]
    fn scalars_and_empty_tensors() {
        let data = i32s(&[2, 2], &[1, 2, 3, 4]);
        let out = run(&V8, &[], &[data.clone(), i32s(&[], &[1]), axis(-1)]);
        assert_eq!(out, i32s(&[2], &[2, 4]));
        let out = run(
            &V8,
            &[("batch_dims", "1")],
            &[data, i32s(&[2], &[1, 0]), axis(1)],
        );
        assert_eq!(out, i32s(&[2], &[2, 3]));
        let out = run(
            &V8,
            &[],
            &[i32s(&[0, 2], &[]), i32s(&[2], &[0, -1]), axis(0)],
        );
        assert_eq!(out, i32s(&[2, 2], &[0; 4]));
        let out = run(
            &V8,
            &[],
            &[i32s(&[3, 2], &[0; 6]), i32s(&[0, 4], &[]), axis(1)],
        );
        assert_eq!(out, i32s(&[3, 0, 4], &[]));
    }

    #[test]
    fn bits_move_unchanged() {
        let data = Tensor::from_bytes(ElementType::I4, &[3], [0xf8, 0x07]).unwrap();
        let indices = Tensor::from_bytes(ElementType::I4, &[4], [0x0f, 0x1e]).unwrap();
        let want = Tensor::from_bytes(ElementType::I4, &[4], [0x87, 0xff]).unwrap();
        assert_eq!(run(&V8, &[], &[data, indices, axis(0)]), want);
    }

    #[test]
    fn shapes_must_fit() {
        let data = i32s(&[2, 3], &[0; 6]);
        let indices = i32s(&[3, 1], &[0; 3]);
        let message = |batch: &str, at: i64| {
            error(
                &V8,
                &[("batch_dims", batch)],
                &[data.clone(), indices.clone(), axis(at)],
            )
        };
        assert_eq!(
            message("1", 1),
            "`data` [2, 3] and `indices` [3, 1] must be equal in batch dim 0"
        );
        assert_eq!(message("0", 2), "axis 2 is out of range for rank 2");
        assert_eq!(
            message("-3", 1),
            "`batch_dims` -3 is out of range for `indices` of rank 2"
        );
        let inputs = [i32s(&[3, 3], &[0; 9]), indices.clone(), axis(0)];
        let found = error(&V8, &[("batch_dims", "1")], &inputs);
        assert_eq!(found, "`batch_dims` 1 is greater than axis 0");
    }

    #[test]
    fn partial_shapes() {
        let dim = |min, max| Dim::between(min, max);
        let data = PartialShape::ranked(vec![dim(2, Some(4)), dim(1, None), Dim::fixed(7)]);
        let indices = PartialShape::ranked(vec![dim(3, None), Dim::fixed(5)]);
        let of = |axis: Option<Tensor>| {
            let axis = (ElementType::I64, PartialShape::ranked(vec![]), axis);
            let inputs = [
                (ElementType::F16, data.clone(), None),
                (ElementType::U8, indices.clone(), None),
                axis,
            ];
            infer(&V8, &[("batch_dims", "1")], &inputs)
        };
        assert_eq!(of(Some(axis(1))), ("f16[3..4, 5, 7]".to_owned(), vec![]));
        assert_eq!(of(None), ("f16[?, ?, ?]".to_owned(), vec![2]));
    }
}
