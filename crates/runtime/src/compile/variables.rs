//! Variables that are updated in place.
//!
//! A run that fails must leave its variables as they were, so it computes what they are set to in other memory than
//! they hold. Where that is a copy with a few elements changed, the copy can be left out: the nest keeps a journal of what
//! it overwrites, from which a run that fails restores the variable.

use crate::compile::interface::Interface;
use crate::compile::slot::Slot;
use crate::compile::step::Step;
use vinelift_graph::TensorId;
use vinelift_nest::{Aliases, BufferId, Journal, Nest, Stage, SubNest, keep_journals, verify};

/// A variable whose memory can become that of the tensor which it is set to.
pub(crate) struct InPlaceUpdate {
    pub(crate) variable: String,
    /// The tensor that holds what the variable held before the run.
    pub(crate) read: TensorId,
    /// The tensor that it is set to: its position in [`Plan::outputs`](crate::compile::plan::Plan::outputs).
    pub(crate) output: usize,
    pub(crate) journals: Vec<Journal>,
    /// The step that copies the one to the other, left out when the update is in place.
    pub(crate) copy: usize,
}

/// An update of which the copying step is not known yet.
pub(crate) struct Candidate {
    variable: String,
    read: TensorId,
    from: BufferId,
    output: usize,
    to: BufferId,
    journals: Vec<Journal>,
}

/// Finds the variables that a nest can update in place, and has the nest keep journals of them, which are outputs after
/// those of the segment.
pub(crate) fn update_in_place(
    nest: &mut Nest,
    slots: &mut Vec<Slot>,
    outputs: &[(BufferId, TensorId)],
    interface: &Interface,
) -> Vec<Candidate> {
    let Interface {
        reads,
        results,
        assigns,
        ..
    } = interface;
    if assigns.is_empty() {
        return Vec::new();
    }
    let before = nest.clone();
    let candidate = |(source, variable): &(TensorId, String)| {
        let is_it = |(_, other): &&(TensorId, String)| other == variable;
        let mut reads = reads.iter().filter(is_it);
        let read = reads.next().filter(|_| reads.next().is_none())?.0;
        // Others who get one of these tensors may hold it for longer than the run.
        let is_alone = assigns.iter().filter(is_it).count() == 1
            && !results.contains(source)
            && !results.contains(&read)
            && !assigns.iter().any(|(other, _)| *other == read);
        let output = outputs.iter().position(|(_, tensor)| tensor == source)?;
        let is_read = |slot: &Slot| matches!(slot, Slot::Kept(tensor) if *tensor == read);
        let from = slots.iter().position(is_read).filter(|_| is_alone)?;
        let (from, to) = (BufferId(from as u32), outputs[output].0);
        let journals = keep_journals(nest, from, to)?;
        Some(Candidate {
            variable: variable.clone(),
            read,
            from,
            output,
            to,
            journals,
        })
    };
    let candidates: Vec<Candidate> = assigns.iter().filter_map(candidate).collect();
    if !candidates.is_empty() && verify(nest).is_err() {
        debug_assert!(false, "a journal is not proven to be safe");
        *nest = before;
        return Vec::new();
    }
    slots.resize(nest.buffers.len(), Slot::Absent);
    let journals = candidates.iter().flat_map(Candidate::journal_buffers);
    for (k, buffer) in journals.enumerate() {
        slots[buffer.0 as usize] = Slot::Output(outputs.len() + k);
    }
    candidates
}

impl Candidate {
    /// Whether a stage is a kernel of its own: the copy, which is left out, or one that writes a journal, which ends
    /// before what it writes down is overwritten.
    pub(crate) fn sets_apart(&self, nest: &Nest, stage: &Stage) -> bool {
        let is_journal = self.journal_buffers().any(|buffer| buffer == stage.target);
        is_journal || nest.copies(stage, self.from, self.to)
    }

    /// Has the buffers of what the variable held and of what it is set to be one memory.
    pub(crate) fn join(&self, aliases: &mut Aliases) {
        aliases.join(self.from, self.to);
    }

    /// The buffers of the journals.
    pub(crate) fn journal_buffers(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.journals.iter().flat_map(|j| [j.old, j.places])
    }

    /// The update without the one of `steps` that copies, if there is one.
    pub(crate) fn without_copy(&self, steps: &[Step]) -> Option<InPlaceUpdate> {
        let copy = steps
            .iter()
            .position(|step| self.is_copy(&step.kernel.stages))?;
        Some(InPlaceUpdate {
            variable: self.variable.clone(),
            read: self.read,
            output: self.output,
            journals: self.journals.clone(),
            copy,
        })
    }

    fn is_copy(&self, SubNest { nest, buffers }: &SubNest) -> bool {
        let is_to = |stage: &Stage| buffers[stage.target.0 as usize] == self.to;
        buffers.contains(&self.from) && nest.stages.iter().all(is_to)
    }
}
