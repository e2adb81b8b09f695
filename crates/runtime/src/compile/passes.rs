//! The passes over a nest before it runs.

use crate::compile::contraction::isa;
use crate::compile::micro_batches::{MicroBatches, Wanted};
use crate::compile::slot::Slot;
use crate::compile::variables::Room;
use crate::stop;
use crate::{Error, Level};
use rustc_hash::FxHashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vinelift_codegen::Vectors;
use vinelift_nest::{
    BufferId, Kept, Nest, channels_last, constant_indices, contract, dead_points, dead_taps,
    dynamic_quantization, fuse, gathered_channels_last, hoist_scales, partial_folds,
    quantized_products, schedule, unordered_partial_folds, verify,
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
    mut nest: Nest,
    Buffers {
        slots,
        of_shapes,
        room,
    }: Buffers<'_>,
    Choices {
        level,
        vectors,
        group,
        micro_batch,
    }: Choices,
    mut trace: Option<&mut Vec<Pass>>,
    flag: &AtomicBool,
    unproven: &AtomicUsize,
) -> Result<Optimized, Error> {
    let mut record = |name, start: Instant, kept, nest: &Nest| {
        stop::check(flag)?;
        if let Some(trace) = trace.as_deref_mut() {
            let time = start.elapsed();
            trace.push(Pass {
                name,
                time,
                kept,
                nest: nest.clone(),
            });
        }
        Ok::<(), Error>(())
    };
    record("nest", Instant::now(), Vec::new(), &nest)?;
    let constant = |buffer: BufferId| match slots.get(buffer.0 as usize) {
        Some(Slot::Constant(tensor)) => Some(tensor.bytes()),
        _ => None,
    };
    let wanted = (level == Level::Scheduled).then(|| Wanted::of(&nest, slots, micro_batch));
    // At every level: these passes define how sums are rounded.
    let start = Instant::now();
    quantized_products(&mut nest, &constant);
    record("quantized products", start, Vec::new(), &nest)?;
    if let Some(group) = group {
        let start = Instant::now();
        dynamic_quantization(&mut nest, group.get(), &constant);
        record("dynamic quantization", start, Vec::new(), &nest)?;
    }
    let start = Instant::now();
    hoist_scales(&mut nest, &constant);
    record("hoist scales", start, Vec::new(), &nest)?;
    let start = Instant::now();
    partial_folds(&mut nest, &|buffer| of_shapes.contains(&buffer), flag);
    record("partial folds", start, Vec::new(), &nest)?;
    // How sums are rounded does not depend on the room around what they add up.
    room.iter().for_each(|room| room.make(&mut nest));
    // Nor on how many images of a batch are computed at once.
    let mut micro_batches = None;
    if let Some(wanted) = wanted.flatten() {
        let start = Instant::now();
        micro_batches = MicroBatches::split(&mut nest, slots, wanted);
        if micro_batches.is_some() {
            record("micro-batches", start, Vec::new(), &nest)?;
        }
    }
    let plain = level.fuses().then(|| nest.clone());
    if level.fuses() {
        let start = Instant::now();
        dead_points(&mut nest, &|buffer| constant(buffer).is_some());
        record("dead points", start, Vec::new(), &nest)?;
        let start = Instant::now();
        let kept = fuse(&mut nest);
        record("fused", start, kept, &nest)?;
    }
    if level == Level::Scheduled {
        let start = Instant::now();
        dead_taps(&mut nest, &constant);
        record("dead taps", start, Vec::new(), &nest)?;
        let start = Instant::now();
        contract(&mut nest, &|buffer| constant(buffer).is_some());
        record("contracted", start, Vec::new(), &nest)?;
        let start = Instant::now();
        constant_indices(&mut nest, &constant);
        record("constant indices", start, Vec::new(), &nest)?;
        let start = Instant::now();
        let isa = isa(vectors);
        if isa.reads_rows_in_place() {
            channels_last(
                &mut nest,
                &|buffer| constant(buffer).is_some(),
                isa.least_lanes(),
            );
            record("channels last", start, Vec::new(), &nest)?;
        }
        let start = Instant::now();
        gathered_channels_last(&mut nest);
        record("gathered channels last", start, Vec::new(), &nest)?;
        let start = Instant::now();
        unordered_partial_folds(&mut nest);
        record("unordered partial folds", start, Vec::new(), &nest)?;
        let start = Instant::now();
        schedule(&mut nest);
        record("scheduled", start, Vec::new(), &nest)?;
    }
    let start = Instant::now();
    if nest.is_symbolic() {
        nest.adopt_symbols();
    }
    let proven = verify(&nest);
    if proven.is_err() {
        unproven.fetch_add(1, Ordering::Relaxed);
    }
    let errors = match (proven, plain) {
        (Ok(()), _) => {
            return Ok(Optimized {
                nest,
                micro_batches,
            });
        }
        (Err(_), Some(plain)) if !cfg!(debug_assertions) => {
            nest = plain;
            verify(&nest).err()
        }
        (Err(errors), _) => Some(errors),
    };
    if let Some(errors) = errors {
        return Err(Error::internal(&errors[0]));
    }
    record("not proven, so as before fusion", start, Vec::new(), &nest)?;
    Ok(Optimized {
        nest,
        micro_batches,
    })
}
