//! `STFT`: the transform of each frame of a real signal, `out[b, f, m] = Σ_k w[k] · x[b, f · step + k] ·
//! exp(-2πi · m · k / size)` for `m ≤ size / 2`, `w` being the window. The last dim holds real and
//! imaginary part. With `transpose_frames` the output is `[b, m, f]`.
//!
//! Specification: STFT-15. A window shorter than a frame gets as many zeros on the left as on the
//! right, or one less, as OpenVINO does it. What is left at the end of the signal is not used.

use super::fourier::{Direction, Grid};
use super::frames;
use super::real::real_type;
use crate::error::ensure;
use crate::layout::extent::{countable, grown};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::room_for;
use vinelift_tensor::{Dim, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "STFT",
    versions: &["opset15"],
    signature: Signature::new(&["signal", "window", "frame_size", "frame_step"]),
    family: Family::Native,
    build: Build::Native(parse_native::<Stft>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stft {
    transpose_frames: bool,
}

impl Native for Stft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "signal")?;
        cx.expect_same("signal", "window")?;
        let sizes = frames::infer(cx)?;
        let Some(signal) = cx.dims("signal") else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let (batch, length) = match signal {
            [length] => (None, *length),
            [batch, length] => (Some(*batch), *length),
            _ => {
                let shape = cx.shape("signal");
                return Err(OpError::Shape(format!(
                    "`signal` must have rank 1 or 2, found {shape}"
                )));
            }
        };
        let least = sizes.size.unwrap_or(1);
        ensure!(
            length.max().is_none_or(|n| n >= least),
            "`signal` must be as long as a frame at least, {least}, found {length}"
        );
        let frames = match (sizes.size, sizes.step) {
            (Some(size), Some(step)) => {
                let left = grown(length, -(size as i128));
                Dim::between(left.min() / step + 1, left.max().map(|n| n / step + 1))
            }
            _ => Dim::ANY,
        };
        let results = sizes.size.map_or(Dim::ANY, |size| Dim::fixed(size / 2 + 1));
        let [first, second] = match self.transpose_frames {
            false => [frames, results],
            true => [results, frames],
        };
        let dims = batch.into_iter().chain([first, second, Dim::fixed(2)]);
        let shape = countable(PartialShape::ranked(dims.collect()))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let signal = cx.f64s("signal")?;
        let shape = cx.shape("signal");
        let length = shape.last().copied().unwrap_or_default();
        let batch: usize = shape.iter().rev().skip(1).product();
        let size = frames::extent(cx, "frame_size")?;
        let step = frames::extent(cx, "frame_step")?;
        let window = frames::window(cx, size)?;
        let count = (length - size.min(length)) / step + 1;
        let mut framed = room_for(batch.saturating_mul(count).saturating_mul(size))?;
        for row in signal.chunks_exact(length.max(1)) {
            for frame in 0..count {
                cx.go_on()?;
                let start = frame * step;
                let samples = row.get(start..start + size).unwrap_or_default();
                framed.extend(samples.iter().zip(&window).map(|(x, w)| x * w));
            }
        }
        let mut grid = Grid::from_reals(&[batch, count, size], &framed)?;
        grid.transform(2, Direction::Forward, cx.stop())?;
        let mut grid = grid.with_extent(2, size / 2 + 1)?;
        if self.transpose_frames {
            grid = grid.with_last_axes_exchanged()?;
        }
        let out = grid.to_tensor(cx.input("signal").element_type())?;
        let batched = shape.len() == 2;
        Ok(vec![match batched {
            true => out,
            false => out.reshaped(&out.shape()[1..])?,
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, infer, run};
    use vinelift_tensor::ElementType;

    fn inputs(length: usize, size: i64, step: i64) -> [Tensor; 4] {
        let signal: Vec<f32> = (1..=length).map(|x| x as f32).collect();
        let window = f32s(&[2], &[1.0, 2.0]);
        [
            f32s(&[length], &signal),
            window,
            i64s(&[], &[size]),
            i64s(&[], &[step]),
        ]
    }

    /// Values of NumPy: `rfft` of `[0, x, 2x, 0]`.
    #[test]
    fn frames_in_rows_or_columns() {
        let of = |transpose| run(&DEF, &[("transpose_frames", transpose)], &inputs(6, 4, 2));
        let rows = [
            8.0, 0.0, -6.0, -2.0, 4.0, 0.0, 14.0, 0.0, -10.0, -4.0, 6.0, 0.0,
        ];
        assert_eq!(of("false"), f32s(&[2, 3, 2], &rows));
        let columns = [
            8.0, 0.0, 14.0, 0.0, -6.0, -2.0, -10.0, -4.0, 4.0, 0.0, 6.0, 0.0,
        ];
        assert_eq!(of("true"), f32s(&[3, 2, 2], &columns));
        let mut batched = inputs(6, 4, 2);
        batched[0] = batched[0].reshaped(&[1, 6]).unwrap();
        let out = run(&DEF, &[("transpose_frames", "false")], &batched);
        assert_eq!(out, f32s(&[1, 2, 3, 2], &rows));
    }

    #[test]
    fn what_does_not_fit() {
        let of = |length, size, step| {
            error(
                &DEF,
                &[("transpose_frames", "0")],
                &inputs(length, size, step),
            )
        };
        let message = "`signal` must be as long as a frame at least, 4, found 3";
        assert_eq!(of(3, 4, 1), message);
        assert_eq!(of(3, 2, 0), "`frame_step` must be at least 1, found 0");
        let message = "`window` must have 1 to 1 elements, the size of a frame, found 2";
        assert_eq!(of(3, 1, 1), message);
    }

    #[test]
    fn partial_shapes() {
        let scalar = |v: Option<i64>| {
            (
                ElementType::I64,
                PartialShape::ranked(vec![]),
                v.map(|v| i64s(&[], &[v])),
            )
        };
        let of = |size, step| {
            let dim = Dim::between(3, Some(48));
            let signal = PartialShape::ranked(vec![Dim::ANY, dim]);
            let signal = (ElementType::F32, signal, None);
            let window = (ElementType::F32, PartialShape::any_of_rank(1), None);
            infer(
                &DEF,
                &[("transpose_frames", "true")],
                &[signal, window, scalar(size), scalar(step)],
            )
            .0
        };
        assert_eq!(of(Some(11), Some(3)), "f32[?, 6, 1..13, 2]");
        assert_eq!(of(Some(11), None), "f32[?, 6, ?, 2]");
    }
}
