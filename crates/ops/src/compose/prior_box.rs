//! `PriorBox`: for each cell of a grid boxes `(centre ± size / 2) / image`, with the centre at
//! `(cell + offset) · step`, or in the middle of the cell if `step` is 0; then as many variances.
//!
//! Specifications: PriorBox-1, PriorBox-8. The sizes, silent in them, are OpenVINO's, in this order:
//! * for each fixed size `f` a square for each place of a `density · density` grid within it, and those of
//!   the area of `f` by each of the fixed ratios, or of the other aspect ratios; all cut at the image;
//! * for each minimum size `m` a square of `m`, one of `√(m · max)`, and for each aspect ratio `r` other than
//!   1 a box of `m · √r` by `m / √r`.
//!
//! Without `scale_all_sizes` step and minimum sizes are in image heights, the step is the cell's height if
//! it is -1, maximum sizes are ignored, and the aspect ratios are applied once, at the end, to the
//! first minimum size. There are as many boxes as this gives, and a density that is not given is 1.

use super::priors::{self, Length, Prior, Priors, Side, Sizes};
use crate::error::ensure;
use crate::{AttrError, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use serde::de::Error;

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Op(|attributes| {
        let order = "min_max_aspect_ratios_order";
        if attributes.0.iter().any(|(name, _)| name == order) {
            let message = format!("unknown field `{order}`");
            return Err(AttrError::custom(message).into());
        }
        checked(attributes.parse()?)
    }),
);

pub(crate) static V8: OpDef = version(
    &["opset8"],
    Build::Op(|attributes| checked(attributes.parse()?)),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "PriorBox",
        versions,
        signature: Signature::new(&["output_size", "image_size"]),
        family: Family::Compose,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorBox {
    #[serde(default)]
    min_size: Vec<f32>,
    #[serde(default)]
    max_size: Vec<f32>,
    #[serde(default)]
    aspect_ratio: Vec<f32>,
    #[serde(default)]
    flip: bool,
    #[serde(default)]
    clip: bool,
    #[serde(default)]
    step: f32,
    offset: f32,
    #[serde(default)]
    variance: Vec<f32>,
    #[serde(default = "crate::attrs::yes")]
    scale_all_sizes: bool,
    #[serde(default)]
    fixed_ratio: Vec<f32>,
    #[serde(default)]
    fixed_size: Vec<f32>,
    #[serde(default)]
    density: Vec<f32>,
    #[serde(default = "crate::attrs::yes")]
    min_max_aspect_ratios_order: bool,
}

fn checked(op: PriorBox) -> Result<Box<dyn Op>, OpError> {
    for (name, list) in [
        ("min_size", &op.min_size),
        ("max_size", &op.max_size),
        ("aspect_ratio", &op.aspect_ratio),
        ("fixed_ratio", &op.fixed_ratio),
        ("fixed_size", &op.fixed_size),
    ] {
        let fine = list.iter().all(|x| x.is_finite() && *x > 0.0);
        ensure!(fine, "`{name}` {list:?} must be above 0 and finite");
    }
    priors::variance(&op.variance)?;
    let (sizes, densities) = (op.fixed_size.len(), op.density.len());
    ensure!(
        densities == 0 || densities == sizes,
        "`density` {:?} must have one element for each of the {sizes} fixed sizes",
        op.density
    );
    let fine = op
        .density
        .iter()
        .all(|d| (1.0..=LARGEST_DENSITY).contains(d));
    ensure!(
        fine,
        "`density` {:?} must be from 1 to {LARGEST_DENSITY}",
        op.density
    );
    Ok(Box::new(op))
}

/// Boxes are listed one by one.
const LARGEST_DENSITY: f32 = 256.0;

impl Op for PriorBox {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        priors::infer(cx, self.boxes(&Length::Number(1.0)).len())
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let Some(Sizes { grid, image }) = priors::sizes(cx) else {
            return;
        };
        let [height, width] = image.map(Length::of);
        let [rows, columns] = grid.map(Length::of);
        let unit = match self.scale_all_sizes {
            true => Length::Number(1.0),
            false => height.clone(),
        };
        let step = match self.scale_all_sizes {
            false if self.step == -1.0 => height.over(&rows),
            false if self.step != 0.0 => unit.times(self.step),
            _ => Length::Number(self.step),
        };
        let (offset, step) = match step {
            Length::Number(0.0) => (0.5, [width.over(&columns), height.over(&rows)]),
            step => (self.offset, [step.clone(), step]),
        };
        Priors {
            offset,
            step,
            image: [width, height],
            boxes: self.boxes(&unit),
            unit,
            clip: self.clip,
            variance: priors::variance(&self.variance).unwrap_or_default(),
        }
        .lower(cx, grid);
    }
}

