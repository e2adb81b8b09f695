//! `GenerateProposals` and `ExperimentalDetectronGenerateProposalsSingleImage`: boxes made of anchors by
//! predicted deltas, moved into the image; the `pre_nms_count` best of them are taken, of these those
//! that no better one overlaps by more than `nms_threshold`, at most `post_nms_count`.
//!
//! With `w, h` the extents of an anchor and `cx, cy` its center, the box has the center
//! `cx + dx w, cy + dy h` and the extents `w exp(dw), h exp(dh)`.
//!
//! Specifications: GenerateProposals-9, whose boxes smaller than `min_size` (times the scale of the
//! image) are dropped from the best; and ExperimentalDetectronGenerateProposalsSingleImage-6, whose are
//! dropped before (OpenVINO gives them the score 0), whose coordinates count pixels except for the
//! overlap, and whose outputs are filled up with 0. Where the specifications are silent, as OpenVINO:
//! deltas let a side grow by 62.5 at most. After each box that is kept, the threshold is multiplied by
//! `nms_eta` while it is above 0.5. Of equal scores the first comes first.

use super::boxes::{Rect, Threshold};
use super::proposals::{self, Proposal};
use super::real::{self, Real, real_type};
use super::tensors::integers;
use crate::attrs::{element_type, index_type};
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, Stop, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, extend, room_for};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "GenerateProposals",
    versions: &["opset9"],
    signature: Signature::new(&INPUTS),
    family: Family::Native,
    build: Build::Native(parse_native::<GenerateProposals>),
};

pub(crate) static SINGLE_IMAGE: OpDef = OpDef {
    name: "ExperimentalDetectronGenerateProposalsSingleImage",
    versions: &["opset6"],
    signature: Signature::new(&INPUTS),
    family: Family::Native,
    build: Build::Native(parse_native::<SingleImage>),
};

const INPUTS: [&str; 4] = ["im_info", "anchors", "boxesdeltas", "scores"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GenerateProposals {
    min_size: f64,
    nms_threshold: f64,
    pre_nms_count: i64,
    post_nms_count: i64,
    #[serde(default = "crate::attrs::yes")]
    normalized: bool,
    #[serde(default = "crate::attrs::one")]
    nms_eta: f64,
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    roi_num_type: ElementType,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SingleImage {
    min_size: f64,
    nms_threshold: f64,
    pre_nms_count: i64,
    post_nms_count: i64,
}

impl Native for GenerateProposals {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        index_type("roi_num_type", self.roi_num_type)?;
        ensure!(
            (0.0..=1.0).contains(&self.nms_eta),
            "`nms_eta` must lie between 0 and 1, found {}",
            self.nms_eta
        );
        proposals::count("pre_nms_count", self.pre_nms_count)?;
        let after = proposals::count("post_nms_count", self.post_nms_count)?;
        let [info, anchors, deltas, scores] = ranked(cx, [2, 4, 4, 4])?;
        let batches = [info[0], deltas[0], scores[0]];
        check_maps(
            cx,
            [anchors[0], deltas[2], scores[2]],
            [anchors[1], deltas[3], scores[3]],
            [anchors[2], scores[1]],
            deltas[1],
        )?;
        let batches = common(&batches).filter(|_| anchors[3].contains(4));
        let Some(batches) = batches.filter(|_| info[1].contains(3) || info[1].contains(4)) else {
            return Err(mismatch(cx));
        };
        let found = batches.mul(Dim::fixed(after)).up_to();
        let element = cx.element("scores");
        let output = |ty, dims: &[Dim]| TensorType::new(ty, PartialShape::ranked(dims.to_vec()));
        Ok(vec![
            output(element, &[found, Dim::fixed(4)]),
            output(element, &[found]),
            output(self.roi_num_type, &[batches]),
        ])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("scores").element_type() == ElementType::F64 {
            self.propose::<f64>(cx)
        } else {
            self.propose::<f32>(cx)
        }
    }
}

impl GenerateProposals {
    fn propose<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let maps = Maps::<R>::read(cx)?;
        let (batches, columns) = (cx.shape("im_info")[0], cx.shape("im_info")[1]);
        let info = R::read(cx, "im_info")?;
        let limits = [
            proposals::count("pre_nms_count", self.pre_nms_count)?,
            proposals::count("post_nms_count", self.post_nms_count)?,
        ];
        let pixel = R::of(if self.normalized { 0.0 } else { 1.0 });
        let threshold = Threshold {
            eta: R::of(self.nms_eta),
            ..Threshold::above(R::of(self.nms_threshold))
        };
        let mut all = Vec::new();
        let mut counts = room_for(batches)?;
        for b in 0..batches {
            let row = &info[b * columns..(b + 1) * columns];
            let refine = |anchor: &Rect<R>, deltas| {
                proposals::refine(anchor, deltas, pixel, [row[0], row[1]])
            };
            let scale = [row[2], row[columns - 1]];
            let least = scale.map(|scale| R::of(self.min_size) * scale);
            let large = |rect: &Rect<R>| proposals::is_large_enough(rect, pixel, least);
            let proposals = maps.proposals(b, cx.stop(), refine)?;
            let found = proposals::best(&proposals, limits, threshold, pixel, cx.stop(), large)?;
            counts.push(found.len() as i64);
            extend(&mut all, found)?;
        }
        let element = cx.input("scores").element_type();
        let [rois, scores] = tensors(element, &all, all.len())?;
        let counts = integers(self.roi_num_type, &[batches], &counts)?;
        Ok(vec![rois, scores, counts])
    }
}

