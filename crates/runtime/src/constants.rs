//! Stages whose results are constant: they run once, when a plan is made.

use crate::Error;
use crate::execute::{Memory, execute};
use crate::plan::{Plan, Slot};
use crate::pool::Pool;
use crate::steps::{Making, compile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::{Compiler, Options};
use vinelift_nest::{Aliases, BufferId, Contraction, Kind, Nest, Role, Stage};
use vinelift_tensor::{ElementType, Tensor};

/// The work of a stage that is done when a plan is made, in nanoseconds: as much as goes unnoticed, or as reading its
/// constants a few times takes. More is left to the run, which can be stopped.
const MOST_NANOSECONDS: usize = 100_000_000;
const MOST_TURNS: usize = 64;

/// Whether what a stage computes is worth its time and memory before the run.
fn is_worth(nest: &Nest, stage: &Stage, loaded: &[BufferId]) -> bool {
    let position = nest.stages.iter().position(|other| other == stage);
    let points = position.map_or(usize::MAX, |k| nest.points_in(k..k + 1));
    let bytes = |b: BufferId| nest.buf(b).byte_len().unwrap_or(usize::MAX);
    let read = loaded.iter().map(|b| bytes(*b));
    let read = read.fold(0, usize::saturating_add);
    let large = MOST_TURNS.saturating_mul(read);
    (points <= MOST_NANOSECONDS || points <= large) && bytes(stage.target) <= large.max(1 << 20)
}

/// Computes the operands of contractions and the folds that depend on constants alone, and takes their stages
/// out of the nest.
pub(crate) fn fold_operands(
    nest: &mut Nest,
    slots: &mut [Slot],
    compiler: &Compiler,
    pool: &Pool,
    stop: &Arc<AtomicBool>,
) -> Result<(), Error> {
    let operands: FxHashSet<BufferId> = nest
        .stages
        .iter()
        .filter_map(|stage| Contraction::of(nest, stage))
        .flat_map(|c| [c.left.tensor.buffer, c.right.tensor.buffer])
        .collect();
    let is_constant = |stage: &Stage| {
        let buffers = stage.loads();
        (operands.contains(&stage.target) || matches!(stage.value.kind(), Kind::Reduce { .. }))
            && nest.buf(stage.target).role == Role::Temporary
            && nest
                .stages
                .iter()
                .filter(|s| s.target == stage.target)
                .count()
                == 1
            && !buffers.is_empty()
            && is_worth(nest, stage, &buffers)
            && buffers.into_iter().all(|b| {
                matches!(slots[b.0 as usize], Slot::Constant(_))
                    || matches!(nest.buf(b).role, Role::Table(_))
            })
    };
    let (folded, stages): (Vec<Stage>, Vec<Stage>) =
        nest.stages.iter().cloned().partition(is_constant);
    if folded.is_empty() {
        return Ok(());
    }
    let mut part = nest.clone();
    // What only runs have is not there yet.
    let constant = |slot: &Slot| match slot {
        Slot::Constant(tensor) => Slot::Constant(tensor.clone()),
        _ => Slot::Absent,
    };
    let mut part_slots: Vec<Slot> = slots.iter().map(constant).collect();
    let mut outputs = Vec::new();
    let mut types = Vec::new();
    for (k, stage) in folded.iter().enumerate() {
        let target = stage.target.0 as usize;
        let buffer = &mut part.buffers[target];
        buffer.role = Role::Output;
        part_slots[target] = Slot::Output(k);
        outputs.push(Tensor::zeros(buffer.ty, &buffer.shape)?);
        types.push(stage.target);
    }
    part.stages = folded;
    let making = Making {
        compiler,
        options: &Options::default(),
        threads: None,
        stop,
    };
    let aliases = Aliases::default();
    let mut native = compile(&part, &part_slots, &|_| false, &aliases, &making)?;
    let arena = native.place(&part, &mut part_slots)?;
    let plan = Arc::new(Plan {
        nest: part,
        slots: part_slots,
        native: Some(native),
        outputs: Vec::new(),
        journals: Vec::new(),
        carries: Vec::new(),
        constants: FxHashMap::default(),
        calls: Vec::new(),
        wanted: Vec::new(),
        arena,
    });
    let mut memory = Memory {
        inputs: &[],
        kept: &FxHashMap::default(),
        outputs: &mut outputs,
        arena: &mut Tensor::zeros(ElementType::U8, &[arena])?,
        call: &mut None,
        pool,
        carried: &[],
        stop,
    };
    execute(&plan, &mut memory, None)?;
    for (buffer, value) in types.into_iter().zip(outputs) {
        nest.buffers[buffer.0 as usize].role = Role::Input;
        slots[buffer.0 as usize] = Slot::Constant(value);
    }
    nest.stages = stages;
    Ok(())
}
