//! `Tile`: `out[.., i, ..] = data[.., i % extent, ..]`, each dim `repeats` times as long.
//!
//! Specification: Tile-1. The shorter of `repeats` and the shape is filled up with ones in front.

use super::extent::{countable, natural_extents, naturals};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Tile",
    versions: &["opset1"],
    signature: Signature::new(&["data", "repeats"]),
    family: Family::Layout,
    build: Build::Op(parse::<Tile>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tile {}

impl Op for Tile {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        if let (Some(dims), Some(repeats)) = (cx.dims("data"), cx.formulas("repeats")) {
            let repeats = natural_extents("repeats", &repeats)?.into_iter();
            let repeats: Vec<Dim> = repeats.map(Dim::from).collect();
            let shape = countable(tiled(dims, &repeats))?;
            return Ok(vec![TensorType::new(cx.element("data"), shape)]);
        }
        let repeats = cx.integers("repeats")?;
        let shape = match (cx.dims("data"), repeats, cx.length("repeats")) {
            (Some(dims), Some(repeats), _) => {
                let repeats = naturals("repeats", &repeats, 0)?;
                let repeats: Vec<Dim> = repeats.into_iter().map(Dim::fixed).collect();
                countable(tiled(dims, &repeats))?
            }
            (Some(dims), None, Some(count)) => match cx.extents("repeats") {
                Some(repeats) => tiled(dims, &repeats),
                None => PartialShape::any_of_rank(dims.len().max(count)),
            },
            _ => PartialShape::DYNAMIC,
        };
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (from, to) = (cx.extents("data"), cx.extents_of(cx.output(0)));
        let skip = to.len() - from.len();
        cx.define(cx.output(0), |cx, at| {
            let place = |(d, &n): (usize, &Extent)| match n.number() {
                Some(1) => index(0),
                _ if n == to[skip + d] => at[skip + d].clone(),
                _ => at[skip + d].rem(Scalar::extent(n)),
            };
            let from: Vec<Scalar> = from.iter().enumerate().map(place).collect();
            cx.load("data", &from)
        });
    }
}

/// Each dim times its number of repeats; the shorter list is filled up with ones in front.
fn tiled(dims: &[Dim], repeats: &[Dim]) -> PartialShape {
    let rank = dims.len().max(repeats.len());
    let from_end = |list: &[Dim], d: usize| {
        let k = (d + list.len()).checked_sub(rank);
        k.map_or(Dim::fixed(1), |k| list[k])
    };
    let dim = |d: usize| from_end(dims, d).mul(from_end(repeats, d));
    PartialShape::ranked((0..rank).map(dim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};

    #[test]
    fn repeats_and_fills_up() {
        let x = i32s(&[2, 1], &[1, 2]);
        let tile = |repeats: &[i64]| run(&DEF, &[], &[x.clone(), i64s(&[repeats.len()], repeats)]);
        assert_eq!(tile(&[2, 2]), i32s(&[4, 2], &[1, 1, 2, 2, 1, 1, 2, 2]));
        assert_eq!(tile(&[2]), i32s(&[2, 2], &[1, 1, 2, 2]));
        assert_eq!(tile(&[2, 1, 1]), i32s(&[2, 2, 1], &[1, 2, 1, 2]));
        assert_eq!(tile(&[0, 3]), i32s(&[0, 3], &[]));
        assert_eq!(tile(&[]), x);
        assert_eq!(
            run(&DEF, &[], &[i32s(&[], &[5]), i64s(&[1], &[2])]),
            i32s(&[2], &[5, 5])
        );
    }

    #[test]
    fn what_does_not_fit() {
        let message = |repeats: &[i64]| {
            error(
                &DEF,
                &[],
                &[i32s(&[1, 1], &[1]), i64s(&[repeats.len()], repeats)],
            )
        };
        assert_eq!(message(&[-1]), "`repeats` [-1] must be at least 0");
        let huge = i64::MAX;
        let want = format!("an output of shape [{huge}, {huge}] is too large");
        assert_eq!(message(&[huge, huge]), want);
    }
}
