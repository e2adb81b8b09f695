//! A plan in the making, with a stop where the caller runs what depends on constants alone.

use crate::compile::Settings;
use crate::compile::constants::{Prologue, constant_stages};
use crate::compile::interface::Interface;
use crate::compile::kernels::Kernels;
use crate::compile::micro_batches::MicroBatches;
use crate::compile::packed_operands::PlanSlots;
use crate::compile::passes::{Buffers, Optimized, optimize};
use crate::compile::plan::NodeCall;
use crate::compile::slot::{Slot, slots};
use crate::compile::symbolic_plan::SymbolicPlan;
use crate::compile::variables::{Candidate, Room, find_orders, grow, growing, update_in_place};
use crate::growth_cache::Growing;
use crate::{Error, Level, Tensor};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use vinelift_graph::{NodeIndex, Segment, ShapeValue, TensorId, Types};
use vinelift_nest::{Aliases, Buffer, BufferId, Nest, Stage};
use vinelift_tensor::{Extent, SymbolSet};

/// A segment whose nest has been through the passes, for shapes or for a class of them.
pub(crate) struct Draft {
    nest: Nest,
    slots: Vec<Slot>,
    candidates: Vec<Candidate>,
    /// The tensors that it computes for others, where, and of which shapes.
    outputs: Vec<(BufferId, TensorId, Vec<Extent>)>,
    constants: FxHashMap<TensorId, Tensor>,
    calls: Vec<NodeCall>,
    wanted: Vec<TensorId>,
    shape_values: Vec<ShapeValue>,
    forgotten: Vec<TensorId>,
    level: Level,
    micro_batches: Option<MicroBatches>,
}

impl Draft {
    /// The segment's nest after the passes of the level, with the variables that it updates in place.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and internal ones.
    pub(crate) fn new(
        interface: &Interface,
        segment: Segment,
        settings: &Settings<'_>,
    ) -> Result<Draft, Error> {
        let calls = segment.calls.iter();
        let calls: Vec<NodeCall> = calls
            .map(|node| node_call(interface, *node, &segment.types))
            .collect();
        let mut slots = slots(&segment);
        let level = settings.level;
        let updates = may_update(&segment, level);
        let mut nest = segment.nest;
        let capacities = &segment.room;
        let mut candidates = match (capacities.is_empty(), updates) {
            (true, _) => Vec::new(),
            (false, true) => grow(&nest, &slots, &segment.outputs, interface, capacities)?,
            (false, false) => return Err(Error::internal("room for what does not grow")),
        };
        let room: Vec<Room> = candidates.iter().filter_map(Candidate::room).collect();
        if !room.is_empty() {
            nest.adopt_symbols();
        }
        let buffers = Buffers {
            slots: &slots,
            of_shapes: &segment.of_shapes,
            room: &room,
        };
        let Optimized {
            mut nest,
            micro_batches,
        } = optimize(
            nest,
            buffers,
            settings.choices(),
            settings.stop,
            &settings.shared.unproven,
        )?;
        let mut outputs = segment.outputs;
        drop_unused_buffers(&mut nest, &mut slots, &mut outputs, &mut candidates);
        find_orders(&nest, &mut candidates)?;
        if updates {
            candidates.extend(update_in_place(&mut nest, &mut slots, &outputs, interface));
        }
        let outputs = outputs.iter();
        let outputs = outputs.map(|(buffer, tensor)| {
            // Scheduling may have flattened the buffer: the tensor's shape is the one inferred.
            let inferred = segment.types.shape(*tensor);
            let shape = inferred.unwrap_or_else(|| nest.buf(*buffer).shape.clone());
            (*buffer, *tensor, shape)
        });
        Ok(Draft {
            outputs: outputs.collect(),
            nest,
            slots,
            candidates,
            constants: segment.constants,
            calls,
            wanted: segment.wanted,
            shape_values: segment.shape_values,
            forgotten: segment.forgotten,
            level,
            micro_batches,
        })
    }

