//! The outputs of one run, by name.

use crate::{CompiledModel, Error, Tensor};
use std::ops::Index;

/// The outputs of a run, each known by all of its names.
#[derive(Clone, Debug)]
pub struct Outputs {
    compiled: CompiledModel,
    tensors: Vec<Tensor>,
}

impl Outputs {
    pub(crate) fn new(compiled: CompiledModel, tensors: Vec<Tensor>) -> Outputs {
        Outputs { compiled, tensors }
    }

    /// The output called `name`, a name of the tensor or of its layer.
    ///
    /// # Errors
    /// If there is none; says which there are.
    pub fn get(&self, name: &str) -> Result<&Tensor, Error> {
        Ok(&self.tensors[self.compiled.output_index(name)?])
    }

    /// The outputs with the first of their names, in the order of the model.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        let names = self.compiled.outputs().iter().map(|port| port.name());
        names.zip(&self.tensors)
    }
}

/// The output at a position.
///
/// # Panics
/// If there is none.
impl Index<usize> for Outputs {
    type Output = Tensor;

    fn index(&self, position: usize) -> &Tensor {
        &self.tensors[position]
    }
}

/// The output of a name, as [`Outputs::get`] gives it.
///
/// # Panics
/// If there is none.
impl Index<&str> for Outputs {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        match self.get(name) {
            Ok(tensor) => tensor,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The tensors alone, in the order of the model.
impl From<Outputs> for Vec<Tensor> {
    fn from(outputs: Outputs) -> Vec<Tensor> {
        outputs.tensors
    }
}
