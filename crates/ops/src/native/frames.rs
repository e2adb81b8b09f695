//! The common part of `STFT` and `ISTFT`: frames of a signal, and the window that belongs to them.

use crate::error::ensure;
use crate::{Evaluate, Infer, OpError};
use vinelift_tensor::memory::filled;

/// The inputs `frame_size` and `frame_step`, as far as they are known.
pub(super) struct Frames {
    pub(super) size: Option<usize>,
    pub(super) step: Option<usize>,
}

/// Checks `window`, `frame_size` and `frame_step`.
pub(super) fn infer(cx: &Infer<'_>) -> Result<Frames, OpError> {
    cx.expect_rank("window", 1)?;
    let size = positive("frame_size", integer(cx, "frame_size")?)?;
    let step = positive("frame_step", integer(cx, "frame_step")?)?;
    if let (Some(window), Some(size)) = (cx.dims("window"), size) {
        let window = window[0];
        ensure!(
            window.min() <= size && window.max() != Some(0),
            "`window` must have 1 to {size} elements, the size of a frame, found {window}"
        );
    }
    Ok(Frames { size, step })
}

/// The value of an input of a single `i32` or `i64`.
pub(super) fn integer(cx: &Infer<'_>, name: &'static str) -> Result<Option<i64>, OpError> {
    cx.expect_index(name)?;
    cx.integer(name)
}

fn positive(name: &str, value: Option<i64>) -> Result<Option<usize>, OpError> {
    let Some(value) = value else { return Ok(None) };
    ensure!(value > 0, "`{name}` must be at least 1, found {value}");
    Ok(usize::try_from(value).ok())
}

/// The window, with zeros on both sides up to the size of a frame.
pub(super) fn window(cx: &Evaluate<'_>, size: usize) -> Result<Vec<f64>, OpError> {
    let window = cx.f64s("window")?;
    let before = size.saturating_sub(window.len()) / 2;
    let mut padded = filled(size, 0.0)?;
    let places = padded.iter_mut().skip(before);
    places.zip(window).for_each(|(place, w)| *place = w);
    Ok(padded)
}

/// A positive input, which `infer` has checked.
pub(super) fn extent(cx: &Evaluate<'_>, name: &str) -> Result<usize, OpError> {
    let value = cx.integer(name)?.unwrap_or_default();
    Ok(usize::try_from(value).unwrap_or_default().max(1))
}
