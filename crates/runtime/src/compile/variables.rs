//! Variables that are updated in place.
//!
//! A run that fails must leave its variables as they were, so it computes what they are set to in other memory than
//! they hold. Where that is a copy with a few elements changed, the copy can be left out: the nest keeps a journal of what
//! it overwrites, from which a run that fails restores the variable. Where it is a copy with more behind it along an
//! axis, the copy can be left out, too, if the memory has room: a run that fails leaves nothing to restore.

use crate::Error;
use crate::compile::interface::Interface;
use crate::compile::slot::Slot;
use vinelift_graph::TensorId;
use vinelift_nest::{
    Aliases, BufferId, Journal, Nest, Order, Stage, SubNest, keep_journals, verify,
};
use vinelift_tensor::{Extent, Shape};

/// A variable whose memory can become that of the tensor which it is set to.
pub(crate) struct InPlaceUpdate {
    pub(crate) variable: String,
    /// The tensor that holds what the variable held before the run.
    pub(crate) read: TensorId,
    /// The tensor that it is set to: its position in [`Plan::outputs`](crate::compile::plan::Plan::outputs).
    pub(crate) output: usize,
    pub(crate) journals: Vec<Journal>,
    /// The step that copies the one to the other, left out when the update is in place; `None` if it never is.
    pub(crate) copy: Option<usize>,
    /// If it grows.
    pub(crate) growth: Option<Growth>,
}

/// How a variable grows.
pub(crate) struct Growth {
    pub(crate) axis: usize,
    /// How long it is then.
    pub(crate) extent: usize,
    /// The shape of the memory, before and after.
    pub(crate) memory: Shape,
    pub(crate) order: Order,
}

/// A variable that is read and set, and where.
#[derive(Clone)]
struct Pair {
    variable: String,
    read: TensorId,
    from: BufferId,
    output: usize,
    to: BufferId,
}

/// An update of which the copying step is not known yet.
pub(crate) struct Candidate {
    pair: Pair,
    how: How,
    /// The kernel that copies what it held.
    copy: Option<usize>,
}

enum How {
    Journals(Vec<Journal>),
    /// Along this axis up to this extent, in memory of this shape.
    Grows(usize, Extent, Vec<Extent>, Order),
}

/// The variables that a segment reads and sets, and of which nobody else gets the tensors: others may hold them for
/// longer than the run.
fn pairs(slots: &[Slot], outputs: &[(BufferId, TensorId)], interface: &Interface) -> Vec<Pair> {
    let Interface {
        reads,
        results,
        assigns,
        ..
    } = interface;
    let pair = |(source, variable): &(TensorId, String)| {
        let is_it = |(_, other): &&(TensorId, String)| other == variable;
        let mut reads = reads.iter().filter(is_it);
        let read = reads.next().filter(|_| reads.next().is_none())?.0;
        let is_alone = assigns.iter().filter(is_it).count() == 1
            && !results.contains(source)
            && !results.contains(&read)
            && !assigns.iter().any(|(other, _)| *other == read);
        let output = outputs.iter().position(|(_, tensor)| tensor == source)?;
        let is_read = |slot: &Slot| matches!(slot, Slot::Kept(tensor) if *tensor == read);
        let from = slots.iter().position(is_read).filter(|_| is_alone)?;
        Some(Pair {
            variable: variable.clone(),
            read,
            from: BufferId(from as u32),
            output,
            to: outputs[output].0,
        })
    };
    assigns.iter().filter_map(pair).collect()
}

/// The variables that grow in a nest as it was lowered: the tensor that is read, the axis, and the extent afterwards.
pub(crate) fn growing(
    nest: &Nest,
    slots: &[Slot],
    outputs: &[(BufferId, TensorId)],
    interface: &Interface,
) -> Vec<(TensorId, usize, Extent)> {
    let pairs = pairs(slots, outputs, interface).into_iter();
    let grows = |pair: Pair| {
        let axis = nest.growth(pair.from, pair.to)?;
        Some((pair.read, axis, nest.buf(pair.to).shape[axis]))
    };
    pairs.filter_map(grows).collect()
}

/// Memory of a variable that grows: the buffer that it is read from and that which it is set to, and what both can hold along
/// the axis.
pub(crate) struct Room {
    buffers: [BufferId; 2],
    axis: usize,
    capacity: Extent,
}

impl Room {
    /// Gives the buffers of a nest the capacity.
    pub(super) fn make(&self, nest: &mut Nest) {
        nest.make_room(self.buffers, self.axis, self.capacity);
    }
}

/// The variables in a nest as it was lowered that grow in memory of the capacities in `room`.
///
/// # Errors
/// If one of these does not grow.
pub(crate) fn grow(
    nest: &Nest,
    slots: &[Slot],
    outputs: &[(BufferId, TensorId)],
    interface: &Interface,
    room: &[(TensorId, Extent)],
) -> Result<Vec<Candidate>, Error> {
    let mut found = Vec::new();
    for pair in pairs(slots, outputs, interface) {
        let Some(axis) = nest.growth(pair.from, pair.to) else {
            continue;
        };
        let extent = nest.buf(pair.to).shape[axis];
        let mut room = room.iter().filter(|(tensor, _)| *tensor == pair.read);
        if let Some((_, capacity)) = room.find(|(_, capacity)| extent.at_most(*capacity)) {
            let mut memory = nest.buf(pair.to).shape.clone();
            memory[axis] = *capacity;
            let how = How::Grows(axis, extent, memory, Order::Same);
            let copy = None;
            found.push(Candidate { pair, how, copy });
        }
    }
    match found.len() == room.len() {
        true => Ok(found),
        false => Err(Error::internal("a variable that does not fit its memory")),
    }
}

