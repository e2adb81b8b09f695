//! `StridedSlice`: `out[i..] = data[begin_d + stride_d * i_d, ..]`, NumPy's `data[begin:end:stride]`
//! with `...`, `newaxis` and single indices.
//!
//! Specification: StridedSlice-1. Position `k` of `begin`, `end` and `stride` is by the masks, in this
//! order of precedence:
//! * `ellipsis_mask`: as many whole dims as are left over (at the end, if there is no ellipsis);
//! * `new_axis_mask`: a new dim of extent 1;
//! * `shrink_axis_mask`: the element `begin[k]` of a dim, which goes away; out of range is an error;
//! * otherwise a slice of a dim, whose bounds are those of `Slice`, except that a backward slice that
//!   starts before the dim takes its first element. `begin_mask` and `end_mask` take it from where
//!   the dim begins, and to where it ends, in the direction of `stride` (so a backward slice goes up
//!   to and including the first element, as in OpenVINO, where the specification stops before it).
//!
//! Masks may be shorter than `begin`, which means 0, or longer. A missing `stride` means 1.

use super::bounds::Bounds;
use crate::error::ensure;
use crate::lower::formula;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::index;
use vinelift_tensor::{Dim, Extent, Formula, PartialShape, symbols};

pub(crate) static DEF: OpDef = OpDef {
    name: "StridedSlice",
    versions: &["opset1"],
    signature: Signature::new(&["data", "begin", "end", "stride"]).optional(1),
    family: Family::Layout,
    build: Build::Op(parse::<StridedSlice>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StridedSlice {
    begin_mask: Vec<i64>,
    end_mask: Vec<i64>,
    #[serde(default)]
    new_axis_mask: Vec<i64>,
    #[serde(default)]
    shrink_axis_mask: Vec<i64>,
    #[serde(default)]
    ellipsis_mask: Vec<i64>,
}

/// The use of a dim of the data, or a new dim; in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A dim stays.
    Keep,
    /// A dim of extent 1 is new.
    New,
    /// A dim goes, by position `k` of `begin`.
    Shrink(usize),
    /// A dim is cut, by position `k` of the bounds.
    Cut(usize),
}

/// The inputs, where their values are known.
struct Values {
    begin: Option<Vec<Formula>>,
    end: Option<Vec<Formula>>,
    /// Known and empty if there is no such input.
    stride: Option<Vec<i64>>,
}

impl Op for StridedSlice {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let [begin, end] = [cx.elements("begin")?, cx.elements("end")?];
        let stride = if cx.has("stride") {
            cx.integers("stride")?
        } else {
            Some(vec![])
        };
        let values = Values { begin, end, stride };
        Ok(vec![TensorType::new(
            cx.element("data"),
            self.shape(cx, &values)?,
        )])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let extents = cx.extents("data");
        let [begin, end] = ["begin", "end"].map(|name| Some(cx.elements(name).unwrap_or_default()));
        let stride = Some(if cx.has("stride") {
            cx.integers("stride").unwrap_or_default()
        } else {
            vec![]
        });
        let values = Values { begin, end, stride };
        let count = values.begin.as_ref().map_or(0, Vec::len);
        let parts = self.parts(extents.len(), count).unwrap_or_default();
        cx.define(cx.output(0), |cx, at| {
            let mut out = at.iter();
            let mut from = Vec::with_capacity(extents.len());
            for part in &parts {
                let extent = extents.get(from.len()).copied().unwrap_or(0.into());
                match *part {
                    Part::Keep => from.extend(out.next().cloned()),
                    Part::New => drop(out.next()),
                    Part::Shrink(k) => from.push(match values.element(k, extent) {
                        Some(begin) => formula(&begin),
                        None => index(0),
                    }),
                    Part::Cut(k) => {
                        let span = self.bounds(&values, k).unwrap_or(Bounds::FULL).span(extent);
                        from.extend(out.next().map(|i| span.at(i)));
                    }
                }
            }
            cx.load("data", &from)
        });
    }
}

impl StridedSlice {
    fn shape(&self, cx: &Infer<'_>, values: &Values) -> Result<PartialShape, OpError> {
        let lengths = ["begin", "end", "stride"]
            .map(|name| if cx.has(name) { cx.length(name) } else { None });
        let count = lengths.into_iter().flatten().next();
        ensure!(
            lengths.into_iter().flatten().all(|n| Some(n) == count),
            "`begin` {}, `end` {} and `stride` must be equally long",
            cx.shape("begin"),
            cx.shape("end")
        );
        let (Some(data), Some(count)) = (cx.dims("data"), count) else {
            return Ok(PartialShape::DYNAMIC);
        };
        let mut dims = Vec::with_capacity(data.len());
        let mut extents = data.iter().copied();
        for part in self.parts(data.len(), count)? {
            match part {
                Part::Keep => dims.extend(extents.next()),
                Part::New => dims.push(Dim::fixed(1)),
                Part::Shrink(k) => {
                    let extent = extents.next().and_then(Dim::extent);
                    let begin = values.begin.as_ref().map(|b| b[k]);
                    if let (Some(n), Some(begin)) = (extent, begin) {
                        let inside = values.element(k, n).is_some();
                        ensure!(
                            inside,
                            "`begin`[{k}] is {begin}, out of range for a dim of extent {n}"
                        );
                    }
                }
                Part::Cut(k) => {
                    let extent = extents.next().unwrap_or(Dim::ANY);
                    let bounds = self.bounds(values, k);
                    ensure!(
                        bounds.is_none_or(|b| b.step != 0),
                        "`stride`[{k}] must not be 0"
                    );
                    dims.push(bounds.map_or_else(|| extent.up_to(), |b| b.dim(extent)));
                }
            }
        }
        Ok(PartialShape::ranked(dims))
    }