impl PriorBox {
    /// The boxes of a cell, where minimum sizes are in `unit`s.
    fn boxes(&self, unit: &Length) -> Vec<Prior> {
        let mut boxes = Vec::new();
        let ratios = self.ratios();
        for (s, &size) in self.fixed_size.iter().enumerate() {
            let density = self.density.get(s).map_or(1.0, |d| d.trunc());
            if self.fixed_ratio.is_empty() {
                dense(&mut boxes, size, density, [Side::of(size.trunc()); 2]);
            }
            let others = match self.fixed_ratio.is_empty() {
                true => &ratios,
                false => &self.fixed_ratio,
            };
            for sides in others.iter().map(|ratio| shaped(size, *ratio)) {
                dense(&mut boxes, size, density, sides);
            }
        }
        let Some(&first) = self.min_size.first() else {
            return boxes;
        };
        for (s, &size) in self.min_size.iter().enumerate() {
            boxes.push(centred([Side::of(size); 2], unit));
            // Only where the unit is 1.
            let between = self.max_size.get(s).filter(|_| self.scale_all_sizes);
            let between = between.map(|max| centred([Side::of((size * max).sqrt()); 2], unit));
            let shaped_size = match self.scale_all_sizes {
                true => Some(size),
                false => (s + 1 == self.min_size.len()).then_some(first),
            };
            let others = shaped_size.into_iter().flat_map(|size| {
                ratios
                    .iter()
                    .map(move |ratio| centred(shaped(size, *ratio), unit))
            });
            if self.min_max_aspect_ratios_order {
                boxes.extend(between.into_iter().chain(others));
            } else {
                boxes.extend(others.chain(between));
            }
        }
        boxes
    }

    /// The aspect ratios other than 1, each once.
    fn ratios(&self) -> Vec<f32> {
        let mut ratios = vec![1.0f32];
        for &ratio in &self.aspect_ratio {
            if ratios.iter().any(|known| (ratio - known).abs() < 1e-6) {
                continue;
            }
            ratios.push(ratio);
            if self.flip {
                ratios.push(1.0 / ratio);
            }
        }
        ratios.split_off(1)
    }
}

/// The width and height of a box with the area of a square of `size`.
fn shaped(size: f32, ratio: f32) -> [Side; 2] {
    let root = ratio.sqrt();
    let square = Side::of(size);
    [
        Side {
            times: root,
            ..square
        },
        Side {
            over: root,
            ..square
        },
    ]
}

/// A box for each place of a grid within a square of `size`, in whole pixels.
fn dense(boxes: &mut Vec<Prior>, size: f32, density: f32, sides: [Side; 2]) {
    let shift = (size / density).trunc();
    let first = shift / 2.0 - (size.trunc() / 2.0).trunc();
    let count = density as usize;
    let half = sides.map(|side| side.half(1.0));
    for (row, column) in (0..count * count).map(|k| (k / count, k % count)) {
        let along = |k: usize| first + k as f32 * shift;
        boxes.push(prior([along(column), along(row)], half, true));
    }
}

