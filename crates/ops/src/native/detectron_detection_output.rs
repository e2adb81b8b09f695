//! `ExperimentalDetectronDetectionOutput`: for each class but the first, which is the background, moves
//! the boxes by the predicted deltas, drops those whose score is not above `score_threshold`, and keeps
//! those that no better one overlaps by more than `nms_threshold`, at most `post_nms_count`; of all
//! classes the best `max_detections_per_image`.
//!
//! With `w, h` the extents of a box and `cx, cy` its center, its new center is `cx + dx w, cy + dy h`, and
//! its extents are `w exp(min(dw, max_delta_log_wh)), h exp(min(dh, max_delta_log_wh))`. Coordinates count
//! pixels, the deltas are divided by `deltas_weights`.
//!
//! Specification: ExperimentalDetectronDetectionOutput-6. As it says, boxes are moved into the image at
//! all of its edges, which OpenVINO only does at 0. As in OpenVINO, the first class never counts, whatever
//! `class_agnostic_box_regression` is; boxes of no width or height are dropped; the detections are in the
//! order of their classes, or of their scores if some had to be left out; and behind them the outputs
//! are 0.

use super::boxes::{Overlap, Rect, Threshold, best_first, limit};
use super::proposals::count;
use super::real::{self, Real, real_type};
use super::suppression::greedy;
use super::tensors::integers;
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, extend, filled};
use vinelift_tensor::{Dim, ElementType, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "ExperimentalDetectronDetectionOutput",
    versions: &["opset6"],
    signature: Signature::new(&INPUTS),
    family: Family::Native,
    build: Build::Native(parse_native::<DetectionOutput>),
};

const INPUTS: [&str; 4] = [
    "input_rois",
    "input_deltas",
    "input_scores",
    "input_im_info",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectionOutput {
    score_threshold: f64,
    nms_threshold: f64,
    num_classes: i64,
    post_nms_count: i64,
    max_detections_per_image: i64,
    #[serde(default, rename = "class_agnostic_box_regression")]
    _class_agnostic_box_regression: bool,
    max_delta_log_wh: f64,
    deltas_weights: Vec<f64>,
}

impl Native for DetectionOutput {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "input_rois")?;
        let any = [Dim::ANY; 2];
        let mut dims = [&any[..]; 4];
        for (name, dims) in INPUTS.into_iter().zip(&mut dims) {
            cx.expect_same("input_rois", name)?;
            cx.expect_rank(name, 2)?;
            *dims = cx.dims(name).unwrap_or(&any);
        }
        let [rois, deltas, scores, info] = dims;
        let classes = count("num_classes", self.num_classes)?;
        let rows = rois[0]
            .intersect(deltas[0])
            .and_then(|n| n.intersect(scores[0]));
        let fits = rows.is_some()
            && rois[1].contains(4)
            && deltas[1].contains(classes.saturating_mul(4))
            && scores[1].contains(classes)
            && info[0].contains(1)
            && info[1].contains(3);
        if !fits {
            let shapes = INPUTS.map(|name| format!("`{name}` {}", cx.shape(name)));
            return Err(OpError::Shape(format!(
                "{} must be [n, 4], [n, {classes} * 4], [n, {classes}], [1, 3]",
                shapes.join(", ")
            )));
        }
        ensure!(
            self.deltas_weights.len() == 4,
            "`deltas_weights` must have 4 numbers, found {}",
            self.deltas_weights.len()
        );
        let most = count("max_detections_per_image", self.max_detections_per_image)?;
        let output = |ty, dims: &[usize]| TensorType::new(ty, dims.into());
        Ok(vec![
            output(element, &[most, 4]),
            output(ElementType::I32, &[most]),
            output(element, &[most]),
        ])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("input_rois").element_type() == ElementType::F64 {
            self.detect::<f64>(cx)
        } else {
            self.detect::<f32>(cx)
        }
    }
}

/// A box of a class.
#[derive(Clone, Copy)]
struct Detection<R> {
    class: usize,
    score: R,
    rect: Rect<R>,
}