    /// The uses of the dims, for `count` positions of `begin`.
    fn parts(&self, rank: usize, count: usize) -> Result<Vec<Part>, OpError> {
        let mut before = Vec::new();
        let mut after = None;
        for k in 0..count {
            let parts = after.as_mut().unwrap_or(&mut before);
            if bit(&self.ellipsis_mask, k) {
                ensure!(
                    after.is_none(),
                    "`ellipsis_mask` {:?} must have at most one 1",
                    self.ellipsis_mask
                );
                after = Some(Vec::new());
            } else if bit(&self.new_axis_mask, k) {
                parts.push(Part::New);
            } else if bit(&self.shrink_axis_mask, k) {
                parts.push(Part::Shrink(k));
            } else {
                parts.push(Part::Cut(k));
            }
        }
        let after = after.unwrap_or_default();
        let named = before
            .iter()
            .chain(&after)
            .filter(|part| **part != Part::New)
            .count();
        ensure!(named <= rank, "{named} bounds for `data` of rank {rank}");
        before.resize(before.len() + (rank - named), Part::Keep);
        before.extend(after);
        Ok(before)
    }

    /// The bounds at position `k`, if all that they depend on is known.
    fn bounds(&self, values: &Values, k: usize) -> Option<Bounds> {
        let bound = |mask: &[i64], values: &Option<Vec<Formula>>| {
            if bit(mask, k) {
                Some(None)
            } else {
                Some(Some(values.as_ref()?[k]))
            }
        };
        Some(Bounds {
            start: bound(&self.begin_mask, &values.begin)?,
            stop: bound(&self.end_mask, &values.end)?,
            step: values.stride.as_ref()?.get(k).copied().unwrap_or(1),
            clamp_start: true,
        })
    }
}

impl Values {
    /// `begin[k]` counted from the front, if it is known and in range.
    fn element(&self, k: usize, extent: Extent) -> Option<Formula> {
        let begin = *self.begin.as_ref()?.get(k)?;
        let n = extent.formula();
        let begin = match symbols::is_negative(&begin)? {
            true => begin.plus(n)?,
            false => begin,
        };
        let behind = begin.minus(n)?;
        let is_inside = !symbols::is_negative(&begin)? && symbols::is_negative(&behind)?;
        is_inside.then_some(begin)
    }
}

