//! `Slice`: `out[i..] = data[start_d + step_d * i_d, ..]` for the dims `d` in `axes`, with bounds as in
//! Python's `data[start:stop:step]`.
//!
//! Specification: Slice-8. Negative bounds count from the end, and what then lies outside is cut off.
//! `axes` are the first dims if missing.

use super::bounds::{Bounds, Span};
use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{Interval, Scalar};
use vinelift_tensor::{Dim, Formula, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Slice",
    versions: &["opset8"],
    signature: Signature::new(&["data", "start", "stop", "step", "axes"]).optional(1),
    family: Family::Layout,
    build: Build::Op(parse::<Slice>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Slice {}

impl Op for Slice {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        Ok(vec![TensorType::new(cx.element("data"), infer_shape(cx)?)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let spans = lower_spans(cx);
        cx.define(cx.output(0), |cx, at| {
            let from: Vec<Scalar> = at.iter().zip(&spans).map(|(i, span)| span.at(i)).collect();
            cx.load("data", &from)
        });
    }
}

/// The shape of the slice that inputs `start`, `stop`, `step` and `axes` cut out of `data`.
pub(super) fn infer_shape(cx: &Infer<'_>) -> Result<PartialShape, OpError> {
    let start = cx.elements("start")?;
    let stop = cx.elements("stop")?;
    let step = cx.integers("step")?;
    let axes = cx.integers("axes")?;
    let Some(data) = cx.dims("data") else {
        return Ok(PartialShape::DYNAMIC);
    };
    let rank = data.len();
    ensure!(rank > 0, "`data` must have rank at least 1, found []");
    let known_axes = axes.is_some() || !cx.has("axes");
    let dims = if let (Some(start), Some(stop), Some(step), true) =
        (start, stop, step.clone(), known_axes)
    {
        let bounds = bounds(rank, &start, &stop, &step, axes.as_deref())?;
        bounds.iter().zip(data).map(|(b, &n)| b.dim(n)).collect()
    } else {
        let ends = cx.intervals("start").zip(cx.intervals("stop"));
        if let (Some((start, stop)), Some(step), true) = (ends, step, known_axes)
            && let Some(dims) = likely(data, &start, &stop, &step, axes.as_deref())?
        {
            return Ok(PartialShape::ranked(dims));
        }
        let cut = match &axes {
            Some(axes) => normalize_axes(axes, rank)?,
            None => (0..rank).collect(),
        };
        let part = |(d, n): (usize, &Dim)| {
            if cut.contains(&d) {
                Dim::between(0, n.max())
            } else {
                *n
            }
        };
        data.iter().enumerate().map(part).collect()
    };
    Ok(PartialShape::ranked(dims))
}

/// The dims of a slice whose bounds lie in intervals; `None` if their number does not fit.
fn likely(
    data: &[Dim],
    start: &[Interval],
    stop: &[Interval],
    step: &[i64],
    axes: Option<&[i64]>,
) -> Result<Option<Vec<Dim>>, OpError> {
    if start.len() != step.len() || stop.len() != step.len() {
        return Ok(None);
    }
    let end = |high: bool, list: &[Interval]| -> Vec<Formula> {
        list.iter()
            .map(|i| Formula::number(if high { i.high } else { i.low }))
            .collect()
    };
    let mut hull: Option<Vec<Dim>> = None;
    // With both ends counted from the same side, the extent grows or shrinks with each of them.
    for (from, to) in [(false, false), (false, true), (true, false), (true, true)] {
        let (start, stop) = (end(from, start), end(to, stop));
        let bounds = bounds(data.len(), &start, &stop, step, axes)?;
        let dims = bounds.iter().zip(data).map(|(b, &n)| b.dim(n));
        hull = Some(match hull {
            None => dims.collect(),
            Some(hull) => hull.into_iter().zip(dims).map(|(a, b)| a.hull(b)).collect(),
        });
    }
    let mut dims = hull.unwrap_or_default();
    let axes = match axes {
        Some(axes) => normalize_axes(axes, data.len())?,
        None => (0..step.len()).collect(),
    };
    for (k, axis) in axes.into_iter().enumerate() {
        let mixed = |i: &Interval| (i.low < 0) != (i.high < 0);
        if mixed(&start[k]) || mixed(&stop[k]) {
            dims[axis] = Dim::between(0, data[axis].max());
        }
    }
    Ok(Some(dims))
}

/// The same slice, dim by dim.
pub(super) fn lower_spans(cx: &Lower<'_>) -> Vec<Span> {
    let extents = cx.extents("data");
    let list = |name| cx.elements(name).unwrap_or_default();
    let axes = if cx.has("axes") {
        cx.integers("axes")
    } else {
        None
    };
    let bounds = bounds(
        extents.len(),
        &list("start"),
        &list("stop"),
        &cx.integers("step").unwrap_or_default(),
        axes.as_deref(),
    );
    let bounds = bounds.unwrap_or_default();
    bounds
        .iter()
        .zip(&extents)
        .map(|(b, &n)| b.span(n))
        .collect()
}

/// Bounds for every dim.
fn bounds(
    rank: usize,
    start: &[Formula],
    stop: &[Formula],
    step: &[i64],
    axes: Option<&[i64]>,
) -> Result<Vec<Bounds>, OpError> {
    let count = start.len();
    ensure!(
        stop.len() == count && step.len() == count && axes.is_none_or(|axes| axes.len() == count),
        "`start`, `stop`, `step` and `axes` must be equally long, found {start:?}, {stop:?}, {step:?}{}",
        axes.map(|axes| format!(", {axes:?}")).unwrap_or_default()
    );
    ensure!(count <= rank, "{count} bounds for `data` of rank {rank}");
    let axes = match axes {
        Some(axes) => normalize_axes(axes, rank)?,
        None => (0..count).collect(),
    };
    let mut all = vec![Bounds::FULL; rank];
    for (k, &axis) in axes.iter().enumerate() {
        ensure!(step[k] != 0, "`step`[{k}] must not be 0");
        all[axis] = Bounds {
            start: Some(start[k]),
            stop: Some(stop[k]),
            step: step[k],
            clamp_start: false,
        };
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn list(values: &[i64]) -> Tensor {
        i64s(&[values.len()], values)
    }

    /// Examples 1 to 9 of the specification.
    #[test]
    fn one_dim() {
        let data = i32s(&[10], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let slice = |start, stop, step| -> Vec<i32> {
            let bounds = [start, stop, step, 0].map(|x| list(&[x]));
            let inputs = [std::slice::from_ref(&data), &bounds[..]].concat();
            let out = run(&DEF, &[], &inputs);
            assert_eq!(run(&DEF, &[], &inputs[..4]), out);
            out.as_slice::<i32>().unwrap().to_vec()
        };
        assert_eq!(slice(1, 8, 1), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(slice(1, 8, 2), [1, 3, 5, 7]);
        assert_eq!(slice(-100, 100, 1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(slice(9, -11, -1), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(slice(9, 0, -1), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(slice(9, -10, -1), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(slice(9, -11, -2), [9, 7, 5, 3, 1]);
        assert_eq!(slice(100, -100, -1), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(slice(i64::MAX, i64::MIN, i64::MIN), [9]);
        assert_eq!(slice(i64::MIN, i64::MAX, 9), [0, 9]);
        assert_eq!(slice(-100, -200, -1), [0; 0]);
    }

    /// Example 10 of the specification.
    #[test]
    fn two_dims() {
        let data = i32s(&[2, 5], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let bounds = [[0, 1], [2, 4], [1, 2], [0, 1]].map(|x| list(&x));
        let out = run(
            &DEF,
            &[],
            &[std::slice::from_ref(&data), &bounds[..]].concat(),
        );
        assert_eq!(out, i32s(&[2, 2], &[1, 3, 6, 8]));
        let bounds = [3, 9, 1, -1].map(|x| list(&[x]));
        let out = run(&DEF, &[], &[&[data], &bounds[..]].concat());
        assert_eq!(out, i32s(&[2, 2], &[3, 4, 8, 9]));
    }

    #[test]
    fn bits_move_unchanged() {
        let u4 = |shape: &[usize], bytes: &[u8]| Tensor::from_bytes(ElementType::U4, shape, bytes);
        let bounds = [4, -6, -2].map(|x| list(&[x]));
        let out = run(
            &DEF,
            &[],
            &[&[u4(&[5], &[0x21, 0x43, 5]).unwrap()], &bounds[..]].concat(),
        );
        assert_eq!(out, u4(&[3], &[0x35, 1]).unwrap());
    }

    #[test]
    fn bounds_must_fit() {
        let message = |bounds: [&[i64]; 4]| {
            error(
                &DEF,
                &[],
                &[&[i32s(&[2, 3], &[0; 6])], &bounds.map(list)[..]].concat(),
            )
        };
        assert_eq!(message([&[0], &[1], &[0], &[1]]), "`step`[0] must not be 0");
        assert_eq!(
            message([&[0], &[1], &[1], &[2]]),
            "axis 2 is out of range for rank 2"
        );
        assert_eq!(
            message([&[0, 0], &[1, 1], &[1, 1], &[1, -1]]),
            "axis -1 occurs twice in [1, -1]"
        );
        assert_eq!(
            message([&[0], &[1, 2], &[1], &[0]]),
            "`start`, `stop`, `step` and `axes` must be equally long, found [0], [1, 2], [1], [0]"
        );
        assert_eq!(
            message([&[0; 3], &[1; 3], &[1; 3], &[0, 1, 1]]),
            "3 bounds for `data` of rank 2"
        );
    }

    #[test]
    fn partial_shapes() {
        let dims = vec![Dim::between(3, Some(8)), Dim::ANY];
        let data = (ElementType::F32, PartialShape::ranked(dims), None);
        let bound = |value: Option<i64>| {
            (
                ElementType::I64,
                PartialShape::any_of_rank(1),
                value.map(|v| list(&[v])),
            )
        };
        let of = |start, axis| {
            let inputs = [
                data.clone(),
                bound(start),
                bound(Some(-1)),
                bound(Some(1)),
                bound(axis),
            ];
            infer(&DEF, &[], &inputs)
        };
        assert_eq!(of(Some(1), Some(0)), ("f32[1..6, ?]".to_owned(), vec![]));
        assert_eq!(of(None, Some(0)), ("f32[0..8, ?]".to_owned(), vec![1]));
        assert_eq!(of(Some(1), None), ("f32[0..8, ?]".to_owned(), vec![4]));
    }
}
