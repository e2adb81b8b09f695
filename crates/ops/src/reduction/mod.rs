//! Reductions: `out[i] = fold of data[i, k]` over the points `k` of some axes.
//!
//! Specifications: those of their names under `reduction`. All are rows of a table. Common to them:
//! * `axes` is a scalar or a list, negative ones count from the end, one named twice counts once;
//!   no axes at all mean that the result is `data` itself, to the bit;
//! * the fold is done in the type that `ElementType::compute` gives, that of a mean of integers in
//!   64 bits, and is rounded once, at the end. Integers wrap;
//! * `ReduceMean` of integers truncates; so does `ReduceL2`, which is computed in `f64` for them;
//! * `ReduceMax` and `ReduceMin` skip NaN;
//! * of nothing, which the specification leaves open: sums, means and norms are 0, products 1, the
//!   maximum is the lowest finite number, the minimum infinity (of integers: the largest),
//!   "and" is true, "or" false.

mod fold;

use crate::attrs::Attributes;
use crate::elementwise::{Class, widened};
use crate::infer::dims_of_axes;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use fold::Fold;
pub(crate) use fold::{lowest_finite, max_of_nothing};
use serde::Deserialize;
use vinelift_tensor::{Dim, Extent, PartialShape};

/// A reduction of this name, of elements of a class.
macro_rules! row {
    ($name:expr, $versions:expr, $class:expr, $fold:expr) => {
        OpDef {
            name: $name,
            versions: $versions,
            signature: Signature::new(&["data", "axes"]),
            family: Family::Reduction,
            build: Build::Op(|attributes| instantiate(attributes, $class, $fold)),
        }
    };
}

/// The rows, by name.
pub(crate) static ROWS: &[OpDef] = &[
    row!("ReduceL1", &["opset4"], Class::Numeric, Fold::L1),
    row!("ReduceL2", &["opset4"], Class::Numeric, Fold::L2),
    row!("ReduceLogicalAnd", &["opset1"], Class::Boolean, Fold::And),
    row!("ReduceLogicalOr", &["opset1"], Class::Boolean, Fold::Or),
    row!("ReduceMax", &["opset1"], Class::Numeric, Fold::Max),
    row!("ReduceMean", &["opset1"], Class::Numeric, Fold::Mean),
    row!("ReduceMin", &["opset1"], Class::Numeric, Fold::Min),
    row!("ReduceProd", &["opset1"], Class::Numeric, Fold::Prod),
    row!("ReduceSum", &["opset1"], Class::Numeric, Fold::Sum),
];

fn instantiate(
    attributes: &Attributes<'_>,
    class: Class,
    fold: Fold,
) -> Result<Box<dyn Op>, OpError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Attrs {
        #[serde(default)]
        keep_dims: bool,
    }
    let Attrs { keep_dims } = attributes.parse()?;
    Ok(Box::new(Reduction {
        class,
        fold,
        keep_dims,
    }))
}

#[derive(Debug)]
struct Reduction {
    class: Class,
    fold: Fold,
    keep_dims: bool,
}

