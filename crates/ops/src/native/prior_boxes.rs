//! The shapes of the inputs of `DetectionOutput`, and the boxes in them.

use super::boxes::Rect;
use super::real::Real;
use crate::error::ensure;
use crate::{Evaluate, Infer, OpError};
use serde::Deserialize;
use vinelift_tensor::Dim;
use vinelift_tensor::memory::room_for;

/// The meaning of the offsets of a box.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) enum Code {
    /// They move the corners.
    #[default]
    #[serde(rename = "caffe.PriorBoxParameter.CORNER")]
    Corner,
    /// They move the center, and scale the extents by their exponentials.
    #[serde(rename = "caffe.PriorBoxParameter.CENTER_SIZE")]
    CenterSize,
}

impl Code {
    fn moved<R: Real>(self, rect: Rect<R>, offsets: [R; 4]) -> Rect<R> {
        match self {
            Code::Corner => {
                let corners = rect.corners();
                Rect::from_corners([0, 1, 2, 3].map(|k| corners[k] + offsets[k]))
            }
            Code::CenterSize => rect.refined(offsets, R::of(0.0), R::of(0.0)),
        }
    }
}

/// The attributes that shapes depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The number of classes, if it is an attribute.
    pub(super) classes: Option<usize>,
    /// Whether all classes have the same boxes.
    pub(super) shared: bool,
    /// Whether priors have four numbers, and not one more in front.
    pub(super) normalized: bool,
    /// Whether there are variances.
    pub(super) variances: bool,
}

/// The sizes that the shapes follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) images: Dim,
    pub(super) classes: Dim,
    pub(super) priors: Dim,
}

impl Layout {
    /// Checks the inputs.
    pub(super) fn infer(&self, cx: &Infer<'_>) -> Result<Sizes, OpError> {
        let dims = InputDims::of(cx)?;
        let (priors, classes) = self.counts(cx, &dims)?;
        let show = |n: Option<usize>| n.map_or("?".to_owned(), |n| n.to_string());
        let expect = |dim: Dim, factors: &[Option<usize>], name: &str, shape: &str| {
            let want = factors
                .iter()
                .try_fold(1usize, |product, n| n.map(|n| product.saturating_mul(n)));
            ensure!(
                want.is_none_or(|want| dim.contains(want)),
                "`{name}` must be {shape}, found {} for {} priors and {} classes",
                cx.shape(name),
                show(priors),
                show(classes)
            );
            Ok(())
        };
        let (boxes, shape) = match self.shared {
            true => (Some(1), "[images, priors * 4]"),
            false => (classes, "[images, priors * classes * 4]"),
        };
        expect(dims.offsets, &[priors, boxes, Some(4)], "box_logits", shape)?;
        let shape = "[images, priors * classes]";
        expect(dims.predictions, &[priors, classes], "class_preds", shape)?;
        if let Some(objects) = dims.objects {
            let shape = "[images, priors * 2]";
            expect(objects, &[priors, Some(2)], "aux_class_preds", shape)?;
        }
        let [batch, rows, length] = dims.proposals;
        let (rows_expected, numbers) = (1 + usize::from(self.variances), self.numbers());
        let shape = format!("[1 or images, {rows_expected}, priors * {numbers}]");
        expect(rows, &[Some(rows_expected)], "proposals", &shape)?;
        expect(length, &[priors, Some(numbers)], "proposals", &shape)?;
        ensure!(
            batch.contains(1) || batch.intersect(dims.images).is_some(),
            "`proposals` must be {shape}, found {} for `box_logits` {}",
            cx.shape("proposals"),
            cx.shape("box_logits")
        );
        let known = |n: Option<usize>| n.map_or(Dim::ANY, Dim::fixed);
        Ok(Sizes {
            images: dims.images,
            classes: known(classes),
            priors: known(priors),
        })
    }

    /// The numbers of priors and of classes, from the inputs whose extents tell.
    fn counts(
        &self,
        cx: &Infer<'_>,
        dims: &InputDims,
    ) -> Result<(Option<usize>, Option<usize>), OpError> {
        let (offsets, predictions) = (dims.offsets, dims.predictions);
        let mut priors = divided(cx, dims.proposals[2], Some(self.numbers()), "proposals")?;
        let objects = dims.objects.unwrap_or(Dim::ANY);
        priors = priors.or(divided(cx, objects, Some(2), "aux_class_preds")?);
        let mut classes = self.classes;
        classes = classes.or(divided(cx, predictions, priors, "class_preds")?);
        if !self.shared {
            let numbers = priors.map(|n| n.saturating_mul(4));
            classes = classes.or(divided(cx, offsets, numbers, "box_logits")?);
        }
        let boxes = if self.shared { Some(1) } else { classes };
        let numbers = boxes.map(|n| n.saturating_mul(4));
        priors = priors.or(divided(cx, offsets, numbers, "box_logits")?);
        priors = priors.or(divided(cx, predictions, classes, "class_preds")?);
        Ok((priors, classes))
    }

    /// The numbers of a prior.
    fn numbers(&self) -> usize {
        if self.normalized { 4 } else { 5 }
    }

    /// The number of priors.
    pub(super) fn priors(&self, cx: &Evaluate<'_>) -> usize {
        cx.shape("proposals")[2] / self.numbers()
    }
}

