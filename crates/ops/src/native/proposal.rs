//! `Proposal`: boxes made of anchors by predicted deltas; of the `pre_nms_topn` best of them those that
//! no better one overlaps by more than `nms_thresh`, at most `post_nms_topn` of each image.
//!
//! There is an anchor for each ratio and each scale, at every place of the map, `feat_stride` apart. With
//! `a = base_size²`, its extents are `w scale, h scale` where `w = round(sqrt(a / ratio))` and
//! `h = round(w ratio)`. With `framework="tensorflow"` nothing is rounded, anchors lie about the place
//! itself instead of about the middle of the cell, they are moved into the image first, coordinates do
//! not count pixels, and x goes down the image and y across.
//!
//! Specifications: Proposal-1 and Proposal-4, which also gives out the scores. Boxes smaller than
//! `min_size` (times the scale of the image) are dropped (OpenVINO gives them the score 0). Where an
//! image has fewer boxes than `post_nms_topn`, a row with -1 in front ends them, and the rest is 0. Of
//! equal scores the first comes first.

use super::boxes::{Rect, Threshold};
use super::proposals::{self, Proposal as Box5};
use super::real::{self, Real, real_type};
use crate::error::ensure;
use crate::{
    Attributes, Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType,
};
use serde::Deserialize;
use std::iter::repeat_n;
use vinelift_tensor::memory::{extend, push, room_for};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Native(|attributes| build(attributes, false)),
);

pub(crate) static V4: OpDef = version(
    &["opset4"],
    Build::Native(|attributes| build(attributes, true)),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "Proposal",
        versions,
        signature: Signature::new(&["class_probs", "bbox_deltas", "image_shape"]),
        family: Family::Native,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    base_size: u32,
    pre_nms_topn: i64,
    post_nms_topn: i64,
    nms_thresh: f64,
    feat_stride: u32,
    min_size: u32,
    ratio: Vec<f64>,
    scale: Vec<f64>,
    #[serde(default = "crate::attrs::yes")]
    clip_before_nms: bool,
    #[serde(default)]
    clip_after_nms: bool,
    #[serde(default)]
    normalize: bool,
    #[serde(default = "crate::attrs::one")]
    box_size_scale: f64,
    #[serde(default = "crate::attrs::one")]
    box_coordinate_scale: f64,
    #[serde(default)]
    framework: Framework,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
enum Framework {
    #[default]
    #[serde(rename = "")]
    Caffe,
    #[serde(rename = "tensorflow")]
    TensorFlow,
}

fn build(attributes: &Attributes<'_>, scores: bool) -> Result<Box<dyn Native>, OpError> {
    let given = attributes.parse()?;
    Ok(Box::new(Proposal { given, scores }))
}

#[derive(Debug)]
struct Proposal {
    given: Given,
    /// Whether there is an output of scores.
    scores: bool,
}

impl Native for Proposal {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "class_probs")?;
        cx.expect_same("class_probs", "bbox_deltas")?;
        cx.expect_same("class_probs", "image_shape")?;
        cx.expect_rank("class_probs", 4)?;
        cx.expect_rank("bbox_deltas", 4)?;
        cx.expect_rank("image_shape", 1)?;
        let any = [Dim::ANY; 4];
        let probs = cx.dims("class_probs").unwrap_or(&any);
        let deltas = cx.dims("bbox_deltas").unwrap_or(&any);
        let anchors = self.given.ratio.len() * self.given.scale.len();
        let fits = probs[1].contains(2 * anchors)
            && deltas[1].contains(4 * anchors)
            && probs[2].intersect(deltas[2]).is_some()
            && probs[3].intersect(deltas[3]).is_some();
        let batches = probs[0].intersect(deltas[0]).filter(|_| fits);
        let Some(batches) = batches else {
            return Err(OpError::Shape(format!(
                "`class_probs` {} and `bbox_deltas` {} must be [batches, {}, height, width] and \
                 [batches, {}, height, width]",
                cx.shape("class_probs"),
                cx.shape("bbox_deltas"),
                2 * anchors,
                4 * anchors
            )));
        };
        let image = cx.dims("image_shape").map_or(Dim::ANY, |d| d[0]);
        ensure!(
            image.contains(3) || image.contains(4),
            "`image_shape` must have 3 or 4 elements, found {}",
            cx.shape("image_shape")
        );
        proposals::count("pre_nms_topn", self.given.pre_nms_topn)?;
        let after = proposals::count("post_nms_topn", self.given.post_nms_topn)?;
        let rows = batches.mul(Dim::fixed(after));
        let output = |dims: Vec<Dim>| TensorType::new(element, PartialShape::ranked(dims));
        let mut outputs = vec![output(vec![rows, Dim::fixed(5)])];
        if self.scores {
            outputs.push(output(vec![rows]));
        }
        Ok(outputs)
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("class_probs").element_type() == ElementType::F64 {
            self.propose::<f64>(cx)
        } else {
            self.propose::<f32>(cx)
        }
    }
}

