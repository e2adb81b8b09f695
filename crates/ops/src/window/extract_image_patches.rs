//! `ExtractImagePatches`: `out[n, (k · width + l) · depth + c, i, j]` is element `[k, l]` of patch `[i, j]`
//! of `data[n, c]`: that at row `i · stride - begin + k · rate`, and so for the columns; 0 in the padding.
//!
//! Specification: ExtractImagePatches-3. Chosen where it is silent, as OpenVINO does: with `valid` there
//! is no patch where none fits; an image without rows or columns is returned as it is.

use super::slide::{self, AutoPad, Rounding, Slide};
use crate::error::ensure;
use crate::layout::extent::{countable, product};
use crate::layout::index_map::{extent, unflatten, within_extent};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{select, zero};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "ExtractImagePatches",
    versions: &["opset3"],
    signature: Signature::new(&["data"]),
    family: Family::Window,
    build: Build::Op(parse::<ExtractImagePatches>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtractImagePatches {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    rates: Vec<usize>,
    auto_pad: AutoPad,
}

impl Op for ExtractImagePatches {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.element("data");
        ensure!(
            self.auto_pad != AutoPad::Explicit,
            "`auto_pad` must be valid, same_upper or same_lower, found explicit"
        );
        for (name, list, least) in [
            ("sizes", &self.sizes, 0),
            ("strides", &self.strides, 1),
            ("rates", &self.rates, 1),
        ] {
            ensure!(
                list.len() == 2 && list.iter().all(|n| (least..FAR).contains(n)),
                "`{name}` {list:?} must be two numbers from {least} on, below 2^31"
            );
        }
        cx.expect_rank("data", 4)?;
        let any = vec![Dim::ANY; 4];
        let data = cx.dims("data").map_or(any, <[_]>::to_vec);
        if data[2..].contains(&Dim::fixed(0)) {
            return Ok(vec![cx.input("data").clone()]);
        }
        let places = product("sizes", &self.sizes)?;
        let mut out = vec![data[0], data[1].mul(Dim::fixed(places))];
        for (d, dim) in data[2..].iter().enumerate() {
            ensure!(
                dim.is_symbolic() || dim.min() < FAR,
                "dim {} of `data` {} must be below 2^31",
                d + 2,
                cx.shape("data")
            );
            let patches = |n: usize| self.lane_of_number(d, n).patches.example();
            out.push(match dim.extent() {
                Some(n) => self.lane(d, n).patches.into(),
                // An image without rows is another case altogether.
                None if dim.contains(0) => Dim::between(0, dim.max().map(patches)),
                None => Dim::between(patches(dim.min()), dim.max().map(patches)),
            });
        }
        if data[2..].iter().any(|d| d.contains(0)) {
            out[1] = Dim::ANY;
        }
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        if cx.extents_of(out).iter().any(|n| *n == 0) {
            return;
        }
        let lanes = [self.lane(0, shape[2]), self.lane(1, shape[3])];
        let places = [self.sizes[0].into(), self.sizes[1].into(), shape[1]];
        cx.define(out, |cx, at| {
            let place = unflatten(&at[1], &places);
            let along = |d: usize| {
                let (stride, rate) = (extent(self.strides[d]), extent(self.rates[d]));
                &at[d + 2] * stride + &place[d] * rate - lanes[d].begin
            };
            let (row, column) = (along(0), along(1));
            let here = [(&row, 0), (&column, 1)].map(|(i, d)| lanes[d].inside(i, shape[d + 2]));
            let value = cx.load("data", &[at[0].clone(), place[2].clone(), row, column]);
            match here.into_iter().flatten().reduce(|a, b| a & b) {
                Some(here) => select(here, value, zero(ty)),
                None => value,
            }
        });
    }
}

/// Keeps sums of products of two numbers within an `i64`.
const FAR: usize = 1 << 31;

