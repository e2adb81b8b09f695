//! Variables: what they hold from run to run, and their memory while a plan updates them in place.

use crate::Error;
use crate::compile::plan::Output;
use crate::compile::slot::Slot;
use crate::compile::variables::InPlaceUpdate;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vinelift_graph::TensorId;
use vinelift_nest::BufferId;
use vinelift_tensor::Tensor;

/// What variables hold, by name.
pub(crate) type Variables = BTreeMap<String, Tensor>;

impl InPlaceUpdate {
    /// Takes the memory of the variable, if nobody else holds it and it fits the output; the variable and the tensor
    /// that was read of it are gone then.
    pub(super) fn take(
        &self,
        variables: &mut Variables,
        kept: &mut FxHashMap<TensorId, Tensor>,
        (_, element, shape): &Output,
    ) -> Option<Tensor> {
        let (held, read) = (variables.get(&self.variable)?, kept.get(&self.read)?);
        let fits = held.element_type() == *element && held.shape() == shape;
        // They are one tensor, unless another part of the model has set the variable meanwhile.
        if !fits || held.bytes().as_ptr() != read.bytes().as_ptr() {
            return None;
        }
        let held = variables.remove(&self.variable)?;
        kept.remove(&self.read);
        if held.is_unshared() {
            return Some(held);
        }
        kept.insert(self.read, held.clone());
        self.give_back(variables, held);
        None
    }

    /// Has the variable hold its memory again.
    pub(super) fn give_back(&self, variables: &mut Variables, held: Tensor) {
        variables.insert(self.variable.clone(), held);
    }

    /// Takes back what a run that failed has changed, and has the variable hold its memory again. `outputs` are those of
    /// the plan and its journals.
    pub(super) fn undo(
        &self,
        variables: &mut Variables,
        outputs: &mut [Tensor],
        slots: &[Slot],
    ) -> Result<(), Error> {
        let outside = || Error::internal("a journal leads outside of its variable");
        let tensor = |buffer: BufferId| match slots[buffer.0 as usize] {
            Slot::Output(k) => Ok(k),
            _ => Err(Error::internal("a journal is no output")),
        };
        for journal in self.journals.iter().rev() {
            let (old, places) = (tensor(journal.old)?, tensor(journal.places)?);
            let (old, places) = (outputs[old].clone(), outputs[places].clone());
            let held = outputs[self.output].make_mut()?;
            let size = old.element_type().bits() / 8;
            let places = places.bytes().as_chunks().0.iter();
            for (place, old) in places.zip(old.bytes().chunks_exact(size)) {
                // An element that was not written down yet was not changed either.
                let Ok(place) = usize::try_from(i64::from_le_bytes(*place)) else {
                    continue;
                };
                let element = held.chunks_exact_mut(size).nth(place);
                element.ok_or_else(outside)?.copy_from_slice(old);
            }
        }
        self.give_back(variables, outputs[self.output].clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
