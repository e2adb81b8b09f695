//! `GatherND`: `out[b.., i.., s..] = data[b.., indices[b.., i.., 0], …, indices[b.., i.., k - 1], s..]`
//! where `b` runs over the first `batch_dims` dims of both, `i` over the other dims of `indices` but
//! the last, which has extent `k`, and `s` over the other dims of `data`.
//!
//! Specification: GatherND-5 and -8. In -5 the batch dims of the output are flattened into one.
//! Negative indices count from the end (-5 does not say so; they do there too), and an index out of
//! range is an error. The batch dims of the two inputs must be equal.

use crate::error::ensure;
use crate::layout::index_map::strides;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{Policy, Scalar, build::index};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static V5: OpDef = version(&["opset5"], |attributes| {
    let BatchDims { batch_dims } = attributes.parse()?;
    Ok(Box::new(GatherNd {
        batch_dims,
        flat: true,
    }))
});

pub(crate) static V8: OpDef = version(&["opset8"], |attributes| {
    let BatchDims { batch_dims } = attributes.parse()?;
    Ok(Box::new(GatherNd {
        batch_dims,
        flat: false,
    }))
});

const fn version(
    versions: &'static [&'static str],
    build: fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>,
) -> OpDef {
    OpDef {
        name: "GatherND",
        versions,
        signature: Signature::new(&["data", "indices"]),
        family: Family::Index,
        build: Build::Op(build),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchDims {
    #[serde(default)]
    batch_dims: usize,
}

#[derive(Debug)]
struct GatherNd {
    batch_dims: usize,
    /// Whether the output has one dim for all batch dims.
    flat: bool,
}

impl Op for GatherNd {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_integer("indices")?;
        Ok(vec![TensorType::new(cx.element("data"), self.shape(cx)?)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let data = cx.extents("data");
        let indices = cx.extents("indices");
        let batch = self.batch_dims;
        let Some((length, outer)) = indices.split_last() else {
            return;
        };
        let length = length.pin();
        let flat = self.flat && batch > 1;
        cx.define(cx.output(0), |cx, at| {
            let mut at = at.to_vec();
            if flat {
                let coordinates = unflatten(&at[0], &outer[..batch]);
                at.splice(..1, coordinates);
            }
            let (position, rest) = at.split_at(outer.len());
            let mut from = position[..batch].to_vec();
            for k in 0..length {
                let entry = [position, &[index(k as i64)]].concat();
                from.push(cx.index("indices", &entry, data[batch + k], Policy::WRAP));
            }
            from.extend_from_slice(rest);
            cx.load("data", &from)
        });
    }
}

impl GatherNd {
    fn shape(&self, cx: &Infer<'_>) -> Result<PartialShape, OpError> {
        let (Some(data), Some(indices)) = (cx.dims("data"), cx.dims("indices")) else {
            return Ok(PartialShape::DYNAMIC);
        };
        let batch = self.batch_dims;
        ensure!(
            batch < data.len() && batch < indices.len(),
            "`batch_dims` {batch} must be less than the ranks of `data` {} and `indices` {}",
            cx.shape("data"),
            cx.shape("indices")
        );
        let mut dims = indices[..indices.len() - 1].to_vec();
        for d in 0..batch {
            let both = data[d].intersect(indices[d]);
            ensure!(
                both.is_some(),
                "`data` {} and `indices` {} must be equal in batch dim {d}",
                cx.shape("data"),
                cx.shape("indices")
            );
            dims[d] = both.unwrap_or(data[d]);
        }
        let last = indices[indices.len() - 1];
        ensure!(
            last.min() <= data.len() - batch,
            "the last dim of `indices` {} must be at most {}, for `data` {} with `batch_dims` {batch}",
            cx.shape("indices"),
            data.len() - batch,
            cx.shape("data")
        );
        let Some(length) = last.get() else {
            return Ok(PartialShape::DYNAMIC);
        };
        dims.extend_from_slice(&data[batch + length..]);
        if self.flat && batch > 1 {
            let product = dims[..batch].iter().fold(Dim::fixed(1), |n, d| n.mul(*d));
            dims.splice(..batch, [product]);
        }
        Ok(PartialShape::ranked(dims))
    }
}

/// The coordinates of element `flat` of a row-major tensor.
fn unflatten(flat: &Scalar, shape: &[Extent]) -> Vec<Scalar> {
    // Nothing is evaluated if an extent is 0, but a divisor may not be.
    let divisor = |n: Extent| Scalar::extent(if n == 0 { Extent::ONE } else { n });
    let dims = shape.iter().zip(strides(shape));
    dims.map(|(&n, stride)| (flat / &divisor(stride)).rem(divisor(n)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    fn strings(shape: &[usize], all: &str) -> Tensor {
        Tensor::from_strings(shape, all.split(' ').map(str::to_owned).collect()).unwrap()
    }

    /// Examples 1 to 5 of the specification, the same for both versions.
    #[test]
    fn elements_and_slices() {
        let data = i32s(&[2, 2], &[1, 2, 3, 4]);
        for def in [&V5, &V8] {
            let out = run(def, &[], &[data.clone(), i32s(&[2, 2], &[0, 0, 1, 0])]);
            assert_eq!(out, i32s(&[2], &[1, 3]));
            let out = run(def, &[], &[data.clone(), i32s(&[2, 1], &[1, 0])]);
            assert_eq!(out, i32s(&[2, 2], &[3, 4, 1, 2]));
            let out = run(def, &[], &[data.clone(), i32s(&[2, 1, 1], &[1, 0])]);
            assert_eq!(out, i32s(&[2, 1, 2], &[3, 4, 1, 2]));
            let batch = [("batch_dims", "1")];
            let out = run(def, &batch, &[data.clone(), i32s(&[2, 1], &[1, 0])]);
            assert_eq!(out, i32s(&[2], &[2, 3]));
            let data: Vec<i32> = (1..=24).collect();
            let out = run(
                def,
                &batch,
                &[i32s(&[2, 3, 4], &data), i32s(&[2, 1], &[1, 0])],
            );
            assert_eq!(out, i32s(&[2, 4], &[5, 6, 7, 8, 13, 14, 15, 16]));
        }
    }

    /// Example 6 of the specification: version 5 flattens the batch dims.
    #[test]
    fn several_batch_dims() {
        let data: Vec<i32> = (1..=24).collect();
        let inputs = [
            i32s(&[2, 3, 4], &data),
            i64s(&[2, 3, 1, 1], &[1, 0, 2, 0, 2, 2]),
        ];
        let want = [2, 5, 11, 13, 19, 23];
        assert_eq!(
            run(&V8, &[("batch_dims", "2")], &inputs),
            i32s(&[2, 3, 1], &want)
        );
        assert_eq!(
            run(&V5, &[("batch_dims", "2")], &inputs),
            i32s(&[6, 1], &want)
        );
        let empty = [i32s(&[2, 0, 4], &[]), i64s(&[2, 0, 1], &[])];
        assert_eq!(run(&V5, &[("batch_dims", "2")], &empty), i32s(&[0], &[]));
    }

    /// From TensorFlow's documentation of `gather_nd`.
    #[test]
    fn strings_move_too() {
        let params = strings(&[2, 2, 2], "a0 b0 c0 d0 a1 b1 c1 d1");
        let indices = i32s(&[2, 2, 2], &[0, 1, 1, 0, 0, 0, 1, 1]);
        let want = strings(&[2, 2, 2], "c0 d0 a1 b1 a0 b0 c1 d1");
        assert_eq!(run(&V8, &[], &[params, indices]), want);
    }

    #[test]
    fn an_empty_tuple_copies_the_data() {
        let data = i32s(&[2], &[1, 2]);
        let out = run(&V8, &[], &[data, i32s(&[3, 0], &[])]);
        assert_eq!(out, i32s(&[3, 2], &[1, 2, 1, 2, 1, 2]));
    }

    #[test]
    fn names_the_index_that_is_out_of_range() {
        let data = i32s(&[2, 3], &[0; 6]);
        let message = "layer 'op' (GatherND, opset8): `indices`[1, 1] is -4, expected -3..=2";
        let found = error(&V8, &[], &[data, i32s(&[2, 2], &[-1, 2, 0, -4])]);
        assert_eq!(found, message);
    }

    #[test]
    fn shapes_must_fit() {
        let message = |batch: &str, indices: &[usize]| {
            let indices = Tensor::zeros(vinelift_tensor::ElementType::I32, indices).unwrap();
            error(
                &V8,
                &[("batch_dims", batch)],
                &[i32s(&[2, 3], &[0; 6]), indices],
            )
        };
        assert_eq!(
            message("1", &[2, 2]),
            "the last dim of `indices` [2, 2] must be at most 1, for `data` [2, 3] with `batch_dims` 1"
        );
        assert_eq!(
            message("1", &[3, 1]),
            "`data` [2, 3] and `indices` [3, 1] must be equal in batch dim 0"
        );
        assert_eq!(
            message("2", &[2, 3, 1]),
            "`batch_dims` 2 must be less than the ranks of `data` [2, 3] and `indices` [2, 3, 1]"
        );
        assert_eq!(
            message("-1", &[1]),
            "attribute `batch_dims` must be a natural number, found `-1`"
        );
    }
}
