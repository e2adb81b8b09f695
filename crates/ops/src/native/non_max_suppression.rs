//! `NonMaxSuppression`: for each class of each image, takes the box with the highest score again and
//! again, and lowers the scores of the boxes that overlap it: `s *= f(IoU)`. Boxes whose score is not
//! above `score_threshold` are left out.
//!
//! `f` is 1 below `iou_threshold` and 0 from it on, or `exp(-IoU² / (2 soft_nms_sigma))` if that input is
//! above 0.
//!
//! Specifications: NonMaxSuppression-1, -3, -4, -5 and -9. Up to version 4 the output has a row for each
//! box that there could be, filled with -1. In version 5 `f` is 0 from `iou_threshold` on also with
//! `soft_nms_sigma`.
//!
//! As in OpenVINO, and other than in the text of the specifications, a box with exactly `iou_threshold`
//! is suppressed, one with exactly `score_threshold` left out, and `selected_scores` are f32. Where they
//! are silent: of equal scores the lowest batch, class and box come first, NaN is above no threshold, a
//! negative `max_output_boxes_per_class` is 0, and what is found beyond the rows that versions 1 and 3
//! have is left out.

use super::boxes::{Overlap, Rect, Threshold, best_one_by_one};
use super::decay::Decay;
use super::real::Real;
use super::selection;
use super::suppression::greedy;
use crate::attrs::{element_type, index_type};
use crate::error::ensure;
use crate::{
    Attributes, Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType,
};
use serde::Deserialize;
use vinelift_tensor::memory::collected;
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static V1: OpDef = version(
    &["opset1"],
    OLD,
    Build::Native(|attributes| {
        let typed = attributes.0.iter().any(|(name, _)| name == "output_type");
        ensure!(!typed, "unknown attribute `output_type`");
        build(attributes, Rows::OfImage)
    }),
);
pub(crate) static V3: OpDef = version(
    &["opset3"],
    OLD,
    Build::Native(|attributes| build(attributes, Rows::OfImage)),
);
pub(crate) static V4: OpDef = version(
    &["opset4"],
    OLD,
    Build::Native(|attributes| build(attributes, Rows::All)),
);
pub(crate) static V5: OpDef = version(
    &["opset5"],
    NEW,
    Build::Native(|attributes| build(attributes, Rows::Found { cut: true })),
);
pub(crate) static V9: OpDef = version(
    &["opset9"],
    NEW,
    Build::Native(|attributes| build(attributes, Rows::Found { cut: false })),
);

const OLD: Signature = Signature::new(&[
    "boxes",
    "scores",
    "max_output_boxes_per_class",
    "iou_threshold",
    "score_threshold",
])
.optional(3);

const NEW: Signature = Signature::new(&[
    "boxes",
    "scores",
    "max_output_boxes_per_class",
    "iou_threshold",
    "score_threshold",
    "soft_nms_sigma",
])
.optional(4);

