//! Stages whose results are constant: they run once, when a plan is made.

use crate::Error;
use crate::execute::{Memory, execute};
use crate::plan::{Plan, Slot};
use crate::pool::Pool;
use crate::steps::compile;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use vinelift_codegen::{Compiler, Options};
use vinelift_nest::{Aliases, BufferId, Contraction, Kind, Nest, Role, Stage};
use vinelift_tensor::{ElementType, Tensor};

/// Computes the operands of contractions and the folds that depend on constants alone, and takes their stages
/// out of the nest.
pub(crate) fn fold_operands(
    nest: &mut Nest,
    slots: &mut [Slot],
    compiler: &Compiler,
    pool: &Pool,
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
    let mut native = compile(
        &part,
        &part_slots,
        compiler,
        None,
        &|_| false,
        &Aliases::default(),
        &Options::default(),
    )?;
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
        stop: None,
    };
    execute(&plan, &mut memory, None)?;
    for (buffer, value) in types.into_iter().zip(outputs) {
        nest.buffers[buffer.0 as usize].role = Role::Input;
        slots[buffer.0 as usize] = Slot::Constant(value);
    }
    nest.stages = stages;
    Ok(())
}
