//! `BatchToSpace` and `SpaceToBatch`: the places of blocks in the spatial dims, laid out along the
//! batch, and back. With `places` = the extents `[B_1, …, B_N]` of a block:
//! `out[n, .., i, ..] = data[(k_1, …, k_N, n), .., p / B, ..]` with `p = i + crops_begin`, `k = p % B`,
//! and `out[(k_1, …, k_N, n), .., i, ..] = data[n, .., i · B + k - pads_begin, ..]`, 0 outside of `data`.
//!
//! Specifications: BatchToSpace-2 and SpaceToBatch-2.

use super::extent::{countable, divided, grown, may_be_at_most, naturals, product};
use super::index_map::{extent, flatten, unflatten, within_extent};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select, zero};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static BATCH_TO_SPACE: OpDef = OpDef {
    name: "BatchToSpace",
    versions: &["opset2"],
    signature: Signature::new(&["data", "block_shape", "crops_begin", "crops_end"]),
    family: Family::Layout,
    build: Build::Op(parse::<BatchToSpace>),
};

pub(crate) static SPACE_TO_BATCH: OpDef = OpDef {
    name: "SpaceToBatch",
    versions: &["opset2"],
    signature: Signature::new(&["data", "block_shape", "pads_begin", "pads_end"]),
    family: Family::Layout,
    build: Build::Op(parse::<SpaceToBatch>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchToSpace {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceToBatch {}

impl Op for BatchToSpace {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(
            cx,
            ["block_shape", "crops_begin", "crops_end"],
            |dims, [block, begin, end]| {
                let mut out = vec![divided(dims[0], product("block_shape", block)?)];
                for d in 1..dims.len() {
                    let (all, cropped) = (dims[d].mul(Dim::fixed(block[d])), sum(begin[d], end[d]));
                    let fits = usize::try_from(cropped)
                        .is_ok_and(|cropped| may_be_at_most(Dim::fixed(cropped), all));
                    out.push(fits.then_some(grown(all, -cropped)));
                }
                Ok(out.into_iter().collect())
            },
        )
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let block = naturals_of(cx, "block_shape");
        let begin = naturals_of(cx, "crops_begin");
        let out = cx.extents_of(cx.output(0));
        cx.define(cx.output(0), |cx, at| {
            let mut place: Vec<Scalar> = Vec::with_capacity(at.len());
            let mut from = vec![index(0)];
            for d in 1..at.len() {
                let (i, b) = (&at[d] + extent(begin[d]), extent(block[d]));
                place.push(i.rem(index(b)));
                from.push(i / b);
            }
            place.push(at[0].clone());
            from[0] = flatten(&place, &batch_shape(&block, out[0]));
            cx.load("data", &from)
        });
    }
}

impl Op for SpaceToBatch {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(
            cx,
            ["block_shape", "pads_begin", "pads_end"],
            |dims, [block, begin, end]| {
                let mut out = vec![Some(
                    dims[0].mul(Dim::fixed(product("block_shape", block)?)),
                )];
                for d in 1..dims.len() {
                    out.push(divided(grown(dims[d], sum(begin[d], end[d])), block[d]));
                }
                Ok(out.into_iter().collect())
            },
        )
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let block = naturals_of(cx, "block_shape");
        let (begin, end) = (naturals_of(cx, "pads_begin"), naturals_of(cx, "pads_end"));
        let ty = cx.element("data");
        cx.define(cx.output(0), |cx, at| {
            let mut place = unflatten(&at[0], &batch_shape(&block, shape[0]));
            let mut from = vec![place.pop().unwrap_or_else(|| index(0))];
            let mut guard: Option<Scalar> = None;
            for d in 1..at.len() {
                let i = &at[d] * extent(block[d]) + &place[d - 1] - extent(begin[d]);
                if begin[d] > 0 || end[d] > 0 {
                    let within = within_extent(&i, shape[d]);
                    guard = Some(guard.map_or(within.clone(), |guard| guard & within));
                }
                from.push(i);
            }
            match guard {
                Some(_) if shape.iter().any(|n| *n == 0) => zero(ty),
                Some(guard) => select(guard, cx.load("data", &from), zero(ty)),
                None => cx.load("data", &from),
            }
        });
    }
}

/// The shape of the longer batch: the places of a block, then the shorter batch.
fn batch_shape(block: &[usize], batch: Extent) -> Vec<Extent> {
    let places = block[1..].iter().map(|n| Extent::from(*n));
    places.chain([batch]).collect()
}

fn sum(a: usize, b: usize) -> i128 {
    a as i128 + b as i128
}

fn naturals_of(cx: &Lower<'_>, name: &str) -> Vec<usize> {
    naturals(name, &cx.integers(name).unwrap_or_default(), 0).unwrap_or_default()
}

/// The type of the output, whose dims come from those of `data` and the three lists, `None` where they
/// do not fit.
fn infer(
    cx: &Infer<'_>,
    names: [&'static str; 3],
    dims: impl FnOnce(&[Dim], [&[usize]; 3]) -> Result<Option<Vec<Dim>>, OpError>,
) -> Result<Vec<TensorType>, OpError> {
    let data = cx.shape("data");
    let mut lists = Vec::new();
    for (k, name) in names.into_iter().enumerate() {
        if let Some(values) = cx.integers(name)? {
            let values = naturals(name, &values, usize::from(k == 0))?;
            ensure!(
                values.first().is_none_or(|v| *v == usize::from(k == 0)),
                "`{name}` {values:?} must leave the batch alone"
            );
            let rank = data.rank().unwrap_or(values.len());
            ensure!(
                values.len() == rank,
                "`{name}` {values:?} must have {rank} elements"
            );
            lists.push(values);
        }
    }
    let shape = match (data.dims(), lists.as_slice()) {
        (Some(known), [block, begin, end]) => {
            ensure!(
                known.len() >= 2,
                "`data` must have rank 2 at least, found {data}"
            );
            let dims = dims(known, [block, begin, end])?;
            ensure!(
                dims.is_some(),
                "`{}` {block:?}, `{}` {begin:?} and `{}` {end:?} do not fit `data` {data}",
                names[0],
                names[1],
                names[2]
            );
            countable(PartialShape::ranked(dims.unwrap_or_default()))?
        }
        (Some(known), _) => PartialShape::any_of_rank(known.len()),
        _ => PartialShape::DYNAMIC,
    };
    Ok(vec![TensorType::new(cx.element("data"), shape)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    fn inputs(data: Tensor, lists: [&[i64]; 3]) -> Vec<Tensor> {
        let lists = lists.map(|list| i64s(&[list.len()], list));
        [data].into_iter().chain(lists).collect()
    }

    fn numbers(shape: &[usize]) -> Tensor {
        let values: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
        i32s(shape, &values)
    }

    /// Values of NumPy's `reshape`, `transpose` and slices, as the specification has it.
    #[test]
    fn batches_become_space() {
        let out = run(
            &BATCH_TO_SPACE,
            &[],
            &inputs(numbers(&[4, 2]), [&[1, 2], &[0, 1], &[0, 0]]),
        );
        assert_eq!(out, i32s(&[2, 3], &[4, 1, 5, 6, 3, 7]));
        let shape = |data: &[usize], lists| {
            run(&BATCH_TO_SPACE, &[], &inputs(numbers(data), lists))
                .shape()
                .to_vec()
        };
        // The examples of the specification.
        assert_eq!(shape(&[10, 2], [&[1, 5], &[0, 2], &[0, 0]]), [2, 8]);
        let lists: [&[i64]; 3] = [&[1, 2, 4, 3, 1], &[0, 0, 1, 0, 0], &[0, 0, 1, 0, 0]];
        assert_eq!(shape(&[48, 3, 3, 1, 3], lists), [2, 6, 10, 3, 3]);
    }

    #[test]
    fn space_becomes_batches() {
        let x = numbers(&[1, 3]);
        let out = run(
            &SPACE_TO_BATCH,
            &[],
            &inputs(x, [&[1, 2], &[0, 1], &[0, 0]]),
        );
        assert_eq!(out, i32s(&[2, 2], &[0, 1, 0, 2]));
        // The example of the specification, and back.
        let x = numbers(&[2, 6, 10, 3, 3]);
        let lists: [&[i64]; 3] = [&[1, 2, 4, 3, 1], &[0, 0, 1, 0, 0], &[0, 0, 1, 0, 0]];
        let out = run(&SPACE_TO_BATCH, &[], &inputs(x.clone(), lists));
        assert_eq!(out.shape(), [48, 3, 3, 1, 3]);
        assert_eq!(run(&BATCH_TO_SPACE, &[], &inputs(out, lists)), x);
        let out = run(
            &SPACE_TO_BATCH,
            &[],
            &inputs(i32s(&[1, 0], &[]), [&[1, 2], &[0, 2], &[0, 0]]),
        );
        assert_eq!(out, i32s(&[2, 1], &[0, 0]));
    }

    #[test]
    fn what_does_not_fit() {
        let message =
            |data: &[usize], lists| error(&BATCH_TO_SPACE, &[], &inputs(numbers(data), lists));
        let want = "`block_shape` [1, 2], `crops_begin` [0, 0] and `crops_end` [0, 0] do not fit `data` [3, 2]";
        assert_eq!(message(&[3, 2], [&[1, 2], &[0, 0], &[0, 0]]), want);
        let want = "`block_shape` [1, 2], `crops_begin` [0, 3] and `crops_end` [0, 2] do not fit `data` [2, 2]";
        assert_eq!(message(&[2, 2], [&[1, 2], &[0, 3], &[0, 2]]), want);
        let want = "`block_shape` [2, 1] must leave the batch alone";
        assert_eq!(message(&[2, 2], [&[2, 1], &[0, 0], &[0, 0]]), want);
        let want = "`block_shape` [1, 0] must be at least 1";
        assert_eq!(message(&[2, 2], [&[1, 0], &[0, 0], &[0, 0]]), want);
        let want = "`crops_end` [0] must have 2 elements";
        assert_eq!(message(&[2, 2], [&[1, 1], &[0, 0], &[0]]), want);
    }
}
