//! The steps of a plan, run on the memory that it is bound to.

use crate::Error;
use crate::compile::contraction::{COMPUTING, PACKING};
use crate::compile::kernels::Native;
use crate::compile::plan::Plan;
use crate::compile::step::{Engine, Step};
use crate::execute::bind::{Launch, Memory};
use crate::execute::pool::{Pool, Round, Tasks, WORTH_WAKING};
use crate::stop;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use vinelift_codegen::{Interrupt, Pointer};
use vinelift_nest::Fault;

/// Runs all steps of a plan; `times`, if given, gets the time of each.
pub(super) fn run(
    plan: &Arc<Plan>,
    native: &Native,
    memory: &mut Memory<'_>,
    mut times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    let launch = Launch::bind(plan, native, memory)?;
    if native.shared_cost > WORTH_WAKING {
        memory.pool.wake();
    }
    let is_left_out = |step| {
        memory
            .in_place
            .iter()
            .any(|update| update.copy == Some(step))
    };
    let mut start = 0;
    while start < native.steps.len() {
        let group = &native.steps[start..native.turns(start)];
        let mut spent = times.is_some().then(|| vec![Duration::ZERO; group.len()]);
        for turn in 0..group[0].turns.map_or(1, |turns| turns.count) {
            stop::check(memory.stop)?;
            for k in (0..group.len()).filter(|k| !is_left_out(start + k)) {
                let begin = spent.is_some().then(Instant::now);
                launch.step(start + k, turn, memory.pool)?;
                if let (Some(spent), Some(begin)) = (&mut spent, begin) {
                    spent[k] += begin.elapsed();
                }
            }
        }
        if let (Some(times), Some(spent)) = (times.as_deref_mut(), spent) {
            times.extend(spent);
        }
        start += group.len();
    }
    *memory.launch = Some(launch);
    Ok(())
}

impl Launch {
    /// Runs a turn of a step; without turns, that is turn 0.
    fn step(self: &Arc<Launch>, number: usize, turn: usize, pool: &Pool) -> Result<(), Error> {
        let step = self.at(number);
        let alone = step.workers == 1 || !pool.is_worth(step.cost);
        let workers = if alone { 1 } else { step.workers };
        let share = |phase, tasks| {
            let round = Round {
                step: number,
                turn,
                phase,
            };
            pool.run(self, round, tasks, workers);
        };
        match (&step.engine, &step.consumer) {
            // The other parts ran with the tasks of the step before.
            (Engine::Code { .. }, Some(consumer)) => {
                for part in &consumer.rest {
                    self.part(number, part.clone(), 0);
                }
            }
            (Engine::Code { function, .. }, None) => {
                let parts = function.chunks();
                let count = if alone { 1 } else { step.tasks };
                share(count, count);
                if parts.dim.is_some()
                    && count > 1
                    && let Some(fault) = self.take_fault()
                {
                    // Which fault is the first is only known when all points are done in their order. They may be
                    // done again (`Effects::faults_again`); if other threads have changed the indices since, it is
                    // the one that was found.
                    self.part(number, 0..parts.extent, 0);
                    self.note(fault);
                }
            }
            (Engine::Contraction(contraction), _) => {
                share(PACKING, contraction.tasks(PACKING));
                share(COMPUTING, contraction.tasks(COMPUTING));
            }
        }
        if self.is_cut_short.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if matches!(step.engine, Engine::Contraction(_)) {
            // A fault is that of the consumer, which says which is the first when all its parts are done.
            return Ok(());
        }
        match self.take_fault() {
            Some((_, fault)) => Err(Error::Fault(fault.message(&step.nest()))),
            None => Ok(()),
        }
    }

