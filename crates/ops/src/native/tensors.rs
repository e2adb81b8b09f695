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
    fn of<T: vinelift_tensor::Element>(
        shape: &[usize],
        values: &[f64],
        round: impl Fn(f64) -> T,
    ) -> Result<Tensor, TensorError> {
        let values = collected(values.iter().map(|x| round(*x)))?;
        Tensor::from_slice(shape, &values)
    }
    match ty {
        ElementType::F16 => of(shape, values, f16::from_f64),
        ElementType::BF16 => of(shape, values, bf16::from_f64),
        ElementType::F32 => of(shape, values, |x| x as f32),
        _ => Tensor::from_slice(shape, values),
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
            let values = collected(values.iter().map(|x| *x as i32))?;
            Tensor::from_slice(shape, &values)
        }
        _ => Tensor::from_slice(shape, values),
    }
}
