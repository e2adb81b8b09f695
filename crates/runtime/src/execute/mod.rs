//! Runs one plan on memory: binds each buffer of its nest to an address, then runs its steps, one after the other, each
//! shared by the threads of a [`Pool`](pool::Pool). Plans are taken as they are.

mod bind;
mod interpret;
mod launch;
pub(crate) mod pool;

use crate::compile::constants::Prologue;
use crate::compile::plan::Plan;
use crate::{Error, Tensor};
pub(crate) use bind::{Launch, Memory, grow};
use pool::Pool;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vinelift_nest::BufferId;
use vinelift_tensor::ElementType;

/// Runs `plan`; `times`, if given, gets the time of each step.
///
/// # Errors
/// [`Error::Fault`] for an index out of range, [`Error::Cancelled`], and those of memory.
pub(crate) fn execute(
    plan: &Arc<Plan>,
    memory: &mut Memory<'_>,
    times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    match &plan.binding.native {
        Some(native) => launch::run(plan, native, memory, times),
        None => interpret::run(plan, memory),
    }
}

/// The constants that a prologue computes, by their buffers.
///
/// # Errors
/// As [`execute`].
pub(crate) fn constants(
    prologue: &Prologue,
    pool: &Pool,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<(BufferId, Tensor)>, Error> {
    let outputs = prologue.targets.iter();
    let outputs = outputs.map(|(_, ty, shape)| Tensor::zeros(*ty, shape));
    let mut outputs: Vec<Tensor> = outputs.collect::<Result<_, _>>()?;
    let mut memory = Memory {
        inputs: &[],
        kept: &FxHashMap::default(),
        outputs: &mut outputs,
        arena: &mut Tensor::zeros(ElementType::U8, &[prologue.plan.binding.arena()])?,
        launch: &mut None,
        pool,
        in_place: &[],
        stop,
    };
    execute(&prologue.plan, &mut memory, None)?;
    let targets = prologue.targets.iter().map(|(buffer, ..)| *buffer);
    Ok(targets.zip(outputs).collect())
}
