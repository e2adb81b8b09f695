//! Tensors of what native operators have computed.

use half::{bf16, f16};
use vinelift_tensor::memory::collected;
use vinelift_tensor::{ElementType, Tensor, TensorError};

/// A tensor of a float type, each value rounded to it.
pub(crate) fn floats(
    ty: ElementType,
    shape: &[usize],
    values: &[f64],
) -> Result<Tensor, TensorError> {
    float_groups(ty, shape, values.iter().map(|x| [*x]))
}

/// As [`floats`], of values that come several at a time.
pub(crate) fn float_groups<const N: usize>(
    ty: ElementType,
    shape: &[usize],
    values: impl Iterator<Item = [f64; N]>,
) -> Result<Tensor, TensorError> {
    fn of<T: vinelift_tensor::Element, const N: usize>(
        shape: &[usize],
        values: impl Iterator<Item = [f64; N]>,
        round: impl Fn(f64) -> T,
    ) -> Result<Tensor, TensorError> {
        let values = collected(values.map(|group| group.map(&round)))?;
        Tensor::from_slice(shape, values.as_flattened())
    }
    match ty {
        ElementType::F16 => of(shape, values, f16::from_f64),
        ElementType::BF16 => of(shape, values, bf16::from_f64),
        ElementType::F32 => of(shape, values, |x| x as f32),
        _ => of(shape, values, |x| x),
    }
}

/// A tensor of an integer type, each value wrapped to it.
pub(crate) fn integers(
    ty: ElementType,
    shape: &[usize],
    values: &[i64],
) -> Result<Tensor, TensorError> {
    match ty {
        ElementType::I32 => {
            let mut tensor = Tensor::zeros(ty, shape)?;
            let elements = tensor.as_mut_slice::<i32>()?;
            for (to, x) in elements.iter_mut().zip(values) {
                *to = *x as i32;
            }
            Ok(tensor)
        }
        _ => Tensor::from_slice(shape, values),
    }
}
