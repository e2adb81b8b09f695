//! `TopK`: the `k` largest (`mode="max"`) or smallest elements of each slice along `axis`, and where
//! in it they are: `values[.., j, ..] = data[.., indices[.., j, ..], ..]`.
//!
//! Specifications: TopK-1, TopK-3 and TopK-11. `sort="value"` puts the best first, `sort="index"` the
//! lowest index. Where these leave the order open (equal elements, `sort="none"`, `stable="false"`), it
//! is as with `sort="value"` and the lowest index first. NaN comes last, in both modes. `k` may also be
//! 0; more than there are elements is an error.

use super::tensors::integers;
use crate::attrs::element_type;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse_native;
use crate::{
    Attributes, Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType,
};
use serde::Deserialize;
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

#[derive(Debug, Deserialize)]
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
        let index = self.index_element_type;
        ensure!(
            matches!(index, ElementType::I32 | ElementType::I64),
            "`index_element_type` must be i32 or i64, found {index}"
        );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, infer, run, run_all};

    fn attributes(mode: &'static str, sort: &'static str) -> [(&'static str, &'static str); 3] {
        [("axis", "-1"), ("mode", mode), ("sort", sort)]
    }

    fn both(mode: &'static str, sort: &'static str, data: Tensor, k: i64) -> (Tensor, Tensor) {
        let inputs = [data, i64s(&[], &[k])];
        let outputs = run_all(&V11, &attributes(mode, sort), &inputs, IndexPolicy::Spec);
        let mut outputs = outputs.unwrap().into_iter();
        (outputs.next().unwrap(), outputs.next().unwrap())
    }

    /// The first is the example of the specification; the others NumPy's stable `argsort`.
    #[test]
    fn equal_elements_keep_their_order() {
        let data = i32s(&[6], &[5, 3, 1, 2, 5, 5]);
        let (values, indices) = both("min", "index", data.clone(), 4);
        assert_eq!(values, i32s(&[4], &[5, 3, 1, 2]));
        assert_eq!(indices, i32s(&[4], &[0, 1, 2, 3]));
        let (values, indices) = both("min", "value", data.clone(), 5);
        assert_eq!(values, i32s(&[5], &[1, 2, 3, 5, 5]));
        assert_eq!(indices, i32s(&[5], &[2, 3, 1, 0, 4]));
        for sort in ["value", "none"] {
            let (values, indices) = both("max", sort, data.clone(), 4);
            assert_eq!(values, i32s(&[4], &[5, 5, 5, 3]));
            assert_eq!(indices, i32s(&[4], &[0, 4, 5, 1]));
        }
    }

    #[test]
    fn along_an_inner_axis() {
        let data = i32s(&[2, 3, 2], &[0, 9, 4, 1, 2, 5, 7, 3, 6, 8, 7, 0]);
        let attributes = [
            ("axis", "1"),
            ("mode", "max"),
            ("sort", "value"),
            ("stable", "true"),
            ("index_element_type", "i64"),
        ];
        let inputs = [data, i32s(&[1], &[2])];
        let outputs = run_all(&V11, &attributes, &inputs, IndexPolicy::Spec).unwrap();
        assert_eq!(outputs[0], i32s(&[2, 2, 2], &[4, 9, 2, 5, 7, 8, 7, 3]));
        assert_eq!(outputs[1], i64s(&[2, 2, 2], &[1, 0, 2, 2, 0, 1, 2, 0]));
    }

    #[test]
    fn types_are_exact() {
        let big = [i64::MAX - 1, i64::MIN, i64::MAX];
        let (values, _) = both("max", "value", i64s(&[3], &big), 2);
        assert_eq!(values, i64s(&[2], &[i64::MAX, i64::MAX - 1]));
        let data = Tensor::from_slice(&[3], &[u64::MAX - 1, u64::MAX, 7]).unwrap();
        let (_, indices) = both("min", "value", data, 3);
        assert_eq!(indices, i32s(&[3], &[2, 0, 1]));
        let data = Tensor::from_slice(&[2], &[1.0, 1.0 + f64::EPSILON]).unwrap();
        assert_eq!(both("max", "value", data, 1).1, i32s(&[1], &[1]));
        let data = Tensor::from_bytes(ElementType::I4, &[3], [0xf7, 0x02]).unwrap();
        let (values, indices) = both("min", "value", data, 2);
        assert_eq!(values.to_i64_vec().unwrap(), [-1, 2]);
        assert_eq!(indices, i32s(&[2], &[1, 2]));
    }

    #[test]
    fn nan_is_last_and_zeros_are_equal() {
        let data = f32s(&[5], &[f32::NAN, -0.0, 0.0, f32::NAN, -1.0]);
        assert_eq!(
            both("max", "value", data.clone(), 4).1,
            i32s(&[4], &[1, 2, 4, 0])
        );
        assert_eq!(
            both("min", "value", data, 5).1,
            i32s(&[5], &[4, 1, 2, 0, 3])
        );
    }

    #[test]
    fn nothing_to_choose_from() {
        assert_eq!(
            both("max", "value", f32s(&[0, 3], &[]), 2).0,
            f32s(&[0, 2], &[])
        );
        assert_eq!(
            both("max", "value", f32s(&[2, 0], &[]), 0).1,
            i32s(&[2, 0], &[])
        );
        assert_eq!(
            both("max", "value", f32s(&[2], &[1.0; 2]), 0).1,
            i32s(&[0], &[])
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let data = f32s(&[3], &[0.0; 3]);
        let k = |k: i64| [data.clone(), i64s(&[], &[k])];
        let value = attributes("max", "value");
        assert_eq!(
            error(&V3, &value, &k(4)),
            "`k` must lie between 0 and 3, found 4"
        );
        assert_eq!(
            error(&V1, &value, &k(-1)),
            "`k` must lie between 0 and 3, found -1"
        );
        let far = [("axis", "1"), ("mode", "max"), ("sort", "value")];
        assert_eq!(error(&V1, &far, &k(1)), "axis 1 is out of range for rank 1");
        let stable = [&value[..], &[("stable", "true")]].concat();
        assert_eq!(error(&V3, &stable, &k(1)), "unknown attribute `stable`");
        let scalar = [f32s(&[], &[1.0]), i64s(&[], &[1])];
        assert_eq!(
            error(&V1, &value, &scalar),
            "axis -1 is out of range for rank 0"
        );
        assert_eq!(
            run(&V1, &value, &[data, i32s(&[1], &[1])]),
            f32s(&[1], &[0.0])
        );
    }

    #[test]
    fn shapes_that_are_partly_known() {
        let data = |last| {
            let shape = PartialShape::ranked(vec![Dim::ANY, last]);
            (ElementType::F16, shape, None)
        };
        let value = attributes("max", "value");
        let k = |k| (ElementType::I64, PartialShape::ranked(vec![]), k);
        let two_to_five = Dim::between(2, Some(5));
        let found = infer(&V11, &value, &[data(two_to_five), k(None)]);
        assert_eq!(found.0, "f16[?, 0..5] i32[?, 0..5]");
        let found = infer(&V11, &value, &[data(Dim::ANY), k(Some(i64s(&[], &[7])))]);
        assert_eq!(found.0, "f16[?, 7] i32[?, 7]");
        let any = (ElementType::F16, PartialShape::DYNAMIC, None);
        let found = infer(&V11, &value, &[any, k(None)]);
        assert_eq!(found.0, "f16[...] i32[...]");
    }
}