    /// The stages that depend on constants alone and are worth to be run once, as a plan. They leave the draft, whose
    /// caller passes what they compute to [`Draft::set_constants`].
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn prologue(&mut self, settings: &Settings<'_>) -> Result<Option<Prologue>, Error> {
        match self.level {
            Level::Scheduled => constant_stages(&mut self.nest, &self.slots, settings),
            _ => Ok(None),
        }
    }

    /// Has the buffers that the prologue computed be constants.
    pub(crate) fn set_constants(&mut self, values: Vec<(BufferId, Tensor)>) {
        for (buffer, value) in values {
            self.slots[buffer.0 as usize] = Slot::Constant(Arc::new(value));
        }
    }

    /// The plan, but for the numbers of its symbols: kernels, and what else is the same for all.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn finish(self, settings: &Settings<'_>) -> Result<SymbolicPlan, Error> {
        let contracts = self.level == Level::Scheduled;
        let mut aliases = Aliases::default();
        self.candidates.iter().for_each(|c| c.join(&mut aliases));
        let nest = &self.nest;
        let alone = |stage: &Stage| self.candidates.iter().any(|c| c.sets_apart(nest, stage));
        let kernels = || Kernels::of(nest, contracts, &alone, &aliases, settings);
        let kernels = self.level.is_native().then(kernels).transpose()?;
        let mut candidates = self.candidates;
        if let Some(kernels) = &kernels {
            let find_copy = |c: &mut Candidate| c.find_copy(kernels.stages());
            candidates.iter_mut().for_each(find_copy);
        }
        let symbols = |buffer: &Buffer| SymbolSet::of(buffer.shape.iter().copied());
        let buffers = self.nest.buffers.iter().map(symbols).enumerate();
        let symbolic = buffers.filter(|(_, symbols)| *symbols != SymbolSet::default());
        Ok(SymbolicPlan {
            extents: self.nest.symbolic_extents(),
            symbolic_buffers: symbolic.collect(),
            kernels,
            nest: Arc::new(self.nest),
            slots: PlanSlots::new(self.slots),
            candidates,
            last: Mutex::default(),
            outputs: self.outputs,
            constants: Arc::new(self.constants),
            calls: self.calls,
            wanted: self.wanted,
            shape_values: self.shape_values,
            forgotten: self.forgotten.into(),
            micro_batches: self.micro_batches.map(Arc::new),
        })
    }
}

/// Removes the buffers that no stage uses after the passes, which are most of the temporaries: each run goes through all buffers.
fn drop_unused_buffers(
    nest: &mut Nest,
    slots: &mut Vec<Slot>,
    outputs: &mut [(BufferId, TensorId)],
    candidates: &mut [Candidate],
) {
    let named = outputs.iter_mut().map(|(buffer, _)| buffer);
    let of_candidates = candidates.iter_mut().flat_map(Candidate::buffers_mut);
    let named: Vec<&mut BufferId> = named.chain(of_candidates).collect();
    slots.resize(nest.buffers.len(), Slot::Absent);
    let new_ids = nest.drop_unused_buffers(named.iter().map(|buffer| **buffer));
    for buffer in named {
        *buffer = new_ids[buffer.0 as usize].unwrap_or(*buffer);
    }
    let mut stays = new_ids.iter().map(Option::is_some);
    slots.retain(|_| stays.next() == Some(true));
}

/// Whether the plan of a segment may update variables in place: a later segment may read what one held.
fn may_update(segment: &Segment, level: Level) -> bool {
    level == Level::Scheduled && segment.calls.is_empty() && segment.wanted.is_empty()
}

/// The variables that grow in a segment that has symbols.
pub(crate) fn growing_in(segment: &Segment, interface: &Interface, level: Level) -> Growing {
    match may_update(segment, level) && segment.nest.is_symbolic() {
        true => growing(&segment.nest, &slots(segment), &segment.outputs, interface),
        false => Vec::new(),
    }
}

fn node_call(interface: &Interface, node: NodeIndex, types: &Types) -> NodeCall {
    let outputs = 0..interface.graph.node(node).layer.outputs.len();
    let tensors = outputs.map(|output| TensorId { node, output });
    let typed = tensors.filter_map(|t| Some((t, types.get(t)?.clone())));
    NodeCall {
        node,
        outputs: typed.collect(),
    }
}
