//! Where the buffers of a nest are found when it runs.

use crate::Tensor;
use std::sync::Arc;
use vinelift_graph::{Segment, Source, TensorId};
use vinelift_nest::BufferId;

/// Where a buffer of a nest is found when it runs.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// The input at this position.
    Parameter(usize),
    /// A constant.
    Constant(Arc<Tensor>),
    /// A tensor that an earlier segment computed.
    Kept(TensorId),
    /// The output at this position in [`Plan::outputs`](crate::compile::plan::Plan::outputs), or the journal after these.
    Output(usize),
    /// In the arena, from this offset on, in bytes.
    Arena(usize),
    /// Nowhere: no step uses it, or the code holds it.
    Absent,
}

/// The bytes of a buffer, if that is constant.
pub(crate) fn constant_bytes(slots: &[Slot], buffer: BufferId) -> Option<&[u8]> {
    match slots.get(buffer.0 as usize) {
        Some(Slot::Constant(tensor)) => Some(tensor.bytes()),
        _ => None,
    }
}

/// The slots of a segment's inputs, constants and outputs; temporaries are [`Slot::Absent`] until they get a place in
/// the arena.
pub(crate) fn slots(segment: &Segment) -> Vec<Slot> {
    let mut slots = vec![Slot::Absent; segment.nest.buffers.len()];
    for (buffer, source) in &segment.sources {
        slots[buffer.0 as usize] = match source {
            Source::Parameter(k) => Slot::Parameter(*k),
            Source::Constant(tensor) => Slot::Constant(Arc::new(tensor.clone())),
            Source::Kept(tensor) => Slot::Kept(*tensor),
        };
    }
    for (k, (buffer, _)) in segment.outputs.iter().enumerate() {
        slots[buffer.0 as usize] = Slot::Output(k);
    }
    slots
}
