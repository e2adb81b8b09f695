//! `Reshape`: the elements of `data`, in row-major order, in another shape.
//!
//! Specification: Reshape-1. In `shape`, -1 stands, once, for what is left; with `special_zero`, 0
//! stands for the extent of `data` at the same place, which -1 then leaves out of account.

use super::extent::{countable, divided, whole_quotient};
use super::index_map::{flatten, reshaped, unflatten};
use crate::error::ensure;
use crate::infer::extent;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Interval;
use vinelift_tensor::{Dim, Extent, Formula, PartialShape, element_count, numbers};

pub(crate) static DEF: OpDef = OpDef {
    name: "Reshape",
    versions: &["opset1"],
    signature: Signature::new(&["data", "shape"]),
    family: Family::Layout,
    build: Build::Op(parse::<Reshape>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reshape {
    special_zero: bool,
}

impl Op for Reshape {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let data = cx.shape("data");
        let shape = match cx.elements("shape")? {
            Some(pattern) => {
                let shape = countable(PartialShape::ranked(self.dims(data, &pattern)?))?;
                if let (Some(from), Some(to)) = (count(data), count(&shape)) {
                    ensure!(
                        from.same(to),
                        "`data` {data} cannot take `shape` {pattern:?}"
                    );
                }
                shape
            }
            None => match (cx.intervals("shape"), cx.length("shape")) {
                (Some(pattern), _) => PartialShape::ranked(self.likely(data, &pattern)),
                (None, rank) => rank.map_or(PartialShape::DYNAMIC, PartialShape::any_of_rank),
            },
        };
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (from, to) = (cx.extents("data"), cx.extents_of(cx.output(0)));
        let is_symbolic = from.iter().chain(&to).any(|n| n.is_symbolic());
        cx.define(cx.output(0), |cx, at| {
            let place = match is_symbolic {
                true => reshaped(at, &to, &from),
                false => unflatten(&flatten(at, &to), &from),
            };
            cx.load("data", &place)
        });
    }
}

/// The number of elements, if it is known.
fn count(shape: &PartialShape) -> Option<Extent> {
    let extents = shape.to_extents()?;
    match numbers(&extents) {
        Some(numbers) => element_count(&numbers).map(Extent::from),
        None => Some(extents.into_iter().fold(1.into(), Extent::product)),
    }
}

impl Reshape {
    fn dims(&self, data: &PartialShape, pattern: &[Formula]) -> Result<Vec<Dim>, OpError> {
        let mut dims = Vec::with_capacity(pattern.len());
        let mut rest = None;
        let mut copied = Vec::new();
        for (k, extent) in pattern.iter().enumerate() {
            dims.push(match extent.as_number() {
                Some(0) if self.special_zero => {
                    copied.push(k);
                    match data.dims().map(|dims| dims.get(k)) {
                        Some(Some(dim)) => *dim,
                        None => Dim::ANY,
                        Some(None) => {
                            let message =
                                format!("`shape` {pattern:?} copies dim {k} of `data` {data}");
                            return Err(OpError::Shape(message));
                        }
                    }
                }
                Some(-1) => {
                    ensure!(rest.is_none(), "`shape` {pattern:?} must not hold -1 twice");
                    rest = Some(k);
                    Dim::ANY
                }
                _ => {
                    let extent = Extent::of(*extent);
                    ensure!(
                        extent.is_some(),
                        "`shape` {pattern:?} must not hold numbers below -1"
                    );
                    extent.map_or(Dim::ANY, Dim::from)
                }
            });
        }
        if let Some(k) = rest {
            let mut taken = dims.clone();
            taken.remove(k);
            let copied_before = |d: &usize| *d < k;
            let (before, after): (Vec<usize>, Vec<usize>) =
                copied.iter().copied().partition(copied_before);
            let copied_of_taken: Vec<usize> = before
                .into_iter()
                .chain(after.iter().map(|d| d - 1))
                .collect();
            let others = taken.iter().enumerate();
            let others = others.filter(|(d, _)| !copied_of_taken.contains(d));
            let others: Vec<Dim> = others.map(|(_, dim)| *dim).collect();
            let rest = rest_of(data, &others, &copied);
            let misfit = || format!("`data` {data} cannot take `shape` {pattern:?}");
            dims[k] = rest.ok_or_else(|| OpError::Shape(misfit()))?;
        }
        Ok(dims)
    }
}

impl Reshape {
    /// The dims for a pattern whose elements lie in intervals.
    fn likely(&self, data: &PartialShape, pattern: &[Interval]) -> Vec<Dim> {
        let copied = |k: usize| match data.dims().map(|dims| dims.get(k)) {
            Some(Some(dim)) => *dim,
            _ => Dim::ANY,
        };
        let zero = |i: &Interval| i.low == 0 && i.high == 0;
        let is_rest = |i: &Interval| i.low <= -1 && i.high >= -1;
        let mut dims: Vec<Dim> = Vec::with_capacity(pattern.len());
        for (k, interval) in pattern.iter().enumerate() {
            let may_copy = self.special_zero && interval.low <= 0 && interval.high >= 0;
            dims.push(match (is_rest(interval), may_copy) {
                (true, _) => Dim::ANY,
                (false, true) if interval.high == 0 => copied(k),
                (false, true) => extent(*interval).hull(copied(k)),
                (false, false) => extent(*interval),
            });
        }
        if let [k] = positions(&dims, |k, _| pattern[k].low == -1 && pattern[k].high == -1)[..] {
            let same =
                |(d, _): &(usize, &Dim)| self.special_zero && pattern.get(*d).is_some_and(zero);
            let from = data.dims().unwrap_or_default().iter().enumerate();
            let total = from
                .filter(|p| !same(p))
                .fold(Dim::fixed(1), |n, (_, d)| n.mul(*d));
            let others = dims.iter().enumerate().filter(|p| p.0 != k && !same(p));
            let taken = others.fold(Dim::fixed(1), |n, (_, d)| n.mul(*d));
            if data.dims().is_some() && taken.min() > 0 {
                dims[k] = Dim::between(
                    taken.max().map_or(0, |most| total.min().div_ceil(most)),
                    total.max().map(|most| most / taken.min()),
                );
            }
        }
        // The extent of one dim follows from the others, if those are exact.
        let open = positions(&dims, |_, d| d.get().is_none());
        let count = |shape: PartialShape| element_count(&shape.to_static()?);
        let exact = dims.iter().copied().filter(|d| d.get().is_some());
        if let [k] = open[..]
            && let Some(total) = count(data.clone())
            && let Some(taken) = count(PartialShape::ranked(exact.collect()))
            && taken > 0
        {
            dims[k] = divided(Dim::fixed(total), taken).unwrap_or(dims[k]);
        }
        dims
    }
}

/// Where dims are as `wanted`.
fn positions(dims: &[Dim], wanted: impl Fn(usize, Dim) -> bool) -> Vec<usize> {
    (0..dims.len()).filter(|k| wanted(*k, dims[*k])).collect()
}

/// The extent that -1 stands for: `taken` are the others, but for those `copied` from the same places of `data`. `None`
/// if there is none.
fn rest_of(data: &PartialShape, taken: &[Dim], copied: &[usize]) -> Option<Dim> {
    let Some(dims) = data.dims() else {
        return Some(Dim::ANY);
    };
    let left = dims.iter().enumerate().filter(|(k, _)| !copied.contains(k));
    let product = |dims: &mut dyn Iterator<Item = &Dim>| {
        dims.fold(Dim::fixed(1), |product, dim| product.mul(*dim))
    };
    let (total, taken) = (
        product(&mut left.map(|(_, dim)| dim)),
        product(&mut taken.iter()),
    );
    if let (Some(total), Some(taken)) = (total.extent(), taken.extent())
        && total.is_symbolic()
    {
        if let Some(rest) = total.over(taken) {
            return Some(rest.into());
        }
        if taken.is_symbolic() {
            return whole_quotient(total, taken).map(Dim::from);
        }
    }
    match taken.get()? {
        usize::MAX => None,
        0 => total.contains(0).then_some(Dim::fixed(0)),
        taken => divided(total, taken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn numbers(shape: &[usize]) -> Tensor {
        let values: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
        i32s(shape, &values)
    }

    fn shape_of(special: &str, data: &[usize], pattern: &[i64]) -> Vec<usize> {
        let data = numbers(data);
        let out = run(
            &DEF,
            &[("special_zero", special)],
            &[data.clone(), i64s(&[pattern.len()], pattern)],
        );
        assert_eq!(out.bytes(), data.bytes());
        out.shape().to_vec()
    }

    /// The examples of the specification, the large one made smaller.
    #[test]
    fn shapes_of_the_specification() {
        assert_eq!(shape_of("false", &[2, 5, 5, 0], &[0, 4]), [0, 4]);
        assert_eq!(shape_of("true", &[2, 5, 5, 8], &[0, -1, 4]), [2, 50, 4]);
        assert_eq!(shape_of("true", &[2, 2, 3], &[0, 0, 1, -1]), [2, 2, 1, 3]);
        assert_eq!(shape_of("true", &[3, 1, 1], &[-1, 0]), [3, 1]);
        assert_eq!(shape_of("true", &[3, 1, 1], &[0, -1]), [3, 1]);
    }

    #[test]
    fn of_scalars_and_of_nothing() {
        assert_eq!(shape_of("false", &[], &[1, 1]), [1, 1]);
        assert_eq!(shape_of("false", &[1, 1], &[]), [0usize; 0]);
        assert_eq!(shape_of("true", &[0, 4], &[0, -1]), [0, 4]);
        assert_eq!(shape_of("false", &[0, 4], &[-1, 0]), [0, 0]);
    }

    #[test]
    fn packed_elements_keep_their_bits() {
        let data = Tensor::from_bytes(ElementType::U4, &[2, 3], [0x21, 0x43, 0x65]).unwrap();
        let out = run(
            &DEF,
            &[("special_zero", "true")],
            &[data.clone(), i64s(&[2], &[3, 2])],
        );
        assert_eq!((out.shape(), out.bytes()), (&[3usize, 2][..], data.bytes()));
    }

    #[test]
    fn what_does_not_fit() {
        let message = |data: &[usize], pattern: &[i64]| {
            error(
                &DEF,
                &[("special_zero", "true")],
                &[numbers(data), i64s(&[pattern.len()], pattern)],
            )
        };
        assert_eq!(
            message(&[2, 3], &[4, 2]),
            "`data` [2, 3] cannot take `shape` [4, 2]"
        );
        assert_eq!(
            message(&[2, 3], &[4, -1]),
            "`data` [2, 3] cannot take `shape` [4, -1]"
        );
        assert_eq!(
            message(&[2], &[-1, -1]),
            "`shape` [-1, -1] must not hold -1 twice"
        );
        assert_eq!(
            message(&[2], &[-2]),
            "`shape` [-2] must not hold numbers below -1"
        );
        assert_eq!(
            message(&[2], &[2, 0]),
            "`shape` [2, 0] copies dim 1 of `data` [2]"
        );
        let huge = "an output of shape [9223372036854775807, 9223372036854775807] is too large";
        assert_eq!(message(&[2], &[i64::MAX, i64::MAX]), huge);
    }

    #[test]
    fn partial_shapes() {
        let op = Reshape { special_zero: true };
        let data = PartialShape::ranked(vec![Dim::ANY, Dim::between(2, Some(8)), Dim::fixed(6)]);
        let dims = |pattern: &[i64]| {
            let pattern: Vec<Formula> = pattern.iter().map(|n| Formula::number(*n)).collect();
            PartialShape::ranked(op.dims(&data, &pattern).unwrap()).to_string()
        };
        assert_eq!(dims(&[0, -1]), "[?, 12..48]");
        assert_eq!(dims(&[0, -1, 4]), "[?, 3..12, 4]");
        assert_eq!(dims(&[-1, 3]), "[?, 3]");
    }
}
