//! The context of a native operator's run.

use crate::{OpError, Signature, Stop, TensorType};
use vinelift_tensor::memory::collected;
use vinelift_tensor::{ElementType, Tensor};

/// The inputs of an operator with their values, for [`crate::Native::evaluate`].
pub struct Evaluate<'a> {
    signature: Signature,
    inputs: &'a [Tensor],
    outputs: &'a [TensorType],
    stop: Stop<'a>,
}

impl<'a> Evaluate<'a> {
    /// `outputs` is what `infer` gave for these inputs.
    pub fn new(
        signature: Signature,
        inputs: &'a [Tensor],
        outputs: &'a [TensorType],
    ) -> Evaluate<'a> {
        Evaluate {
            signature,
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
        self.signature.position(name) < self.inputs.len()
    }

    /// The input `name`.
    pub fn input(&self, name: &str) -> &'a Tensor {
        &self.inputs[self.signature.position(name)]
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