impl Op for Reduction {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", self.class.describe(), |t| self.class.accepts(t))?;
        let axes = cx.integers("axes")?;
        let shape = match (cx.dims("data"), axes) {
            (Some(dims), Some(axes)) => {
                let reduced = dims_of_axes(&axes, dims.len())?;
                let left = |(d, &r): (&Dim, &bool)| match r {
                    false => Some(*d),
                    true => self.keep_dims.then_some(Dim::fixed(1)),
                };
                PartialShape::ranked(dims.iter().zip(&reduced).filter_map(left).collect())
            }
            (Some(dims), None) if self.keep_dims => {
                let either = |d: &Dim| Dim::between(d.min().min(1), d.max().map(|max| max.max(1)));
                PartialShape::ranked(dims.iter().map(either).collect())
            }
            // Distinct axes, though not which.
            (Some(dims), None) => match cx.length("axes") {
                Some(count) => PartialShape::any_of_rank(dims.len().saturating_sub(count)),
                None => PartialShape::DYNAMIC,
            },
            _ => PartialShape::DYNAMIC,
        };
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        let axes = cx.integers("axes").unwrap_or_default();
        let reduced = dims_of_axes(&axes, shape.len()).unwrap_or_default();
        let extents = shape
            .iter()
            .zip(&reduced)
            .filter(|(_, r)| **r)
            .map(|(&n, _)| n);
        let mut extents: Vec<Extent> = extents.collect();
        if shape.is_empty() {
            // A scalar counts as one dim.
            extents.push(1.into());
        }
        cx.define(cx.output(0), |cx, at| {
            if axes.is_empty() {
                return cx.load("data", at);
            }
            if extents.iter().any(|n| *n == 0) {
                return self.fold.of_nothing(ty).cast(ty);
            }
            let value = self.fold.reduce(cx, &extents, ty, |cx, point| {
                let (mut outer, mut inner) = (at.iter(), point.iter());
                let mut from = Vec::with_capacity(shape.len());
                for &r in &reduced {
                    let kept = if !r || self.keep_dims {
                        outer.next()
                    } else {
                        None
                    };
                    from.extend(if r { inner.next() } else { kept }.cloned());
                }
                widened(cx.load("data", &from))
            });
            value.cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{error, f32s, i32s, i64s, run};
    use crate::{Attributes, Infer, OpDef, TensorType};
    use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

    fn def(name: &str) -> &'static OpDef {
        crate::all().find(|d| d.name == name).unwrap()
    }

    fn reduce(name: &str, data: &Tensor, axes: &[i64]) -> Tensor {
        run(def(name), &[], &[data.clone(), i64s(&[axes.len()], axes)])
    }

    /// Values of NumPy.
    #[test]
    fn every_fold() {
        let x = f32s(&[2, 3], &[1.0, -2.0, 3.0, -4.0, 5.0, -6.0]);
        #[rustfmt::skip]
        let table: &[(&str, &[f32], &[f32])] = &[
            ("ReduceSum", &[2.0, -5.0], &[-3.0, 3.0, -3.0]),
            ("ReduceMean", &[2.0 / 3.0, -5.0 / 3.0], &[-1.5, 1.5, -1.5]),
            ("ReduceProd", &[-6.0, 120.0], &[-4.0, -10.0, -18.0]),
            ("ReduceMax", &[3.0, 5.0], &[1.0, 5.0, 3.0]),
            ("ReduceMin", &[-2.0, -6.0], &[-4.0, -2.0, -6.0]),
            ("ReduceL1", &[6.0, 15.0], &[5.0, 7.0, 9.0]),
        ];
        for (name, rows, columns) in table {
            assert_eq!(reduce(name, &x, &[-1]), f32s(&[2], rows), "{name}");
            assert_eq!(reduce(name, &x, &[0]), f32s(&[3], columns), "{name}");
        }
        let x = f32s(&[2], &[3.0, -4.0]);
        assert_eq!(reduce("ReduceL2", &x, &[0]), f32s(&[], &[5.0]));
        let x = Tensor::from_bools(&[2, 2], &[true, false, true, true]).unwrap();
        let bools = |b: [bool; 2]| Tensor::from_bools(&[2], &b).unwrap();
        assert_eq!(reduce("ReduceLogicalAnd", &x, &[1]), bools([false, true]));
        assert_eq!(reduce("ReduceLogicalOr", &x, &[1]), bools([true, true]));
    }

    #[test]
    fn axes_in_every_form() {
        let x = i32s(&[2, 1, 2], &[1, 2, 3, 4]);
        assert_eq!(reduce("ReduceSum", &x, &[-1, 0, 0]), i32s(&[1], &[10]));
        assert_eq!(reduce("ReduceSum", &x, &[]), x);
        let inputs = [x, i32s(&[], &[0])];
        let out = run(def("ReduceSum"), &[("keep_dims", "true")], &inputs);
        assert_eq!(out, i32s(&[1, 1, 2], &[4, 6]));
        assert_eq!(reduce("ReduceL1", &i32s(&[], &[-7]), &[]), i32s(&[], &[-7]));
        assert_eq!(reduce("ReduceL1", &i32s(&[], &[-7]), &[0]), i32s(&[], &[7]));
        assert_eq!(
            reduce("ReduceMean", &i32s(&[], &[-7]), &[-1]),
            i32s(&[], &[-7])
        );
        let message = "axis 3 is out of range for rank 1";
        assert_eq!(
            error(def("ReduceSum"), &[], &[i32s(&[1], &[0]), i32s(&[], &[3])]),
            message
        );
    }

    #[test]
    fn integers_wrap_and_means_truncate() {
        let x = i32s(&[2, 2], &[i32::MAX, 1, -3, -4]);
        assert_eq!(reduce("ReduceSum", &x, &[1]), i32s(&[2], &[i32::MIN, -7]));
        assert_eq!(reduce("ReduceMean", &x, &[1]), i32s(&[2], &[1 << 30, -3]));
        let x = Tensor::from_slice(&[3], &[200u8, 200, 201]).unwrap();
        assert_eq!(
            reduce("ReduceMean", &x, &[0]),
            Tensor::from_slice(&[], &[200u8]).unwrap()
        );
        let x = i64s(&[2], &[(1 << 53) + 1, 0]);
        assert_eq!(reduce("ReduceMax", &x, &[0]), i64s(&[], &[(1 << 53) + 1]));
        assert_eq!(
            reduce("ReduceL2", &i64s(&[2], &[1 << 40, 0]), &[0]),
            i64s(&[], &[1 << 40])
        );
    }

    #[test]
    fn infinities_stay_and_nan_is_skipped() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = f32s(&[2, 3], &[-inf, -inf, -inf, 1.0, nan, 2.0]);
        assert_eq!(reduce("ReduceMax", &x, &[1]), f32s(&[2], &[-inf, 2.0]));
        let x = f32s(&[2, 3], &[inf, inf, inf, 1.0, nan, 2.0]);
        assert_eq!(reduce("ReduceMin", &x, &[1]), f32s(&[2], &[inf, 1.0]));
    }

