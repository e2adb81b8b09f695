//! The steps of a plan, run on the memory that it is bound to.

use crate::Error;
use crate::compile::arena::StepMemory;
use crate::compile::chain::{Chain, MOST_BUFFERS};
use crate::compile::contraction::{COMPUTING, PACKING, PackedContraction, Place};
use crate::compile::native::Native;
use crate::compile::plan::Plan;
use crate::compile::step::{Engine, Step, turns_end};
use crate::execute::bind::{FoundFault, Launch, Memory};
use crate::execute::pool::{Pool, Round, Tasks, WORTH_WAKING};
use crate::stop;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use vinelift_codegen::{Interrupt, Pointer};
use vinelift_nest::{BufferId, Fault};

/// Runs all steps of a plan, for each micro-batch; `times`, if given, gets the time of each.
pub(super) fn run(
    plan: &Arc<Plan>,
    native: &Native,
    memory: &mut Memory<'_>,
    mut times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    if let Some(times) = &mut times {
        times.resize(native.steps.len(), Duration::ZERO);
    }
    (0..plan.micro_batches()).try_for_each(|micro_batch| {
        run_micro_batch(plan, native, memory, micro_batch, times.as_deref_mut())
    })
}

/// Runs all steps for a micro-batch, and adds the time of each to `times`.
fn run_micro_batch(
    plan: &Arc<Plan>,
    native: &Native,
    memory: &mut Memory<'_>,
    micro_batch: usize,
    mut times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    let launch = Launch::bind(plan, native, memory, micro_batch)?;
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
        let group = &native.steps[start..turns_end(&native.steps, start)];
        for turn in 0..group[0].turns.map_or(1, |turns| turns.count) {
            stop::check(memory.stop)?;
            for k in (0..group.len()).filter(|k| !is_left_out(start + k)) {
                let begin = times.is_some().then(Instant::now);
                launch.step(start + k, turn, memory.pool)?;
                if let (Some(times), Some(begin)) = (&mut times, begin) {
                    times[start + k] += begin.elapsed();
                }
            }
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
            // It runs with the tasks of a contraction after it.
            (Engine::Code { .. }, _) if step.makes_rows.is_some() => {}
            // The other parts ran with the tasks of the contraction before it.
            (Engine::Code { .. }, Some(consumer)) => {
                for part in &consumer.rest {
                    self.part(number, part.clone(), 0, None);
                }
            }
            (Engine::Code { function, .. }, None) => {
                let parts = function.chunks();
                let count = if alone { 1 } else { step.tasks };
                share(count, count);
                if parts.dim.is_some()
                    && count > 1
                    && let Some(fault) = self.take_fault(number)
                {
                    // Which fault is the first is only known when all points are done in their order. They may be
                    // done again (`Effects::faults_again`); if other threads have changed the indices since, it is
                    // the one that was found.
                    self.part(number, 0..parts.extent, 0, None);
                    self.note(number, fault);
                }
            }
            (Engine::Contraction(_), Some(_)) => {}
            (Engine::Contraction(contraction), None) => {
                for (step, contraction) in self.contractions(number) {
                    let round = Round {
                        step,
                        turn,
                        phase: PACKING,
                    };
                    pool.run(self, round, contraction.tasks(PACKING), workers);
                }
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
        match self.take_fault(number) {
            Some((_, fault)) => Err(Error::Fault(fault.message(&step.nest()))),
            None => Ok(()),
        }
    }

    /// Keeps a fault of a step, if none was found in an earlier step, or in an earlier task of it.
    fn note(&self, step: usize, (start, fault): (usize, Fault)) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_earlier = |other: &FoundFault| (step, start) < (other.step, other.start);
        if first.as_ref().is_none_or(is_earlier) {
            *first = Some(FoundFault { step, start, fault });
        }
    }

    /// The fault that was found, with the start of its task, if it is one of the step: those of the steps that run with
    /// its tasks are theirs.
    fn take_fault(&self, step: usize) -> Option<(usize, Fault)> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let found = fault.take_if(|found| found.step == step)?;
        Some((found.start, found.fault))
    }

    fn at(&self, step: usize) -> &Step {
        &self.plan.binding.steps()[step]
    }

    /// Where a step has its memory in the arena.
    fn memory(&self, step: usize) -> StepMemory {
        let native = self.plan.binding.native.as_ref();
        native.map_or(StepMemory::default(), |native| native.placement.step(step))
    }

    /// A contraction, and the one that is chained to it, if there is one.
    fn contractions(&self, number: usize) -> impl Iterator<Item = (usize, &PackedContraction)> {
        let steps = self.plan.binding.steps();
        let is_chained = |step: &usize| steps.get(*step).is_some_and(|s| s.consumer.is_some());
        let last = self.at(number).chain.as_ref().map(|_| number + 2);
        let steps = [number].into_iter().chain(last.filter(is_chained));
        steps.filter_map(|step| match &self.at(step).engine {
            Engine::Contraction(contraction) => Some((step, &**contraction)),
            Engine::Code { .. } => None,
        })
    }

    /// The buffer of a step in a task of a chain, if it is in one.
    fn place(&self, buffer: BufferId, chained: Option<Chained<'_>>) -> Place {
        let window = chained.and_then(|c| c.chain.window(buffer).map(|window| (c, window)));
        let Some((
            Chained {
                chain,
                windows,
                task,
                worker,
            },
            window,
        )) = window
        else {
            let (pointer, bytes) = self.buffers[buffer.0 as usize];
            return Place {
                pointer,
                bytes,
                before: None,
            };
        };
        let offset = windows + worker * chain.worker_bytes + window.offset;
        Place {
            pointer: Pointer(self.arena.0.wrapping_add(offset)),
            bytes: window.bytes,
            before: Some(window.before[task]),
        }
    }

    /// Runs a task of a contraction in a phase and turn.
    fn contraction(
        &self,
        number: usize,
        (turn, phase): (usize, usize),
        task: usize,
        worker: usize,
        chained: Option<Chained<'_>>,
    ) {
        let step = self.at(number);
        let Engine::Contraction(contraction) = &step.engine else {
            return;
        };
        let place = |buffer: usize| self.place(step.kernel.buffers()[buffer], chained);
        let scratch = Pointer(self.arena.0.wrapping_add(self.memory(number).scratch));
        // SAFETY: the buffers and the scratch memory are those that `part` argues for. The result overlaps no operand, as
        // a contraction loads nothing that it writes (`Contraction::of`), and the consumers that run with its tasks write
        // nothing that it uses (`Effects::may_overlap`). The second phase is started when the first has ended
        // (`Launch::step`); of a contraction that is itself run with the tasks of another, when the rows that its task
        // takes are complete (`Link::bound_to`).
        unsafe { contraction.task(place, scratch, (turn, phase), task, worker, &self.stop) };
        // It does not say whether it was cut short: the results are used only if it surely was not.
        if self.stop.load(Ordering::Relaxed) {
            self.is_cut_short.store(true, Ordering::Relaxed);
        }
    }

    /// Runs what is run with a task of the contraction `number`.
    fn consumers(&self, number: usize, task: usize, worker: usize, chained: Option<Chained<'_>>) {
        let after = self.plan.binding.steps().get(number + 1..);
        for (next, step) in (number + 1..).zip(after.unwrap_or_default()) {
            let Some(consumer) = &step.consumer else {
                return;
            };
            if self.is_cut_short.load(Ordering::Relaxed) {
                return;
            }
            match (&step.engine, &consumer.parts[task]) {
                (Engine::Contraction(_), _) => {
                    self.contraction(next, (0, COMPUTING), task, worker, chained);
                }
                (Engine::Code { .. }, Some(part)) => {
                    self.part(next, part.clone(), worker, chained);
                }
                (Engine::Code { .. }, None) => {}
            }
        }
    }

    /// Runs a part of a kernel that is code; no other thread does so under the number `worker`.
    fn part(&self, number: usize, part: Range<usize>, worker: usize, chained: Option<Chained<'_>>) {
        let step = self.at(number);
        let Engine::Code { function, pieces } = &step.engine else {
            return;
        };
        let buffers = step.kernel.buffers();
        let mut arguments = &self.arguments[step.arguments..][..buffers.len()];
        let mut windows = [Pointer(std::ptr::null_mut()); MOST_BUFFERS];
        if let Some(own) = windows
            .get_mut(..buffers.len())
            .filter(|_| chained.is_some())
        {
            for (own, buffer) in own.iter_mut().zip(buffers) {
                // Code reaches an element by its offset from where the first one would be.
                let Place {
                    pointer, before, ..
                } = self.place(*buffer, chained);
                *own = Pointer(pointer.0.wrapping_sub(before.unwrap_or(0)));
            }
            arguments = own;
        }
        let start = part.start;
        let scratch = self.memory(number).scratch + worker * function.scratch_bytes();
        let scratch = Pointer(self.arena.0.wrapping_add(scratch));
        let ((code, number_in_code), numbers) = (function.code(), function.numbers());
        let run = |piece| {
            stop::check(&self.stop).map_err(|_| Interrupt::Stopped)?;
            // SAFETY: there is a pointer for every buffer of the kernel, and `Memory::check` has found each of them to
            // have the bytes that the buffer takes, or these for each micro-batch. Inputs, constants and kept tensors are only
            // read: the verifier
            // refuses a stage that writes to an input. Outputs are distinct tensors of which `Memory` is the only
            // owner; one that has the memory of a kept tensor is written only by steps after all that read this
            // tensor (`keep_journals`), or only where nothing of it lies (`Nest::growth`). Temporaries of steps that run beside each other do not overlap in the arena
            // (`Placement::of`), which nothing else uses. Steps run one after the other, but for a consumer that runs
            // with the tasks of a contraction: it writes nothing that the contraction uses, and reads only results of
            // tasks that are done (`Effects::may_overlap`, `Footprint::within`); and for code that runs with the tasks of a later
            // contraction: it writes windows alone, and no step from its place to that contraction writes what it reads
            // (`MadeRows::of`). Chunks of one kernel lie apart
            // (`ParallelChunks`). The run does not end before them. Scratch memory lies in the arena as temporaries do, a
            // piece for each worker; so do the windows of a chain, which have all elements that a part uses, and lie in one place
            // only if no stage uses both (`Chain::add`).
            unsafe {
                code.run_chunk(
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
            Err(Interrupt::Fault(fault)) => self.note(number, (start, fault)),
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
                self.part(round.step, part, worker, None);
            }
            Engine::Contraction(_) => {
                let chain = step.chain.as_ref().filter(|_| round.phase == COMPUTING);
                let chained = chain.map(|chain| Chained {
                    chain,
                    windows: self.memory(round.step).windows,
                    task,
                    worker,
                });
                let phase = (round.turn, round.phase);
                if let Some(producer) = step.producer.as_ref().filter(|_| chained.is_some()) {
                    let part = producer.parts[task].clone();
                    self.part(round.step - producer.distance, part, worker, chained);
                }
                self.contraction(round.step, phase, task, worker, chained);
                if round.phase == COMPUTING {
                    self.consumers(round.step, task, worker, chained);
                }
            }
        }
    }
}

/// A task of a chain, on a thread.
#[derive(Clone, Copy)]
struct Chained<'a> {
    chain: &'a Chain,
    /// Where its windows begin in the arena.
    windows: usize,
    task: usize,
    worker: usize,
}