impl Native for SingleImage {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        proposals::count("pre_nms_count", self.pre_nms_count)?;
        let after = proposals::count("post_nms_count", self.post_nms_count)?;
        let [info, anchors, deltas, scores] = ranked(cx, [1, 2, 3, 3])?;
        check_maps(
            cx,
            [deltas[1], scores[1]],
            [deltas[2], scores[2]],
            [scores[0]],
            deltas[0],
        )?;
        let all = scores.iter().copied().fold(Dim::fixed(1), Dim::mul);
        let fits = anchors[1].contains(4) && anchors[0].intersect(all).is_some();
        if !fits || !info[0].contains(3) {
            return Err(mismatch(cx));
        }
        let element = cx.element("scores");
        let output = |dims: &[usize]| TensorType::new(element, dims.into());
        Ok(vec![output(&[after, 4]), output(&[after])])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        if cx.input("scores").element_type() == ElementType::F64 {
            self.propose::<f64>(cx)
        } else {
            self.propose::<f32>(cx)
        }
    }
}

impl SingleImage {
    fn propose<R: Real>(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let info = R::read(cx, "im_info")?;
        let after = proposals::count("post_nms_count", self.post_nms_count)?;
        let limits = [
            proposals::count("pre_nms_count", self.pre_nms_count)?,
            after,
        ];
        let pixel = R::of(1.0);
        let least = [R::of(self.min_size); 2];
        let refine =
            |anchor: &Rect<R>, deltas| proposals::refine(anchor, deltas, pixel, [info[0], info[1]]);
        let mut all = Maps::<R>::read(cx)?.proposals(0, cx.stop(), refine)?;
        all.retain(|p| proposals::is_large_enough(&p.rect, pixel, least));
        let threshold = Threshold::above(R::of(self.nms_threshold));
        let found = proposals::best(&all, limits, threshold, R::of(0.0), cx.stop(), |_| true)?;
        let element = cx.input("scores").element_type();
        Ok(tensors(element, &found, after)?.into())
    }
}

/// The inputs that have values for each place of a map.
struct Maps<R> {
    anchors: Vec<R>,
    deltas: Vec<R>,
    scores: Vec<R>,
    /// Anchors of a place.
    count: usize,
    /// Places of the map.
    area: usize,
}

impl<R: Real> Maps<R> {
    fn read(cx: &Evaluate<'_>) -> Result<Maps<R>, OpError> {
        let shape = cx.shape("scores");
        let [count, height, width] = [3, 2, 1].map(|k| shape[shape.len() - k]);
        Ok(Maps {
            anchors: R::read(cx, "anchors")?,
            deltas: R::read(cx, "boxesdeltas")?,
            scores: R::read(cx, "scores")?,
            count,
            area: height * width,
        })
    }

