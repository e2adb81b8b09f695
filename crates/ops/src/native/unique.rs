//! `Unique`: the distinct elements of the flattened `data`, or its distinct slices along `axis`; where
//! each is found first, which of them each element (slice) is, and how often each occurs.
//!
//! Specification: Unique-10. `sorted="true"` puts them in ascending order (slices by their first
//! element that differs, strings by their bytes), otherwise they come as they are found. All NaNs are
//! one value, the largest; so are -0 and 0, of which the first is given. The specification has no
//! rule for slices of no elements: they are all equal.

use super::tensors::integers;
use crate::attrs::{element_type, index_type};
use crate::infer::normalize_axis;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use std::cmp::Ordering;
use vinelift_tensor::memory::{collected, filled};
use vinelift_tensor::order::{Direction, keys};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "Unique",
    versions: &["opset10"],
    signature: Signature::new(&["data", "axis"]).optional(1),
    family: Family::Native,
    build: Build::Native(parse_native::<Unique>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unique {
    #[serde(default = "crate::attrs::yes")]
    sorted: bool,
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    index_element_type: ElementType,
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    count_element_type: ElementType,
}

impl Native for Unique {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        index_type("index_element_type", self.index_element_type)?;
        index_type("count_element_type", self.count_element_type)?;
        let axis = cx.integer("axis")?;
        let (mut shape, mut all) = (PartialShape::DYNAMIC, Dim::ANY);
        match cx.dims("data") {
            Some(dims) if !cx.has("axis") => {
                all = dims.iter().copied().fold(Dim::fixed(1), Dim::mul);
                shape = PartialShape::ranked(vec![distinct(all)]);
            }
            Some(dims) => {
                let mut dims = dims.to_vec();
                if let Some(axis) = axis {
                    let axis = normalize_axis(axis, dims.len())?;
                    all = dims[axis];
                    dims[axis] = distinct(all);
                    shape = PartialShape::ranked(dims);
                } else {
                    shape = PartialShape::any_of_rank(dims.len());
                }
            }
            None if !cx.has("axis") => shape = PartialShape::any_of_rank(1),
            None => {}
        }
        let vector = |ty, n| TensorType::new(ty, PartialShape::ranked(vec![n]));
        Ok(vec![
            TensorType::new(cx.element("data"), shape),
            vector(self.index_element_type, distinct(all)),
            vector(self.index_element_type, all),
            vector(self.count_element_type, distinct(all)),
        ])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let data = cx.input("data");
        let (flat, axis) = match cx.integer("axis")? {
            Some(axis) => (
                data.shape().to_vec(),
                normalize_axis(axis, data.shape().len())?,
            ),
            None => (vec![data.element_count()], 0),
        };
        let slices = Slices::new(&flat, axis);
        let found = self.classes(&slices, &keys(data, Direction::Ascending)?)?;

        let mut shape = flat;
        shape[axis] = found.first.len();
        let positions = slices.positions(&found.first)?;
        let vector = |ty, values: &[usize]| {
            let values = collected(values.iter().map(|i| *i as i64))?;
            integers(ty, &[values.len()], &values)
        };
        Ok(vec![
            data.take(&shape, &positions)?,
            vector(self.index_element_type, &found.first)?,
            vector(self.index_element_type, &found.class)?,
            vector(self.count_element_type, &found.count)?,
        ])
    }
}

impl Unique {
    /// Puts equal slices into one class, and the classes in order.
    fn classes(&self, slices: &Slices, keys: &[u64]) -> Result<Classes, OpError> {
        // Equal slices become neighbours, the first of them first.
        let mut order = collected(0..slices.count)?;
        if slices.outer * slices.inner == 1 {
            order.sort_unstable_by_key(|i| (keys[*i], *i));
        } else {
            order.sort_unstable_by(|a, b| slices.compare(*a, *b, keys));
        }
        let equal = |a: &usize, b: &usize| slices.keys(*a, keys).eq(slices.keys(*b, keys));
        let mut members: Vec<&[usize]> = collected(order.chunk_by(equal))?;
        if !self.sorted {
            members.sort_unstable_by_key(|m| m[0]);
        }
        let mut class = filled(slices.count, 0)?;
        for (c, member) in members.iter().enumerate() {
            member.iter().for_each(|i| class[*i] = c);
        }
        Ok(Classes {
            first: collected(members.iter().map(|m| m[0]))?,
            class,
            count: collected(members.iter().map(|m| m.len()))?,
        })
    }
}

