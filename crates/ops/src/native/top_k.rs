//! `TopK`: the `k` largest (`mode="max"`) or smallest elements of each slice along `axis`, and where
//! in it they are: `values[.., j, ..] = data[.., indices[.., j, ..], ..]`.
//!
//! Specifications: TopK-1, TopK-3 and TopK-11. `sort="value"` puts the best first, `sort="index"` the
//! lowest index. Where these leave the order open (equal elements, `sort="none"`, `stable="false"`), it
//! is as with `sort="value"` and the lowest index first. NaN comes last, in both modes. `k` may also be
//! 0; more than there are elements is an error. Where it is 1, there is a nest ([`one`]).

mod one;
#[cfg(test)]
mod tests;

use super::tensors::integers;
use crate::attrs::{element_type, index_type};
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse_native;
use crate::{
    Attributes, Build, Evaluate, Family, Infer, Native, Op, OpDef, OpError, Signature, TensorType,
};
use one::TopOne;
use serde::Deserialize;
use std::sync::Arc;
use vinelift_tensor::order::{Direction, Wanted, best_along};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape, Tensor};

pub(crate) static V1: OpDef = version(&["opset1"], Build::Native(without_stable));
pub(crate) static V3: OpDef = version(&["opset3"], Build::Native(without_stable));
pub(crate) static V11: OpDef = version(&["opset11"], Build::Native(parse_native::<TopK>));

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "TopK",
        versions,
        signature: Signature::new(&["data", "k"]),
        family: Family::Native,
        build,
    }
}

/// The attributes before version 11.
fn without_stable(attributes: &Attributes<'_>) -> Result<Box<dyn Native>, OpError> {
    let op: TopK = attributes.parse()?;
    ensure!(op.stable.is_none(), "unknown attribute `stable`");
    Ok(Box::new(op))
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopK {
    axis: i64,
    mode: Mode,
    sort: Sort,
    /// Equal elements keep their order in any case.
    stable: Option<bool>,
    #[serde(default = "crate::attrs::i32_type", deserialize_with = "element_type")]
    index_element_type: ElementType,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Max,
    Min,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Value,
    Index,
    None,
}

impl Native for TopK {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        let index = index_type("index_element_type", self.index_element_type)?;
        let mut shape = PartialShape::DYNAMIC;
        if let Some(dims) = cx.dims("data") {
            let mut dims = dims.to_vec();
            let axis = normalize_axis(self.axis, dims.len())?;
            dims[axis] = chosen(cx, dims[axis])?;
            shape = PartialShape::ranked(dims);
        }
        let outputs = [element, index].map(|ty| TensorType::new(ty, shape.clone()));
        Ok(outputs.to_vec())
    }

    fn as_nest(&self, declared: &Infer<'_>) -> Option<Arc<dyn Op>> {
        let axis = normalize_axis(self.axis, declared.shape("data").rank()?).ok()?;
        TopOne::is_wanted(declared, axis).then(|| Arc::new(TopOne { op: *self, axis }) as _)
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let data = cx.input("data");
        let mut shape = data.shape().to_vec();
        let axis = normalize_axis(self.axis, shape.len())?;
        let extent = shape[axis];
        let k = count(cx.integer("k")?.unwrap_or(0), Some(extent))?;
        shape[axis] = k;
        // Element j of slice (o, i) is at (o * extent + j) * inner + i.
        let inner: usize = shape[axis + 1..].iter().product();
        let outer: usize = shape[..axis].iter().product();
        let wanted = Wanted {
            direction: self.mode.direction(),
            k,
            by_position: self.sort == Sort::Index,
        };
        let dims = [outer, extent, inner];
        let found = best_along(data, dims, wanted, &|| cx.go_on().is_ok())?;
        let indices = found.ok_or(OpError::Cancelled)?;
        Ok(vec![
            data.take_along(dims, &shape, &indices)?,
            integers(self.index_element_type, &shape, &indices)?,
        ])
    }
}

impl Mode {
    fn direction(self) -> Direction {
        match self {
            Mode::Max => Direction::Descending,
            Mode::Min => Direction::Ascending,
        }
    }
}

/// The extent of what is chosen from `extent`.
fn chosen(cx: &Infer<'_>, extent: Dim) -> Result<Dim, OpError> {
    if let (Some(extent), Some([k])) = (extent.extent(), cx.formulas("k").as_deref())
        && let Some(k) = Extent::of(*k)
        && k.at_most(extent)
    {
        return Ok(k.into());
    }
    let Some(k) = cx.integer("k")? else {
        return Ok(extent.up_to());
    };
    let fits = |n: Extent| usize::try_from(k).is_ok_and(|k| Extent::from(k).at_most(n));
    match extent.extent() {
        Some(extent) if fits(extent) => Ok(Dim::fixed(k as usize)),
        _ => Ok(Dim::fixed(count(k, extent.max())?)),
    }
}

/// `k`, which must be at most `extent`.
fn count(k: i64, extent: Option<usize>) -> Result<usize, OpError> {
    let fits = usize::try_from(k).ok();
    let fits = fits.filter(|k| extent.is_none_or(|extent| *k <= extent));
    fits.ok_or_else(|| {
        let most = extent.map_or("the extent along `axis`".to_owned(), |n| n.to_string());
        OpError::Shape(format!("`k` must lie between 0 and {most}, found {k}"))
    })
}
