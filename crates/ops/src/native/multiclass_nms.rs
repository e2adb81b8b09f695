//! `MulticlassNms`: for each class of each image, keeps the best boxes that do not overlap better ones,
//! and the best `keep_top_k` of all classes together.
//!
//! Specifications: MulticlassNms-8, and MulticlassNms-9, which also takes `roisnum`: then each class has
//! its own boxes, those of all images one after another, `roisnum` of each. The threshold `iou_threshold`
//! is multiplied by `nms_eta` after each box that is kept, while it is above 0.5. With
//! `normalized="false"` boxes include the pixels of both corners.
//!
//! As in OpenVINO, a box that overlaps a better one by exactly the threshold is suppressed; the threshold
//! that counts is the one when a box's turn comes; and with `roisnum` box `i` of class `c` has the index
//! `i * classes + c`. Boxes with equal scores come in the order of class and position.

use super::boxes::{Overlap, Rect, Threshold, best_first};
use super::class_boxes::{self, Found};
use super::real::{Real, real_type};
use super::selection;
use super::suppression::greedy;
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, Stop, TensorType};
use vinelift_tensor::memory::{collected, extend, room_for};
use vinelift_tensor::{Dim, ElementType, Tensor};

pub(crate) static V8: OpDef = version(&["opset8"], Signature::new(&["boxes", "scores"]));

pub(crate) static V9: OpDef = version(
    &["opset9"],
    Signature::new(&["boxes", "scores", "roisnum"]).optional(1),
);

const fn version(versions: &'static [&'static str], signature: Signature) -> OpDef {
    OpDef {
        name: "MulticlassNms",
        versions,
        signature,
        family: Family::Native,
        build: Build::Native(parse_native::<MulticlassNms>),
    }
}

class_boxes::attributes!(MulticlassNms {
    #[serde(default)]
    iou_threshold: f64,
    #[serde(default = "crate::attrs::one")]
    nms_eta: f64,
});

impl Native for MulticlassNms {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        self.limits().check()?;
        ensure!(
            (0.0..=1.0).contains(&self.nms_eta),
            "`nms_eta` must lie between 0 and 1, found {}",
            self.nms_eta
        );
        let dims = if cx.input_count() == 3 {
            infer_per_class(cx)?
        } else {
            let dims = selection::infer(cx, 4)?;
            [dims.batches, dims.classes, dims.boxes]
        };
        Ok(self.limits().outputs(cx.element("boxes"), dims))
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("boxes").element_type() == ElementType::F64 {
            self.select::<f64>(cx)
        } else {
            self.select::<f32>(cx)
        }
    }
}

/// The numbers of images, classes and boxes where each class has its own boxes.
fn infer_per_class(cx: &Infer<'_>) -> Result<[Dim; 3], OpError> {
    real_type(cx, "boxes")?;
    cx.expect_same("boxes", "scores")?;
    cx.expect_integer("roisnum")?;
    cx.expect_rank("boxes", 3)?;
    cx.expect_rank("scores", 2)?;
    cx.expect_rank("roisnum", 1)?;
    let any = [Dim::ANY; 3];
    let boxes = cx.dims("boxes").unwrap_or(&any);
    let scores = cx.dims("scores").unwrap_or(&any[..2]);
    let shared = boxes[0]
        .intersect(scores[0])
        .zip(boxes[1].intersect(scores[1]));
    let Some((classes, count)) = shared.filter(|_| boxes[2].contains(4)) else {
        return Err(OpError::Shape(format!(
            "`boxes` {} and `scores` {} must be [classes, boxes, 4] and [classes, boxes]",
            cx.shape("boxes"),
            cx.shape("scores")
        )));
    };
    let images = cx.dims("roisnum").map_or(Dim::ANY, |d| d[0]);
    Ok([images, classes, count])
}