/// Bit `k` of a mask, which is 0 past its end.
fn bit(mask: &[i64], k: usize) -> bool {
    mask.get(k).is_some_and(|&b| b != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    const NONE: [(&str, &str); 2] = [("begin_mask", ""), ("end_mask", "")];

    fn data(shape: &[usize]) -> Tensor {
        let values: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
        i32s(shape, &values)
    }

    fn inputs(data: Tensor, bounds: [&[i64]; 3]) -> Vec<Tensor> {
        [&[data], &bounds.map(|b| i64s(&[b.len()], b))[..]].concat()
    }

    /// The first example of the specification, in fewer dims; its backward slice that ends at 0 has
    /// one element too many.
    #[test]
    fn slices() {
        let all = inputs(data(&[4, 4]), [&[1, 3], &[4, 0], &[2, -2]]);
        assert_eq!(run(&DEF, &NONE, &all), i32s(&[2, 2], &[7, 5, 15, 13]));
        let all = inputs(data(&[4]), [&[3], &[0], &[-1]]);
        assert_eq!(run(&DEF, &NONE, &all), i32s(&[3], &[3, 2, 1]));
        let all = inputs(data(&[2, 3]), [&[0, 0], &[2, -1], &[]]);
        assert_eq!(run(&DEF, &NONE, &all[..3]), i32s(&[2, 2], &[0, 1, 3, 4]));
    }

    #[test]
    fn bounds_are_clamped() {
        let slice = |start, stop, step| {
            run(
                &DEF,
                &NONE,
                &inputs(data(&[3]), [&[start], &[stop], &[step]]),
            )
            .as_slice::<i32>()
            .unwrap()
            .to_vec()
        };
        assert_eq!(slice(-100, 100, 1), [0, 1, 2]);
        assert_eq!(slice(100, -100, -1), [2, 1, 0]);
        assert_eq!(slice(5, 9, 1), [0; 0]);
        assert_eq!(slice(1, 1, 1), [0; 0]);
        assert_eq!(slice(-100, -100, -1), [0]);
        let empty = inputs(i32s(&[0], &[]), [&[-1], &[-9], &[-1]]);
        assert_eq!(run(&DEF, &NONE, &empty), i32s(&[0], &[]));
    }

    /// The specification's example of `begin_mask` and `end_mask`, whose last dim is NumPy's `::-1`.
    #[test]
    fn masked_bounds() {
        let attributes = [
            ("begin_mask", "0,1,1"),
            ("end_mask", "1,1,1"),
            ("shrink_axis_mask", "0,0"),
        ];
        let all = inputs(data(&[2, 1, 3]), [&[1, 1, 123], &[0, 0, 2], &[1, 1, -1]]);
        assert_eq!(run(&DEF, &attributes, &all), i32s(&[1, 1, 3], &[5, 4, 3]));
    }

    /// The specification's examples of `new_axis_mask`, `shrink_axis_mask` and `ellipsis_mask`.
    #[test]
    fn dims_come_and_go() {
        let shape =
            |attributes: &[(&'static str, &'static str)], shape: &[usize], bounds: [&[i64]; 3]| {
                let out = run(
                    &DEF,
                    &[&NONE, attributes].concat(),
                    &inputs(data(shape), bounds),
                );
                out.shape().to_vec()
            };
        let bounds: [&[i64]; 3] = [&[1234, 0, -1, 0], &[1234, 2, 9876, 4], &[132, 1, 241, 1]];
        assert_eq!(
            shape(&[("new_axis_mask", "1,0,1,0")], &[2, 4], bounds),
            [1, 2, 1, 4]
        );
        let bounds: [&[i64]; 3] = [&[0; 5], &[1, 0, 3, 6, 8], &[1; 5]];
        assert_eq!(
            shape(
                &[("shrink_axis_mask", "0,1,0,0,0")],
                &[1, 2, 3, 6, 8],
                bounds
            ),
            [1, 3, 6, 8]
        );
        let bounds: [&[i64]; 3] = [&[0, 0, 0], &[4, 0, 5], &[1, -1, 1]];
        assert_eq!(
            shape(&[("ellipsis_mask", "0,1,0")], &[5, 2, 3, 9], bounds),
            [4, 2, 3, 5]
        );
        let masks = [("ellipsis_mask", "0,1"), ("new_axis_mask", "0,0,1")];
        let bounds: [&[i64]; 3] = [&[2, 1, 10, 0], &[123, 1, 10, 5], &[1, -1, 1, 1]];
        assert_eq!(shape(&masks, &[3, 2, 2, 9], bounds), [1, 2, 2, 1, 5]);
    }

    #[test]
    fn a_shrunk_dim_takes_its_begin() {
        let attributes = [
            ("begin_mask", "1,0"),
            ("end_mask", "1,1"),
            ("shrink_axis_mask", "1"),
        ];
        let all = inputs(data(&[3, 2]), [&[-1, 1], &[7, 0], &[0, 1]]);
        assert_eq!(run(&DEF, &attributes, &all), i32s(&[1], &[5]));
        for begin in [3, -4, i64::MIN] {
            let all = inputs(data(&[3, 2]), [&[begin], &[0], &[1]]);
            let message = format!("`begin`[0] is {begin}, out of range for a dim of extent 3");
            assert_eq!(error(&DEF, &attributes, &all), message);
        }
    }

    #[test]
    fn masks_and_bounds_must_fit() {
        let message = |attributes: &[(&'static str, &'static str)], bounds| {
            error(
                &DEF,
                &[&NONE, attributes].concat(),
                &inputs(data(&[3]), bounds),
            )
        };
        assert_eq!(
            message(&[], [&[0], &[1], &[0]]),
            "`stride`[0] must not be 0"
        );
        assert_eq!(
            message(&[], [&[0, 0], &[1, 1], &[1, 1]]),
            "2 bounds for `data` of rank 1"
        );
        let found = message(&[("ellipsis_mask", "1,1")], [&[0, 0], &[1, 1], &[1, 1]]);
        assert_eq!(found, "`ellipsis_mask` [1, 1] must have at most one 1");
        let found = message(&[], [&[0], &[1, 1], &[1]]);
        assert_eq!(
            found,
            "`begin` [1], `end` [2] and `stride` must be equally long"
        );
    }

    #[test]
    fn partial_shapes() {
        let dims = vec![Dim::between(3, Some(8)), Dim::fixed(4), Dim::ANY];
        let data = (ElementType::F32, PartialShape::ranked(dims), None);
        let list = |value: Option<[i64; 2]>| {
            let shape = PartialShape::from(&[2usize][..]);
            (ElementType::I64, shape, value.map(|v| i64s(&[2], &v)))
        };
        let of = |begin, end| {
            let masks = [
                ("begin_mask", "0,1"),
                ("end_mask", "1,1"),
                ("new_axis_mask", "0,0"),
            ];
            infer(&DEF, &masks, &[data.clone(), list(begin), list(end)])
        };
        assert_eq!(
            of(Some([2, 0]), None),
            ("f32[1..6, 4, ?]".to_owned(), vec![2])
        );
        assert_eq!(
            of(None, Some([0, 0])),
            ("f32[0..8, 4, ?]".to_owned(), vec![1])
        );
    }
}