/// Finds out how the variables that grow come to be what they are after the passes.
///
/// # Errors
/// If there is no single stage that copies what one held.
pub(crate) fn find_orders(nest: &Nest, candidates: &mut [Candidate]) -> Result<(), Error> {
    for Candidate { pair, how, .. } in candidates {
        if let How::Grows(.., order) = how {
            let stages = nest.stages.iter();
            let mut copies = stages.filter_map(|s| nest.takes_over(s, pair.from, pair.to));
            *order = match (copies.next(), copies.next()) {
                (Some(order), None) => order,
                _ => return Err(Error::internal("a variable that is not copied at once")),
            };
        }
    }
    Ok(())
}

/// Finds the variables that a nest can update in place, and has the nest keep journals of them, which are outputs after
/// those of the segment.
pub(crate) fn update_in_place(
    nest: &mut Nest,
    slots: &mut Vec<Slot>,
    outputs: &[(BufferId, TensorId)],
    interface: &Interface,
) -> Vec<Candidate> {
    if interface.assigns.is_empty() {
        return Vec::new();
    }
    let before = nest.clone();
    let candidate = |pair: Pair| {
        let journals = keep_journals(nest, pair.from, pair.to)?;
        let how = How::Journals(journals);
        let copy = None;
        Some(Candidate { pair, how, copy })
    };
    let pairs = pairs(slots, outputs, interface).into_iter();
    let candidates: Vec<Candidate> = pairs.filter_map(candidate).collect();
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
    /// Where it is read and set.
    pub(crate) fn buffers_mut(&mut self) -> [&mut BufferId; 2] {
        [&mut self.pair.from, &mut self.pair.to]
    }

    /// The memory in which it grows, if it does.
    pub(crate) fn room(&self) -> Option<Room> {
        let How::Grows(axis, _, memory, _) = &self.how else {
            return None;
        };
        Some(Room {
            buffers: [self.pair.from, self.pair.to],
            axis: *axis,
            capacity: memory[*axis],
        })
    }

    /// Whether a stage must be a kernel of its own: the copy, which may be left out, or one that writes a journal, which must end before
    /// the elements that it saves are overwritten.
    pub(crate) fn sets_apart(&self, nest: &Nest, stage: &Stage) -> bool {
        let Pair { from, to, .. } = self.pair;
        match &self.how {
            How::Journals(_) => {
                let is_journal = self.journal_buffers().any(|buffer| buffer == stage.target);
                is_journal || nest.copies(stage, from, to)
            }
            How::Grows(..) => nest.takes_over(stage, from, to).is_some(),
        }
    }

    /// Has the buffers of what the variable held and of what it is set to be one memory, if they may be.
    pub(crate) fn join(&self, aliases: &mut Aliases) {
        aliases.join(self.pair.from, self.pair.to);
    }

    /// The buffers of the journals.
    pub(crate) fn journal_buffers(&self) -> impl Iterator<Item = BufferId> + '_ {
        let journals = match &self.how {
            How::Journals(journals) => journals.as_slice(),
            _ => &[],
        };
        journals.iter().flat_map(|j| [j.old, j.places])
    }

    /// Finds the one of `kernels` that copies what the variable held.
    pub(crate) fn find_copy<'k>(&mut self, kernels: impl Iterator<Item = &'k SubNest>) {
        let copies = kernels
            .enumerate()
            .filter(|(_, kernel)| self.is_copy(kernel));
        let mut copies = copies.map(|(k, _)| k);
        let copy = copies.next().filter(|_| copies.next().is_none());
        drop(copies);
        self.copy = copy;
    }

    /// The update, without the step that copies, where symbols have `values`; `None` if there is none.
    pub(crate) fn bound_to(&self, values: &[usize]) -> Option<InPlaceUpdate> {
        let copy = self.copy;
        let (journals, growth) = match &self.how {
            How::Journals(journals) => (journals.clone(), None),
            How::Grows(axis, extent, memory, order) => {
                let memory = memory.iter().map(|n| n.at(values));
                let growth = Growth {
                    axis: *axis,
                    extent: extent.at(values)?,
                    memory: memory.collect::<Option<Shape>>()?,
                    order: *order,
                };
                (Vec::new(), Some(growth))
            }
        };
        (copy.is_some() || growth.is_some()).then(|| InPlaceUpdate {
            variable: self.pair.variable.clone(),
            read: self.pair.read,
            output: self.pair.output,
            journals,
            copy,
            growth,
        })
    }

    fn is_copy(&self, SubNest { nest, buffers }: &SubNest) -> bool {
        let is_to = |stage: &Stage| buffers[stage.target.0 as usize] == self.pair.to;
        buffers.contains(&self.pair.from) && nest.stages.iter().all(is_to)
    }
}
