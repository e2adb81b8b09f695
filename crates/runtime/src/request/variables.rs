//! The variables of a request, which keep their values from one run to the next.

use super::InferRequest;
use crate::Error;
use vinelift_tensor::Tensor;

impl InferRequest {
    /// The value of the variable called `name`; `None` before a run has set it, or if there is no memory for a copy of one
    /// that grows.
    pub fn variable(&self, name: &str) -> Option<&Tensor> {
        self.compiled.0.caches.value(name, &self.variables)
    }

    /// The variables that hold something, in the order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.compiled.0.caches.values(&self.variables)
    }

    /// Gives variables memory of their own that have that of an input or output: for programs whose memory those are.
    ///
    /// # Errors
    /// If there is no memory; then no variable holds anything.
    pub fn own_variables(&mut self) -> Result<(), Error> {
        let inputs = self.inputs.iter().flatten();
        let tensors = || inputs.clone().chain(&self.outputs);
        let mut failed = None;
        for held in self.variables.values_mut() {
            let value = held.memory();
            let start = value.bytes().as_ptr();
            if tensors().any(|t| t.bytes().as_ptr_range().contains(&start)) {
                let (ty, shape) = (value.element_type(), value.shape());
                match Tensor::from_bytes(ty, shape, value.bytes()) {
                    Ok(own) => *held = own.into(),
                    Err(error) => failed = Some(error),
                }
            }
        }
        match failed {
            Some(error) => {
                self.reset();
                Err(error.into())
            }
            None => Ok(()),
        }
    }

    /// Sets what the variable called `name` holds when the next run starts.
    ///
    /// # Errors
    /// If the model has no such variable, or one of another type; if there is no memory to store it otherwise.
    pub fn set_variable(&mut self, name: &str, value: Tensor) -> Result<(), Error> {
        let model = self.compiled.model();
        if !model.summary().variables.iter().any(|v| v == name) {
            let text = format!("the model has no variable '{name}'");
            return Err(self.compiled.misuse(text));
        }
        if let Some(ty) = model.graph.variable(name)
            && !(ty.element == value.element_type() && ty.shape.contains(value.shape()))
        {
            let text = format!("variable '{name}' must be {ty}, found {value}");
            return Err(self.compiled.misuse(text));
        }
        let caches = &self.compiled.0.caches;
        caches.set(name, value, &mut self.variables)
    }

    /// Has the variable called `name` hold nothing, so that the next run starts from its initial value.
    pub fn reset_variable(&mut self, name: &str) {
        self.compiled.0.caches.reset(name, &mut self.variables);
    }

    /// Has every variable hold nothing, so that the next run starts from their initial values.
    pub fn reset(&mut self) {
        self.variables.clear();
    }
}