struct Classes {
    /// The first slice of each class.
    first: Vec<usize>,
    /// The class of each slice.
    class: Vec<usize>,
    /// The number of slices of each class.
    count: Vec<usize>,
}

/// The slices along an axis: element `(o, i)` of slice `s` lies at `(o * count + s) * inner + i`.
struct Slices {
    outer: usize,
    count: usize,
    inner: usize,
}

impl Slices {
    fn new(shape: &[usize], axis: usize) -> Slices {
        let elements = |dims: &[usize]| vinelift_tensor::element_count(dims).unwrap_or(0);
        Slices {
            outer: elements(&shape[..axis]),
            count: shape[axis],
            inner: elements(&shape[axis + 1..]),
        }
    }

    /// The keys of the elements of slice `s`.
    fn keys<'a>(&self, s: usize, keys: &'a [u64]) -> impl Iterator<Item = &'a u64> {
        let (count, inner) = (self.count, self.inner);
        (0..self.outer).flat_map(move |o| {
            let start = (o * count + s) * inner;
            &keys[start..start + inner]
        })
    }

    /// The order of slices `a` and `b`, those with equal elements in the order that they come in. A function of its own, as
    /// sorting compares in many places.
    #[inline(never)]
    fn compare(&self, a: usize, b: usize, keys: &[u64]) -> Ordering {
        let by_keys = self.keys(a, keys).cmp(self.keys(b, keys));
        by_keys.then(a.cmp(&b))
    }

    /// The positions of the elements of `chosen` slices, put together along the axis.
    fn positions(&self, chosen: &[usize]) -> Result<Vec<usize>, OpError> {
        let row = |o: usize, s: usize| (o * self.count + s) * self.inner;
        let rows = (0..self.outer).flat_map(|o| chosen.iter().map(move |s| row(o, *s)));
        Ok(collected(rows.flat_map(|start| start..start + self.inner))?)
    }
}

