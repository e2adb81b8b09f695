//! `ExperimentalDetectronPriorGridGenerator`: for each cell `[i, j]` of a grid all `priors`, shifted by
//! `[(j + 0.5) · step_x, (i + 0.5) · step_y]`.
//!
//! Specification: ExperimentalDetectronPriorGridGenerator-6. The grid has `h` by `w` cells, those of
//! `feature_map` if they are 0. Steps are the size of `image` by that of the grid where they are 0. The
//! output has room for the cells of `feature_map`; what a smaller grid leaves, undefined in the
//! specification, is 0 here.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::{countable, may_be_at_most};
use crate::layout::index_map::{extent_float, flatten, unflatten};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, number, select, zero};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "ExperimentalDetectronPriorGridGenerator",
    versions: &["opset6"],
    signature: Signature::new(&["priors", "feature_map", "image"]),
    family: Family::Compose,
    build: Build::Op(parse::<PriorGridGenerator>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorGridGenerator {
    #[serde(default = "crate::attrs::yes")]
    flatten: bool,
    #[serde(default)]
    h: usize,
    #[serde(default)]
    w: usize,
    #[serde(default)]
    stride_x: f64,
    #[serde(default)]
    stride_y: f64,
}

impl Op for PriorGridGenerator {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("priors", "a float type", |t| t.is_float())?;
        cx.expect_rank("priors", 2)?;
        cx.expect_rank("feature_map", 4)?;
        cx.expect_rank("image", 4)?;
        let dims = |name, rank| cx.dims(name).map_or(vec![Dim::ANY; rank], <[_]>::to_vec);
        let (priors, map, image) = (dims("priors", 2), dims("feature_map", 4), dims("image", 4));
        ensure!(
            priors[1].contains(4),
            "the last dim of `priors` {} must be 4",
            cx.shape("priors")
        );
        ensure!(
            map[0].intersect(image[0]).is_some(),
            "`feature_map` {} and `image` {} must have the same first dim",
            cx.shape("feature_map"),
            cx.shape("image")
        );
        for (name, n, dim) in [("h", self.h, map[2]), ("w", self.w, map[3])] {
            ensure!(
                n == 0 || may_be_at_most(Dim::fixed(n), dim),
                "`{name}` must be at most {dim}, that of `feature_map`, found {n}"
            );
        }
        let four = Dim::fixed(4);
        let out = match self.flatten {
            true => vec![map[2].mul(map[3]).mul(priors[0]), four],
            false => vec![map[2], map[3], priors[0], four],
        };
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (ty, out) = (cx.element("priors"), cx.output(0));
        let (map, image) = (cx.extents("feature_map"), cx.extents("image"));
        let (count, shape) = (cx.extents("priors")[0], cx.extents_of(out));
        if shape.iter().any(|n| *n == 0) {
            return;
        }
        let cells = |own: usize, map: Extent| if own == 0 { map } else { own.into() };
        let (rows, columns) = (cells(self.h, map[2]), cells(self.w, map[3]));
        let wide = ty.compute();
        let step_x = step(self.stride_x, image[3], columns, wide);
        let step_y = step(self.stride_y, image[2], rows, wide);
        let (last, space) = (shape.len() - 1, [map[2], map[3], count]);
        let whole = rows.same(map[2]) && columns.same(map[3]);
        cx.define(out, |cx, at| {
            let row = flatten(&at[..last], &shape[..last]);
            let (prior, cell) = match whole {
                true => {
                    let place = unflatten(&row, &space);
                    (place[2].clone(), [place[0].clone(), place[1].clone()])
                }
                false => {
                    let [count, columns] = [count, columns].map(Scalar::extent);
                    let cell = &row / &count;
                    let place = [&cell / &columns, cell.rem(columns)];
                    (row.rem(count), place)
                }
            };
            let [i, j] = cell;
            let vertical = at[last].rem(index(2)).eq(index(1));
            let centre = |i: &Scalar, step| (i.clone().cast(wide) + 0.5) * step;
            let shift = select(vertical, centre(&i, step_y), centre(&j, step_x));
            let from = widened(cx.load("priors", &[prior, at[last].clone()]));
            let value = (from + shift).cast(ty);
            match whole {
                true => value,
                false => select(i.lt(Scalar::extent(rows)), value, zero(ty)),
            }
        });
    }
}