    /// Keeps a fault, if none was found in an earlier task.
    fn note(&self, (start, fault): (usize, Fault)) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(other, _)| start < *other) {
            *first = Some((start, fault));
        }
    }

    fn take_fault(&self) -> Option<(usize, Fault)> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.take()
    }

    fn at(&self, step: usize) -> &Step {
        match &self.plan.native {
            Some(native) => &native.steps[step],
            None => unreachable!("plans without code are not launched"),
        }
    }

    /// Runs a part of a kernel that is code; no other thread does so under the number `worker`.
    fn part(&self, number: usize, part: Range<usize>, worker: usize) {
        let step = self.at(number);
        let Engine::Code { function, pieces } = &step.engine else {
            return;
        };
        let arguments = &self.arguments[step.arguments..][..step.kernel.buffers().len()];
        let start = part.start;
        let scratch = step.scratch + worker * function.scratch_bytes();
        let scratch = Pointer(self.arena.0.wrapping_add(scratch));
        let ((code, number_in_code), numbers) = (function.code(), function.numbers());
        let run = |piece| {
            stop::check(&self.stop).map_err(|_| Interrupt::Stopped)?;
            // SAFETY: there is a pointer for every buffer of the kernel, and `Memory::check` has found each of them to
            // have the bytes that the buffer takes. Inputs, constants and kept tensors are only read: the verifier
            // refuses a stage that writes to an input. Outputs are distinct tensors of which `Memory` is the only
            // owner; one that has the memory of a kept tensor is written only by steps after all that read this
            // tensor (`keep_journals`), or only where nothing of it lies (`Nest::growth`). Temporaries of steps that run beside each other do not overlap in the arena
            // (`Native::place`), which nothing else uses. Steps run one after the other, but for a consumer that runs
            // with the tasks of a contraction: it writes nothing that the contraction uses, and reads only results of
            // tasks that are done (`Effects::may_overlap`, `Footprint::within`). Chunks of one kernel lie apart
            // (`ParallelChunks`). The run does not end before them. Scratch memory lies in the arena as temporaries do, a
            // piece for each worker.
            unsafe {
                code.run_part(
                    number_in_code,
                    arguments,
                    numbers,
                    piece,
                    scratch,
                    &self.stop,
                )
            }
        };
        match function.chunks().pieces(part, *pieces).try_for_each(run) {
            Ok(()) => {}
            Err(Interrupt::Stopped) => self.is_cut_short.store(true, Ordering::Relaxed),
            Err(Interrupt::Fault(fault)) => self.note((start, fault)),
        }
    }
}

impl Tasks for Launch {
    fn task(&self, round: Round, task: usize, worker: usize) {
        let step = self.at(round.step);
        match &step.engine {
            Engine::Code { function, .. } => {
                // The phase of code is the number of its tasks.
                let part = match step.turns {
                    Some(_) => round.turn..round.turn + 1,
                    None => function.chunk(task, round.phase),
                };
                self.part(round.step, part, worker);
            }
            Engine::Contraction(contraction) => {
                let place = |buffer: usize| self.buffers[step.kernel.buffers()[buffer].0 as usize];
                let scratch = Pointer(self.arena.0.wrapping_add(step.scratch));
                let phase = (round.turn, round.phase);
                // SAFETY: the buffers and the scratch memory are those that `part` argues for. The result overlaps no
                // operand, as a contraction loads nothing that it writes (`Contraction::of`), and the consumer that
                // runs with its tasks writes nothing that it uses (`Effects::may_overlap`). The second phase is started
                // when the first has ended (`Launch::step`).
                unsafe { contraction.task(place, scratch, phase, task, worker, &self.stop) };
                // It does not say whether it was cut short: the results are used only if it surely was not.
                if self.stop.load(Ordering::Relaxed) {
                    self.is_cut_short.store(true, Ordering::Relaxed);
                    return;
                }
                let steps = self.plan.native.as_ref().map(|native| &native.steps);
                let next = steps.and_then(|steps| steps.get(round.step + 1));
                if round.phase == COMPUTING
                    && let Some(consumer) = next.and_then(|next| next.consumer.as_ref())
                    && let Some(part) = &consumer.parts[task]
                {
                    self.part(round.step + 1, part.clone(), worker);
                }
            }
        }
    }
}