    #[test]
    fn of_nothing() {
        let x = f32s(&[1, 0], &[]);
        #[rustfmt::skip]
        let table = [
            ("ReduceSum", 0.0), ("ReduceMean", 0.0), ("ReduceL1", 0.0), ("ReduceL2", 0.0),
            ("ReduceProd", 1.0), ("ReduceMax", f32::MIN), ("ReduceMin", f32::INFINITY),
        ];
        for (name, want) in table {
            assert_eq!(reduce(name, &x, &[1]), f32s(&[1], &[want]), "{name}");
        }
        let x = i32s(&[0], &[]);
        assert_eq!(reduce("ReduceMax", &x, &[0]), i32s(&[], &[i32::MIN]));
        assert_eq!(reduce("ReduceMin", &x, &[0]), i32s(&[], &[i32::MAX]));
        let f16 = |shape: &[usize], bytes: &[u8]| {
            Tensor::from_bytes(ElementType::F16, shape, bytes).unwrap()
        };
        assert_eq!(
            reduce("ReduceMax", &f16(&[0], &[]), &[0]),
            f16(&[], &[0xff, 0xfb])
        );
        assert_eq!(
            reduce("ReduceSum", &f32s(&[0, 2], &[]), &[1]),
            f32s(&[0], &[])
        );
        let x = Tensor::from_bools(&[0], &[]).unwrap();
        let truth = |b| Tensor::from_bools(&[], &[b]).unwrap();
        assert_eq!(reduce("ReduceLogicalAnd", &x, &[0]), truth(true));
        assert_eq!(reduce("ReduceLogicalOr", &x, &[0]), truth(false));
    }

    /// 2048 ones, then 1: `f16` alone would stop at 2048.
    #[test]
    fn half_precision_is_rounded_once() {
        let ones: Vec<u8> = [0x00, 0x3c].repeat(2052);
        let x = Tensor::from_bytes(ElementType::F16, &[2052], &ones).unwrap();
        assert_eq!(
            reduce("ReduceSum", &x, &[0]).to_f64_vec().unwrap(),
            [2052.0]
        );
    }

    #[test]
    fn partial_shapes() {
        let infer = |keep: &str, axes: Option<&Tensor>| {
            let dims = vec![Dim::ANY, Dim::fixed(3)];
            let data = TensorType::new(ElementType::F32, PartialShape::ranked(dims));
            let axes_type = TensorType::new(ElementType::I64, PartialShape::any_of_rank(1));
            let attributes = [("keep_dims".to_owned(), keep.to_owned())];
            let op = def("ReduceSum")
                .instantiate(&Attributes(&attributes))
                .unwrap()
                .unwrap();
            let (types, values) = ([data, axes_type], [None, axes]);
            let cx = Infer::new(def("ReduceSum").signature, &types, &values).unwrap();
            let shape = op.infer(&cx).unwrap()[0].shape.to_string();
            (shape, cx.missing().collect::<Vec<_>>())
        };
        let axes = i64s(&[1], &[0]);
        assert_eq!(infer("false", Some(&axes)), ("[3]".into(), vec![]));
        assert_eq!(infer("true", Some(&axes)), ("[1, 3]".into(), vec![]));
        assert_eq!(infer("true", None), ("[?, 1..3]".into(), vec![1]));
        assert_eq!(infer("false", None), ("[...]".into(), vec![1]));
    }
}