/// The dims of the inputs that say how many images, priors and classes there are.
struct InputDims {
    images: Dim,
    /// The last dim of `box_logits`.
    offsets: Dim,
    /// The last dim of `class_preds`.
    predictions: Dim,
    /// The last dim of `aux_class_preds`, if there are auxiliary predictions.
    objects: Option<Dim>,
    proposals: [Dim; 3],
}

impl InputDims {
    /// Reads them off inputs, which must have as many images each.
    fn of(cx: &Infer<'_>) -> Result<InputDims, OpError> {
        let auxiliary = cx.has("aux_class_preds");
        ensure!(
            auxiliary == cx.has("aux_box_preds"),
            "{} inputs, expected 3 or 5",
            cx.input_count()
        );
        let [logits_images, mut offsets] = dims(cx, "box_logits")?;
        let [predictions_images, predictions] = dims(cx, "class_preds")?;
        let proposals = dims(cx, "proposals")?;
        let mut images = meet(cx, "class_preds", logits_images, predictions_images)?;
        let mut objects = None;
        if auxiliary {
            let classes: [Dim; 2] = dims(cx, "aux_class_preds")?;
            let boxes: [Dim; 2] = dims(cx, "aux_box_preds")?;
            images = meet(cx, "aux_class_preds", images, classes[0])?;
            images = meet(cx, "aux_box_preds", images, boxes[0])?;
            offsets = meet(cx, "aux_box_preds", offsets, boxes[1])?;
            objects = Some(classes[1]);
        }
        Ok(InputDims {
            images,
            offsets,
            predictions,
            objects,
            proposals,
        })
    }
}

/// The dims of an input of rank `N` and of the type of `box_logits`.
fn dims<const N: usize>(cx: &Infer<'_>, name: &'static str) -> Result<[Dim; N], OpError> {
    cx.expect_same("box_logits", name)?;
    cx.expect_rank(name, N)?;
    let dims = cx.dims(name).and_then(|dims| dims.try_into().ok());
    Ok(dims.unwrap_or([Dim::ANY; N]))
}

/// The dim that must be both of these; the second is of input `name`.
fn meet(cx: &Infer<'_>, name: &'static str, a: Dim, b: Dim) -> Result<Dim, OpError> {
    a.intersect(b).ok_or_else(|| {
        OpError::Shape(format!(
            "`{name}` {} does not fit `box_logits` {}",
            cx.shape(name),
            cx.shape("box_logits")
        ))
    })
}

/// `dim / by`, if both are known.
fn divided(
    cx: &Infer<'_>,
    dim: Dim,
    by: Option<usize>,
    name: &str,
) -> Result<Option<usize>, OpError> {
    let Some((n, by)) = dim.get().zip(by.filter(|by| *by > 0)) else {
        return Ok(None);
    };
    ensure!(
        n % by == 0,
        "the last dim of `{name}` must be a multiple of {by}, found {}",
        cx.shape(name)
    );
    Ok(Some(n / by))
}

/// The boxes of all images, priors and (unless they are shared) classes.
pub(super) fn decode<R: Real>(
    cx: &Evaluate<'_>,
    layout: Layout,
    code: Code,
    clip: bool,
    [height, width]: [R; 2],
) -> Result<Vec<Rect<R>>, OpError> {
    let logits = R::read(cx, "box_logits")?;
    let first = if cx.has("aux_box_preds") {
        Some(R::read(cx, "aux_box_preds")?)
    } else {
        None
    };
    let proposals = R::read(cx, "proposals")?;
    let (images, priors) = (cx.shape("box_logits")[0], layout.priors(cx));
    let &[batch, rows, row] = cx.shape("proposals") else {
        return Ok(Vec::new());
    };
    let boxes = cx.shape("box_logits")[1]
        .checked_div(priors * 4)
        .unwrap_or(0);
    let apply = |rect: Rect<R>, offsets: &[R], variances: [R; 4]| {
        let rect = code.moved(rect, [0, 1, 2, 3].map(|k| variances[k] * offsets[k]));
        if clip {
            return rect.clipped(R::of(1.0), R::of(1.0));
        }
        rect
    };
    let mut all = room_for(images.saturating_mul(priors).saturating_mul(boxes))?;
    for image in 0..images {
        cx.go_on()?;
        let start = if batch == 1 { 0 } else { image } * rows * row;
        for prior in 0..priors {
            let numbers = &proposals[start + prior * layout.numbers()..][..layout.numbers()];
            let mut rect = Rect::read(&numbers[layout.numbers() - 4..], 0);
            if !layout.normalized {
                let [x0, y0, x1, y1] = rect.corners();
                rect = Rect::from_corners([x0 / width, y0 / height, x1 / width, y1 / height]);
            }
            let mut variances = [R::of(1.0); 4];
            if layout.variances {
                let row = &proposals[start + row + prior * 4..];
                variances = [0, 1, 2, 3].map(|k| row[k]);
            }
            for k in 0..boxes {
                let at = ((image * priors + prior) * boxes + k) * 4;
                let mut rect = rect;
                if let Some(first) = &first {
                    rect = apply(rect, &first[at..at + 4], variances);
                }
                all.push(apply(rect, &logits[at..at + 4], variances));
            }
        }
    }
    Ok(all)
}
