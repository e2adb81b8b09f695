//! `DetectionOutput`: the detections of an SSD network, rows of image, class, confidence and box.
//!
//! With variances `v`, and `w, h` the extents of a prior box, predicted offsets `p` move its corners by
//! `v p` (`code_type` CORNER); or its center by `v₀ p₀ w, v₁ p₁ h`, its extents becoming
//! `w exp(v₂ p₂), h exp(v₃ p₃)` (CENTER_SIZE). With `variance_encoded_in_target` all `v` are 1. With the
//! inputs 4 and 5, offsets of theirs are applied to the priors first, and a prior whose objectness is
//! below `objectness_score` is background.
//!
//! In each class but the background, of the `top_k` best boxes with a confidence above
//! `confidence_threshold`, those are kept that no better one overlaps by more than `nms_threshold`. With
//! `decrease_label_id` a prior only counts for its best class, the `top_k` best are of all classes, and the
//! classes are counted without the first. Of each image the best `keep_top_k` are given out, by class and
//! confidence.
//!
//! Specifications: DetectionOutput-1, and DetectionOutput-8, where the number of classes follows from the
//! shapes. A row with -1 in front ends the detections, the rest is 0. Where the specifications are silent:
//! of equal confidences the first prior comes first, then the first class; the variances of a box are the
//! numbers `4 i` and on of their row also if priors have five numbers; not normalised priors are
//! divided by the size of the image once, before any offsets.

use super::boxes::{Overlap, Rect, Threshold, best_first, limit};
use super::prior_boxes::{Code, Layout, decode};
use super::real::{self, Real, real_type};
use super::suppression::greedy;
use crate::error::ensure;
use crate::{
    AttrError, Attributes, Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, Stop,
    TensorType,
};
use serde::Deserialize;
use serde::de::Error;
use vinelift_tensor::memory::{collected, extend, push, room_for};
use vinelift_tensor::order::sort_by_keys;
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Native(|attributes| {
        let op: DetectionOutput = attributes.parse()?;
        if op.num_classes.is_none() {
            return Err(AttrError::missing_field("num_classes").into());
        }
        op.boxed()
    }),
);

pub(crate) static V8: OpDef = version(
    &["opset8"],
    Build::Native(|attributes: &Attributes<'_>| {
        let op: DetectionOutput = attributes.parse()?;
        let known = op.num_classes.is_none();
        ensure!(known, "unknown attribute `num_classes`");
        op.boxed()
    }),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "DetectionOutput",
        versions,
        signature: Signature::new(&[
            "box_logits",
            "class_preds",
            "proposals",
            "aux_class_preds",
            "aux_box_preds",
        ])
        .optional(2),
        family: Family::Native,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectionOutput {
    num_classes: Option<u32>,
    #[serde(default)]
    background_label_id: i64,
    #[serde(default = "crate::attrs::minus_one")]
    top_k: i64,
    #[serde(default)]
    variance_encoded_in_target: bool,
    keep_top_k: Vec<i64>,
    #[serde(default)]
    code_type: Code,
    #[serde(default = "crate::attrs::yes")]
    share_location: bool,
    nms_threshold: f64,
    #[serde(default)]
    confidence_threshold: f64,
    #[serde(default)]
    clip_after_nms: bool,
    #[serde(default)]
    clip_before_nms: bool,
    #[serde(default)]
    decrease_label_id: bool,
    #[serde(default)]
    normalized: bool,
    #[serde(default = "crate::attrs::one")]
    input_height: u32,
    #[serde(default = "crate::attrs::one")]
    input_width: u32,
    #[serde(default)]
    objectness_score: f64,
}

impl Native for DetectionOutput {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "box_logits")?;
        let sizes = self.layout().infer(cx)?;
        let rows = match (self.keep(), self.top_k) {
            (keep @ 1.., _) => extent(keep),
            (-1, top @ 1..) => extent(top).mul(sizes.classes),
            _ => sizes.classes.mul(sizes.priors),
        };
        let one = Dim::fixed(1);
        let shape = vec![one, one, sizes.images.mul(rows), Dim::fixed(7)];
        Ok(vec![TensorType::new(element, PartialShape::ranked(shape))])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("box_logits").element_type() == ElementType::F64 {
            self.detect::<f64>(cx)
        } else {
            self.detect::<f32>(cx)
        }
    }
}

fn extent(n: i64) -> Dim {
    Dim::fixed(n.max(0) as usize)
}

/// A box of an image that is kept.
#[derive(Clone, Copy)]
struct Kept {
    class: usize,
    prior: usize,
}

impl DetectionOutput {
    fn boxed(self) -> Result<Box<dyn Native>, OpError> {
        ensure!(
            !self.keep_top_k.is_empty(),
            "`keep_top_k` must have a number"
        );
        Ok(Box::new(self))
    }

    fn keep(&self) -> i64 {
        self.keep_top_k.first().copied().unwrap_or(-1)
    }

