//! Variables that are updated where they are.
//!
//! A run that fails must leave its variables as they were, so it computes what they are set to apart from what
//! they hold. Where that is a copy with a few elements changed, the copy may be left out nevertheless: a journal
//! of what is changed takes the changes back should the run fail.

use crate::Error;
use crate::plan::{Output, Slot};
use crate::run::Variables;
use crate::steps::Step;
use crate::unit::Unit;
use rustc_hash::FxHashMap;
use vinelift_graph::TensorId;
use vinelift_nest::{Aliases, BufferId, Journal, Nest, Stage, SubNest, keep_journals, verify};
use vinelift_tensor::Tensor;

/// A variable whose memory can go on as that of the tensor which it is set to.
pub(crate) struct Carry {
    variable: String,
    /// What the variable held before the run.
    pub(crate) read: TensorId,
    from: BufferId,
    /// What it is set to: the position in [`Plan::outputs`](crate::plan::Plan::outputs), and the buffer.
    pub(crate) output: usize,
    to: BufferId,
    journals: Vec<Journal>,
}

/// Finds the variables that a nest can update where they are, and has it keep journals of that, which are outputs
/// after those of the segment.
pub(crate) fn carries(
    nest: &mut Nest,
    slots: &mut Vec<Slot>,
    outputs: &[(BufferId, TensorId)],
    unit: &Unit,
) -> Vec<Carry> {
    if unit.assigns.is_empty() {
        return Vec::new();
    }
    let before = nest.clone();
    let carry = |(source, variable): &(TensorId, String)| {
        let is_it = |(_, other): &&(TensorId, String)| other == variable;
        let mut reads = unit.reads.iter().filter(is_it);
        let read = reads.next().filter(|_| reads.next().is_none())?.0;
        // Whoever gets these tensors may hold them for longer.
        let is_alone = unit.assigns.iter().filter(is_it).count() == 1
            && !unit.results.contains(source)
            && !unit.results.contains(&read)
            && !unit.assigns.iter().any(|(other, _)| *other == read);
        let output = outputs.iter().position(|(_, tensor)| tensor == source)?;
        let is_read = |slot: &Slot| matches!(slot, Slot::Kept(tensor) if *tensor == read);
        let from = slots.iter().position(is_read).filter(|_| is_alone)?;
        let (from, to) = (BufferId(from as u32), outputs[output].0);
        let journals = keep_journals(nest, from, to)?;
        Some(Carry {
            variable: variable.clone(),
            read,
            from,
            output,
            to,
            journals,
        })
    };
    let carries: Vec<Carry> = unit.assigns.iter().filter_map(carry).collect();
    if !carries.is_empty() && verify(nest).is_err() {
        debug_assert!(false, "a journal is not proven to be safe");
        *nest = before;
        return Vec::new();
    }
    slots.resize(nest.buffers.len(), Slot::Absent);
    for (k, buffer) in carries.iter().flat_map(Carry::kept).enumerate() {
        slots[buffer.0 as usize] = Slot::Output(outputs.len() + k);
    }
    carries
}

impl Carry {
    /// Whether a stage is a kernel of its own: one to leave out, or to be over when the next begins.
    pub(crate) fn sets_apart(&self, nest: &Nest, stage: &Stage) -> bool {
        nest.copies(stage, self.from, self.to) || self.kept().any(|buffer| buffer == stage.target)
    }

    /// Has the nest's view of what the variable held and of what it is set to be one memory.
    pub(crate) fn join(&self, aliases: &mut Aliases) {
        aliases.join(self.from, self.to);
    }

    /// Whether a step is the copy that is left out.
    pub(crate) fn leaves_out(&self, step: &Step) -> bool {
        let SubNest { nest, buffers } = &step.kernel;
        let is_to = |stage: &Stage| buffers[stage.target.0 as usize] == self.to;
        buffers.contains(&self.from) && nest.stages.iter().all(is_to)
    }

    /// The buffers of the journals.
    pub(crate) fn kept(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.journals.iter().flat_map(|j| [j.old, j.places])
    }

    /// Takes back what a run has changed that failed, and gives the variable its memory again. `outputs` are those of
    /// the plan and the journals.
    pub(crate) fn take_back(
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
                // What was not written down yet was not changed either.
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

    /// Has the variable hold its memory again.
    pub(crate) fn give_back(&self, variables: &mut Variables, held: Tensor) {
        variables.insert(self.variable.clone(), held);
    }

    /// The memory of the variable, if nobody else holds it and it fits; the variable and what was read of it are
    /// gone then.
    pub(crate) fn take(
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
}

#[cfg(test)]
mod tests;
