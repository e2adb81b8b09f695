//! `RegionYolo`: the channels are `classes + coords + 1` entries for each of the regions, of which the first
//! two (the position) and the one after the coordinates (the confidence) become `1 / (1 + e^-x)`, and so do
//! those of the classes; with `do_softmax` these become their softmax.
//!
//! Specification: RegionYolo-1, silent about the formula; this is that of the network and of OpenVINO. There
//! are `num` regions with `do_softmax` and as many as there are in `mask` without. Channels beyond them are
//! copied with `do_softmax` and left out without. `anchors` are for later layers.

use super::softmax;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::layout::extent::{countable, may_be_at_most, product};
use crate::layout::index_map::{extent, flatten};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::Range;
use vinelift_nest::build::{lowest, number, zero};
use vinelift_nest::{Binary, BufferId, Mode, Scalar};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "RegionYolo",
    versions: &["opset1"],
    signature: Signature::new(&["data"]),
    family: Family::Compose,
    build: Build::Op(parse::<RegionYolo>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionYolo {
    #[serde(default, rename = "anchors")]
    _anchors: Option<IgnoredAny>,
    axis: i64,
    end_axis: i64,
    coords: usize,
    classes: usize,
    num: usize,
    #[serde(default = "crate::attrs::yes")]
    do_softmax: bool,
    #[serde(default)]
    mask: Vec<i64>,
}

impl Op for RegionYolo {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a float type", |t| t.is_float())?;
        for (name, n) in [
            ("coords", self.coords),
            ("classes", self.classes),
            ("num", self.num),
        ] {
            ensure!(n < 1 << 31, "`{name}` must be below 2^31, found {n}");
        }
        cx.expect_rank("data", 4)?;
        let data = cx.dims("data").map_or(vec![Dim::ANY; 4], <[_]>::to_vec);
        let needed = product("regions", &[self.regions(), self.entries()])?;
        ensure!(
            may_be_at_most(Dim::fixed(needed), data[1]),
            "`data` {} must have at least {needed} channels, {} for each of {} regions",
            cx.shape("data"),
            self.entries(),
            self.regions()
        );
        let mut out = data.clone();
        if self.do_softmax {
            let (axis, end) = self.flattened()?;
            let flat = data[axis..=end]
                .iter()
                .copied()
                .fold(Dim::fixed(1), Dim::mul);
            out.splice(axis..=end, [flat]);
        } else {
            out[1] = Dim::fixed(needed);
        }
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        if cx.extents_of(out).iter().any(|n| *n == 0) {
            return;
        }
        let softmax = (self.do_softmax && self.regions() * self.classes > 0)
            .then(|| self.largest_and_sum(cx, &shape));
        if self.do_softmax {
            self.copy_others(cx, &shape);
        }
        for (part, becomes) in self.parts() {
            let entries = part.len();
            let domain = [
                shape[0],
                self.regions().into(),
                entries.into(),
                shape[2],
                shape[3],
            ];
            cx.stage(&domain, out, Mode::Set, |cx, at| {
                let [batch, region, entry, y, x] = at else {
                    unreachable!("the domain has five axes");
                };
                let channel = region * extent(self.entries()) + entry + extent(part.start);
                let from = [batch, &channel, y, x].map(Clone::clone);
                let value = widened(cx.load("data", &from));
                let value = match (becomes, softmax) {
                    (Becomes::Share, Some((largest, sum))) => {
                        let at = [batch, region, y, x].map(Clone::clone);
                        softmax::power(value, cx.load_from(largest, &at)) / cx.load_from(sum, &at)
                    }
                    (Becomes::Sigmoid, _) => sigmoid(&value),
                    (Becomes::TwiceSigmoid, _) => sigmoid(&sigmoid(&value)),
                    _ => value,
                };
                (self.place(&from, &shape), value.cast(ty))
            });
        }
    }
}

/// How the output has an entry of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Becomes {
    Itself,
    Sigmoid,
    /// The position and the confidence are the same entry.
    TwiceSigmoid,
    /// The share of a class.
    Share,
}

/// `1 / (1 + e^-x)`
fn sigmoid(x: &Scalar) -> Scalar {
    let one = || number(1.0, x.ty());
    one() / (one() + (-x.clone()).exp())
}

