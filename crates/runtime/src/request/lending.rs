//! Memory of the caller's that a run computes outputs into.

use crate::compiled::CompiledModel;
use crate::run::Scratch;
use vinelift_graph::TensorId;
use vinelift_tensor::{ElementType, Tensor};

/// The memory that is lent to one run, which lets go of it whatever its end: a panic is one, too.
pub(super) struct Lending<'a> {
    /// For each output, or for none.
    pub(super) offered: &'a mut Vec<Option<Tensor>>,
    pub(super) scratch: &'a mut Vec<Scratch>,
    /// The unit of the model itself.
    pub(super) unit: usize,
    /// The tensors that are to be computed into memory that was lent.
    pub(super) lent: &'a mut Vec<TensorId>,
}

impl Lending<'_> {
    /// Has the outputs that memory is offered for computed into it. Of several that are the same tensor, the
    /// first is.
    pub(super) fn lend(&mut self, compiled: &CompiledModel) {
        let ports = compiled
            .outputs()
            .iter()
            .zip(&compiled.0.unit.interface.results);
        let ports = ports.zip(&compiled.0.is_first_of_its_tensor);
        for (memory, ((port, tensor), is_first)) in self.offered.drain(..).zip(ports) {
            let fits = |memory: &Tensor| memory.element_type() == port.element_type;
            if let Some(memory) = memory.filter(fits)
                && port.element_type != ElementType::String
                && *is_first
            {
                self.lent.push(*tensor);
                self.scratch[self.unit].lend(*tensor, memory);
            }
        }
    }
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        self.offered.clear();
        if let Some(scratch) = self.scratch.get_mut(self.unit) {
            self.lent
                .drain(..)
                .for_each(|tensor| scratch.take_back(tensor));
        }
    }
}