impl Proposal {
    fn propose<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let given = &self.given;
        let element = cx.input("class_probs").element_type();
        let batches = cx.shape("class_probs")[0];
        let image = R::read(cx, "image_shape")?;
        // With TensorFlow x goes along the rows.
        let (height, width) = if self.is_tensorflow() {
            (image[1], image[0])
        } else {
            (image[0], image[1])
        };
        let scales = [image[2], image[image.len() - 1]];
        let least = scales.map(|scale| R::of(given.min_size.into()) * scale);
        let before = proposals::count("pre_nms_topn", given.pre_nms_topn)?;
        let after = proposals::count("post_nms_topn", given.post_nms_topn)?;
        let threshold = Threshold::above(R::of(given.nms_thresh));
        let pixel = self.pixel();

        let rows = batches.saturating_mul(after);
        // Where there is no memory for the outputs, this says so.
        Tensor::zeros(element, &[rows, 5])?;
        let mut boxes: Vec<R> = Vec::new();
        let mut scores: Vec<R> = Vec::new();
        let all = Maps::<R>::read(cx)?;
        let anchors = self.anchors();
        for b in 0..batches {
            cx.go_on()?;
            let mut found = all.proposals(b, &anchors, |anchor, place, deltas| {
                self.refine(anchor, place, deltas, [height, width])
            })?;
            found.retain(|p| proposals::is_large_enough(&p.rect, pixel, least));
            let counts = [before, after];
            let found = proposals::best(&found, counts, threshold, pixel, cx.stop(), |_| true)?;
            for proposal in &found {
                push(&mut boxes, R::of(b as f64))?;
                extend(&mut boxes, self.corners(proposal.rect, [height, width]))?;
                push(&mut scores, proposal.score)?;
            }
            if found.len() < after {
                push(&mut boxes, R::of(-1.0))?;
            }
            let missing = (b + 1) * after - scores.len();
            extend(&mut scores, repeat_n(R::of(0.0), missing))?;
            let missing = (b + 1) * after * 5 - boxes.len();
            extend(&mut boxes, repeat_n(R::of(0.0), missing))?;
        }
        let mut outputs = vec![real::tensor(element, &[rows, 5], &boxes)?];
        if self.scores {
            outputs.push(real::tensor(element, &[rows], &scores)?);
        }
        Ok(outputs)
    }

    /// The corners of a proposal as they are put out.
    fn corners<R: Real>(&self, mut rect: Rect<R>, [height, width]: [R; 2]) -> [R; 4] {
        if self.given.clip_after_nms {
            rect = rect.clipped(width, height);
        }
        let [x0, y0, x1, y1] = rect.corners();
        match self.given.normalize {
            true => [x0 / width, y0 / height, x1 / width, y1 / height],
            false => [x0, y0, x1, y1],
        }
    }

    fn is_tensorflow(&self) -> bool {
        self.given.framework == Framework::TensorFlow
    }

    fn pixel<R: Real>(&self) -> R {
        R::of(if self.is_tensorflow() { 0.0 } else { 1.0 })
    }

    /// The anchors at place 0, 0: those of the first ratio with all scales, and so on.
    fn anchors<R: Real>(&self) -> Vec<Rect<R>> {
        let base = R::of(self.given.base_size.into());
        let pixel = self.pixel::<R>();
        let half = R::of(0.5);
        let round = |x: f64| if self.is_tensorflow() { x } else { x.round() };
        let mut center = half * (base - pixel);
        if self.is_tensorflow() {
            center = center - half * base;
        }
        let mut anchors = Vec::new();
        for &ratio in &self.given.ratio {
            let ratio = R::of(ratio);
            let width = R::of(round((base * base / ratio).to_f64().sqrt()));
            let height = R::of(round((width * ratio).to_f64()));
            for &scale in &self.given.scale {
                let scale = R::of(scale);
                let (w, h) = (
                    half * (width * scale - pixel),
                    half * (height * scale - pixel),
                );
                let corners = [center - w, center - h, center + w, center + h];
                anchors.push(Rect::from_corners(corners));
            }
        }
        anchors
    }

    /// The box that deltas make of an anchor at a `[row, column]` of the map.
    fn refine<R: Real>(
        &self,
        anchor: &Rect<R>,
        [row, column]: [usize; 2],
        [dx, dy, dw, dh]: [R; 4],
        [height, width]: [R; 2],
    ) -> Rect<R> {
        let pixel = self.pixel::<R>();
        let along = |k: usize| R::of(k as f64 * f64::from(self.given.feat_stride));
        let (x, y) = if self.is_tensorflow() {
            (along(row), along(column))
        } else {
            (along(column), along(row))
        };
        let [x0, y0, x1, y1] = anchor.corners();
        let mut rect = Rect::from_corners([x + x0, y + y0, x + x1, y + y1]);
        if self.is_tensorflow() {
            rect = rect.clipped(width, height);
        }
        let shift = R::of(self.given.box_coordinate_scale);
        let growth = R::of(self.given.box_size_scale);
        let deltas = [dx / shift, dy / shift, dw / growth, dh / growth];
        let rect = rect.refined(deltas, pixel, R::of(0.0));
        if self.given.clip_before_nms {
            return rect.clipped(width - pixel, height - pixel);
        }
        rect
    }
}