/// The elements of the image from cell to cell, in the type `wide` that the rest is computed in: `own` if that is not 0.
fn step(own: f64, image: Extent, cells: Extent, wide: ElementType) -> Scalar {
    let step = match (own == 0.0, image.number(), cells.number(), wide) {
        (true, Some(image), Some(cells), ElementType::F64) => image as f64 / cells as f64,
        (true, Some(image), Some(cells), _) => f64::from(image as f32 / cells as f32),
        (true, ..) => return extent_float(image, wide) / extent_float(cells, wide),
        (false, ..) => own,
    };
    number(step, wide)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, infer, run};
    use vinelift_tensor::Tensor;

    fn inputs(map: [usize; 2]) -> [Tensor; 3] {
        let zeros = |shape: &[usize]| Tensor::zeros(ElementType::F32, shape).unwrap();
        let priors = f32s(&[2, 4], &[-1.0, -2.0, 1.0, 2.0, 0.0, 0.0, 8.0, 8.0]);
        [
            priors,
            zeros(&[1, 3, map[0], map[1]]),
            zeros(&[1, 3, 16, 20]),
        ]
    }

    /// By the formula of the specification: steps of 10 and 16, then 4 and 6.
    #[test]
    fn grids() {
        let out = run(&DEF, &[], &inputs([1, 2]));
        #[rustfmt::skip]
        let want = [
            4.0, 6.0, 6.0, 10.0, 5.0, 8.0, 13.0, 16.0, 14.0, 6.0, 16.0, 10.0, 15.0, 8.0, 23.0, 16.0,
        ];
        assert_eq!(out, f32s(&[4, 4], &want));
        let attributes = [
            ("flatten", "false"),
            ("w", "1"),
            ("stride_x", "4"),
            ("stride_y", "6"),
        ];
        let out = run(&DEF, &attributes, &inputs([2, 2]));
        #[rustfmt::skip]
        let want = [
            1.0, 1.0, 3.0, 5.0, 2.0, 3.0, 10.0, 11.0, 1.0, 7.0, 3.0, 11.0, 2.0, 9.0, 10.0, 17.0,
        ];
        assert_eq!(out, f32s(&[2, 2, 2, 4], &[want, [0.0; 16]].concat()));
    }

    /// By the formula of the specification, in `f64`: steps of 16 / 3 and 0.1.
    #[test]
    fn f64_is_exact() {
        let [_, map, image] = inputs([3, 1]);
        let f64s = |t: &Tensor| Tensor::zeros(ElementType::F64, t.shape()).unwrap();
        let priors = Tensor::zeros(ElementType::F64, &[1, 4]).unwrap();
        let all = [priors, f64s(&map), f64s(&image)];
        let out = run(&DEF, &[("stride_x", "0.1")], &all);
        let row = |i: f64| {
            [
                0.05,
                (i + 0.5) * (16.0 / 3.0),
                0.05,
                (i + 0.5) * (16.0 / 3.0),
            ]
        };
        let want = [row(0.0), row(1.0), row(2.0)].concat();
        assert_eq!(*out.as_slice::<f64>().unwrap(), want);
    }

    #[test]
    fn shapes() {
        let of = |shape| (ElementType::F32, shape, None);
        let map = PartialShape::ranked(vec![Dim::ANY, Dim::ANY, Dim::fixed(5), Dim::fixed(2)]);
        let priors = PartialShape::from(&[3usize, 4][..]);
        let all = [of(priors), of(map), of(PartialShape::DYNAMIC)];
        assert_eq!(infer(&DEF, &[], &all), ("f32[30, 4]".to_owned(), vec![]));
        let flat = [("flatten", "false")];
        assert_eq!(infer(&DEF, &flat, &all).0, "f32[5, 2, 3, 4]");
        let message = "`w` must be at most 2, that of `feature_map`, found 3";
        assert_eq!(error(&DEF, &[("w", "3")], &inputs([1, 2])), message);
    }
}