impl MulticlassNms {
    fn select<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let (boxes, scores) = (R::read(cx, "boxes")?, R::read(cx, "scores")?);
        let (boxes, scores) = (&boxes, &scores);
        let limits = self.limits();
        let images = match *cx.shape("scores") {
            [batches, classes, count] => {
                let mut images = room_for(batches)?;
                for b in 0..batches {
                    let mut found = Vec::new();
                    for class in limits.classes(classes) {
                        let first = (b * classes + class) * count;
                        let score = |i: usize| scores[first + i];
                        let rect = |i: usize| Rect::read(boxes, b * count + i);
                        let flat = |i: usize| b * count + i;
                        let kept = self.of_class(class, count, cx.stop(), score, rect, flat)?;
                        extend(&mut found, kept)?;
                    }
                    images.push(found);
                }
                images
            }
            [classes, count] => {
                let mut start = 0;
                let numbers = images_of(&cx.integers("roisnum")?, count)?;
                let mut images = room_for(numbers.len())?;
                for number in numbers {
                    let mut found = Vec::new();
                    for class in limits.classes(classes) {
                        let first = class * count + start;
                        let score = |i: usize| scores[first + i];
                        let rect = |i: usize| Rect::read(boxes, first + i);
                        let flat = |i: usize| (start + i) * classes + class;
                        let kept = self.of_class(class, number, cx.stop(), score, rect, flat)?;
                        extend(&mut found, kept)?;
                    }
                    images.push(found);
                    start += number;
                }
                images
            }
            _ => Vec::new(),
        };
        limits.tensors(cx.input("boxes").element_type(), images)
    }

    /// The boxes selected of the `count` boxes of a class.
    fn of_class<R: Real>(
        &self,
        class: usize,
        count: usize,
        stop: Stop<'_>,
        score: impl Fn(usize) -> R,
        rect: impl Fn(usize) -> Rect<R>,
        flat: impl Fn(usize) -> usize,
    ) -> Result<Vec<Found<R>>, OpError> {
        stop.go_on()?;
        let least = R::of(self.score_threshold);
        let candidates = (0..count).filter(|i| score(*i) >= least);
        let order = best_first(candidates, self.limits().candidates(), &score)?;
        let threshold = Threshold {
            eta: R::of(self.nms_eta),
            ..Threshold::below(R::of(self.iou_threshold))
        };
        let overlap = Overlap {
            pixel: R::of(if self.normalized { 0.0 } else { 1.0 }),
            touching: false,
        };
        let kept = greedy(
            order.iter().copied(),
            usize::MAX,
            threshold,
            stop,
            overlap,
            &rect,
        )?;
        let found = kept.into_iter().map(|index| Found {
            class,
            index,
            flat: flat(index),
            score: score(index),
            rect: rect(index),
        });
        Ok(collected(found)?)
    }
}

