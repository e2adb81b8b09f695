//! `DepthToSpace` and `SpaceToDepth`: blocks of `block_size` in each spatial dim, laid out along the
//! dim of channels, and back.
//!
//! Specifications: DepthToSpace-1 and SpaceToDepth-1. The place in the block is the outer part of the
//! channel (`blocks_first`) or the inner one (`depth_first`). With a shape of `[N, C, D1, …, DK]`, a
//! block has `block_size` to the power of `K` places.

use super::extent::{countable, divided, product};
use super::index_map::{extent, flatten, unflatten};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEPTH_TO_SPACE: OpDef = OpDef {
    name: "DepthToSpace",
    versions: &["opset1"],
    signature: Signature::new(&["data"]),
    family: Family::Layout,
    build: Build::Op(parse::<DepthToSpace>),
};

pub(crate) static SPACE_TO_DEPTH: OpDef = OpDef {
    name: "SpaceToDepth",
    versions: &["opset1"],
    signature: Signature::new(&["data"]),
    family: Family::Layout,
    build: Build::Op(parse::<SpaceToDepth>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DepthToSpace {
    #[serde(default = "crate::attrs::one")]
    block_size: usize,
    mode: Mode,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceToDepth {
    #[serde(default = "crate::attrs::one")]
    block_size: usize,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    BlocksFirst,
    DepthFirst,
}

impl Op for DepthToSpace {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx, self.block_size, |dims, places| {
            let depth = divided(dims[1], places)?;
            let grown = |d: &Dim| d.mul(Dim::fixed(self.block_size));
            Some(
                [dims[0], depth]
                    .into_iter()
                    .chain(dims[2..].iter().map(grown))
                    .collect(),
            )
        })
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (out, b) = (cx.extents_of(cx.output(0)), extent(self.block_size));
        cx.define(cx.output(0), |cx, at| {
            let block = at[2..].iter().map(|i| i.rem(index(b)));
            let (coordinates, shape) =
                self.mode
                    .channel(at[1].clone(), block, out[1], self.block_size);
            let mut from = vec![at[0].clone(), flatten(&coordinates, &shape)];
            from.extend(at[2..].iter().map(|i| i / b));
            cx.load("data", &from)
        });
    }
}

impl Op for SpaceToDepth {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx, self.block_size, |dims, places| {
            let depth = dims[1].mul(Dim::fixed(places));
            let space = dims[2..].iter().map(|d| divided(*d, self.block_size));
            [Some(dims[0]), Some(depth)]
                .into_iter()
                .chain(space)
                .collect()
        })
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, b) = (cx.extents("data"), extent(self.block_size));
        let rank = shape.len();
        cx.define(cx.output(0), |cx, at| {
            let zeros = vec![index(0); rank - 2];
            let (_, split) =
                self.mode
                    .channel(index(0), zeros.into_iter(), shape[1], self.block_size);
            let parts = unflatten(&at[1], &split);
            let (depth, block) = match self.mode {
                Mode::BlocksFirst => (&parts[rank - 2], &parts[..rank - 2]),
                Mode::DepthFirst => (&parts[0], &parts[1..]),
            };
            let mut from = vec![at[0].clone(), depth.clone()];
            from.extend(at[2..].iter().zip(block).map(|(i, k)| i * b + k));
            cx.load("data", &from)
        });
    }
}

impl Mode {
    /// The coordinates that make up a channel of the deeper tensor, and their extents.
    fn channel(
        self,
        depth: Scalar,
        block: impl ExactSizeIterator<Item = Scalar>,
        extent: Extent,
        block_size: usize,
    ) -> (Vec<Scalar>, Vec<Extent>) {
        let mut shape = vec![Extent::from(block_size); block.len()];
        let mut coordinates: Vec<Scalar> = block.collect();
        let place = if self == Mode::DepthFirst {
            0
        } else {
            coordinates.len()
        };
        coordinates.insert(place, depth);
        shape.insert(place, extent);
        (coordinates, shape)
    }
}

/// The type of the output, whose dims `dims` gives for those of `data` and the places in a block.
fn infer(
    cx: &Infer<'_>,
    block_size: usize,
    dims: impl FnOnce(&[Dim], usize) -> Option<Vec<Dim>>,
) -> Result<Vec<TensorType>, OpError> {
    ensure!(
        block_size >= 1,
        "`block_size` must be at least 1, found {block_size}"
    );
    let data = cx.shape("data");
    let shape = match data.dims() {
        Some(known) => {
            let rank = known.len();
            ensure!(rank >= 3, "`data` must have rank 3 at least, found {data}");
            let places = product("block_size", &vec![block_size; rank - 2])?;
            let dims = dims(known, places);
            ensure!(
                dims.is_some(),
                "blocks of {block_size} do not divide `data` {data}"
            );
            countable(PartialShape::ranked(dims.unwrap_or_default()))?
        }
        None => PartialShape::DYNAMIC,
    };
    Ok(vec![TensorType::new(cx.element("data"), shape)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, run};
    use std::slice::from_ref;
    use vinelift_tensor::Tensor;

    fn numbers(shape: &[usize]) -> Tensor {
        let values: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
        i32s(shape, &values)
    }

    /// Values of NumPy's `reshape` and `transpose`, as the specification has it.
    #[test]
    fn both_modes() {
        let x = numbers(&[1, 8, 1, 2]);
        let blocks = [("block_size", "2"), ("mode", "blocks_first")];
        let out = run(&DEPTH_TO_SPACE, &blocks, from_ref(&x));
        let want = [0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15];
        assert_eq!(out, i32s(&[1, 2, 2, 4], &want));
        assert_eq!(run(&SPACE_TO_DEPTH, &blocks, &[out]), x);
        let depth = [("block_size", "2"), ("mode", "depth_first")];
        let out = run(&DEPTH_TO_SPACE, &depth, from_ref(&x));
        let want = [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15];
        assert_eq!(out, i32s(&[1, 2, 2, 4], &want));
        assert_eq!(run(&SPACE_TO_DEPTH, &depth, &[out]), x);
    }

    #[test]
    fn in_one_and_three_dims() {
        for (mode, shape) in [
            ("blocks_first", &[2, 3, 4][..]),
            ("depth_first", &[1, 2, 2, 4, 2]),
        ] {
            let attributes = [("block_size", "2"), ("mode", mode)];
            let x = numbers(shape);
            let deep = run(&SPACE_TO_DEPTH, &attributes, from_ref(&x));
            assert_eq!(deep.shape()[1], shape[1] << (shape.len() - 2));
            assert_eq!(run(&DEPTH_TO_SPACE, &attributes, &[deep]), x);
        }
        let x = numbers(&[1, 2, 3]);
        assert_eq!(
            run(&DEPTH_TO_SPACE, &[("mode", "depth_first")], from_ref(&x)),
            x
        );
    }

    #[test]
    fn blocks_must_divide() {
        let attributes = [("block_size", "2"), ("mode", "depth_first")];
        let message = "blocks of 2 do not divide `data` [1, 3, 2]";
        assert_eq!(
            error(&DEPTH_TO_SPACE, &attributes, &[numbers(&[1, 3, 2])]),
            message
        );
        let message = "blocks of 2 do not divide `data` [1, 2, 3]";
        assert_eq!(
            error(&SPACE_TO_DEPTH, &attributes, &[numbers(&[1, 2, 3])]),
            message
        );
        let message = "`data` must have rank 3 at least, found [1, 2]";
        assert_eq!(
            error(&SPACE_TO_DEPTH, &attributes, &[numbers(&[1, 2])]),
            message
        );
    }
}
