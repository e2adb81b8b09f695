//! The two types in which native operators compute on floats: `f64` for `f64`, `f32` for all others.

use super::tensors::floats;
use crate::{Evaluate, Infer, OpError};
use std::ops::{Add, Div, Mul, Sub};
use vinelift_tensor::memory::collected;
use vinelift_tensor::order::{Direction, float_key};
use vinelift_tensor::{ElementType, Tensor};

/// The float types that operators compute on; the others are formats for storage only.
pub(super) fn is_real(ty: ElementType) -> bool {
    use ElementType::{BF16, F16, F32, F64};
    matches!(ty, F16 | BF16 | F32 | F64)
}

/// The element type of input `name`, which must be a float type that operators compute on.
pub(super) fn real_type(cx: &Infer<'_>, name: &'static str) -> Result<ElementType, OpError> {
    cx.expect(name, "f16, bf16, f32 or f64", is_real)
}

/// `f32` or `f64`.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// The elements of input `name`.
    fn read(cx: &Evaluate<'_>, name: &str) -> Result<Vec<Self>, OpError>;

    /// The nearest value to `x`.
    fn of(x: f64) -> Self;

    /// The same value.
    fn to_f64(self) -> f64;

    /// `e^self`
    fn exp(self) -> Self;

    /// The smaller one; `self` if either is NaN.
    #[inline]
    fn least(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    /// The larger one; `self` if either is NaN.
    #[inline]
    fn most(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    /// A number that is smaller the better a score is; NaN is the worst.
    fn rank(self) -> u64 {
        float_key(self.to_f64(), Direction::Descending)
    }
}

impl Real for f32 {
    fn read(cx: &Evaluate<'_>, name: &str) -> Result<Vec<f32>, OpError> {
        cx.f32s(name)
    }

    #[inline]
    fn of(x: f64) -> f32 {
        x as f32
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self.into()
    }

    fn exp(self) -> f32 {
        self.exp()
    }
}

impl Real for f64 {
    fn read(cx: &Evaluate<'_>, name: &str) -> Result<Vec<f64>, OpError> {
        cx.f64s(name)
    }

    #[inline]
    fn of(x: f64) -> f64 {
        x
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    fn exp(self) -> f64 {
        self.exp()
    }
}

/// A tensor of a float type, each value rounded to it.
pub(super) fn tensor<R: Real>(
    ty: ElementType,
    shape: &[usize],
    values: &[R],
) -> Result<Tensor, OpError> {
    let values = collected(values.iter().map(|x| x.to_f64()))?;
    Ok(floats(ty, shape, &values)?)
}

/// As [`tensor`], filled up with 0 behind the values.
pub(super) fn padded<R: Real>(
    ty: ElementType,
    shape: &[usize],
    values: &[R],
) -> Result<Tensor, OpError> {
    let mut out = Tensor::zeros(ty, shape)?;
    let start = tensor(ty, &[values.len()], values)?;
    let start = start.bytes();
    if let Some(target) = out.make_mut()?.get_mut(..start.len()) {
        target.copy_from_slice(start);
    }
    Ok(out)
}