/// The patches along one dim.
struct Lane {
    patches: Extent,
    begin: i64,
    /// The same if the extent has symbols.
    of_symbols: Option<slide::Lane>,
}

impl Lane {
    /// Whether index `i` lies in the dim, of extent `n`; `None` if it does whatever the symbols are. What is so for numbers
    /// is found by their ranges.
    fn inside(&self, i: &Scalar, n: Extent) -> Option<Scalar> {
        match &self.of_symbols {
            Some(lane) => lane.inside(i),
            None => Some(within_extent(i, n)),
        }
    }
}

impl ExtractImagePatches {
    /// Along the rows or the columns, of which there are `n`.
    fn lane(&self, d: usize, n: Extent) -> Lane {
        self.lane_of_symbols(d, n)
            .unwrap_or_else(|| self.lane_of_number(d, n.pin()))
    }

    /// As [`ExtractImagePatches::lane`], if there are symbols and a patch is as far from the begin for all their numbers.
    fn lane_of_symbols(&self, d: usize, n: Extent) -> Option<Lane> {
        let slide = Slide {
            strides: self.strides.clone(),
            dilations: self.rates.clone(),
            pads_begin: vec![0; 2],
            pads_end: vec![0; 2],
            auto_pad: self.auto_pad,
            rounding: Rounding::Floor,
        };
        let lane = slide.lane_of_symbols(d, n, self.sizes[d])?;
        Some(Lane {
            patches: lane.windows,
            begin: lane.begin(),
            of_symbols: Some(lane),
        })
    }

    /// As [`ExtractImagePatches::lane`] for a number.
    fn lane_of_number(&self, d: usize, n: usize) -> Lane {
        let (n, stride) = (n.min(FAR) as i128, self.strides[d] as i128);
        let reach = self.rates[d] as i128 * (self.sizes[d] as i128 - 1) + 1;
        let (patches, total) = match self.auto_pad {
            AutoPad::Valid | AutoPad::Explicit => ((n - reach).div_euclid(stride) + 1, 0),
            AutoPad::SameUpper | AutoPad::SameLower => {
                let patches = (n + stride - 1) / stride;
                (patches, ((patches - 1) * stride + reach - n).max(0))
            }
        };
        let begin = match self.auto_pad {
            AutoPad::SameLower => total - total / 2,
            _ => total / 2,
        };
        Lane {
            patches: usize::try_from(patches.max(0)).unwrap_or(usize::MAX).into(),
            begin: i64::try_from(begin).unwrap_or(i64::MAX),
            of_symbols: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i32s, infer, run};
    use std::slice::from_ref;
    use vinelift_tensor::{ElementType, Tensor};

    fn counting(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        i32s(shape, &(1..=n as i32).collect::<Vec<_>>())
    }

    fn attributes<'a>(
        sizes: &'a str,
        strides: &'a str,
        rates: &'a str,
        auto_pad: &'a str,
    ) -> [(&'a str, &'a str); 4] {
        [
            ("sizes", sizes),
            ("strides", strides),
            ("rates", rates),
            ("auto_pad", auto_pad),
        ]
    }

