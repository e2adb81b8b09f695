//! `ISTFT`: a signal from the transforms of its frames: `out[n] = Σ_f y_f[n - f · step] / Σ_f w[n - f ·
//! step]`, `y_f` being the inverse transform of frame `f` and `w` the window; 0 where the windows add
//! up to 0. With `center` the first `size / 2` elements are left out, and the last ones. With
//! `normalized` the result is multiplied by `√size`.
//!
//! Specification: ISTFT-16, which gives no formula: the one above is that of OpenVINO. A window
//! shorter than a frame gets as many zeros on the left as on the right, or one less. A signal longer
//! than the frames reach ends in zeros.

use super::evaluate::floats;
use super::fourier::Grid;
use super::frames;
use crate::error::ensure;
use crate::layout::extent::{countable, grown};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::{Dim, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "ISTFT",
    versions: &["opset16"],
    signature: Signature::new(&["data", "window", "frame_size", "frame_step", "signal_length"])
        .optional(1),
    family: Family::Native,
    build: Build::Native(parse_native::<Istft>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Istft {
    center: bool,
    normalized: bool,
}

impl Native for Istft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a float type", |t| t.is_float())?;
        cx.expect_same("data", "window")?;
        let sizes = frames::infer(cx)?;
        let given = match cx.has("signal_length") {
            true => frames::integer(cx, "signal_length")?,
            false => None,
        };
        if let Some(length) = given {
            ensure!(
                length >= 0,
                "`signal_length` must be at least 0, found {length}"
            );
        }
        let Some(dims) = cx.dims("data") else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let data = cx.shape("data");
        let (batch, results, frames, parts) = match dims {
            [results, frames, parts] => (None, results, frames, parts),
            [batch, results, frames, parts] => (Some(*batch), results, frames, parts),
            _ => {
                return Err(OpError::Shape(format!("`data` must have rank 3 or 4, found {data}")));
            }
        };
        ensure!(
            parts.contains(2),
            "the last dim of `data` {data} must be 2, for real and imaginary part"
        );
        if let Some(size) = sizes.size {
            let expected = size / 2 + 1;
            ensure!(
                results.contains(expected),
                "`data` {data} must have {expected} results for frames of {size}, found {results}"
            );
        }
        let length = match (given, sizes.size, sizes.step) {
            (Some(length), ..) => Dim::fixed(length as usize),
            (None, Some(size), Some(step)) if !cx.has("signal_length") => {
                let more = if self.center { 0 } else { size as i128 };
                grown(grown(*frames, -1).mul(Dim::fixed(step)), more)
            }
            _ => Dim::ANY,
        };
        let shape = PartialShape::ranked(batch.into_iter().chain([length]).collect());
        Ok(vec![TensorType::new(element, countable(shape)?)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let shape = cx.shape("data");
        let [batch @ .., results, frames, _] = shape else {
            return Err(OpError::Shape(format!("`data` has rank {}", shape.len())));
        };
        let size = frames::extent(cx, "frame_size")?;
        let step = frames::extent(cx, "frame_step")?;
        let window = frames::window(cx, size)?;
        let out = cx.output(0).shape.to_static().unwrap_or_default();
        let length = out.last().copied().unwrap_or_default();
        let batches = batch.iter().product();
        let margin = if self.center { size / 2 } else { 0 };

        let grid = Grid::from_pairs(&[batches, *results, *frames], &cx.f64s("data")?);
        let grid = grid.with_last_axes_exchanged().inverse_of_half(2, size)?;
        let mut windows = vec![0.0; length];
        overlap(&mut windows, margin, step, std::iter::repeat_n(&window[..], *frames));
        let scale = if self.normalized { (size as f64).sqrt() } else { 1.0 };
        let samples = grid.reals();
        let mut signal = vec![0.0; batches * length];
        for b in 0..batches {
            let row = &mut signal[b * length..][..length];
            let own = &samples[b * frames * size..][..frames * size];
            overlap(row, margin, step, own.chunks_exact(size));
            for (x, w) in row.iter_mut().zip(&windows) {
                *x = if *w == 0.0 { 0.0 } else { *x * scale / w };
            }
        }
        let ty = cx.input("data").element_type();
        Ok(vec![floats(ty, &out, &signal)?])
    }
}

/// Adds to `signal` frames that begin at every multiple of `step`, without their first `margin`
/// elements in all.
fn overlap<'a>(
    signal: &mut [f64],
    margin: usize,
    step: usize,
    frames: impl Iterator<Item = &'a [f64]>,
) {
    for (f, frame) in frames.enumerate() {
        for (k, x) in frame.iter().enumerate() {
            let place = f.saturating_mul(step).saturating_add(k).checked_sub(margin);
            if let Some(sum) = place.and_then(|n| signal.get_mut(n)) {
                *sum += x;
            }
        }
    }
}