    /// The proposals for image `b`, in the order of the anchors: by place, then by anchor.
    fn proposals(
        &self,
        b: usize,
        stop: Stop<'_>,
        refine: impl Fn(&Rect<R>, [R; 4]) -> Rect<R>,
    ) -> Result<Vec<Proposal<R>>, OpError> {
        stop.go_on()?;
        let (count, area) = (self.count, self.area);
        let propose = |k: usize| {
            let (place, a) = (k / count, k % count);
            let map = b * count + a;
            let delta = |d: usize| self.deltas[(map * 4 + d) * area + place];
            Proposal {
                rect: refine(&Rect::read(&self.anchors, k), [0, 1, 2, 3].map(delta)),
                score: self.scores[map * area + place],
            }
        };
        Ok(collected((0..area * count).map(propose))?)
    }
}

/// Boxes and scores, in tensors of `rows` that are filled up with 0.
fn tensors<R: Real>(
    element: ElementType,
    proposals: &[Proposal<R>],
    rows: usize,
) -> Result<[Tensor; 2], OpError> {
    let corners = collected(proposals.iter().flat_map(|p| p.rect.corners()))?;
    let scores = collected(proposals.iter().map(|p| p.score))?;
    Ok([
        real::padded(element, &[rows, 4], &corners)?,
        real::padded(element, &[rows], &scores)?,
    ])
}

/// The dims of the inputs, which have these ranks and one float type.
fn ranked(cx: &Infer<'_>, ranks: [usize; 4]) -> Result<[Vec<Dim>; 4], OpError> {
    real_type(cx, "scores")?;
    let mut dims = [const { Vec::new() }; 4];
    for ((name, rank), dims) in INPUTS.into_iter().zip(ranks).zip(&mut dims) {
        cx.expect_same("scores", name)?;
        cx.expect_rank(name, rank)?;
        *dims = cx.dims(name).map_or(vec![Dim::ANY; rank], <[Dim]>::to_vec);
    }
    Ok(dims)
}

/// Checks that the dims of each list agree, and that there are four deltas for each anchor.
fn check_maps<const N: usize, const M: usize>(
    cx: &Infer<'_>,
    heights: [Dim; N],
    widths: [Dim; N],
    anchors: [Dim; M],
    deltas: Dim,
) -> Result<(), OpError> {
    let fits = common(&heights).is_some() && common(&widths).is_some();
    let count = common(&anchors).and_then(|n| n.mul(Dim::fixed(4)).intersect(deltas));
    if !fits || count.is_none() {
        return Err(mismatch(cx));
    }
    Ok(())
}

/// The dim that fits all of these, if there is one.
fn common(dims: &[Dim]) -> Option<Dim> {
    dims.iter().try_fold(Dim::ANY, |a, b| a.intersect(*b))
}