impl RegionYolo {
    fn regions(&self) -> usize {
        if self.do_softmax {
            self.num
        } else {
            self.mask.len()
        }
    }

    /// The channels of a region.
    fn entries(&self) -> usize {
        self.classes + self.coords + 1
    }

    /// The first and the last dim of those that become one.
    fn flattened(&self) -> Result<(usize, usize), OpError> {
        let (axis, end) = (
            normalize_axis(self.axis, 4)?,
            normalize_axis(self.end_axis, 4)?,
        );
        ensure!(
            axis <= end,
            "`end_axis` {} must not come before `axis` {}",
            self.end_axis,
            self.axis
        );
        Ok((axis, end))
    }

    /// Copies the channels beyond those of regions; if there may be none of them, all channels.
    fn copy_others(&self, cx: &mut Lower<'_>, shape: &[Extent]) {
        let (first, count) = match shape[1].number() {
            Some(channels) => {
                let first = self.regions() * self.entries();
                (first, (channels - first).into())
            }
            None => (0, shape[1]),
        };
        if count == 0 {
            return;
        }
        let domain = [shape[0], count, shape[2], shape[3]];
        cx.stage(&domain, cx.output(0), Mode::Set, |cx, at| {
            let mut from = at.to_vec();
            from[1] = &at[1] + extent(first);
            (self.place(&from, shape), cx.load("data", &from))
        });
    }

    /// The entries of a region in parts, of each of which the same becomes.
    fn parts(&self) -> Vec<(Range<usize>, Becomes)> {
        let (entries, coords) = (self.entries(), self.coords);
        let sigmoids = match self.do_softmax {
            true => coords + 1,
            false => entries,
        };
        let mut bounds = [0, 2, coords, sigmoids, entries].map(|bound| bound.min(entries));
        bounds.sort_unstable();
        let becomes = |entry: usize| match (entry < 2, (coords..sigmoids).contains(&entry)) {
            _ if entry >= sigmoids => Becomes::Share,
            (true, true) => Becomes::TwiceSigmoid,
            (false, false) => Becomes::Itself,
            _ => Becomes::Sigmoid,
        };
        let parts = bounds.windows(2).map(|pair| pair[0]..pair[1]);
        parts
            .filter(|part| !part.is_empty())
            .map(|part| (part.clone(), becomes(part.start)))
            .collect()
    }

    /// Where element `from` of the data is in the output.
    fn place(&self, from: &[Scalar], shape: &[Extent]) -> Vec<Scalar> {
        let flattened = self.flattened().ok().filter(|_| self.do_softmax);
        let Some((axis, end)) = flattened else {
            return from.to_vec();
        };
        let mut at = from[..axis].to_vec();
        at.push(flatten(&from[axis..=end], &shape[axis..=end]));
        at.extend_from_slice(&from[end + 1..]);
        at
    }

    /// For each region at each place the largest of the classes, and the sum of `e^(x - largest)`.
    fn largest_and_sum(&self, cx: &mut Lower<'_>, shape: &[Extent]) -> (BufferId, BufferId) {
        let wide = cx.element("data").compute();
        let regions = [shape[0], self.regions().into(), shape[2], shape[3]];
        let class = |cx: &Lower<'_>, at: &[Scalar], k: &Scalar| {
            let first = &at[1] * extent(self.entries()) + extent(self.coords + 1);
            let from = [at[0].clone(), first + k, at[2].clone(), at[3].clone()];
            widened(cx.load("data", &from))
        };
        let largest = cx.temporary("largest", wide, &regions);
        cx.define(largest, |cx, at| {
            let body = |cx: &mut Lower<'_>, k: &[Scalar]| class(cx, at, &k[0]);
            cx.reduce(Binary::Max, &[self.classes], lowest(wide), body)
        });
        let sum = cx.temporary("sum", wide, &regions);
        cx.define(sum, |cx, at| {
            cx.reduce(Binary::Add, &[self.classes], zero(wide), |cx, k| {
                softmax::power(class(cx, at, &k[0]), cx.load_from(largest, at))
            })
        });
        (largest, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, f32s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn attributes<'a>(softmax: &'a str, end: &'a str) -> [(&'a str, &'a str); 8] {
        [
            ("anchors", "10, 14.5"),
            ("axis", "1"),
            ("end_axis", end),
            ("coords", "3"),
            ("classes", "2"),
            ("num", "1"),
            ("do_softmax", softmax),
            ("mask", "0"),
        ]
    }

