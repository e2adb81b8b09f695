//! `Squeeze`: `data` without the dims named in `axes` whose extent is 1; without any such dim if
//! `axes` names none.
//!
//! Specifications: Squeeze-1 and -15. A named dim of another extent stays. While an extent is not
//! known, a named dim that may be 1 is taken to be 1, unless `allow_axis_skip`.

use crate::infer::dims_of_axes;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static V1: OpDef = squeeze(&["opset1"], Build::Op(parse::<Plain>));
pub(crate) static V15: OpDef = squeeze(&["opset15"], Build::Op(parse::<Squeeze>));

const fn squeeze(versions: &'static [&'static str], build: Build) -> OpDef {
    let signature = Signature::new(&["data", "axes"]).optional(1);
    OpDef {
        name: "Squeeze",
        versions,
        signature,
        family: Family::Layout,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Squeeze {
    #[serde(default)]
    allow_axis_skip: bool,
}

impl Op for Plain {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        Squeeze {
            allow_axis_skip: false,
        }
        .infer(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

impl Op for Squeeze {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let axes = cx.integers("axes")?;
        let known = axes.is_some() || !cx.has("axes");
        let shape = match cx.dims("data") {
            Some(dims) if known => self.shape(dims, &axes.unwrap_or_default())?,
            // Distinct axes, though not which.
            Some(dims) if !self.allow_axis_skip => match cx.length("axes") {
                Some(count) if count > 0 => {
                    PartialShape::any_of_rank(dims.len().saturating_sub(count))
                }
                _ => PartialShape::DYNAMIC,
            },
            _ => PartialShape::DYNAMIC,
        };
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

impl Squeeze {
    fn shape(&self, dims: &[Dim], axes: &[i64]) -> Result<PartialShape, OpError> {
        let one = Dim::fixed(1);
        let named = named(axes, dims.len())?;
        let mut left = Vec::new();
        for (dim, named) in dims.iter().zip(named) {
            let open = dim.contains(1) && *dim != one;
            match named {
                true if open && (self.allow_axis_skip || axes.is_empty()) => {
                    return Ok(PartialShape::DYNAMIC);
                }
                true if dim.contains(1) => {}
                _ => left.push(*dim),
            }
        }
        Ok(PartialShape::ranked(left))
    }
}

/// For each dim, whether it may go.
fn named(axes: &[i64], rank: usize) -> Result<Vec<bool>, OpError> {
    match axes {
        [] => Ok(vec![true; rank]),
        axes => dims_of_axes(axes, rank),
    }
}

fn lower(cx: &mut Lower<'_>) {
    let shape = cx.extents("data");
    let axes = cx.integers("axes").unwrap_or_default();
    let named = named(&axes, shape.len()).unwrap_or_default();
    cx.define(cx.output(0), |cx, at| {
        let mut at = at.iter();
        let mut place = |(&n, named): (&Extent, bool)| match n == 1 && named {
            true => index(0),
            false => at.next().cloned().unwrap_or_else(|| index(0)),
        };
        let from: Vec<Scalar> = shape.iter().zip(named).map(&mut place).collect();
        cx.load("data", &from)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use std::slice::from_ref;

    /// The examples of the specification are the first two.
    #[test]
    fn removes_what_is_one() {
        let x = i32s(&[1, 3, 1, 2], &[0, 1, 2, 3, 4, 5]);
        let squeeze = |axes: &[i64]| {
            let inputs = [x.clone(), i64s(&[axes.len()], axes)];
            assert_eq!(run(&V1, &[], &inputs), run(&V15, &[], &inputs));
            run(&V1, &[], &inputs)
        };
        let all = [0, 1, 2, 3, 4, 5];
        assert_eq!(squeeze(&[0, 2]), i32s(&[3, 2], &all));
        assert_eq!(
            run(&V1, &[], &[i32s(&[1], &[7]), i64s(&[1], &[0])]),
            i32s(&[], &[7])
        );
        for axis in [0, -1] {
            let scalar = [i32s(&[], &[7]), i64s(&[1], &[axis])];
            assert_eq!(run(&V1, &[], &scalar), i32s(&[], &[7]));
        }
        assert_eq!(squeeze(&[-2]), i32s(&[1, 3, 2], &all));
        assert_eq!(squeeze(&[1]), x);
        assert_eq!(squeeze(&[]), i32s(&[3, 2], &all));
        assert_eq!(run(&V1, &[], from_ref(&x)), i32s(&[3, 2], &all));
    }

    #[test]
    fn partial_shapes() {
        let dims = [Dim::fixed(1), Dim::ANY, Dim::fixed(3)];
        let shape = |allow_axis_skip, axes: &[i64]| {
            Squeeze { allow_axis_skip }
                .shape(&dims, axes)
                .unwrap()
                .to_string()
        };
        assert_eq!(shape(false, &[0, 1]), "[3]");
        assert_eq!(shape(true, &[0, 1]), "[...]");
        assert_eq!(shape(true, &[0]), "[?, 3]");
        assert_eq!(shape(false, &[]), "[...]");
    }

    #[test]
    fn axes_must_exist() {
        let message = "axis 1 is out of range for rank 1";
        assert_eq!(
            error(&V1, &[], &[i32s(&[1], &[0]), i64s(&[], &[1])]),
            message
        );
    }
}
