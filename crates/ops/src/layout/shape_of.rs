//! `ShapeOf`: the extents of `data` as a list.
//!
//! Specifications: ShapeOf-1, which gives `i64`, and -3. Reads nothing of `data`.

use super::index_map::extent;
use crate::attrs::index_type;
use crate::lower::chosen;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{Interval, ValueRange};
use vinelift_tensor::{Dim, ElementType, Formula, PartialShape, numbers};

pub(crate) static V1: OpDef = shape_of(&["opset1"], Build::Op(parse::<Plain>));
pub(crate) static V3: OpDef = shape_of(&["opset3"], Build::Op(parse::<ShapeOf>));

const fn shape_of(versions: &'static [&'static str], build: Build) -> OpDef {
    let signature = Signature::new(&["data"]);
    OpDef {
        name: "ShapeOf",
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
struct ShapeOf {
    #[serde(default = "wide", deserialize_with = "crate::attrs::element_type")]
    output_type: ElementType,
}

const fn wide() -> ElementType {
    ElementType::I64
}

impl Op for Plain {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        ShapeOf {
            output_type: wide(),
        }
        .infer(cx)
    }

    fn bounds(&self, cx: &Infer<'_>) -> Option<Vec<ValueRange>> {
        bounds(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

impl Op for ShapeOf {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let ty = index_type("output_type", self.output_type)?;
        let length = cx.shape("data").rank().map_or(Dim::ANY, Dim::fixed);
        Ok(vec![TensorType::new(
            ty,
            PartialShape::ranked(vec![length]),
        )])
    }

    fn bounds(&self, cx: &Infer<'_>) -> Option<Vec<ValueRange>> {
        bounds(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

/// The dims of `data`, as far as they are known.
fn bounds(cx: &Infer<'_>) -> Option<Vec<ValueRange>> {
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let bound = |d: &Dim| {
        if let Some(extent) = d.extent().filter(|n| n.is_symbolic()) {
            return ValueRange::Formula(*extent.formula());
        }
        ValueRange::Integer(Interval {
            low: number(d.min()),
            high: d.max().map_or(i64::MAX, number),
        })
    };
    Some(cx.dims("data")?.iter().map(bound).collect())
}

fn lower(cx: &mut Lower<'_>) {
    let ty = cx.type_of(cx.output(0));
    let shape = cx.extents("data");
    let Some(shape) = numbers(&shape) else {
        let shape: Vec<Formula> = shape.iter().map(|n| *n.formula()).collect();
        return cx.define(cx.output(0), |_, at| chosen(&at[0], &shape).cast(ty));
    };
    let extents: Vec<i64> = shape.iter().map(|&n| extent(n)).collect();
    let table = cx.table("shape", &extents);
    cx.define(cx.output(0), |cx, at| cx.load_from(table, at).cast(ty));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, run};
    use std::slice::from_ref;

    #[test]
    fn lists_extents() {
        let x = f32s(&[2, 0, 3], &[]);
        assert_eq!(run(&V1, &[], from_ref(&x)), i64s(&[3], &[2, 0, 3]));
        assert_eq!(run(&V3, &[], from_ref(&x)), i64s(&[3], &[2, 0, 3]));
        assert_eq!(
            run(&V3, &[("output_type", "i32")], from_ref(&x)),
            i32s(&[3], &[2, 0, 3])
        );
        assert_eq!(run(&V1, &[], &[f32s(&[], &[1.0])]), i64s(&[0], &[]));
        let message = "attribute `output_type` must be i32 or i64, found `f32`";
        assert_eq!(error(&V3, &[("output_type", "f32")], &[x]), message);
    }
}