/// The inputs that have values for each place of a map.
struct Maps<R> {
    probs: Vec<R>,
    deltas: Vec<R>,
    height: usize,
    width: usize,
}

impl<R: Real> Maps<R> {
    fn read(cx: &Evaluate<'_>) -> Result<Maps<R>, OpError> {
        Ok(Maps {
            probs: R::read(cx, "class_probs")?,
            deltas: R::read(cx, "bbox_deltas")?,
            height: cx.shape("class_probs")[2],
            width: cx.shape("class_probs")[3],
        })
    }

    /// The proposals for image `b`: by place, then by anchor.
    fn proposals(
        &self,
        b: usize,
        anchors: &[Rect<R>],
        refine: impl Fn(&Rect<R>, [usize; 2], [R; 4]) -> Rect<R>,
    ) -> Result<Vec<Box5<R>>, OpError> {
        let area = self.height * self.width;
        let mut all = room_for(area.saturating_mul(anchors.len()))?;
        for place in 0..area {
            for (a, anchor) in anchors.iter().enumerate() {
                let map = b * anchors.len() + a;
                let delta = |d: usize| self.deltas[(map * 4 + d) * area + place];
                let at = [place / self.width, place % self.width];
                // The maps of the background come first.
                let probs = (2 * b + 1) * anchors.len() + a;
                all.push(Box5 {
                    rect: refine(anchor, at, [0, 1, 2, 3].map(delta)),
                    score: self.probs[probs * area + place],
                });
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, infer, run, run_all};

    fn attributes<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let given = [
            ("base_size", "5"),
            ("pre_nms_topn", "9"),
            ("nms_thresh", "0.5"),
            ("feat_stride", "4"),
            ("ratio", "1"),
            ("scale", "1"),
        ];
        [&given[..], more].concat()
    }

    const THREE: (&str, &str) = ("post_nms_topn", "3");
    const ANY: (&str, &str) = ("min_size", "1");

    /// An image of 12 × 8 pixels and a map of one row with three places.
    fn inputs(image: &[f32]) -> [Tensor; 3] {
        let mut deltas = [0.0; 12];
        // The second box moves onto the first one, the third grows to twice its height.
        deltas[1] = -0.75;
        deltas[11] = f32::ln(2.0);
        [
            f32s(&[1, 2, 1, 3], &[0.0, 0.0, 0.0, 0.9, 0.8, 0.7]),
            f32s(&[1, 4, 1, 3], &deltas),
            f32s(&[image.len()], image),
        ]
    }

    fn boxes(more: &[(&str, &str)], image: &[f32]) -> Vec<f64> {
        let out = run(&V1, &attributes(more), &inputs(image));
        let rows = out.to_f64_vec().unwrap();
        rows.iter().map(|x| (x * 1e4).round() / 1e4).collect()
    }

    /// By hand, from the formula of the specification.
    #[test]
    fn as_in_caffe() {
        let image = [8.0, 12.0, 1.0];
        let attributes = attributes(&[THREE, ANY]);
        let out = run_all(&V4, &attributes, &inputs(&image), IndexPolicy::Spec).unwrap();
        let want = [
            [0.0, 0.0, 0.0, 5.0, 5.0],
            [0.0, 8.0, 0.0, 11.0, 7.0],
            [-1.0, 0.0, 0.0, 0.0, 0.0],
        ];
        assert_eq!(out[0], f32s(&[3, 5], &want.concat()));
        assert_eq!(out[1], f32s(&[3], &[0.9, 0.7, 0.0]));
        let loose = [THREE, ANY, ("clip_before_nms", "false")];
        assert_eq!(boxes(&loose, &image)[5..10], [0.0, 8.0, -2.5, 13.0, 7.5]);
        let late = [&loose[..], &[("clip_after_nms", "true")]].concat();
        assert_eq!(boxes(&late, &image)[5..10], [0.0, 8.0, 0.0, 12.0, 7.5]);
        let normal = [THREE, ANY, ("normalize", "true")];
        let want = [0.0, 0.6667, 0.0, 0.9167, 0.875];
        assert_eq!(boxes(&normal, &image)[5..10], want);
    }

    /// By hand, from the formula of the specification.
    #[test]
    fn as_in_tensorflow() {
        let other = [THREE, ANY, ("framework", "tensorflow")];
        // Anchors go from -2.5 to 2.5; places follow one another in y.
        let found = boxes(&other, &[8.0, 12.0, 1.0]);
        assert_eq!(found[..5], [0.0, 0.0, 0.0, 2.5, 2.5]);
        // The second box is cut to less than one pixel.
        assert_eq!(found[5..10], [0.0, 0.0, 3.0, 2.5, 12.0]);
    }

    #[test]
    fn small_boxes_are_dropped() {
        // The boxes are 6 × 6, 6 × 6 and 4 × 8.
        let least = [THREE, ("min_size", "2")];
        let found = boxes(&least, &[8.0, 12.0, 1.0, 3.0]);
        assert_eq!(
            found[..10],
            [0.0, 0.0, 0.0, 5.0, 5.0, -1.0, 0.0, 0.0, 0.0, 0.0]
        );
        let most = [THREE, ("min_size", "9")];
        assert_eq!(boxes(&most, &[8.0, 12.0, 1.0])[0], -1.0);
    }

    #[test]
    fn shapes() {
        let all = attributes(&[THREE, ANY]);
        let known = inputs(&[8.0, 12.0, 1.0]).map(|t| (t.element_type(), t.shape().into(), None));
        assert_eq!(infer(&V4, &all, &known).0, "f32[3, 5] f32[3]");
        let [_, _, image] = known;
        let any = (ElementType::F32, PartialShape::DYNAMIC, None);
        let found = infer(&V1, &all, &[any.clone(), any, image]).0;
        assert_eq!(found, "f32[?, 5]");
        let mut more = all.clone();
        more.retain(|(name, _)| *name != "ratio");
        more.push(("ratio", "1, 2"));
        assert_eq!(
            error(&V1, &more, &inputs(&[8.0, 12.0, 1.0])),
            "`class_probs` [1, 2, 1, 3] and `bbox_deltas` [1, 4, 1, 3] must be [batches, 4, height, \
             width] and [batches, 8, height, width]"
        );
        assert_eq!(
            error(&V1, &all, &inputs(&[8.0, 12.0])),
            "`image_shape` must have 3 or 4 elements, found [2]"
        );
    }
}
