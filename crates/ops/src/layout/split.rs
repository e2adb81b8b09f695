//! `Split` and `VariadicSplit`: consecutive parts of `data` along `axis`:
//! `out_k[.., i, ..] = data[.., start_k + i, ..]`.
//!
//! Specifications: Split-1, whose `num_splits` parts are of equal length, and VariadicSplit-1, whose
//! `split_lengths` may hold one -1 for what is left.

use super::extent::{divided, grown};
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_tensor::{Dim, Extent, Formula, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Split",
    versions: &["opset1"],
    signature: Signature::new(&["data", "axis"]),
    family: Family::Layout,
    build: Build::Op(parse::<Split>),
};

pub(crate) static VARIADIC: OpDef = OpDef {
    name: "VariadicSplit",
    versions: &["opset1"],
    signature: Signature::new(&["data", "axis", "split_lengths"]),
    family: Family::Layout,
    build: Build::Op(parse::<VariadicSplit>),
};

/// More outputs than any layer has.
const MOST: usize = 1 << 16;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    num_splits: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariadicSplit {}

impl Op for Split {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let parts = self.num_splits;
        ensure!(
            (1..=MOST).contains(&parts),
            "`num_splits` must be in 1..={MOST}, found {parts}"
        );
        outputs(cx, parts, |dim| {
            let each = divided(dim, parts);
            let misfit = || {
                OpError::Shape(format!(
                    "{parts} equal parts do not make up an extent of {dim}"
                ))
            };
            Ok(vec![each.ok_or_else(misfit)?; parts])
        })
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

impl Op for VariadicSplit {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let lengths = lengths(cx)?;
        let Some(parts) = lengths
            .as_ref()
            .map(Vec::len)
            .or(cx.length("split_lengths"))
            .or(cx.output_count())
        else {
            return Err(OpError::Unsupported(
                "a number of parts that is not known".to_owned(),
            ));
        };
        ensure!(
            (1..=MOST).contains(&parts),
            "`split_lengths` must hold 1 to {MOST} numbers, found {parts}"
        );
        outputs(cx, parts, |dim| match &lengths {
            Some(lengths) => part_dims(dim, lengths),
            None => Ok(vec![Dim::between(0, dim.max()); parts]),
        })
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

/// The types of the outputs, given the extents of the parts of a dim.
fn outputs(
    cx: &Infer<'_>,
    parts: usize,
    split: impl FnOnce(Dim) -> Result<Vec<Dim>, OpError>,
) -> Result<Vec<TensorType>, OpError> {
    let element = cx.element("data");
    let axis = cx.integer("axis")?;
    let Some(dims) = cx.dims("data") else {
        return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC); parts]);
    };
    let Some(axis) = axis else {
        return Ok(vec![
            TensorType::new(
                element,
                PartialShape::any_of_rank(dims.len())
            );
            parts
        ]);
    };
    let axis = normalize_axis(axis, dims.len())?;
    let with = |part: Dim| {
        let mut dims = dims.to_vec();
        dims[axis] = part;
        TensorType::new(element, PartialShape::ranked(dims))
    };
    Ok(split(dims[axis])?.into_iter().map(with).collect())
}

/// The lengths of the parts, if they are known, with `None` for the one of them that takes what is left.
fn lengths(cx: &Infer<'_>) -> Result<Option<Vec<Option<Extent>>>, OpError> {
    cx.expect_list("split_lengths", MOST)?;
    let formulas = cx.formulas("split_lengths");
    if let Some(lengths) = formulas.and_then(|formulas| natural_but_one(&formulas)) {
        return Ok(Some(lengths));
    }
    // Also for formulas of which one is negative: the error names numbers.
    let Some(numbers) = cx.integers_up_to(MOST, "split_lengths")? else {
        return Ok(None);
    };
    let formulas: Vec<Formula> = numbers.iter().copied().map(Formula::number).collect();
    let lengths = natural_but_one(&formulas).ok_or_else(|| {
        OpError::Shape(format!(
            "`split_lengths` {numbers:?} must be natural but for one -1"
        ))
    })?;
    Ok(Some(lengths))
}

/// These lengths as extents, with `None` for -1; `None` if another one is negative, or -1 comes twice.
fn natural_but_one(lengths: &[Formula]) -> Option<Vec<Option<Extent>>> {
    let length = |length: &Formula| match length.as_number() {
        Some(-1) => Some(None),
        _ => Extent::of(*length).map(Some),
    };
    let lengths: Vec<Option<Extent>> = lengths.iter().map(length).collect::<Option<_>>()?;
    let open = lengths.iter().filter(|length| length.is_none()).count();
    (open <= 1).then_some(lengths)
}

/// The parts of a dim that have these lengths; `None` is what is left.
fn part_dims(dim: Dim, lengths: &[Option<Extent>]) -> Result<Vec<Dim>, OpError> {
    let taken = lengths.iter().flatten().copied();
    let taken = taken.fold(Extent::from(0), Extent::sum);
    let is_open = lengths.contains(&None);
    let (has_room, is_whole, rest) = match (dim.extent(), taken.number()) {
        (Some(extent), _) => (
            taken.at_most(extent),
            is_open || extent.at_most(taken),
            extent.difference(taken).into(),
        ),
        (None, Some(taken)) => (
            dim.max().is_none_or(|max| taken <= max),
            is_open || dim.min() <= taken,
            grown(dim, -(taken as i128)),
        ),
        (None, None) => (true, true, Dim::between(0, dim.max())),
    };
    if !(has_room && is_whole) {
        let number = |length: &Option<Extent>| length.map_or("-1".to_owned(), |n| n.to_string());
        let lengths: Vec<String> = lengths.iter().map(number).collect();
        return Err(OpError::Shape(format!(
            "`split_lengths` [{}] do not make up an extent of {dim}",
            lengths.join(", ")
        )));
    }
    let part = |length: &Option<Extent>| length.map_or(rest, Dim::from);
    Ok(lengths.iter().map(part).collect())
}

