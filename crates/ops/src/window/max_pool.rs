//! `MaxPool`: `out[n, c, o..] = max_k data[n, c, o · stride - begin + k · dilation]`, and in -8 and -14
//! the position of that element, counted from dim `axis` on.
//!
//! Specifications: MaxPool-1, -8 and -14. Padding never wins; a window of padding alone, which
//! rounding up can give, is the lowest finite number, at the position of the first element of its channel.
//! Of equal elements the first counts. NaN is skipped, as `ReduceMax` does; a window of nothing else is -inf.

use super::dim_windows::{DimWindows, count, guarded, places};
use super::first;
use super::row_folds::RowFolds;
use super::slide::{Rounding, Slide, attributes};
use crate::attrs::{element_type, i64_type, index_type};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::layout::extent::{countable, naturals};
use crate::reduction::max_of_nothing;
use crate::{
    AttrError, Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType,
};
use vinelift_nest::build::{index, lowest, select};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::{Dim, ElementType, PartialShape};

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Op(|attributes| {
        attributes!(
            kernel: Vec<usize>,
            #[serde(default)]
            rounding_type: Rounding,
        );
        let a: Attrs = attributes.parse()?;
        before_14(a.rounding_type)?;
        let slide = a.slide(&[], a.rounding_type).or_undilated();
        Ok(Box::new(MaxPool {
            slide,
            kernel: a.kernel,
            positions: None,
        }))
    }),
);

pub(crate) static V8: OpDef = version(
    &["opset8"],
    Build::Op(|attributes| {
        let op = with_positions(attributes)?;
        before_14(op.slide.rounding)?;
        Ok(Box::new(op))
    }),
);

pub(crate) static V14: OpDef = version(
    &["opset14"],
    Build::Op(|attributes| Ok(Box::new(with_positions(attributes)?))),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "MaxPool",
        versions,
        signature: Signature::new(&["data"]),
        family: Family::Window,
        build,
    }
}

fn with_positions(attributes: &Attributes<'_>) -> Result<MaxPool, OpError> {
    attributes!(
        #[serde(default)]
        dilations: Vec<usize>,
        kernel: Vec<usize>,
        #[serde(default)]
        rounding_type: Rounding,
        #[serde(default = "i64_type", deserialize_with = "element_type")]
        index_element_type: ElementType,
        #[serde(default)]
        axis: i64,
    );
    let a: Attrs = attributes.parse()?;
    let ty = index_type("index_element_type", a.index_element_type)?;
    let slide = a.slide(&a.dilations, a.rounding_type).or_undilated();
    Ok(MaxPool {
        slide,
        kernel: a.kernel,
        positions: Some((ty, a.axis)),
    })
}

/// Versions before 14 do not know `ceil_torch`.
pub(super) fn before_14(rounding: Rounding) -> Result<(), AttrError> {
    match rounding {
        Rounding::CeilTorch => Err(AttrError::new(
            "rounding_type",
            "one of floor, ceil",
            "ceil_torch",
        )),
        _ => Ok(()),
    }
}

#[derive(Debug)]
struct MaxPool {
    slide: Slide,
    kernel: Vec<usize>,
    /// The type of the positions, and the dim that they count from.
    positions: Option<(ElementType, i64)>,
}

impl Op for MaxPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let shape = pooled(cx, &self.slide, &self.kernel)?;
        let mut outputs = vec![TensorType::new(cx.element("data"), shape.clone())];
        if let Some((ty, axis)) = self.positions {
            if let Some(rank) = shape.rank() {
                normalize_axis(axis, rank)?;
            }
            outputs.push(TensorType::new(ty, shape));
        }
        Ok(outputs)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        let dims = self.slide.along_dims(&shape[2..], &self.kernel);
        let may_miss = dims.iter().any(DimWindows::may_miss);
        let place = |at: &[Scalar], k: &[Scalar]| {
            let (places, guard) = places(&dims, &at[2..], k);
            ([&at[..2], &places].concat(), guard)
        };
        let least = lowest(ty.compute());
        // The first of equal elements is that of the first row that has one, as in a single fold.
        let rows = RowFolds::of(cx, &dims, Binary::Max, &least);
        cx.define(cx.output(0), |cx, at| {
            let largest = match &rows {
                Some(rows) => rows.fold(cx, at),
                None => cx.reduce(Binary::Max, &self.kernel, least.clone(), |cx, k| {
                    let (from, guard) = place(at, k);
                    guarded(guard, widened(cx.load("data", &from)), least)
                }),
            };
            if !may_miss {
                return largest.cast(ty);
            }
            let some = count(&dims, &at[2..], false).gt(index(0));
            select(some, largest, max_of_nothing(ty)).cast(ty)
        });
        if let Some((_, axis)) = self.positions {
            let axis = normalize_axis(axis, shape.len()).unwrap_or_default();
            first::positions(cx, &self.kernel, axis, place);
        }
    }
}

