//! `NMSRotated`: for each class of each image, keeps the best boxes that do not overlap better ones by
//! more than `iou_threshold`; boxes are turned by an angle.
//!
//! Specification: NMSRotated-13. As in OpenVINO, and other than in the text of the specification, a box
//! with exactly `score_threshold` is left out, and `selected_scores` are f32. Of equal scores the lowest
//! batch, class and box come first.

use super::boxes::{Threshold, best_one_by_one};
use super::real::Real;
use super::rotated_box::RotatedBox;
use super::selection;
use super::suppression::greedy_by;
use crate::attrs::{element_type, index_type};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::collected;
use vinelift_tensor::{ElementType, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "NMSRotated",
    versions: &["opset13"],
    signature: Signature::new(&[
        "boxes",
        "scores",
        "max_output_boxes_per_class",
        "iou_threshold",
        "score_threshold",
    ]),
    family: Family::Native,
    build: Build::Native(parse_native::<NmsRotated>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NmsRotated {
    #[serde(default = "crate::attrs::yes")]
    sort_result_descending: bool,
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    output_type: ElementType,
    #[serde(default = "crate::attrs::yes")]
    clockwise: bool,
}

impl Native for NmsRotated {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        index_type("output_type", self.output_type)?;
        let dims = selection::infer(cx, 5)?;
        let per_class = selection::boxes_per_class(cx)?;
        selection::expect_number(cx, "iou_threshold")?;
        selection::expect_number(cx, "score_threshold")?;
        Ok(selection::outputs(dims, per_class, self.output_type))
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("boxes").element_type() == ElementType::F64 {
            self.select::<f64>(cx)
        } else {
            self.select::<f32>(cx)
        }
    }
}

impl NmsRotated {
    fn select<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let most = selection::most_per_class(cx)?;
        let iou = Threshold::above(selection::number::<R>(cx, "iou_threshold")?);
        let least = selection::number::<R>(cx, "score_threshold")?;
        let descending = self.sort_result_descending;
        let decode = |boxes: &[R]| {
            Ok(collected(
                (0..boxes.len() / 5).map(|i| self.decode(boxes, i)),
            )?)
        };
        let selected = selection::for_each_class(cx, descending, decode, |boxes, scores: &[R]| {
            let candidates = (0..scores.len()).filter(|i| scores[*i] > least);
            let order = best_one_by_one(candidates, |i| scores[i])?;
            let overlap = |i: usize, j: usize| R::of(boxes[i].iou(&boxes[j]));
            let kept = greedy_by(order, most, iou, cx.stop(), overlap)?;
            Ok(collected(kept.into_iter().map(|i| (i, scores[i])))?)
        })?;
        selection::tensors(self.output_type, &selected)
    }

    fn decode<R: Real>(&self, boxes: &[R], i: usize) -> RotatedBox {
        let [x, y, width, height, angle] = [0, 1, 2, 3, 4].map(|c| boxes[5 * i + c].to_f64());
        let angle = if self.clockwise { angle } else { -angle };
        RotatedBox::new([x, y, width, height, angle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i64s, run_all};

    fn outputs(
        attributes: &[(&str, &str)],
        boxes: &[[f32; 5]],
        scores: &[f32],
        thresholds: [f32; 2],
    ) -> Vec<Tensor> {
        let n = boxes.len();
        let [iou, score] = thresholds.map(|x| f32s(&[1], &[x]));
        let inputs = [
            f32s(&[1, n, 5], &boxes.concat()),
            f32s(&[1, 1, n], scores),
            i64s(&[], &[9]),
            iou,
            score,
        ];
        run_all(&DEF, attributes, &inputs, IndexPolicy::Spec).unwrap()
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn turned_boxes() {
        let boxes = [
            [0.0, 0.0, 4.0, 1.0, 0.5],
            [1.0, 0.5463, 4.0, 1.0, 0.5],
            [1.0, -0.5463, 4.0, 1.0, 0.5],
            [0.0, 0.0, 1.0, 4.0, 0.5 + std::f32::consts::FRAC_PI_2],
        ];
        let scores = [0.9, 0.8, 0.7, 0.6];
        let out = outputs(&[], &boxes, &scores, [0.5, 0.0]);
        assert_eq!(out[0], i64s(&[2, 3], &[0, 0, 0, 0, 0, 2]));
        assert_eq!(out[1], f32s(&[2, 3], &[0.0, 0.0, 0.9, 0.0, 0.0, 0.7]));
        assert_eq!(out[2], i64s(&[1], &[2]));
        let other = [("clockwise", "false")];
        let out = outputs(&other, &boxes, &scores, [0.5, 0.0]);
        assert_eq!(out[0], i64s(&[2, 3], &[0, 0, 0, 0, 0, 1]));
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn exactly_the_thresholds() {
        let boxes = [[0.0, 0.0, 2.0, 2.0, 0.0], [0.0, 0.0, 2.0, 1.0, 0.0]];
        let out = outputs(&[], &boxes, &[0.9, 0.8], [0.5, 0.0]);
        assert_eq!(out[2], i64s(&[1], &[2]));
        let out = outputs(&[], &boxes, &[0.9, 0.5], [0.6, 0.5]);
        assert_eq!(out[2], i64s(&[1], &[1]));
    }

    #[test]
    fn boxes_have_five_coordinates() {
        let inputs = [
            f32s(&[1, 1, 4], &[0.0; 4]),
            f32s(&[1, 1, 1], &[0.0]),
            i64s(&[], &[9]),
            f32s(&[], &[0.0]),
            f32s(&[], &[0.0]),
        ];
        assert_eq!(
            error(&DEF, &[], &inputs),
            "the last dim of `boxes` must be 5, found [1, 1, 4]"
        );
    }
}