    /// The examples of the specification.
    #[test]
    fn examples() {
        let image = counting(&[1, 1, 10, 10]);
        let out = run(
            &DEF,
            &attributes("3,3", "5,5", "1,1", "valid"),
            from_ref(&image),
        );
        #[rustfmt::skip]
        let want = [
            1, 6, 51, 56, 2, 7, 52, 57, 3, 8, 53, 58, 11, 16, 61, 66, 12, 17, 62, 67, 13, 18, 63, 68,
            21, 26, 71, 76, 22, 27, 72, 77, 23, 28, 73, 78,
        ];
        assert_eq!(out, i32s(&[1, 9, 2, 2], &want));
        let out = run(
            &DEF,
            &attributes("4,4", "9,9", "1,1", "same_upper"),
            from_ref(&image),
        );
        #[rustfmt::skip]
        let want = [
            0, 0, 0, 89, 0, 0, 81, 90, 0, 0, 82, 0, 0, 0, 83, 0, 0, 9, 0, 99, 1, 10, 91, 100, 2, 0, 92, 0,
            3, 0, 93, 0, 0, 19, 0, 0, 11, 20, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 0, 29, 0, 0, 21, 30, 0, 0,
            22, 0, 0, 0, 23, 0, 0, 0,
        ];
        assert_eq!(out, i32s(&[1, 16, 2, 2], &want));
        let out = run(
            &DEF,
            &attributes("3,3", "5,5", "2,2", "valid"),
            from_ref(&image),
        );
        #[rustfmt::skip]
        let want = [
            1, 6, 51, 56, 3, 8, 53, 58, 5, 10, 55, 60, 21, 26, 71, 76, 23, 28, 73, 78, 25, 30, 75, 80,
            41, 46, 91, 96, 43, 48, 93, 98, 45, 50, 95, 100,
        ];
        assert_eq!(out, i32s(&[1, 9, 2, 2], &want));
        let image = counting(&[1, 2, 5, 5]);
        let out = run(&DEF, &attributes("2,2", "3,3", "1,1", "valid"), &[image]);
        #[rustfmt::skip]
        let want = [
            1, 4, 16, 19, 26, 29, 41, 44, 2, 5, 17, 20, 27, 30, 42, 45,
            6, 9, 21, 24, 31, 34, 46, 49, 7, 10, 22, 25, 32, 35, 47, 50,
        ];
        assert_eq!(out, i32s(&[1, 8, 2, 2], &want));
    }

    /// Shapes that OpenVINO 2026.4.1 infers.
    #[test]
    fn patches_that_do_not_fit() {
        let of = |sizes, strides, shape: &[usize]| {
            let attributes = attributes(sizes, strides, "1,1", "valid");
            run(&DEF, &attributes, &[counting(shape)])
        };
        assert_eq!(of("3,1", "1,1", &[1, 1, 2, 1]).shape(), [1, 3, 0, 1]);
        assert_eq!(of("3,1", "3,1", &[1, 1, 2, 1]).shape(), [1, 3, 0, 1]);
        assert_eq!(of("3,1", "3,1", &[1, 1, 0, 2]).shape(), [1, 1, 0, 2]);
    }

    #[test]
    fn shapes() {
        let of = |data| {
            let attributes = attributes("3,2", "2,1", "1,2", "valid");
            infer(&DEF, &attributes, &[(ElementType::F32, data, None)]).0
        };
        let from_one = Dim::between(1, None);
        let data = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(2), from_one, Dim::fixed(9)]);
        assert_eq!(of(data), "f32[?, 12, ?, 7]");
        assert_eq!(of(PartialShape::DYNAMIC), "f32[?, ?, ?, ?]");
        let attributes = attributes("3,2", "0,1", "1,1", "valid");
        let message = "`strides` [0, 1] must be two numbers from 1 on, below 2^31";
        assert_eq!(
            error(&DEF, &attributes, &[counting(&[1, 1, 1, 1])]),
            message
        );
    }

    /// Classes give what each image gives alone, with pads and without.
    #[test]
    fn classes_of_images() {
        for auto_pad in ["valid", "same_upper", "same_lower"] {
            let attributes = attributes("3,2", "2,3", "1,2", auto_pad);
            let class = Class::new(&DEF, &attributes, &[2, 9, 10], |s| {
                vec![(ElementType::I32, vec![1.into(), s[0], s[1], s[2]], None)]
            });
            for shape in [[2, 9, 10], [5, 7, 13]] {
                let image = counting(&[&[1], &shape[..]].concat());
                let found = class.run(&shape, from_ref(&image));
                assert_eq!(found, Some(vec![run(&DEF, &attributes, &[image])]));
            }
        }
    }
}
