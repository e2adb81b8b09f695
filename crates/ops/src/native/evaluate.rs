//! The context of a native operator's run.

use crate::{OpDef, OpError, Stop, TensorType};
use half::{bf16, f16};
use vinelift_tensor::memory::{collected, room_for, text};
use vinelift_tensor::{ElementType, Tensor, TensorError, packed};

/// The inputs of an operator with their values, for [`crate::Native::evaluate`].
pub struct Evaluate<'a> {
    def: &'static OpDef,
    inputs: &'a [Tensor],
    outputs: &'a [TensorType],
    stop: Stop<'a>,
}

impl<'a> Evaluate<'a> {
    /// `outputs` is what `infer` gave for these inputs.
    pub fn new(
        def: &'static OpDef,
        inputs: &'a [Tensor],
        outputs: &'a [TensorType],
    ) -> Evaluate<'a> {
        Evaluate {
            def,
            inputs,
            outputs,
            stop: Stop::NEVER,
        }
    }

    /// The same, to be given up when `stop` says so.
    pub fn with_stop(self, stop: Stop<'a>) -> Evaluate<'a> {
        Evaluate { stop, ..self }
    }

    /// When to give up.
    pub fn stop(&self) -> Stop<'a> {
        self.stop
    }

    /// An error if it is time to give up. To be asked in each turn of a loop that may run long.
    pub fn go_on(&self) -> Result<(), OpError> {
        self.stop.go_on()
    }

    /// The inferred type of output `i`.
    pub fn output(&self, i: usize) -> &TensorType {
        &self.outputs[i]
    }

    /// All inputs, for variadic operators.
    pub fn inputs(&self) -> &'a [Tensor] {
        self.inputs
    }

    /// Whether the optional input `name` is there.
    pub fn has(&self, name: &str) -> bool {
        self.def.signature.position(name) < self.inputs.len()
    }

    /// The input `name`.
    pub fn input(&self, name: &str) -> &'a Tensor {
        &self.inputs[self.def.signature.position(name)]
    }

    /// The shape of input `name`.
    pub fn shape(&self, name: &str) -> &'a [usize] {
        self.input(name).shape()
    }

    /// The elements of input `name` as `f32`, rounded if they are wider.
    pub fn f32s(&self, name: &str) -> Result<Vec<f32>, OpError> {
        let tensor = self.input(name);
        if tensor.element_type() == ElementType::F32 {
            return Ok(collected(tensor.as_slice::<f32>()?.iter().copied())?);
        }
        Ok(collected(
            tensor.to_f64_vec()?.into_iter().map(|x| x as f32),
        )?)
    }

    /// The elements of input `name` as `f64`.
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>, OpError> {
        Ok(self.input(name).to_f64_vec()?)
    }

    /// The elements of input `name`, which is of an integer type or boolean.
    pub fn integers(&self, name: &str) -> Result<Vec<i64>, OpError> {
        Ok(self.input(name).to_i64_vec()?)
    }

    /// The only element of input `name`, if it is there.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, OpError> {
        if !self.has(name) {
            return Ok(None);
        }
        Ok(self.integers(name)?.first().copied())
    }

    /// The only element of input `name` as `f64`, if it is there.
    pub fn number(&self, name: &str) -> Result<Option<f64>, OpError> {
        if !self.has(name) {
            return Ok(None);
        }
        Ok(self.f64s(name)?.first().copied())
    }
}

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
