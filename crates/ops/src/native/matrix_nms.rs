//! `MatrixNms`: selects boxes by scores that all better boxes of their class lower at once: with the
//! candidates of a class by falling score, `score[i] *= min(1, min over j < i of d(iou[i, j], max over
//! k < j of iou[j, k]))`, where `d(x, m) = (1 - x) / (1 - m)`, or `exp((m² - x²) gaussian_sigma)` with
//! `decay_function="gaussian"`.
//!
//! Specification: MatrixNms-8. Candidates have a score above `score_threshold`; those whose new one is
//! above `post_threshold` are selected. With `normalized="false"` boxes include the pixels of both
//! corners. So that `1 - m` is not 0, 1e-10 is added to it. Boxes with equal scores come in the order
//! of class and position. Sorting by class also applies within an image, which OpenVINO leaves out.

use super::boxes::{Rect, best_first};
use super::class_boxes::{self, Found};
use super::real::Real;
use super::selection;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, Stop, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, extend, room_for};
use vinelift_tensor::{ElementType, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "MatrixNms",
    versions: &["opset8"],
    signature: Signature::new(&["boxes", "scores"]),
    family: Family::Native,
    build: Build::Native(parse_native::<MatrixNms>),
};

class_boxes::attributes!(MatrixNms {
    #[serde(default)]
    decay_function: Decay,
    #[serde(default = "two")]
    gaussian_sigma: f64,
    #[serde(default)]
    post_threshold: f64,
});

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decay {
    Gaussian,
    #[default]
    Linear,
}

fn two() -> f64 {
    2.0
}

impl Native for MatrixNms {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        self.limits().check()?;
        let dims = selection::infer(cx, 4)?;
        let dims = [dims.batches, dims.classes, dims.boxes];
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

impl MatrixNms {
    fn select<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let (boxes, scores) = (R::read(cx, "boxes")?, R::read(cx, "scores")?);
        let &[batches, classes, count] = cx.shape("scores") else {
            return Ok(Vec::new());
        };
        let limits = self.limits();
        let post = R::of(self.post_threshold);
        let mut images = room_for(batches)?;
        for b in 0..batches {
            let mut found = Vec::new();
            for class in limits.classes(classes) {
                let scores = &scores[(b * classes + class) * count..][..count];
                let rects = |i: usize| Rect::read(&boxes, b * count + i);
                let decayed = self.decayed(scores, cx.stop(), rects)?.into_iter();
                let selected = decayed.filter(|(_, score)| *score > post);
                let selected = selected.map(|(index, score)| Found {
                    class,
                    index,
                    flat: b * count + index,
                    score,
                    rect: rects(index),
                });
                extend(&mut found, selected)?;
            }
            images.push(found);
        }
        limits.tensors(cx.input("boxes").element_type(), images)
    }

    /// The candidates of a class, with their new scores.
    fn decayed<R: Real>(
        &self,
        scores: &[R],
        stop: Stop<'_>,
        rect: impl Fn(usize) -> Rect<R>,
    ) -> Result<Vec<(usize, R)>, OpError> {
        let threshold = R::of(self.score_threshold);
        let candidates = (0..scores.len()).filter(|i| scores[*i] > threshold);
        let most = self.limits().candidates();
        let order = best_first(candidates, most, |i| scores[i])?;
        let rects = collected(order.iter().map(|i| rect(*i)))?;
        let pixel = R::of(if self.normalized { 0.0 } else { 1.0 });
        let zero = R::of(0.0);
        // The largest overlap of each with a better one, and the factor for those that do not overlap it: most do
        // not, and the factor of an overlap has a division.
        let mut known: Vec<(R, R)> = room_for(order.len())?;
        let mut decayed = room_for(order.len())?;
        for (i, &position) in order.iter().enumerate() {
            stop.go_on()?;
            let (mut factor, mut most) = (R::of(1.0), zero);
            for (better, &(largest, apart)) in rects.iter().zip(&known) {
                if rects[i].is_apart(better) {
                    factor = factor.least(apart);
                    continue;
                }
                let iou = rects[i].iou(better, pixel);
                factor = factor.least(self.factor(iou, largest));
                most = most.most(iou);
            }
            known.push((most, self.factor(zero, most)));
            decayed.push((position, factor * scores[position]));
        }
        Ok(decayed)
    }

