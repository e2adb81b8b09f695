//! Stages whose results are constant: they run once, before the first run of a plan.

use crate::Error;
use crate::compile::Settings;
use crate::compile::kernels::Kernels;
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::compile::symbolic_plan::SymbolicPlan;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex};
use vinelift_nest::{Aliases, BufferId, Contraction, Kind, Nest, Role, Stage};
use vinelift_tensor::{ElementType, Shape, SymbolSet};

/// The stages of a nest that depend on constants alone.
pub(crate) struct Prologue {
    pub(crate) plan: Arc<Plan>,
    /// The buffers that it computes, with their types: those of its outputs, in order.
    pub(crate) targets: Vec<(BufferId, ElementType, Shape)>,
}

/// The work of a stage that is done before the first run, in nanoseconds: as much as goes unnoticed, or as reading its
/// constants [`MOST_TURNS`] times takes. More is left to the run, which can be stopped.
const MOST_NANOSECONDS: usize = 100_000_000;
const MOST_TURNS: usize = 64;

/// Results of at most this size are kept from before the first run, whatever makes them.
const SMALL_BYTES: usize = 1 << 18;

/// The operands of contractions, the folds, the copies and the small stages that depend on constants alone, as a plan; their
/// stages leave the nest, in which their targets are then inputs.
pub(crate) fn constant_stages(
    nest: &mut Nest,
    slots: &[Slot],
    settings: &Settings<'_>,
) -> Result<Option<Prologue>, Error> {
    let operands: FxHashSet<BufferId> = nest
        .stages
        .iter()
        .filter_map(|stage| Contraction::of(nest, stage))
        .flat_map(|c| [c.left.tensor.buffer, c.right.tensor.buffer])
        .collect();
    let is_constant = |stage: &Stage| {
        let is_wanted = operands.contains(&stage.target)
            || matches!(stage.value.kind(), Kind::Reduce { .. })
            || bytes(nest, stage.target) <= SMALL_BYTES
            || reorders(nest, stage);
        is_wanted && depends_on_constants(nest, stage, slots)
    };
    let stages = nest.stages.iter().cloned();
    let (constant, rest): (Vec<Stage>, Vec<Stage>) = stages.partition(is_constant);
    if constant.is_empty() {
        return Ok(None);
    }
    let mut part = nest.clone();
    // The plan has no inputs: what only a run has is absent.
    let constants = slots.iter().map(|slot| match slot {
        Slot::Constant(tensor) => Slot::Constant(tensor.clone()),
        _ => Slot::Absent,
    });
    let mut part_slots: Vec<Slot> = constants.collect();
    let mut targets = Vec::with_capacity(constant.len());
    for (k, stage) in constant.iter().enumerate() {
        let target = stage.target.0 as usize;
        let buffer = &mut part.buffers[target];
        buffer.role = Role::Output;
        nest.buffers[target].role = Role::Input;
        part_slots[target] = Slot::Output(k);
        targets.push((stage.target, buffer.ty, buffer.example()));
    }
    part.stages = constant;
    nest.stages = rest;
    let plan = plan_of(part, part_slots, settings)?;
    Ok(Some(Prologue {
        plan: Arc::new(plan),
        targets,
    }))
}

/// Whether a stage stores elements of a buffer in another order, and no more of them than the buffer has.
fn reorders(nest: &Nest, stage: &Stage) -> bool {
    match stage.value.kind() {
        Kind::Load { buffer, .. } => bytes(nest, stage.target) <= bytes(nest, *buffer),
        _ => false,
    }
}

fn bytes(nest: &Nest, buffer: BufferId) -> usize {
    nest.buf(buffer).byte_len().unwrap_or(usize::MAX)
}

/// Whether a stage is all that writes a temporary, reads only constants, and is worth its time and memory before the
/// first run.
fn depends_on_constants(nest: &Nest, stage: &Stage, slots: &[Slot]) -> bool {
    let loads = stage.loads();
    let is_constant = |buffer: &BufferId| {
        matches!(slots[buffer.0 as usize], Slot::Constant(_))
            || matches!(nest.buf(*buffer).role, Role::Table(_))
    };
    let writers = nest.stages.iter().filter(|s| s.target == stage.target);
    nest.buf(stage.target).role == Role::Temporary
        && !loads.is_empty()
        && loads.iter().all(is_constant)
        && writers.count() == 1
        && is_worth(nest, stage, &loads)
}

/// Whether a stage takes little time and memory, at least in comparison with the constants that it reads.
fn is_worth(nest: &Nest, stage: &Stage, loaded: &[BufferId]) -> bool {
    let position = nest.stages.iter().position(|other| other == stage);
    let points = position.map_or(usize::MAX, |k| nest.points_in(k..k + 1));
    // A run computes constants whose shapes have symbols.
    let has_symbols = |k| nest.is_symbolic() && nest.extract(k..k + 1).nest.is_symbolic();
    if position.is_none_or(has_symbols) {
        return false;
    }
    let read = loaded.iter().map(|b| bytes(nest, *b));
    let read = read.fold(0, usize::saturating_add);
    let large = MOST_TURNS.saturating_mul(read);
    (points <= MOST_NANOSECONDS || points <= large)
        && bytes(nest, stage.target) <= large.max(1 << 20)
}

/// The plan of stages that have no symbols.
fn plan_of(nest: Nest, slots: Vec<Slot>, settings: &Settings<'_>) -> Result<Plan, Error> {
    let settings = Settings {
        threads: 1,
        ..*settings
    };
    let kernels = Kernels::of(&nest, false, &|_| false, &Aliases::default(), &settings)?;
    let plan = SymbolicPlan {
        extents: Vec::new(),
        symbols: vec![SymbolSet::default(); nest.buffers.len()],
        kernels: Some(kernels),
        nest: Arc::new(nest),
        slots,
        candidates: Vec::new(),
        last: Mutex::default(),
        outputs: Vec::new(),
        constants: Arc::default(),
        calls: Vec::new(),
        wanted: Vec::new(),
        shape_values: Vec::new(),
        forgotten: Arc::default(),
        micro_batches: None,
    };
    let unbound = || Error::internal("constants whose shapes have symbols");
    plan.bound_to(&[], &settings)?.ok_or_else(unbound)
}