    fn close(found: &Tensor, want: &[f64]) {
        let found = found.to_f64_vec().unwrap();
        let near = found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near && found.len() == want.len(), "{found:?}");
    }

    /// By the formulas: `1 / (1 + e^0)` is 0.5, and equal classes share equally.
    #[test]
    fn both_forms() {
        let data = f32s(&[1, 6, 1, 1], &[0.0, 0.0, 7.0, 0.0, 0.0, 0.0]);
        let out = run(&DEF, &attributes("false", "3"), &[data]);
        assert_eq!(out.shape(), [1, 6, 1, 1]);
        close(&out, &[0.5, 0.5, 7.0, 0.5, 0.5, 0.5]);
        let data = f32s(&[1, 7, 1, 1], &[0.0, 0.0, 7.0, 0.0, 3.0, 1.0, 9.0]);
        let out = run(&DEF, &attributes("true", "3"), &[data]);
        assert_eq!(out.shape(), [1, 7]);
        let share = 1.0 / (1.0 + (-2f64).exp());
        close(&out, &[0.5, 0.5, 7.0, 0.5, share, 1.0 - share, 9.0]);
    }

    /// With one coordinate the second entry is a position and the confidence; without, so is the first one.
    #[test]
    fn entries_that_are_position_and_confidence() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let of = |coords, softmax| {
            let mut attributes = attributes(softmax, "3");
            attributes[3] = ("coords", coords);
            let count = if coords == "1" { 4 } else { 3 };
            run(
                &DEF,
                &attributes,
                &[f32s(&[1, count, 1, 1], &[1.0; 4][..count])],
            )
        };
        let (once, twice) = (sigmoid(1.0), sigmoid(sigmoid(1.0)));
        close(&of("1", "true"), &[once, twice, 0.5, 0.5]);
        close(&of("0", "true"), &[twice, 0.5, 0.5]);
        close(&of("1", "false"), &[once, twice, once, once]);
        close(&of("0", "false"), &[twice, twice, once]);
    }

    #[test]
    fn shapes() {
        let data = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(6), Dim::fixed(2), Dim::ANY]);
        let of = |softmax, end| {
            let data = (ElementType::F16, data.clone(), None);
            infer(&DEF, &attributes(softmax, end), &[data]).0
        };
        assert_eq!(of("true", "2"), "f16[?, 12, ?]");
        assert_eq!(of("true", "-1"), "f16[?, ?]");
        assert_eq!(of("false", "3"), "f16[?, 6, 2, ?]");
        let data = f32s(&[1, 5, 1, 1], &[0.0; 5]);
        let message = "`data` [1, 5, 1, 1] must have at least 6 channels, 6 for each of 1 regions";
        assert_eq!(error(&DEF, &attributes("true", "3"), &[data]), message);
    }

    /// The class gives what each shape gives alone, whether or not channels are left over; with too few there is none.
    #[test]
    fn a_class_of_channels() {
        for softmax in ["true", "false"] {
            let attributes = attributes(softmax, "3");
            let class = Class::new(&DEF, &attributes, &[7, 3, 2], |s| {
                vec![(ElementType::F32, vec![1.into(), s[0], s[1], s[2]], None)]
            });
            for shape in [[7, 3, 2], [6, 4, 5], [12, 2, 2]] {
                let count = shape.iter().product::<usize>();
                let values: Vec<f32> = (0..count).map(|k| ((k * k) as f32).sin()).collect();
                let data = f32s(&[&[1], &shape[..]].concat(), &values);
                let found = class.run(&shape, std::slice::from_ref(&data)).unwrap();
                assert_eq!(found, [run(&DEF, &attributes, &[data])], "{shape:?}");
            }
            let data = f32s(&[1, 5, 2, 2], &[0.0; 20]);
            assert_eq!(class.run(&[5, 2, 2], &[data]), None);
        }
    }
}