/// The shape of what a pooling operator gives for `data` with this kernel.
pub(super) fn pooled(
    cx: &Infer<'_>,
    slide: &Slide,
    kernel: &[usize],
) -> Result<PartialShape, OpError> {
    cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
    let signed: Vec<i64> = kernel.iter().map(|&n| n as i64).collect();
    naturals("kernel", &signed, 1)?;
    slide.check(kernel.len())?;
    let rank = kernel.len() + 2;
    cx.expect_rank("data", rank)?;
    let Some(dims) = cx.dims("data") else {
        return Ok(PartialShape::any_of_rank(rank));
    };
    let mut out = dims[..2].to_vec();
    for (d, (&n, &k)) in dims[2..].iter().zip(kernel).enumerate() {
        out.push(slide.windows(d, n, Dim::fixed(k))?);
    }
    let points = kernel.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
    ensure!(points.is_some(), "`kernel` {kernel:?} is too large");
    countable(PartialShape::ranked(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i64s, infer, run, run_all};
    use vinelift_tensor::Tensor;

    fn pool(def: &'static OpDef, pads: &str, rest: &[(&str, &str)], x: Tensor) -> Vec<Tensor> {
        let pads = [("pads_begin", pads), ("pads_end", pads)];
        let attributes = [&pads, rest].concat();
        run_all(def, &attributes, &[x], IndexPolicy::Spec).unwrap()
    }

    /// Examples 1 and 2 of the specification of MaxPool-1.
    #[test]
    fn explicit_and_automatic_pads() {
        let x = f32s(
            &[1, 1, 3, 3],
            &[-1.0, 2.0, 3.0, 4.0, 5.0, -6.0, -7.0, 8.0, 9.0],
        );
        let same = [("kernel", "2,2"), ("strides", "1,1")];
        let out = pool(&V1, "1,1", &same, x.clone()).swap_remove(0);
        #[rustfmt::skip]
        let want = [
            -1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 3.0,
            4.0, 8.0, 9.0, 9.0, -7.0, 8.0, 9.0, 9.0,
        ];
        assert_eq!(out, f32s(&[1, 1, 4, 4], &want));
        let same = [&same[..], &[("auto_pad", "SAME_UPPER")]].concat();
        let out = pool(&V1, "1,1", &same, x).swap_remove(0);
        let want = [5.0, 5.0, 3.0, 8.0, 9.0, 9.0, 8.0, 9.0, 9.0];
        assert_eq!(out, f32s(&[1, 1, 3, 3], &want));
    }

    /// Values of NumPy: of equal elements the first, counted over everything or over the last dim.
    #[test]
    fn positions_of_the_first() {
        let x = i64s(&[2, 1, 4], &[7, 7, 1, 2, 3, 9, 9, 0]);
        let attributes = [("kernel", "2"), ("strides", "2")];
        let out = pool(&V8, "0", &attributes, x.clone());
        assert_eq!(out[0], i64s(&[2, 1, 2], &[7, 2, 9, 9]));
        assert_eq!(out[1], i64s(&[2, 1, 2], &[0, 3, 5, 6]));
        let attributes = [&attributes[..], &[("axis", "-1"), ("dilations", "2")]].concat();
        let out = pool(&V14, "1", &attributes, x);
        assert_eq!(out[0], i64s(&[2, 1, 2], &[7, 7, 9, 9]));
        assert_eq!(out[1], i64s(&[2, 1, 2], &[1, 1, 1, 1]));
    }

    #[test]
    fn padding_never_wins() {
        let inf = f32::INFINITY;
        let attributes = [("kernel", "2"), ("strides", "4"), ("rounding_type", "ceil")];
        let x = f32s(&[1, 1, 3], &[-inf, 1.0, 2.0]);
        let out = pool(&V8, "2", &attributes, x);
        assert_eq!(out[0], f32s(&[1, 1, 3], &[f32::MIN, 2.0, f32::MIN]));
        assert_eq!(out[1], i64s(&[1, 1, 3], &[0, 2, 0]));
        // As OpenVINO 2026.4.1 has it, of the second channel and the second image.
        let x = f32s(
            &[2, 2, 3],
            &[-1.0, 1.0, 2.0, -3.0, 5.0, 4.0, 0.0, 1.0, 0.0, 2.0, 0.0, 3.0],
        );
        let all = pool(&V8, "2", &attributes, x.clone());
        let positions = [0, 2, 0, 3, 5, 3, 6, 8, 6, 9, 11, 9];
        assert_eq!(all[1], i64s(&[2, 2, 3], &positions));
        let of_channel = [&attributes[..], &[("axis", "2")]].concat();
        let positions = [0, 2, 0].repeat(4);
        assert_eq!(
            pool(&V8, "2", &of_channel, x)[1],
            i64s(&[2, 2, 3], &positions)
        );
        let x = f32s(&[0, 1, 3], &[]);
        assert_eq!(pool(&V8, "2", &attributes, x)[0], f32s(&[0, 1, 3], &[]));
        let x = Tensor::zeros(ElementType::I4, &[1, 1, 3]).unwrap();
        let out = pool(&V8, "2", &attributes, x).swap_remove(0);
        assert_eq!(out.to_i64_vec().unwrap(), [-8, 0, -8]);
    }

    /// Windows of 24 and of 25 points, over edges and with steps of two, against the definition.
    #[test]
    fn large_windows_fold_rows_first() {
        let (rows, columns) = (9i64, 11i64);
        let special = |n: i64| match n % 13 {
            0 => f32::NAN,
            1 => -0.0,
            2 => 0.0,
            3 => f32::NEG_INFINITY,
            _ => -((n * 7 % 29) as f32),
        };
        let x: Vec<f32> = (0..rows * columns).map(special).collect();
        for (kernel, [high, wide]) in [("4,6", [4, 6]), ("5,5", [5, 5]), ("7,5", [7, 5])] {
            for (strides, step) in [("1,1", 1), ("2,2", 2)] {
                let data = f32s(&[1, 1, 9, 11], &x);
                let attributes = [("kernel", kernel), ("strides", strides)];
                let found = pool(&V1, "2,2", &attributes, data).swap_remove(0);
                let windows = |n: i64, k: i64| (0..=(n + 4 - k) / step).map(move |o| o * step - 2);
                let mut want = Vec::new();
                for top in windows(rows, high) {
                    for left in windows(columns, wide) {
                        let mut most = f32::NEG_INFINITY;
                        for r in top.max(0)..(top + high).min(rows) {
                            for c in left.max(0)..(left + wide).min(columns) {
                                let value = x[(r * columns + c) as usize];
                                most = if value > most { value } else { most };
                            }
                        }
                        want.push(most);
                    }
                }
                let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let found = found.to_f64_vec().unwrap();
                let found: Vec<f32> = found.into_iter().map(|x| x as f32).collect();
                assert_eq!(bits(&found), bits(&want), "{kernel} {strides}");
            }
        }
    }

    /// Values of OpenVINO 2026.4.1, but for the window of NaN alone, which is the lowest finite number there.
    #[test]
    fn nan_is_skipped_wherever_it_stands() {
        let nan = f32::NAN;
        let attributes = [("kernel", "3"), ("strides", "3")];
        let x = [nan, 5.0, 3.0, 5.0, nan, 3.0, 3.0, 5.0, nan, nan, nan, nan];
        let out = pool(&V8, "0", &attributes, f32s(&[1, 1, 12], &x));
        let want = [5.0, 5.0, 5.0, f32::NEG_INFINITY];
        assert_eq!(out[0], f32s(&[1, 1, 4], &want));
        assert_eq!(out[1], i64s(&[1, 1, 4], &[1, 3, 7, 0]));
    }

    #[test]
    fn says_what_does_not_fit() {
        let x = [f32s(&[1, 1, 3], &[0.0; 3])];
        let of = |kernel, rounding| {
            let attributes = [
                ("kernel", kernel),
                ("strides", "1"),
                ("rounding_type", rounding),
            ];
            let pads = [("pads_begin", "0"), ("pads_end", "0")];
            error(&V8, &[&attributes[..], &pads].concat(), &x)
        };
        let message = "spatial dim 0: a window of 4 elements does not fit into 3";
        assert_eq!(of("4", "floor"), message);
        assert_eq!(of("0", "floor"), "`kernel` [0] must be at least 1");
        let message = "attribute `rounding_type` must be one of floor, ceil, found `ceil_torch`";
        assert_eq!(of("1", "ceil_torch"), message);
        let message = "`strides` [1] must have 2 elements, one for each spatial dim";
        assert_eq!(of("1,1", "floor"), message);
    }

    #[test]
    fn partial_shapes() {
        let attributes = [("kernel", "2"), ("strides", "2"), ("auto_pad", "valid")];
        let of = |shape| infer(&V14, &attributes, &[(ElementType::F16, shape, None)]).0;
        assert_eq!(
            of(PartialShape::any_of_rank(3)),
            "f16[?, ?, 1..] i64[?, ?, 1..]"
        );
        assert_eq!(of(PartialShape::DYNAMIC), "f16[?, ?, ?] i64[?, ?, ?]");
        let x = [f32s(&[1, 1, 2], &[1.0, 2.0])];
        assert_eq!(run(&V14, &attributes, &x), f32s(&[1, 1, 1], &[2.0]));
    }
}
