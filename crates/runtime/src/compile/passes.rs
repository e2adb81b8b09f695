//! The passes over a nest before it runs.

use crate::compile::contraction::isa;
use crate::compile::micro_batches::{MicroBatches, Wanted};
use crate::compile::slot::{Slot, constant_bytes, slots};
use crate::compile::variables::Room;
use crate::stop;
use crate::{Error, Level};
use rustc_hash::FxHashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vinelift_codegen::Vectors;
use vinelift_graph::Segment;
use vinelift_nest::{
    BufferId, Kept, Nest, channels_last, constant_indices, contract, dead_points, dead_taps,
    dynamic_quantization, fuse, gathered_channels_last, hoist_operands, hoist_scales,
    partial_folds, quantized_products, repeat_operands, schedule, unordered_partial_folds, verify,
};

/// The choices, besides the nest, on which the passes depend.
#[derive(Clone, Copy)]
pub(crate) struct Choices {
    pub(crate) level: Level,
    /// Limits the vectors of the kernels, which decides about the order of dims.
    pub(crate) vectors: Vectors,
    /// [`Config::dynamic_quantization_group_size`](crate::Config::dynamic_quantization_group_size).
    pub(crate) group: Option<NonZeroUsize>,
    /// [`Config::micro_batch`](crate::Config::micro_batch).
    pub(crate) micro_batch: Option<NonZeroUsize>,
}

/// Facts about the buffers of a nest on which passes rely.
#[derive(Clone, Copy)]
pub(crate) struct Buffers<'a> {
    /// Which of them hold constants.
    pub(crate) slots: &'a [Slot],
    /// Inputs that depend on shapes alone.
    pub(crate) of_shapes: &'a FxHashSet<BufferId>,
    /// The capacities of variables that grow, which buffers get after the passes that define sums.
    pub(crate) room: &'a [Room],
}

/// The effect of a pass, for the trace.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) time: Duration,
    pub(crate) kept: Vec<Kept>,
    /// The nest after it.
    pub(crate) nest: Nest,
}

/// The nest of a segment after the passes of a level.
pub(crate) struct Optimized {
    /// It is proven to be safe.
    pub(crate) nest: Nest,
    /// How it computes a batch, if not at once.
    pub(crate) micro_batches: Option<MicroBatches>,
}

/// Takes the nest of a segment through the passes of a level.
///
/// If the nest has symbols, the recorder that this runs in writes down what is decided about them. Should what the passes made
/// not be proven to be safe, the nest as it was before they changed it runs instead, with the same rounding, and
/// `unproven` counts it; where mistakes are looked for, that is an error.
pub(crate) fn optimize(
    nest: Nest,
    buffers: Buffers<'_>,
    choices: Choices,
    stop: &AtomicBool,
    unproven: &AtomicUsize,
) -> Result<Optimized, Error> {
    let passes = Passes {
        nest,
        trace: None,
        stop,
    };
    passes.optimize(buffers, choices, unproven)
}

/// The effect of each pass on the nest of a segment, with the slots of its buffers.
pub(crate) fn trace(segment: Segment, choices: Choices) -> Result<(Vec<Pass>, Vec<Slot>), Error> {
    let slots = slots(&segment);
    let buffers = Buffers {
        slots: &slots,
        of_shapes: &segment.of_shapes,
        room: &[],
    };
    let mut trace = Vec::new();
    let passes = Passes {
        nest: segment.nest,
        trace: Some(&mut trace),
        stop: stop::never(),
    };
    passes.optimize(buffers, choices, &AtomicUsize::new(0))?;
    Ok((trace, slots))
}

/// A nest on its way through the passes.
struct Passes<'a> {
    nest: Nest,
    /// Gets the effect of each pass, if somebody asks for it.
    trace: Option<&'a mut Vec<Pass>>,
    /// Once true, no further pass begins.
    stop: &'a AtomicBool,
}

