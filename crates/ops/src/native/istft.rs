//! `ISTFT`: a signal from the transforms of its frames: `out[n] = Σ_f w[k] · y_f[k] / Σ_f w[k]²` with
//! `k = n - f · step`, `y_f` being the inverse transform of frame `f` and `w` the window; 0 where the
//! windows add up to 0. With `center` the first `size / 2` elements are left out, and as many at the
//! end. With `normalized` the result is multiplied by `√size`.
//!
//! Specification: ISTFT-16, which gives no formula: the one above is that of OpenVINO and of PyTorch.
//! A window shorter than a frame gets as many zeros on the left as on the right, or one less. A
//! signal longer than the frames reach ends in zeros. Where the size of a frame is odd, the
//! specification makes a centered signal one element shorter than OpenVINO and PyTorch do, which is
//! what an `STFT` of that signal would have been made from: it has their length here.

use super::fourier::Grid;
use super::frames;
use super::real::real_type;
use super::tensors::floats;
use crate::error::ensure;
use crate::layout::extent::{countable, grown};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, filled};
use vinelift_tensor::{Dim, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "ISTFT",
    versions: &["opset16"],
    signature: Signature::new(&[
        "data",
        "window",
        "frame_size",
        "frame_step",
        "signal_length",
    ])
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
        let element = real_type(cx, "data")?;
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
                return Err(OpError::Shape(format!(
                    "`data` must have rank 3 or 4, found {data}"
                )));
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
                let more = (size - 2 * self.margin(size)) as i128;
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
        let margin = self.margin(size);

        let grid = Grid::from_pairs(&[batches, *results, *frames], &cx.f64s("data")?)?;
        let grid = grid
            .with_last_axes_exchanged()?
            .inverse_of_half(2, size, cx.stop())?;
        let mut windows = filled(length, 0.0)?;
        let squares = collected(window.iter().map(|w| w * w))?;
        let own = std::iter::repeat_n(&squares[..], *frames);
        overlap(&mut windows, margin, step, own);
        let scale = if self.normalized {
            (size as f64).sqrt()
        } else {
            1.0
        };
        let mut samples = grid.reals()?;
        for frame in samples.chunks_exact_mut(size) {
            frame.iter_mut().zip(&window).for_each(|(x, w)| *x *= w);
        }
        let mut signal = filled(batches * length, 0.0)?;
        for b in 0..batches {
            cx.go_on()?;
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

impl Istft {
    /// The elements left out at the start of the signal, and at its end.
    fn margin(&self, size: usize) -> usize {
        if self.center { size / 2 } else { 0 }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, infer, run};
    use vinelift_tensor::ElementType;

    fn of(center: &str, normalized: &str, length: Option<i64>) -> Vec<f64> {
        // Two frames, of [1, 2, 3, 4] and [10, 20, 30, 40], a step of two apart.
        let data = [
            10.0, 0.0, 100.0, 0.0, -2.0, 2.0, -20.0, 20.0, -2.0, 0.0, -20.0, 0.0,
        ];
        let mut inputs = vec![
            f32s(&[3, 2, 2], &data),
            f32s(&[3], &[1.0, 2.0, 1.0]),
            i64s(&[], &[4]),
            i64s(&[], &[2]),
        ];
        inputs.extend(length.map(|n| i64s(&[1], &[n])));
        let attributes = [("center", center), ("normalized", normalized)];
        run(&DEF, &attributes, &inputs).to_f64_vec().unwrap()
    }

    /// By the formula, with the window [1, 2, 1, 0].
    #[test]
    fn overlaps_and_divides() {
        let whole = [1.0, 1.0, 6.5, 10.0, 30.0, 0.0];
        assert_eq!(of("false", "false", None), whole);
        assert_eq!(of("false", "true", None), whole.map(|x| 2.0 * x));
        assert_eq!(of("true", "false", None), [6.5, 10.0]);
        assert_eq!(of("true", "false", Some(5)), [6.5, 10.0, 30.0, 0.0, 0.0]);
        assert_eq!(of("false", "false", Some(1)), [1.0]);
        assert!(of("false", "false", Some(0)).is_empty());
    }

    #[test]
    fn what_does_not_fit() {
        let of = |shape: &[usize], length: i64| {
            let data = f32s(shape, &vec![0.0; shape.iter().product()]);
            let window = f32s(&[1], &[1.0]);
            let scalar = |v| i64s(&[], &[v]);
            let inputs = [data, window, scalar(4), scalar(2), scalar(length)];
            error(&DEF, &[("center", "0"), ("normalized", "0")], &inputs)
        };
        let message = "`data` [2, 1, 2] must have 3 results for frames of 4, found 2";
        assert_eq!(of(&[2, 1, 2], 1), message);
        let message = "`signal_length` must be at least 0, found -1";
        assert_eq!(of(&[3, 1, 2], -1), message);
        assert_eq!(of(&[3, 2], 1), "`data` must have rank 3 or 4, found [3, 2]");
    }

    #[test]
    fn partial_shapes() {
        let scalar = |v: i64| {
            (
                ElementType::I64,
                PartialShape::ranked(vec![]),
                Some(i64s(&[], &[v])),
            )
        };
        let dim = Dim::between(1, Some(16));
        let dims = vec![Dim::ANY, Dim::fixed(6), dim, Dim::fixed(2)];
        let of = |center| {
            let data = (ElementType::F32, PartialShape::ranked(dims.clone()), None);
            let window = (ElementType::F32, PartialShape::any_of_rank(1), None);
            let attributes = [("center", center), ("normalized", "0")];
            infer(&DEF, &attributes, &[data, window, scalar(11), scalar(3)]).0
        };
        assert_eq!(of("false"), "f32[?, 11..56]");
        assert_eq!(of("true"), "f32[?, 1..46]");
    }
}