/// The number of distinct ones among `all`: one at least, if there are any.
fn distinct(all: Dim) -> Dim {
    match all.is_symbolic() {
        true => Dim::between(1, None),
        false => Dim::between(all.min().min(1), all.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, infer, run_all};

    fn unique(attributes: &[(&str, &str)], inputs: &[Tensor]) -> Vec<Tensor> {
        run_all(&DEF, attributes, inputs, IndexPolicy::Spec).unwrap()
    }

    /// Values of NumPy's `unique`, and for the first occurrences those of ONNX's description.
    #[test]
    fn of_all_elements() {
        let data = f32s(&[2, 3], &[2.0, 1.0, 1.0, 3.0, 4.0, 3.0]);
        let out = unique(&[("sorted", "false")], std::slice::from_ref(&data));
        assert_eq!(out[0], f32s(&[4], &[2.0, 1.0, 3.0, 4.0]));
        assert_eq!(out[1], i64s(&[4], &[0, 1, 3, 4]));
        assert_eq!(out[2], i64s(&[6], &[0, 1, 1, 2, 3, 2]));
        assert_eq!(out[3], i64s(&[4], &[1, 2, 2, 1]));
        let attributes = [("index_element_type", "i32"), ("count_element_type", "i32")];
        let out = unique(&attributes, &[data]);
        assert_eq!(out[0], f32s(&[4], &[1.0, 2.0, 3.0, 4.0]));
        assert_eq!(out[1], i32s(&[4], &[1, 0, 3, 4]));
        assert_eq!(out[2], i32s(&[6], &[1, 0, 0, 2, 3, 2]));
        assert_eq!(out[3], i32s(&[4], &[2, 1, 2, 1]));
    }

    /// Values of NumPy's `unique`.
    #[test]
    fn of_slices() {
        let rows = f32s(&[3, 3], &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0, 4.0]);
        let out = unique(&[], &[rows, i64s(&[], &[0])]);
        assert_eq!(out[0], f32s(&[2, 3], &[0.0, 3.0, 4.0, 1.0, 0.0, 0.0]));
        assert_eq!(out[1], i64s(&[2], &[2, 0]));
        assert_eq!(out[2], i64s(&[3], &[1, 1, 0]));
        assert_eq!(out[3], i64s(&[2], &[1, 2]));
        let data = i32s(&[2, 3, 2], &[1, 2, 0, 9, 1, 2, 3, 4, 0, 0, 3, 4]);
        let out = unique(&[("sorted", "false")], &[data, i32s(&[1], &[-2])]);
        assert_eq!(out[0], i32s(&[2, 2, 2], &[1, 2, 0, 9, 3, 4, 0, 0]));
        assert_eq!(out[2], i64s(&[3], &[0, 1, 0]));
    }

    #[test]
    fn any_type_exactly() {
        let data = Tensor::from_slice(&[3], &[u64::MAX, 1, u64::MAX - 1]).unwrap();
        let out = unique(&[], &[data]);
        assert_eq!(out[1], i64s(&[3], &[1, 2, 0]));
        let words = ["b", "a", "b"].map(str::to_owned).to_vec();
        let out = unique(&[], &[Tensor::from_strings(&[3], words).unwrap()]);
        assert_eq!(out[0].strings().unwrap(), ["a", "b"]);
        assert_eq!(out[3], i64s(&[2], &[1, 2]));
        let out = unique(
            &[],
            &[Tensor::from_bools(&[3], &[true, false, true]).unwrap()],
        );
        assert_eq!(out[0], Tensor::from_bools(&[2], &[false, true]).unwrap());
        let nan = f32::NAN;
        let out = unique(&[], &[f32s(&[5], &[nan, 1.0, nan, -0.0, 0.0])]);
        assert_eq!(out[1], i64s(&[3], &[3, 1, 0]));
        assert_eq!(out[3], i64s(&[3], &[2, 1, 2]));
    }

    #[test]
    fn a_scalar_and_nothing() {
        let out = unique(&[], &[i32s(&[], &[7])]);
        assert_eq!(out[0], i32s(&[1], &[7]));
        let out = unique(&[], &[i32s(&[0, 2], &[])]);
        assert_eq!((&out[0], &out[2]), (&i32s(&[0], &[]), &i64s(&[0], &[])));
        let out = unique(&[], &[i32s(&[0, 2], &[]), i64s(&[], &[1])]);
        assert_eq!(out[0], i32s(&[0, 1], &[]));
        assert_eq!(out[2], i64s(&[2], &[0, 0]));
    }

    #[test]
    fn says_what_is_wrong() {
        let data = i32s(&[2], &[1, 2]);
        assert_eq!(
            error(&DEF, &[], &[data.clone(), i64s(&[], &[1])]),
            "axis 1 is out of range for rank 1"
        );
        let attributes = [("count_element_type", "u8")];
        assert_eq!(
            error(&DEF, &attributes, &[data]),
            "attribute `count_element_type` must be i32 or i64, found `u8`"
        );
    }

    #[test]
    fn as_many_as_there_are_at_most() {
        let data = PartialShape::ranked(vec![Dim::fixed(2), Dim::fixed(3)]);
        let data = (ElementType::F16, data, None);
        let axis = |a| (ElementType::I64, PartialShape::ranked(vec![]), a);
        let found = infer(&DEF, &[], std::slice::from_ref(&data)).0;
        assert_eq!(found, "f16[1..6] i64[1..6] i64[6] i64[1..6]");
        let found = infer(&DEF, &[], &[data.clone(), axis(Some(i64s(&[], &[1])))]).0;
        assert_eq!(found, "f16[2, 1..3] i64[1..3] i64[3] i64[1..3]");
        let found = infer(&DEF, &[], &[data, axis(None)]).0;
        assert_eq!(found, "f16[?, ?] i64[?] i64[?] i64[?]");
    }
}