impl Passes<'_> {
    fn optimize(
        mut self,
        buffers: Buffers<'_>,
        choices: Choices,
        unproven: &AtomicUsize,
    ) -> Result<Optimized, Error> {
        let (level, slots) = (choices.level, buffers.slots);
        self.run("nest", |_| ())?;
        let wanted = match level {
            Level::Scheduled => Wanted::of(&self.nest, slots, choices.micro_batch),
            _ => None,
        };
        self.define_rounding(buffers, choices.group)?;
        // How sums are rounded does not depend on the room around what they add up.
        for room in buffers.room {
            room.make(&mut self.nest);
        }
        // Nor on how many images of a batch are computed at once.
        let micro_batches = match wanted {
            Some(wanted) => self.split(slots, wanted)?,
            None => None,
        };
        let unfused = level.fuses().then(|| self.nest.clone());
        if level.fuses() {
            self.fuse(slots)?;
        }
        if level == Level::Scheduled {
            self.schedule(slots, choices.vectors)?;
        }
        Ok(Optimized {
            nest: self.proven(unfused, unproven)?,
            micro_batches,
        })
    }

    /// The passes that define how sums are rounded, which run at every level.
    fn define_rounding(
        &mut self,
        buffers: Buffers<'_>,
        group: Option<NonZeroUsize>,
    ) -> Result<(), Error> {
        let constant = |buffer| constant_bytes(buffers.slots, buffer);
        self.run("quantized products", |nest| {
            quantized_products(nest, &constant);
        })?;
        if let Some(group) = group {
            self.run("dynamic quantization", |nest| {
                dynamic_quantization(nest, group.get(), &constant);
            })?;
        }
        self.run("hoist scales", |nest| hoist_scales(nest, &constant))?;
        let (is_of_shapes, stop) = (|buffer| buffers.of_shapes.contains(&buffer), self.stop);
        self.run("partial folds", |nest| {
            partial_folds(nest, &is_of_shapes, stop);
        })
    }

    fn split(&mut self, slots: &[Slot], wanted: Wanted) -> Result<Option<MicroBatches>, Error> {
        let start = Instant::now();
        let micro_batches = MicroBatches::split(&mut self.nest, slots, wanted);
        if micro_batches.is_some() {
            self.record("micro-batches", start, Vec::new())?;
        }
        Ok(micro_batches)
    }

    fn fuse(&mut self, slots: &[Slot]) -> Result<(), Error> {
        let is_constant = |buffer| constant_bytes(slots, buffer).is_some();
        self.run("dead points", |nest| dead_points(nest, &is_constant))?;
        let start = Instant::now();
        let kept = fuse(&mut self.nest);
        self.record("fused", start, kept)
    }

    fn schedule(&mut self, slots: &[Slot], vectors: Vectors) -> Result<(), Error> {
        let constant = |buffer| constant_bytes(slots, buffer);
        let is_constant = |buffer| constant(buffer).is_some();
        self.run("dead taps", |nest| dead_taps(nest, &constant))?;
        self.run("contracted", |nest| contract(nest, &is_constant))?;
        self.run("hoisted operands", |nest| {
            hoist_operands(nest, &is_constant);
        })?;
        self.run("constant indices", |nest| constant_indices(nest, &constant))?;
        let isa = isa(vectors);
        if isa.reads_rows_in_place() {
            self.run("channels last", |nest| {
                channels_last(nest, &is_constant, isa.least_lanes());
            })?;
        }
        self.run("gathered channels last", gathered_channels_last)?;
        self.run("unordered partial folds", unordered_partial_folds)?;
        self.run("repeated operands", |nest| {
            repeat_operands(nest, &is_constant);
        })?;
        self.run("scheduled", schedule)
    }

    /// The nest once it is proven to be safe, or else `unfused`, the nest as it was before fusion.
    fn proven(mut self, unfused: Option<Nest>, unproven: &AtomicUsize) -> Result<Nest, Error> {
        let start = Instant::now();
        if self.nest.is_symbolic() {
            self.nest.adopt_symbols();
        }
        let Err(errors) = verify(&self.nest) else {
            return Ok(self.nest);
        };
        unproven.fetch_add(1, Ordering::Relaxed);
        let Some(unfused) = unfused.filter(|_| !cfg!(debug_assertions)) else {
            return Err(Error::internal(&errors[0]));
        };
        self.nest = unfused;
        verify(&self.nest).map_err(|errors| Error::internal(&errors[0]))?;
        self.record("not proven, so as before fusion", start, Vec::new())?;
        Ok(self.nest)
    }

    fn run(&mut self, name: &'static str, pass: impl FnOnce(&mut Nest)) -> Result<(), Error> {
        let start = Instant::now();
        pass(&mut self.nest);
        self.record(name, start, Vec::new())
    }

    /// Records the effect of a pass that began at `start`.
    fn record(&mut self, name: &'static str, start: Instant, kept: Vec<Kept>) -> Result<(), Error> {
        stop::check(self.stop)?;
        if let Some(trace) = &mut self.trace {
            trace.push(Pass {
                name,
                time: start.elapsed(),
                kept,
                nest: self.nest.clone(),
            });
        }
        Ok(())
    }
}