fn lower(cx: &mut Lower<'_>) {
    let rank = cx.extents("data").len();
    let axis = normalize_axis(cx.integer("axis").unwrap_or_default(), rank).unwrap_or_default();
    let mut start = Extent::from(0);
    for out in cx.outputs().to_vec() {
        let length = cx.extents_of(out)[axis];
        cx.define(out, |cx, at| {
            let mut from = at.to_vec();
            if start != 0 {
                from[axis] = &from[axis] + &Scalar::extent(start);
            }
            cx.load("data", &from)
        });
        start = start.sum(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, i32s, i64s, run_all};
    use vinelift_tensor::ElementType;

    #[test]
    fn equal_parts() {
        let x = i32s(&[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]);
        let inputs = [x, i64s(&[], &[-1])];
        let out = run_all(&DEF, &[("num_splits", "2")], &inputs, IndexPolicy::Spec).unwrap();
        assert_eq!(
            out,
            [i32s(&[2, 2], &[0, 1, 4, 5]), i32s(&[2, 2], &[2, 3, 6, 7])]
        );
        let message = "3 equal parts do not make up an extent of 4";
        assert_eq!(error(&DEF, &[("num_splits", "3")], &inputs), message);
        let message = "`num_splits` must be in 1..=65536, found 0";
        assert_eq!(error(&DEF, &[("num_splits", "0")], &inputs), message);
    }

    #[test]
    fn parts_of_given_length() {
        let x = i32s(&[6], &[0, 1, 2, 3, 4, 5]);
        let split = |lengths: &[i64]| {
            let inputs = [x.clone(), i64s(&[1], &[0]), i64s(&[lengths.len()], lengths)];
            run_all(&VARIADIC, &[], &inputs, IndexPolicy::Spec)
        };
        let parts = [
            i32s(&[1], &[0]),
            i32s(&[2], &[1, 2]),
            i32s(&[3], &[3, 4, 5]),
        ];
        assert_eq!(split(&[1, 2, 3]).unwrap(), parts);
        assert_eq!(split(&[1, -1, 3]).unwrap(), parts);
        assert_eq!(split(&[6, -1]).unwrap(), [x.clone(), i32s(&[0], &[])]);
        let message = "`split_lengths` [1, 2] do not make up an extent of 6";
        assert_eq!(split(&[1, 2]).unwrap_err(), message);
        let message = "`split_lengths` [-1, -1] must be natural but for one -1";
        assert_eq!(split(&[-1, -1]).unwrap_err(), message);
        let max = i64::MAX;
        let message = format!("`split_lengths` [{max}, {max}] do not make up an extent of 6");
        assert_eq!(split(&[max, max]).unwrap_err(), message);
        let message =
            format!("`split_lengths` [{max}, {max}, {max}] do not make up an extent of 6");
        assert_eq!(split(&[max, max, max]).unwrap_err(), message);
        let message = format!("`split_lengths` [1, -2, {max}] must be natural but for one -1");
        assert_eq!(split(&[1, -2, max]).unwrap_err(), message);
    }

    /// Lengths of which even the number comes with a run: the layer's outputs tell it.
    #[test]
    fn lengths_of_any_number() {
        let ranked = |dim| PartialShape::ranked(vec![dim]);
        let types = [
            TensorType::new(ElementType::F32, ranked(Dim::fixed(6))),
            TensorType::new(ElementType::I64, ranked(Dim::fixed(1))),
            TensorType::new(ElementType::I64, ranked(Dim::ANY)),
        ];
        let axis = i64s(&[1], &[0]);
        let values = [None, Some(&axis), None];
        let cx = || Infer::new(VARIADIC.signature, &types, &values).unwrap();
        let unknown = VariadicSplit {}.infer(&cx()).unwrap_err();
        let message = "unsupported: a number of parts that is not known";
        assert_eq!(unknown.to_string(), message);
        let found = VariadicSplit {}.infer(&cx().with_outputs(2)).unwrap();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["f32[0..6]", "f32[0..6]"]);
    }

    #[test]
    fn intervals() {
        let dim = Dim::between(4, Some(9));
        let parts = |lengths: &[Option<usize>]| {
            let lengths: Vec<Option<Extent>> =
                lengths.iter().map(|n| n.map(Extent::from)).collect();
            let parts = part_dims(dim, &lengths).map_err(|error| error.to_string());
            parts.map(|parts| {
                parts
                    .iter()
                    .map(Dim::to_string)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        assert_eq!(parts(&[Some(3), None]).unwrap(), "3 1..6");
        assert_eq!(parts(&[Some(3), Some(4)]).unwrap(), "3 4");
        let message = |lengths| {
            Err(format!(
                "`split_lengths` [{lengths}] do not make up an extent of 4..9"
            ))
        };
        assert_eq!(parts(&[Some(3)]), message("3"));
        assert_eq!(parts(&[Some(9), Some(1), None]), message("9, 1, -1"));
        assert_eq!(divided(dim, 3), Some(Dim::between(2, Some(3))));
    }
}