impl DetectionOutput {
    fn detect<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let rois = R::read(cx, "input_rois")?;
        let deltas = R::read(cx, "input_deltas")?;
        let scores = R::read(cx, "input_scores")?;
        let info = R::read(cx, "input_im_info")?;
        let (n, classes) = (cx.shape("input_scores")[0], cx.shape("input_scores")[1]);
        let least = R::of(self.score_threshold);
        let mut found: Vec<Detection<R>> = Vec::new();
        for class in 1..classes {
            cx.go_on()?;
            let score = |i: usize| scores[i * classes + class];
            let rects = collected((0..n).map(|i| {
                let deltas = &deltas[(i * classes + class) * 4..][..4];
                self.refine(&Rect::read(&rois, i), deltas, [info[0], info[1]])
            }))?;
            let counts = |i: &usize| {
                let (w, h) = Rect::read(&rois, *i).extents(R::of(0.0));
                score(*i) > least && w > R::of(0.0) && h > R::of(0.0)
            };
            let order = best_first((0..n).filter(counts), n, score)?;
            let threshold = Threshold::above(R::of(self.nms_threshold));
            let most = limit(self.post_nms_count);
            let overlap = Overlap {
                pixel: R::of(1.0),
                touching: true,
            };
            let order = order.iter().copied();
            let kept = greedy(order, most, threshold, cx.stop(), overlap, |i| rects[i])?;
            let detections = kept.into_iter().map(|i| Detection {
                class,
                score: score(i),
                rect: rects[i],
            });
            extend(&mut found, detections)?;
        }
        let most = count("max_detections_per_image", self.max_detections_per_image)?;
        if found.len() > most {
            let best = best_first(0..found.len(), most, |k| found[k].score)?;
            found = collected(best.into_iter().map(|k| found[k]))?;
        }

        let element = cx.input("input_rois").element_type();
        let rects = collected(found.iter().flat_map(|d| d.rect.corners()))?;
        let scores = collected(found.iter().map(|d| d.score))?;
        let rects = real::padded(element, &[most, 4], &rects)?;
        let scores = real::padded(element, &[most], &scores)?;
        let mut classes = filled(most, 0)?;
        let places = classes.iter_mut().zip(&found);
        places.for_each(|(place, d)| *place = d.class as i64);
        let classes = integers(ElementType::I32, &[most], &classes)?;
        Ok(vec![rects, classes, scores])
    }

    fn refine<R: Real>(&self, roi: &Rect<R>, deltas: &[R], [height, width]: [R; 2]) -> Rect<R> {
        let pixel = R::of(1.0);
        let most = R::of(self.max_delta_log_wh);
        let [dx, dy, dw, dh] = [0, 1, 2, 3].map(|k| deltas[k] / R::of(self.deltas_weights[k]));
        roi.refined([dx, dy, dw.least(most), dh.least(most)], pixel, pixel)
            .clipped(width - pixel, height - pixel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, run_all};

    fn attributes<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let given = [
            ("score_threshold", "0.05"),
            ("nms_threshold", "0.5"),
            ("max_delta_log_wh", "2"),
            ("deltas_weights", "10, 10, 5, 5"),
        ];
        [&given[..], more].concat()
    }

    fn inputs(classes: usize, scores: &[f32]) -> [Tensor; 4] {
        let rois = [
            [5.0, 5.0, 40.0, 40.0],
            [-5.0, -5.0, 10.0, 10.0],
            [3.0, 3.0, 3.0, 8.0],
        ];
        [
            f32s(&[3, 4], &rois.concat()),
            f32s(&[3, classes * 4], &vec![0.0; classes * 12]),
            f32s(&[3, classes], scores),
            f32s(&[1, 3], &[30.0, 30.0, 1.0]),
        ]
    }

    /// Values of OpenVINO 2026.4.1, but moved into the image.
    #[test]
    fn detects() {
        let two = [
            ("num_classes", "2"),
            ("post_nms_count", "5"),
            ("max_detections_per_image", "3"),
        ];
        let scores = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7];
        let all = inputs(2, &scores);
        let out = run_all(&DEF, &attributes(&two), &all, IndexPolicy::Spec).unwrap();
        let rects = [5., 5., 29., 29., 0., 0., 10., 10., 0., 0., 0., 0.];
        assert_eq!(out[0], f32s(&[3, 4], &rects));
        assert_eq!(out[1], i32s(&[3], &[1, 1, 0]));
        assert_eq!(out[2], f32s(&[3], &[0.9, 0.8, 0.0]));
        let three = [
            ("num_classes", "3"),
            ("post_nms_count", "5"),
            ("max_detections_per_image", "2"),
            ("class_agnostic_box_regression", "true"),
        ];
        let all = inputs(3, &[0.1, 0.9, 0.3, 0.2, 0.8, 0.95, 0.3, 0.7, 0.2]);
        let out = run_all(&DEF, &attributes(&three), &all, IndexPolicy::Spec).unwrap();
        assert_eq!(out[1], i32s(&[2], &[2, 1]));
        assert_eq!(out[2], f32s(&[2], &[0.95, 0.9]));
    }

    #[test]
    fn says_what_is_wrong() {
        let given = [
            ("num_classes", "3"),
            ("post_nms_count", "5"),
            ("max_detections_per_image", "3"),
        ];
        assert_eq!(
            error(&DEF, &attributes(&given), &inputs(2, &[0.0; 6])),
            "`input_rois` [3, 4], `input_deltas` [3, 8], `input_scores` [3, 2], `input_im_info` \
             [1, 3] must be [n, 4], [n, 3 * 4], [n, 3], [1, 3]"
        );
    }
}