/// The number of boxes of each image, none of which is negative; together at most `count`.
fn images_of(numbers: &[i64], count: usize) -> Result<Vec<usize>, OpError> {
    let numbers = collected(numbers.iter().map(|n| (*n).max(0) as usize))?;
    let sum = numbers
        .iter()
        .fold(0, |sum: usize, n| sum.saturating_add(*n));
    ensure!(
        sum <= count,
        "`roisnum` asks for {sum} boxes, found {count}"
    );
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i64s, infer, run_all};
    use vinelift_tensor::PartialShape;

    fn outputs(attributes: &[(&str, &str)], inputs: &[Tensor]) -> Vec<Tensor> {
        run_all(&V9, attributes, inputs, IndexPolicy::Spec).unwrap()
    }

    /// Checks the indices of those that are selected.
    fn check(attributes: &[(&str, &str)], boxes: &[[f32; 4]], scores: &[f32], want: &[i64]) {
        let n = boxes.len();
        let inputs = [
            f32s(&[1, n, 4], &boxes.concat()),
            f32s(&[1, scores.len() / n, n], scores),
        ];
        let out = outputs(attributes, &inputs);
        assert_eq!(out[1].to_i64_vec().unwrap(), want);
        assert_eq!(out[2], i64s(&[1], &[want.len() as i64]));
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn suppresses_within_classes() {
        let boxes = [
            [0.0, 0.0, 1.0, 2.0],
            [0.0, 1.0, 1.0, 2.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 5.0, 1.0, 6.0],
        ];
        let scores = [0.9, 0.8, 0.7, 0.5];
        let half = [("iou_threshold", "0.5"), ("score_threshold", "0.5")];
        check(&half, &boxes, &scores, &[0, 3]);
        let two = [0.9, 0.8, 0.7, 0.5, 0.1, 0.2, 0.3, 0.4];
        let loose = ("iou_threshold", "0.6");
        check(&[loose], &boxes, &two, &[0, 1, 2, 3, 3, 2, 1, 0]);
        let kept = [loose, ("keep_top_k", "3"), ("nms_top_k", "2")];
        check(&kept, &boxes, &two, &[0, 1, 3]);
        let other = [loose, ("background_class", "0")];
        check(&other, &boxes, &two, &[3, 2, 1, 0]);
        check(&[("nms_top_k", "0")], &boxes, &two, &[]);
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn the_threshold_adapts() {
        let boxes = [
            [0.0, 0.0, 10.0, 10.0],
            [0.0, 0.0, 10.0, 7.5],
            [0.0, 20.0, 1.0, 21.0],
        ];
        let scores = [0.9, 0.7, 0.5];
        let fixed = ("iou_threshold", "0.8");
        check(&[fixed], &boxes, &scores, &[0, 1, 2]);
        check(&[fixed, ("nms_eta", "0.9")], &boxes, &scores, &[0, 2]);
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn boxes_of_classes() {
        let boxes = [
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 0.1, 1.0, 1.0],
            [0.0, 0.2, 1.0, 1.0],
            [0.0, 0.0, 1.0, 1.0],
            [2.0, 0.0, 3.0, 1.0],
            [2.0, 0.0, 3.0, 1.0],
        ];
        let boxes = f32s(&[2, 3, 4], &boxes.concat());
        let scores = f32s(&[2, 3], &[0.5, 0.6, 0.7, 0.8, 0.2, 0.1]);
        let inputs = [boxes, scores, i64s(&[3], &[2, 0, 1])];
        let attributes = [("iou_threshold", "0.5"), ("sort_result", "class")];
        let out = outputs(&attributes, &inputs);
        assert_eq!(out[1], i64s(&[5, 1], &[2, 1, 3, 4, 5]));
        assert_eq!(out[2], i64s(&[3], &[3, 0, 2]));
        let [boxes, scores, _] = inputs;
        let many = [boxes, scores, i64s(&[2], &[2, 2])];
        assert_eq!(
            error(&V9, &[], &many),
            "`roisnum` asks for 4 boxes, found 3"
        );
    }

    #[test]
    fn shapes() {
        let ranked = |ty, dims: &[usize]| {
            let dims = dims.iter().map(|d| Dim::fixed(*d)).collect();
            (ty, PartialShape::ranked(dims), None)
        };
        let (float, index) = (ElementType::F32, ElementType::I64);
        let own = [
            ranked(float, &[3, 5, 4]),
            ranked(float, &[3, 5]),
            ranked(index, &[2]),
        ];
        let found = infer(&V9, &[], &own).0;
        assert_eq!(found, "f32[0..30, 6] i64[0..30, 1] i64[2]");
        let inputs = [f32s(&[1, 1, 4], &[0.0; 4]), f32s(&[1, 1], &[0.0])];
        assert_eq!(
            error(&V8, &[], &inputs),
            "`scores` must have rank 3, found [1, 1]"
        );
        let all = [&inputs[..], &[i64s(&[1], &[1])]].concat();
        assert_eq!(error(&V8, &[], &all), "3 inputs, expected boxes, scores");
        assert_eq!(
            error(&V9, &[("nms_eta", "2")], &all),
            "`nms_eta` must lie between 0 and 1, found 2"
        );
    }
}