/// A box around the centre, its sides in `unit`s.
fn centred(sides: [Side; 2], unit: &Length) -> Prior {
    match unit {
        Length::Number(unit) => prior([0.0; 2], sides.map(|side| side.half(*unit)), false),
        Length::Symbolic(_) => Prior {
            edges: [0.0; 4],
            cut: false,
            sides: Some(sides),
        },
    }
}

fn prior(shift: [f32; 2], half: [f32; 2], cut: bool) -> Prior {
    let ([x, y], [w, h]) = (shift, half);
    Prior {
        edges: [x - w, y - h, x + w, y + h],
        cut,
        sides: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i64s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape, Tensor};

    fn close(found: &Tensor, want: &[f64]) {
        let found = found.to_f64_vec().unwrap();
        let near = found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near && found.len() >= want.len(), "{found:?}");
    }

    fn sizes() -> [Tensor; 2] {
        [i64s(&[2], &[1, 1]), i64s(&[2], &[32, 32])]
    }

    const STEP: [(&str, &str); 2] = [("offset", "0.5"), ("step", "8")];

    /// By the formulas: a side of 16 around 4, then √(16 · 36) = 24, then 16 · 2 by 16 / 2.
    #[test]
    fn sizes_and_ratios() {
        let all = [
            ("min_size", "16"),
            ("max_size", "36"),
            ("aspect_ratio", "4"),
        ];
        let attributes = [&STEP[..], &all].concat();
        let (min, max, wide) = (
            [-4.0, -4.0, 12.0, 12.0],
            [-8.0, -8.0, 16.0, 16.0],
            [-12.0, 0.0, 20.0, 8.0],
        );
        let edges =
            |parts: [[f64; 4]; 3]| parts.concat().iter().map(|x| x / 32.0).collect::<Vec<_>>();
        let out = run(&V1, &attributes, &sizes());
        assert_eq!(out.shape(), [2, 12]);
        close(&out, &[edges([min, max, wide]), vec![0.1; 12]].concat());
        let order = [("min_max_aspect_ratios_order", "false"), ("clip", "true")];
        let attributes = [
            &attributes[..],
            &order,
            &[("variance", "0.1, 0.2, 0.3, 0.4")],
        ]
        .concat();
        let out = run(&V8, &attributes, &sizes());
        let cut: Vec<f64> = edges([min, wide, max])
            .iter()
            .map(|x| x.clamp(0.0, 1.0))
            .collect();
        close(&out, &[cut, [0.1, 0.2, 0.3, 0.4].repeat(3)].concat());
    }

    /// Results of OpenVINO 2026.4.1 on its CPU.
    #[test]
    fn fixed_sizes() {
        let fixed = [("fixed_size", "8, 16"), ("density", "2, 1")];
        let out = run(&V8, &[&STEP[..], &fixed].concat(), &sizes());
        #[rustfmt::skip]
        let want = [
            0.0, 0.0, 0.1875, 0.1875, 0.0625, 0.0, 0.3125, 0.1875, 0.0, 0.0625, 0.1875, 0.3125,
            0.0625, 0.0625, 0.3125, 0.3125, 0.0, 0.0, 0.375, 0.375, 0.1,
        ];
        assert_eq!(out.shape(), [2, 20]);
        close(&out, &want);
        let ratios = [&STEP[..], &fixed, &[("fixed_ratio", "1, 4")]].concat();
        assert_eq!(run(&V8, &ratios, &sizes()).shape(), [2, 40]);
        let once = [&STEP[..], &[("fixed_size", "8")]].concat();
        close(&run(&V8, &once, &sizes()), &[0.0, 0.0, 0.25, 0.25]);
    }

    /// Results of OpenVINO 2026.4.1 on its CPU.
    #[test]
    fn in_image_heights() {
        let attributes = [
            ("offset", "0.5"),
            ("step", "0.25"),
            ("min_size", "0.5, 0.25"),
            ("max_size", "9, 9"),
            ("aspect_ratio", "2"),
            ("scale_all_sizes", "false"),
        ];
        let out = run(&V8, &attributes, &sizes());
        let (low, high) = (0.125 - 0.25 * 2f64.sqrt(), 0.125 + 0.25 * 2f64.sqrt());
        let [flat_low, flat_high] = [0.125 - 0.25 / 2f64.sqrt(), 0.125 + 0.25 / 2f64.sqrt()];
        let want = [-0.125, -0.125, 0.375, 0.375, 0.0, 0.0, 0.25, 0.25];
        close(
            &out,
            &[&want[..], &[low, flat_low, high, flat_high], &[0.1; 12]].concat(),
        );
        let attributes = [("offset", "0.5"), ("min_size", "8")];
        let grid = [i64s(&[2], &[1, 2]), i64s(&[2], &[16, 32])];
        let want = [0.125, 0.25, 0.375, 0.75, 0.625, 0.25, 0.875, 0.75];
        close(&run(&V8, &attributes, &grid), &want);
    }

    #[test]
    fn shapes() {
        let size = |value| (ElementType::I32, PartialShape::from(&[2usize][..]), value);
        let attributes = [
            ("offset", "0"),
            ("min_size", "1, 2"),
            ("aspect_ratio", "2, 0.5, 2"),
        ];
        let attributes = [&attributes[..], &[("flip", "true")]].concat();
        let known = size(Some(i64s(&[2], &[3, 5])));
        let found = infer(&V1, &attributes, &[known, size(None)]);
        assert_eq!(found, ("f32[2, 360]".to_owned(), vec![1]));
        let found = infer(&V1, &attributes, &[size(None), size(None)]);
        assert_eq!(found, ("f32[2, ?]".to_owned(), vec![0, 1]));
        let variance = [("offset", "0"), ("variance", "1, 2")];
        let message = "`variance` must hold 0, 1 or 4 elements, found 2";
        assert_eq!(error(&V1, &variance, &sizes()), message);
        let message = "`density` [1.0] must have one element for each of the 0 fixed sizes";
        let density = [("offset", "0"), ("density", "1")];
        assert_eq!(error(&V8, &density, &sizes()), message);
        let order = [("offset", "0"), ("min_max_aspect_ratios_order", "true")];
        let message = "attribute unknown field `min_max_aspect_ratios_order`";
        assert_eq!(error(&V1, &order, &sizes()), message);
        let message = "`output_size` must hold two elements, found 1";
        let inputs = [i64s(&[1], &[1]), i64s(&[2], &[1, 1])];
        assert_eq!(error(&V8, &[("offset", "0")], &inputs), message);
    }

    /// Sizes and steps in heights that are symbols have the bits of those that are numbers.
    #[test]
    fn a_class_of_images() {
        for step in ["0", "0.3", "-1"] {
            let attributes = [
                ("offset", "0.5"),
                ("step", step),
                ("min_size", "0.3, 0.7"),
                ("aspect_ratio", "2, 3"),
                ("flip", "true"),
                ("fixed_size", "3"),
                ("density", "2"),
                ("scale_all_sizes", "false"),
            ];
            let class = Class::new(&V8, &attributes, &[3, 4, 37, 50], |s| {
                let pair = |a, b| (ElementType::I64, vec![2.into()], Some(vec![a, b]));
                vec![pair(s[0], s[1]), pair(s[2], s[3])]
            });
            for [rows, columns, height, width] in [[3, 4, 37, 50], [2, 7, 300, 211]] {
                let inputs = [i64s(&[2], &[rows, columns]), i64s(&[2], &[height, width])];
                let values = [rows, columns, height, width].map(|n| n as usize);
                let found = class.run(&values, &inputs).unwrap();
                let want = run(&V8, &attributes, &inputs);
                assert_eq!(found[0].bytes(), want.bytes(), "{step}");
            }
        }
    }
}