    fn layout(&self) -> Layout {
        Layout {
            classes: self.num_classes.map(|n| n as usize),
            shared: self.share_location,
            normalized: self.normalized,
            variances: !self.variance_encoded_in_target,
        }
    }

    fn detect<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let layout = self.layout();
        let (images, priors) = (cx.shape("box_logits")[0], layout.priors(cx));
        let classes = cx.shape("class_preds")[1].checked_div(priors).unwrap_or(0);
        let predictions = R::read(cx, "class_preds")?;
        let objects = if cx.has("aux_class_preds") {
            R::read(cx, "aux_class_preds")?
        } else {
            Vec::new()
        };
        let least = R::of(self.objectness_score);
        let size = [self.input_height, self.input_width].map(|n| R::of(n.into()));
        let boxes = decode(cx, layout, self.code_type, self.clip_before_nms, size)?;
        let mut rows = Vec::new();
        for image in 0..images {
            let score = |class: usize, prior: usize| {
                let k = image * priors + prior;
                if objects.get(2 * k + 1).is_some_and(|x| *x < least) {
                    return R::of(if self.is_background(class) { 1.0 } else { 0.0 });
                }
                predictions[k * classes + class]
            };
            let rect = |class: usize, prior: usize| {
                let (count, class) = if self.share_location {
                    (1, 0)
                } else {
                    (classes, class)
                };
                boxes[(image * priors + prior) * count + class]
            };
            for kept in self.of_image(classes, priors, cx.stop(), &score, &rect)? {
                let mut rect = rect(kept.class, kept.prior);
                if self.clip_after_nms {
                    rect = rect.clipped(R::of(1.0), R::of(1.0));
                }
                let label = kept.class as f64 - f64::from(u8::from(self.decrease_label_id));
                extend(&mut rows, [R::of(image as f64), R::of(label)])?;
                push(&mut rows, score(kept.class, kept.prior))?;
                extend(&mut rows, rect.corners())?;
            }
        }
        // The end, unless there is no row left for it.
        push(&mut rows, R::of(-1.0))?;
        let shape = cx.output(0).shape.to_static();
        let shape = shape.ok_or_else(|| OpError::Shape("the shape is not known".to_owned()))?;
        rows.truncate(shape[2].saturating_mul(7));
        let element = cx.input("box_logits").element_type();
        Ok(vec![real::padded(element, &shape, &rows)?])
    }

    fn is_background(&self, class: usize) -> bool {
        i64::try_from(class).is_ok_and(|class| class == self.background_label_id)
    }

    /// The boxes kept of an image, by class and then by score.
    fn of_image<R: Real>(
        &self,
        classes: usize,
        priors: usize,
        stop: Stop<'_>,
        score: &impl Fn(usize, usize) -> R,
        rect: &impl Fn(usize, usize) -> Rect<R>,
    ) -> Result<Vec<Kept>, OpError> {
        let least = R::of(self.confidence_threshold);
        let top = limit(self.top_k);
        let foreground = |class: &usize| !self.is_background(*class);
        let mut candidates: Vec<(usize, Vec<usize>)> = Vec::new();
        if self.decrease_label_id {
            // The best class of each prior; of the best priors then those of each class.
            let mut best: Vec<(usize, R)> = room_for(priors)?;
            for prior in 0..priors {
                let first = (0, R::of(-1.0));
                let others = (1..classes).filter(foreground);
                best.push(others.fold(first, |best, class| {
                    let score = score(class, prior);
                    if score > best.1 { (class, score) } else { best }
                }));
            }
            let counts = |p: &usize| best[*p].0 > 0 && best[*p].1 >= least;
            let order = best_first((0..priors).filter(counts), top, |p| best[p].1)?;
            for class in 1..classes {
                let of_class = order.iter().copied().filter(|p| best[*p].0 == class);
                stop.go_on()?;
                push(&mut candidates, (class, collected(of_class)?))?;
            }
        } else {
            for class in (0..classes).filter(foreground) {
                let counts = |p: &usize| score(class, *p) > least;
                stop.go_on()?;
                let best = best_first((0..priors).filter(counts), top, |p| score(class, p))?;
                push(&mut candidates, (class, best))?;
            }
        }

        let threshold = Threshold::above(R::of(self.nms_threshold));
        let mut kept: Vec<Kept> = Vec::new();
        for (class, order) in candidates {
            let rect = |i: usize| rect(class, i);
            let order = order.iter().copied();
            let of_class = greedy(order, usize::MAX, threshold, stop, Overlap::exact(), rect)?;
            extend(
                &mut kept,
                of_class.into_iter().map(|prior| Kept { class, prior }),
            )?;
        }
        self.keep_best(&mut kept, score)?;
        Ok(kept)
    }

    /// Of more boxes than are kept, leaves those of the best scores, still by class and then by score.
    fn keep_best<R: Real>(
        &self,
        kept: &mut Vec<Kept>,
        score: &impl Fn(usize, usize) -> R,
    ) -> Result<(), OpError> {
        let most = limit(self.keep());
        if kept.len() <= most {
            return Ok(());
        }
        sort_by_keys(kept, |k| {
            let rank = score(k.class, k.prior).rank();
            [rank, k.prior as u64, k.class as u64, 0]
        })?;
        kept.truncate(most);
        // Within a class they stay in the order of their scores.
        Ok(sort_by_keys(kept, |k| [k.class as u64, 0, 0, 0])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, infer, run};

    const CENTER: (&str, &str) = ("code_type", "caffe.PriorBoxParameter.CENTER_SIZE");

    fn attributes<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        [&[("nms_threshold", "0.5"), ("normalized", "true")], more].concat()
    }

    /// Three priors, the first two of which overlap, two classes, variances of a half.
    fn inputs() -> [Tensor; 3] {
        let priors = [
            [0.0, 0.0, 0.5, 0.5],
            [0.0, 0.125, 0.5, 0.625],
            [0.5, 0.5, 1.0, 1.0],
        ];
        let mut offsets = [0.0; 12];
        offsets[8] = 0.5;
        [
            f32s(&[1, 12], &offsets),
            f32s(&[1, 6], &[0.1, 0.9, 0.3, 0.7, 0.2, 0.8]),
            f32s(&[1, 2, 12], &[&priors.concat()[..], &[0.5; 12]].concat()),
        ]
    }

    fn rows(op: &'static OpDef, attributes: &[(&str, &str)], inputs: &[Tensor]) -> Vec<Vec<f64>> {
        let out = run(op, attributes, inputs).to_f64_vec().unwrap();
        let round = |x: &f64| (x * 1e4).round() / 1e4;
        out.chunks(7)
            .map(|row| row.iter().map(round).collect())
            .collect()
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn decodes_and_suppresses() {
        let three = attributes(&[("keep_top_k", "3")]);
        let want = [
            [0.0, 1.0, 0.9, 0.0, 0.0, 0.5, 0.5],
            [0.0, 1.0, 0.8, 0.75, 0.5, 1.0, 1.0],
            [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ];
        assert_eq!(rows(&V8, &three, &inputs()), want);
        let center = attributes(&[("keep_top_k", "3"), ("clip_after_nms", "true"), CENTER]);
        let want = [0.0, 1.0, 0.8, 0.625, 0.5, 1.0, 1.0];
        assert_eq!(rows(&V8, &center, &inputs())[1], want);
        let one = attributes(&[("keep_top_k", "1"), ("num_classes", "2")]);
        let want = [[0.0, 1.0, 0.9, 0.0, 0.0, 0.5, 0.5]];
        assert_eq!(rows(&V1, &one, &inputs()), want);
    }

    /// Values of OpenVINO 2026.4.1.
    #[test]
    fn best_class_of_each_prior() {
        let mxnet = attributes(&[("keep_top_k", "4"), ("decrease_label_id", "true")]);
        let found = rows(&V8, &mxnet, &inputs());
        assert_eq!(found[0][..3], [0.0, 0.0, 0.9]);
        assert_eq!(found[1][..3], [0.0, 0.0, 0.8]);
        assert_eq!(found[2][0], -1.0);
    }

    #[test]
    fn rows_of_the_output() {
        let known = inputs().map(|t| (t.element_type(), t.shape().into(), None));
        let all = attributes(&[("keep_top_k", "-1")]);
        assert_eq!(infer(&V8, &all, &known).0, "f32[1, 1, 6, 7]");
        let top = attributes(&[("keep_top_k", "-1"), ("top_k", "2")]);
        assert_eq!(infer(&V8, &top, &known).0, "f32[1, 1, 4, 7]");
        let [logits, _, priors] = known;
        let any = (ElementType::F32, PartialShape::DYNAMIC, None);
        let inputs = [logits, any, priors];
        assert_eq!(infer(&V8, &top, &inputs).0, "f32[1, 1, ?, 7]");
        let given = [&top[..], &[("num_classes", "2")]].concat();
        assert_eq!(infer(&V1, &given, &inputs).0, "f32[1, 1, 4, 7]");
    }

    #[test]
    fn says_what_is_wrong() {
        let all = attributes(&[("keep_top_k", "-1")]);
        let given = [&all[..], &[("num_classes", "3")]].concat();
        assert_eq!(
            error(&V8, &given, &inputs()),
            "unknown attribute `num_classes`"
        );
        assert_eq!(
            error(&V1, &all, &inputs()),
            "attribute missing field `num_classes`"
        );
        assert_eq!(
            error(&V1, &given, &inputs()),
            "`class_preds` must be [images, priors * classes], found [1, 6] for 3 priors and 3 \
             classes"
        );
        let five = [("keep_top_k", "-1"), ("nms_threshold", "0.5")];
        assert_eq!(
            error(&V8, &five, &inputs()),
            "the last dim of `proposals` must be a multiple of 5, found [1, 2, 12]"
        );
    }
}