fn mismatch(cx: &Infer<'_>) -> OpError {
    let shapes = INPUTS.map(|name| format!("`{name}` {}", cx.shape(name)));
    OpError::Shape(format!("{} do not fit together", shapes.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, infer, run_all};

    /// An image of 20 × 10, a map of one place, and three anchors.
    fn inputs(single: bool) -> [Tensor; 4] {
        let anchors = [
            [1.0, 1.0, 9.0, 7.0],
            [1.0, 1.0, 9.0, 9.0],
            [15.0, 0.0, 25.0, 3.0],
        ];
        let mut deltas = [0.0; 12];
        deltas[0] = 0.25;
        deltas[11] = f32::ln(2.0);
        let scores = [0.9, 0.8, 0.7];
        if single {
            return [
                f32s(&[3], &[10.0, 20.0, 1.0]),
                f32s(&[3, 4], &anchors.concat()),
                f32s(&[12, 1, 1], &deltas),
                f32s(&[3, 1, 1], &scores),
            ];
        }
        [
            f32s(&[1, 3], &[10.0, 20.0, 1.0]),
            f32s(&[1, 1, 3, 4], &anchors.concat()),
            f32s(&[1, 12, 1, 1], &deltas),
            f32s(&[1, 3, 1, 1], &scores),
        ]
    }

    const NONE: (&str, &str) = ("min_size", "0");

    fn attributes<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let counts = [("pre_nms_count", "9"), ("post_nms_count", "3")];
        [&counts[..], more].concat()
    }

    /// Values of NumPy, by the formula of the specification.
    #[test]
    fn of_a_batch() {
        let loose = attributes(&[NONE, ("nms_threshold", "0.7")]);
        let out = run_all(&DEF, &loose, &inputs(false), IndexPolicy::Spec).unwrap();
        let rois = [
            [3.0, 1.0, 11.0, 7.0],
            [1.0, 1.0, 9.0, 9.0],
            [15.0, 0.0, 20.0, 4.5],
        ];
        assert_eq!(out[0], f32s(&[3, 4], &rois.concat()));
        assert_eq!(out[1], f32s(&[3], &[0.9, 0.8, 0.7]));
        assert_eq!(out[2], i64s(&[1], &[3]));
        let tight = [("nms_threshold", "0.4"), ("roi_num_type", "i32"), NONE];
        let out = run_all(&DEF, &attributes(&tight), &inputs(false), IndexPolicy::Spec).unwrap();
        assert_eq!(out[1], f32s(&[2], &[0.9, 0.7]));
        assert_eq!(out[2], i32s(&[1], &[2]));
        let large = [("nms_threshold", "0.7"), ("min_size", "7")];
        let out = run_all(&DEF, &attributes(&large), &inputs(false), IndexPolicy::Spec).unwrap();
        assert_eq!(out[1], f32s(&[1], &[0.8]));
        let adaptive = attributes(&[("nms_threshold", "0.6"), ("nms_eta", "0.5"), NONE]);
        let out = run_all(&DEF, &adaptive, &inputs(false), IndexPolicy::Spec).unwrap();
        assert_eq!(out[1], f32s(&[2], &[0.9, 0.7]));
    }

    /// Values of NumPy, by the formula of the specification.
    #[test]
    fn of_a_single_image() {
        let loose = attributes(&[NONE, ("nms_threshold", "0.7")]);
        let out = run_all(&SINGLE_IMAGE, &loose, &inputs(true), IndexPolicy::Spec).unwrap();
        let rois = [
            [3.25, 1.0, 11.25, 7.0],
            [1.0, 1.0, 9.0, 9.0],
            [15.0, 0.0, 19.0, 5.0],
        ];
        assert_eq!(out[0], f32s(&[3, 4], &rois.concat()));
        assert_eq!(out[1], f32s(&[3], &[0.9, 0.8, 0.7]));
        let large = attributes(&[("nms_threshold", "0.7"), ("min_size", "8")]);
        let out = run_all(&SINGLE_IMAGE, &large, &inputs(true), IndexPolicy::Spec).unwrap();
        assert_eq!(out[1], f32s(&[3], &[0.8, 0.0, 0.0]));
    }

    #[test]
    fn shapes() {
        let known = |t: &Tensor| (t.element_type(), t.shape().into(), None);
        let all = attributes(&[NONE, ("nms_threshold", "0.7")]);
        let types = inputs(false).map(|t| known(&t));
        let found = infer(&DEF, &all, &types).0;
        assert_eq!(found, "f32[0..3, 4] f32[0..3] i64[1]");
        let [_, anchors, deltas, scores] = types;
        let any = (ElementType::F32, PartialShape::DYNAMIC, None);
        let found = infer(&DEF, &all, &[any, anchors, deltas, scores]).0;
        assert_eq!(found, "f32[0..3, 4] f32[0..3] i64[1]");
        let found = infer(&SINGLE_IMAGE, &all, &inputs(true).map(|t| known(&t))).0;
        assert_eq!(found, "f32[3, 4] f32[3]");
        let mut few = inputs(true);
        few[1] = f32s(&[2, 4], &[0.0; 8]);
        assert_eq!(
            error(&SINGLE_IMAGE, &all, &few),
            "`im_info` [3], `anchors` [2, 4], `boxesdeltas` [12, 1, 1], `scores` [3, 1, 1] do not \
             fit together"
        );
    }
}