const fn version(versions: &'static [&'static str], signature: Signature, build: Build) -> OpDef {
    OpDef {
        name: "NonMaxSuppression",
        versions,
        signature,
        family: Family::Native,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    box_encoding: Encoding,
    #[serde(default = "crate::attrs::yes")]
    sort_result_descending: bool,
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    output_type: ElementType,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    /// `y, x` of any two opposite corners.
    #[default]
    Corner,
    /// `x, y` of the center, width and height.
    Center,
}

fn build(attributes: &Attributes<'_>, rows: Rows) -> Result<Box<dyn Native>, OpError> {
    let given: Given = attributes.parse()?;
    index_type("output_type", given.output_type)?;
    Ok(Box::new(NonMaxSuppression { given, rows }))
}

#[derive(Debug)]
struct NonMaxSuppression {
    given: Given,
    rows: Rows,
}

/// The rows of the outputs.
#[derive(Clone, Copy, Debug)]
enum Rows {
    /// As many as one image can have, and no other outputs.
    OfImage,
    /// As many as all images can have, and no other outputs.
    All,
    /// As many as there are found.
    Found {
        /// Whether `iou_threshold` counts with `soft_nms_sigma`, too.
        cut: bool,
    },
}

impl Native for NonMaxSuppression {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let dims = selection::infer(cx, 4)?;
        let per_class = selection::boxes_per_class(cx)?;
        selection::expect_number(cx, "iou_threshold")?;
        selection::expect_number(cx, "score_threshold")?;
        let index = self.given.output_type;
        let rows = match self.rows {
            Rows::OfImage => selection::least(dims.boxes, per_class.mul(dims.classes)),
            Rows::All => selection::least(dims.boxes, per_class)
                .mul(dims.batches)
                .mul(dims.classes),
            Rows::Found { .. } => {
                selection::expect_number(cx, "soft_nms_sigma")?;
                return Ok(selection::outputs(dims, per_class, index));
            }
        };
        let shape = PartialShape::ranked(vec![rows, Dim::fixed(3)]);
        Ok(vec![TensorType::new(index, shape)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("boxes").element_type() == ElementType::F64 {
            self.select::<f64>(cx)
        } else {
            self.select::<f32>(cx)
        }
    }
}

impl NonMaxSuppression {
    fn select<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let most = selection::most_per_class(cx)?;
        let iou = selection::number::<R>(cx, "iou_threshold")?;
        let threshold = selection::number::<R>(cx, "score_threshold")?;
        let (cut, sigma) = match self.rows {
            Rows::Found { cut } => (cut, selection::number::<R>(cx, "soft_nms_sigma")?),
            _ => (true, R::of(0.0)),
        };
        let descending = self.given.sort_result_descending;
        let decode = |boxes: &[R]| {
            Ok(collected(
                (0..boxes.len() / 4).map(|i| self.decode(boxes, i)),
            )?)
        };
        let selected = selection::for_each_class(cx, descending, decode, |boxes, scores: &[R]| {
            let candidates = (0..scores.len()).filter(|i| scores[*i] > threshold);
            if sigma > R::of(0.0) {
                let decay = Decay {
                    sigma,
                    cut: cut.then_some(iou),
                    threshold,
                };
                let scored = collected(candidates.map(|i| (i, scores[i])))?;
                return decay.select(scored, most, cx.stop(), |i, j| {
                    boxes[i].iou(&boxes[j], R::of(0.0))
                });
            }
            let candidates = best_one_by_one(candidates, |i| scores[i])?;
            let (below, overlap) = (Threshold::below(iou), Overlap::exact());
            let kept = greedy(candidates, most, below, cx.stop(), overlap, |i| boxes[i])?;
            Ok(collected(kept.into_iter().map(|i| (i, scores[i])))?)
        })?;

        let ty = self.given.output_type;
        let (batches, boxes) = (cx.shape("boxes")[0], cx.shape("boxes")[1]);
        let classes = cx.shape("scores")[1];
        let rows = match self.rows {
            Rows::OfImage => boxes.min(most.saturating_mul(classes)),
            Rows::All => boxes
                .min(most)
                .saturating_mul(batches)
                .saturating_mul(classes),
            Rows::Found { .. } => return selection::tensors(ty, &selected),
        };
        let selected = &selected[..rows.min(selected.len())];
        Ok(vec![selection::padded_indices(ty, selected, rows)?])
    }

    fn decode<R: Real>(&self, boxes: &[R], i: usize) -> Rect<R> {
        let [a, b, c, d] = Rect::read(boxes, i).corners();
        let half = |x: R| x * R::of(0.5);
        Rect::from_corners(match self.given.box_encoding {
            Encoding::Corner => [b.least(d), a.least(c), b.most(d), a.most(c)],
            Encoding::Center => [a - half(c), b - half(d), a + half(c), b + half(d)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, infer, run, run_all};

    const ROW: [(&str, &str); 1] = [("sort_result_descending", "false")];

    /// The boxes and scores of ONNX's examples.
    fn example() -> [Tensor; 2] {
        let x = [0.0, 0.1, -0.1, 10.0, 10.1, 100.0];
        let boxes: Vec<f32> = x.iter().flat_map(|x| [0.0, *x, 1.0, x + 1.0]).collect();
        let scores = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3];
        [f32s(&[1, 6, 4], &boxes), f32s(&[1, 1, 6], &scores)]
    }

    fn inputs(boxes: Tensor, scores: Tensor, most: i64, floats: &[f32]) -> Vec<Tensor> {
        let floats = floats.iter().map(|x| f32s(&[], &[*x]));
        [boxes, scores, i64s(&[], &[most])]
            .into_iter()
            .chain(floats)
            .collect()
    }

    fn selected(attributes: &[(&str, &str)], inputs: &[Tensor]) -> Vec<Tensor> {
        run_all(&V9, attributes, inputs, IndexPolicy::Spec).unwrap()
    }

    /// ONNX's examples `suppress_by_IOU` and `suppress_by_IOU_and_scores`.
    #[test]
    fn suppresses_what_overlaps() {
        let [boxes, scores] = example();
        let out = selected(&[], &inputs(boxes.clone(), scores.clone(), 3, &[0.5, 0.0]));
        assert_eq!(out[0], i64s(&[3, 3], &[0, 0, 3, 0, 0, 0, 0, 0, 5]));
        let want = [0.0, 0.0, 0.95, 0.0, 0.0, 0.9, 0.0, 0.0, 0.3];
        assert_eq!(out[1], f32s(&[3, 3], &want));
        assert_eq!(out[2], i64s(&[1], &[3]));
        let out = selected(&[], &inputs(boxes, scores, 3, &[0.5, 0.4]));
        assert_eq!(out[0], i64s(&[2, 3], &[0, 0, 3, 0, 0, 0]));
    }

    #[test]
    fn static_outputs_are_padded() {
        let [boxes, scores] = example();
        let all = inputs(boxes, scores, 5, &[0.5, 0.4]);
        let row = [0, 0, 3, 0, 0, 0];
        let want = [&row[..], &[-1; 9]].concat();
        assert_eq!(run(&V1, &[], &all), i64s(&[5, 3], &want));
        let narrow = [("output_type", "i32")];
        let want = want.iter().map(|i| *i as i32).collect::<Vec<_>>();
        assert_eq!(run(&V3, &narrow, &all), i32s(&[5, 3], &want));
        assert_eq!(run(&V4, &narrow, &all), i32s(&[5, 3], &want));
        assert_eq!(error(&V1, &narrow, &all), "unknown attribute `output_type`");
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn classes_and_images() {
        let boxes = [
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 3.0, 1.0, 4.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 2.0, 1.0, 3.0],
            [0.0, 5.0, 1.0, 6.0],
        ];
        let boxes = f32s(&[2, 3, 4], &boxes.concat());
        let scores = [0.9, 0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 0.8, 0.7];
        let all = inputs(boxes, f32s(&[2, 2, 3], &scores), 2, &[0.4, 0.0]);
        let by_score = [
            [0, 0, 0],
            [1, 1, 0],
            [1, 1, 1],
            [1, 0, 2],
            [1, 0, 1],
            [0, 1, 2],
            [0, 1, 1],
            [0, 0, 2],
        ];
        assert_eq!(selected(&[], &all)[0], i64s(&[8, 3], &by_score.concat()));
        assert_eq!(run(&V4, &[], &all), i64s(&[8, 3], &by_score.concat()));
        assert_eq!(run(&V3, &[], &all), i64s(&[3, 3], &by_score[..3].concat()));
        let by_class = [
            [0, 0, 0],
            [0, 0, 2],
            [0, 1, 2],
            [0, 1, 1],
            [1, 0, 2],
            [1, 0, 1],
            [1, 1, 0],
            [1, 1, 1],
        ];
        assert_eq!(selected(&ROW, &all)[0], i64s(&[8, 3], &by_class.concat()));
    }

    /// Values of OpenVINO 2026.4.1, except for version 5, which has those of its formula.
    #[test]
    fn soft_suppression() {
        let boxes = [
            [0.0, 0.0, 1.0, 2.0],
            [0.0, 1.0, 1.0, 2.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 5.0, 1.0, 6.0],
        ];
        let boxes = f32s(&[1, 4, 4], &boxes.concat());
        let scores = f32s(&[1, 1, 4], &[0.9, 0.8, 0.7, 0.5]);
        let all = inputs(boxes, scores, 4, &[0.4, 0.1, 0.5]);
        let out = selected(&[], &all);
        assert_eq!(out[0], i64s(&[4, 3], &[0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3]));
        let scores = out[1].to_f64_vec().unwrap();
        let scores = scores.chunks(3).map(|row| row[2]);
        let want = [0.9, 0.62304062, 0.54516053, 0.5];
        for (a, b) in scores.zip(want) {
            assert!((a - b).abs() < 1e-6);
        }
        let out = run_all(&V5, &[], &all, IndexPolicy::Spec).unwrap();
        assert_eq!(out[0], i64s(&[2, 3], &[0, 0, 0, 0, 0, 3]));
    }

    #[test]
    fn boxes_by_center_or_flipped() {
        let center = [
            [0.5, 0.5, 1.0, 1.0],
            [0.5, 0.6, 1.0, 1.0],
            [0.5, 10.5, 1.0, 1.0],
        ];
        let corner = [
            [1.0, 1.0, 0.0, 0.0],
            [0.1, 0.0, 1.1, 1.0],
            [10.0, 0.0, 11.0, 1.0],
        ];
        let scores = f32s(&[1, 1, 3], &[0.9, 0.75, 0.6]);
        for (boxes, encoding) in [(center, "center"), (corner, "corner")] {
            let boxes = f32s(&[1, 3, 4], &boxes.concat());
            let all = inputs(boxes, scores.clone(), 3, &[0.5, 0.0]);
            let out = selected(&[("box_encoding", encoding)], &all);
            assert_eq!(out[0], i64s(&[2, 3], &[0, 0, 0, 0, 0, 2]));
        }
    }

    /// ONNX's example `iou_threshold_boundary`, with the result of OpenVINO 2026.4.1.
    #[test]
    fn exactly_the_thresholds() {
        let boxes = f32s(&[1, 2, 4], &[0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 1.5, 1.5]);
        let scores = f32s(&[1, 1, 2], &[0.9, 0.8]);
        let out = selected(&[], &inputs(boxes.clone(), scores.clone(), 3, &[1.0 / 7.0]));
        assert_eq!(out[0], i64s(&[1, 3], &[0, 0, 0]));
        let out = selected(&[], &inputs(boxes, scores, 3, &[0.9, 0.8]));
        assert_eq!(out[0], i64s(&[1, 3], &[0, 0, 0]));
    }

    #[test]
    fn nothing_to_select() {
        let [boxes, scores] = example();
        let none = i64s(&[0, 3], &[]);
        let out = selected(&[], &[boxes.clone(), scores.clone()]);
        assert_eq!((&out[0], &out[2]), (&none, &i64s(&[1], &[0])));
        let out = selected(&[], &inputs(boxes, scores, -1, &[]));
        assert_eq!(out[0], none);
        let empty = inputs(f32s(&[1, 0, 4], &[]), f32s(&[1, 2, 0], &[]), 3, &[]);
        assert_eq!(selected(&[], &empty)[0], none);
        let nan = f32s(&[1, 1, 1], &[f32::NAN]);
        let all = inputs(f32s(&[1, 1, 4], &[f32::NAN; 4]), nan, i64::MAX, &[0.5]);
        assert_eq!(run(&V4, &[], &all), i64s(&[1, 3], &[-1; 3]));
        let soft = inputs(
            f32s(&[1, 2, 4], &[f32::NAN; 8]),
            f32s(&[1, 1, 2], &[1.0, 2.0]),
            9,
            &[0.5, 0.0, 0.1],
        );
        assert_eq!(selected(&[], &soft)[0].shape()[1], 3);
    }

    #[test]
    fn says_what_is_wrong() {
        let [boxes, scores] = example();
        let few = f32s(&[1, 1, 5], &[0.0; 5]);
        assert_eq!(
            error(&V9, &[], &[boxes.clone(), few]),
            "`boxes` [1, 6, 4] and `scores` [1, 1, 5] must be [batches, boxes, 4] and \
             [batches, classes, boxes]"
        );
        let short = f32s(&[1, 6, 3], &[0.0; 18]);
        assert_eq!(
            error(&V9, &[], &[short, scores.clone()]),
            "the last dim of `boxes` must be 4, found [1, 6, 3]"
        );
        let many = i64s(&[2], &[1, 2]);
        assert_eq!(
            error(&V9, &[], &[boxes, scores, many]),
            "`max_output_boxes_per_class` must hold one element, found 2"
        );
    }

    #[test]
    fn at_most_as_many_as_there_can_be() {
        let typed = |dims: &[Dim], value| {
            let ty = if dims.is_empty() {
                ElementType::I64
            } else {
                ElementType::F16
            };
            (ty, PartialShape::ranked(dims.to_vec()), value)
        };
        let fixed = Dim::fixed;
        let boxes = typed(&[Dim::ANY, fixed(6), fixed(4)], None);
        let scores = typed(&[fixed(2), fixed(3), Dim::ANY], None);
        let most = |n| typed(&[], n);
        let all = [boxes, scores, most(Some(i64s(&[], &[5])))];
        let found = infer(&V9, &[], &all).0;
        assert_eq!(found, "i64[0..30, 3] f32[0..30, 3] i64[1]");
        assert_eq!(infer(&V4, &[], &all).0, "i64[30, 3]");
        assert_eq!(infer(&V3, &[], &all).0, "i64[6, 3]");
        let [boxes, scores, _] = all;
        let found = infer(&V4, &[], &[boxes, scores, most(None)]).0;
        assert_eq!(found, "i64[0..36, 3]");
    }
}