    fn factor<R: Real>(&self, iou: R, largest: R) -> R {
        match self.decay_function {
            Decay::Gaussian => ((largest * largest - iou * iou) * R::of(self.gaussian_sigma)).exp(),
            Decay::Linear => R::of((1.0 - iou.to_f64()) / (1.0 - largest.to_f64() + 1e-10)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i64s, infer, run_all};
    use vinelift_tensor::{Dim, PartialShape};

    const BOXES: [[f32; 4]; 4] = [
        [0.0, 0.0, 1.0, 2.0],
        [0.0, 1.0, 1.0, 2.0],
        [0.0, 0.0, 1.0, 1.0],
        [0.0, 5.0, 1.0, 6.0],
    ];

    fn check(attributes: &[(&str, &str)], scores: &[f32], want: &[(i64, f64)]) {
        let inputs = [f32s(&[1, 4, 4], &BOXES.concat()), f32s(&[1, 1, 4], scores)];
        let out = run_all(&DEF, attributes, &inputs, IndexPolicy::Spec).unwrap();
        let found = out[1].to_i64_vec().unwrap();
        assert_eq!(found, want.iter().map(|w| w.0).collect::<Vec<_>>());
        assert_eq!(out[2], i64s(&[1], &[want.len() as i64]));
        let rows = out[0].to_f64_vec().unwrap();
        for (row, (index, score)) in rows.chunks(6).zip(want) {
            assert!((row[1] - score).abs() < 1e-6, "{rows:?}");
            let rect: Vec<f32> = row[2..].iter().map(|x| *x as f32).collect();
            assert_eq!(rect, BOXES[*index as usize]);
        }
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn lowers_scores() {
        let scores = [0.9, 0.8, 0.7, 0.5];
        let post = [("post_threshold", "0.7")];
        check(&post, &scores, &[(0, 0.9)]);
        let least = [("score_threshold", "0.5")];
        check(&least, &scores, &[(0, 0.9), (1, 0.4), (2, 0.35)]);
        let gaussian = [("decay_function", "gaussian"), ("gaussian_sigma", "0.5")];
        let want = [(0, 0.9), (1, 0.70599753), (2, 0.61774784), (3, 0.5)];
        check(&gaussian, &scores, &want);
        let pixels = [("normalized", "false"), ("sort_result", "score")];
        let want = [(0, 0.9), (3, 0.5), (1, 0.26666665), (2, 0.23333332)];
        check(&pixels, &scores, &want);
        check(&[("nms_top_k", "1")], &scores, &[(0, 0.9)]);
        check(&[("keep_top_k", "2")], &scores, &[(0, 0.9), (3, 0.5)]);
        check(&[("background_class", "0")], &scores, &[]);
        check(&[], &[f32::NAN, 0.0, 1.0, -1.0], &[(2, 1.0)]);
    }

    /// Values of OpenVINO 2026.4.1 across images, and of the specification within one.
    #[test]
    fn orders_of_classes_and_images() {
        let boxes = f32s(&[2, 1, 4], &BOXES[2..].concat());
        let scores = f32s(&[2, 2, 1], &[0.2, 0.9, 0.8, 0.3]);
        let order = |sort: &str, across: &str| {
            let attributes = [
                ("sort_result_type", sort),
                ("sort_result_across_batch", across),
            ];
            let inputs = [boxes.clone(), scores.clone()];
            let out = run_all(&DEF, &attributes, &inputs, IndexPolicy::Spec).unwrap();
            assert_eq!(out[2], i64s(&[2], &[2, 2]));
            let rows = out[0].to_f64_vec().unwrap();
            let scores = rows.chunks(6).map(|row| (row[1] * 10.0).round() as i64);
            scores.collect::<Vec<_>>()
        };
        assert_eq!(order("none", "true"), [9, 2, 8, 3]);
        assert_eq!(order("score", "false"), [9, 2, 8, 3]);
        assert_eq!(order("score", "true"), [9, 8, 3, 2]);
        assert_eq!(order("classid", "false"), [2, 9, 8, 3]);
        assert_eq!(order("class", "true"), [2, 8, 9, 3]);
    }

    #[test]
    fn says_what_is_wrong() {
        let inputs = [f32s(&[1, 0, 4], &[]), f32s(&[1, 2, 0], &[])];
        assert_eq!(
            error(&DEF, &[("nms_top_k", "-2")], &inputs),
            "`nms_top_k` must be at least -1, found -2"
        );
        let out = run_all(&DEF, &[], &inputs, IndexPolicy::Spec).unwrap();
        assert_eq!(out[0], f32s(&[0, 6], &[]));
        let ranked = |dims: [usize; 3]| {
            let dims = dims.map(Dim::fixed).to_vec();
            (ElementType::F16, PartialShape::ranked(dims), None)
        };
        let inputs = [ranked([2, 5, 4]), ranked([2, 3, 5])];
        let found = infer(&DEF, &[("nms_top_k", "2")], &inputs).0;
        assert_eq!(found, "f16[0..12, 6] i64[0..12, 1] i64[2]");
        let found = infer(&DEF, &[("keep_top_k", "4")], &inputs).0;
        assert_eq!(found, "f16[0..8, 6] i64[0..8, 1] i64[2]");
    }
}
