//! The common part of the operators that select boxes for each class of each image: their inputs, and outputs
//! that name the selected ones.

use super::real::{Real, real_type};
use super::tensors::{floats, integers};
use crate::error::ensure;
use crate::{Evaluate, Infer, OpError, TensorType};
use vinelift_tensor::memory::{collected, extend, filled};
use vinelift_tensor::order::sort_by_keys;
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor, TensorError};

/// The dims that `boxes` and `scores` share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dims {
    pub(super) batches: Dim,
    pub(super) classes: Dim,
    pub(super) boxes: Dim,
}

/// Checks the inputs `boxes` `[batches, boxes, coordinates]` and `scores`
/// `[batches, classes, boxes]`, of one float type.
pub(super) fn infer(cx: &Infer<'_>, coordinates: usize) -> Result<Dims, OpError> {
    real_type(cx, "boxes")?;
    cx.expect_same("boxes", "scores")?;
    cx.expect_rank("boxes", 3)?;
    cx.expect_rank("scores", 3)?;
    let any = [Dim::ANY; 3];
    let boxes = cx.dims("boxes").unwrap_or(&any);
    let scores = cx.dims("scores").unwrap_or(&any);
    ensure!(
        boxes[2].contains(coordinates),
        "the last dim of `boxes` must be {coordinates}, found {}",
        cx.shape("boxes")
    );
    let (Some(batches), Some(count)) =
        (boxes[0].intersect(scores[0]), boxes[1].intersect(scores[2]))
    else {
        return Err(OpError::Shape(format!(
            "`boxes` {} and `scores` {} must be [batches, boxes, {coordinates}] and [batches, classes, boxes]",
            cx.shape("boxes"),
            cx.shape("scores")
        )));
    };
    Ok(Dims {
        batches,
        classes: scores[1],
        boxes: count,
    })
}

/// Checks an input that holds a single float.
pub(super) fn expect_number(cx: &Infer<'_>, name: &'static str) -> Result<(), OpError> {
    if !cx.has(name) {
        return Ok(());
    }
    real_type(cx, name)?;
    let one = cx.dims(name).is_none_or(|dims| match dims {
        [] => true,
        [n] => n.contains(1),
        _ => false,
    });
    ensure!(
        one,
        "`{name}` must hold one element, found {}",
        cx.shape(name)
    );
    Ok(())
}

/// The smaller of two extents. Of those that have symbols nothing is relied on.
pub(super) fn least(a: Dim, b: Dim) -> Dim {
    let max = match (a.up_to().max(), b.up_to().max()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    match a.is_symbolic() || b.is_symbolic() {
        true => Dim::between(0, max),
        false => Dim::between(a.min().min(b.min()), max),
    }
}

/// The number that `max_output_boxes_per_class` gives; a negative one counts as 0.
pub(super) fn boxes_per_class(cx: &Infer<'_>) -> Result<Dim, OpError> {
    if !cx.has(PER_CLASS) {
        return Ok(Dim::fixed(0));
    }
    let most = cx.integer(PER_CLASS)?;
    Ok(most.map_or(Dim::ANY, |n| Dim::fixed(n.max(0) as usize)))
}

const PER_CLASS: &str = "max_output_boxes_per_class";

/// As [`boxes_per_class`], when it is known.
pub(super) fn most_per_class(cx: &Evaluate<'_>) -> Result<usize, OpError> {
    let most = cx.integer(PER_CLASS)?.unwrap_or(0);
    Ok(usize::try_from(most.max(0)).unwrap_or(usize::MAX))
}

/// The only element of input `name`, or 0 if it is not there.
pub(super) fn number<R: Real>(cx: &Evaluate<'_>, name: &str) -> Result<R, OpError> {
    Ok(R::of(cx.number(name)?.unwrap_or(0.0)))
}

/// The types of the outputs `selected_indices`, `selected_scores` and `valid_outputs`.
pub(super) fn outputs(dims: Dims, per_class: Dim, index: ElementType) -> Vec<TensorType> {
    let most = least(dims.boxes, per_class);
    let found = most.mul(dims.batches).mul(dims.classes).up_to();
    let rows = |ty| TensorType::new(ty, PartialShape::ranked(vec![found, Dim::fixed(3)]));
    let count = TensorType::new(index, PartialShape::ranked(vec![Dim::fixed(1)]));
    // The files that there are declare f32 scores, whatever the type of the thresholds is.
    vec![rows(index), rows(ElementType::F32), count]
}

/// A selected box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected<R> {
    pub(super) batch: usize,
    pub(super) class: usize,
    pub(super) index: usize,
    pub(super) score: R,
}

/// Calls `select(boxes of the image, scores of the class)` for each class of each image, `decode` having made the
/// boxes of the rows of the image. It gives positions and scores, the best first. With `descending`, all of them are put in the order of their
/// scores; those with equal ones stay in the order of images and classes.
pub(super) fn for_each_class<R: Real, B>(
    cx: &Evaluate<'_>,
    descending: bool,
    decode: impl Fn(&[R]) -> Result<Vec<B>, OpError>,
    select: impl Fn(&[B], &[R]) -> Result<Vec<(usize, R)>, OpError>,
) -> Result<Vec<Selected<R>>, OpError> {
    let (boxes, scores) = (R::read(cx, "boxes")?, R::read(cx, "scores")?);
    let (classes, count) = (cx.shape("scores")[1], cx.shape("scores")[2]);
    let row = cx.shape("boxes")[2];
    let mut selected = Vec::new();
    if count == 0 || classes == 0 {
        return Ok(selected);
    }
    let images = scores.chunks_exact(classes * count);
    for (batch, (boxes, scores)) in boxes.chunks_exact(count * row).zip(images).enumerate() {
        let boxes = decode(boxes)?;
        for (class, scores) in scores.chunks_exact(count).enumerate() {
            cx.go_on()?;
            let found = select(&boxes, scores)?.into_iter();
            let found = found.map(|(index, score)| Selected {
                batch,
                class,
                index,
                score,
            });
            extend(&mut selected, found)?;
        }
    }
    if descending {
        sort_by_keys(&mut selected, |s| {
            let [batch, class, index] = [s.batch, s.class, s.index].map(|i| i as u64);
            [s.score.rank(), batch, class, index]
        })?;
    }
    Ok(selected)
}

/// The output `selected_indices`: `rows` of batch, class and box, or of -1 after the last.
pub(super) fn padded_indices<R>(
    ty: ElementType,
    selected: &[Selected<R>],
    rows: usize,
) -> Result<Tensor, TensorError> {
    let named = selected.iter().flat_map(|s| [s.batch, s.class, s.index]);
    let mut values = filled(rows.saturating_mul(3), -1)?;
    let places = values.iter_mut().zip(named);
    places.for_each(|(place, i)| *place = i as i64);
    integers(ty, &[rows, 3], &values)
}

/// The outputs whose types [`outputs`] gives.
pub(super) fn tensors<R: Real>(
    ty: ElementType,
    selected: &[Selected<R>],
) -> Result<Vec<Tensor>, OpError> {
    let rows = selected
        .iter()
        .flat_map(|s| [s.batch as f64, s.class as f64, s.score.to_f64()]);
    let rows = collected(rows)?;
    Ok(vec![
        padded_indices(ty, selected, selected.len())?,
        floats(ElementType::F32, &[selected.len(), 3], &rows)?,
        integers(ty, &[1], &[selected.len() as i64])?,
    ])
}
