//! Tensors of what native operators have computed.

use half::{bf16, f16};
use vinelift_tensor::memory::{collected, room_for, text};
use vinelift_tensor::{ElementType, Tensor, TensorError, packed};

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

/// The elements of `from` at `positions`, in their order, as a tensor of `shape`.
pub(crate) fn take(
    from: &Tensor,
    shape: &[usize],
    positions: &[usize],
) -> Result<Tensor, TensorError> {
    let ty = from.element_type();
    if let Some(strings) = from.strings() {
        let mut taken = room_for(positions.len())?;
        for p in positions {
            taken.push(text(&strings[*p])?);
        }
        return Tensor::from_strings(shape, taken);
    }
    let bytes = from.bytes();
    if ty.is_packed() {
        let mut out = Tensor::zeros(ty, shape)?;
        let target = out.make_mut()?;
        for (k, p) in positions.iter().enumerate() {
            packed::set(ty, target, k, packed::get(ty, bytes, *p));
        }
        return Ok(out);
    }
    let width = ty.bits() / 8;
    let mut out = room_for(positions.len().saturating_mul(width))?;
    for p in positions {
        out.extend_from_slice(&bytes[p * width..(p + 1) * width]);
    }
    Tensor::from_bytes(ty, shape, out)
}
