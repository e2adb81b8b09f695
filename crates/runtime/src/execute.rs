//! Runs a plan on the tensors of a request.

use crate::Error;
use crate::carry::Carry;
use crate::plan::{Plan, Slot};
use crate::pool::{Pool, Round, WORTH_WAKING, Work as Tasks};
use crate::product::{COMPUTING, PACKING};
use crate::steps::{Native, Step, Work};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vinelift_codegen::{Interrupt, Pointer};
use vinelift_graph::TensorId;
use vinelift_nest::{BufferBytes, Fault, InterpretError, Role, interpret_until};
use vinelift_tensor::{ElementType, Tensor, TensorError};

/// What a plan reads and writes; strings are numbers here.
pub(crate) struct Memory<'a> {
    /// The inputs, in order.
    pub(crate) inputs: &'a [Tensor],
    /// What earlier segments have computed.
    pub(crate) kept: &'a FxHashMap<TensorId, Tensor>,
    /// One for each of [`Plan::outputs`], of its type and shape.
    pub(crate) outputs: &'a mut [Tensor],
    /// At least [`Plan::arena`] bytes of `u8`.
    pub(crate) arena: &'a mut Tensor,
    /// What the last run was called with: the next one of the same plan uses its memory again.
    pub(crate) call: &'a mut Option<Arc<Call>>,
    /// The threads that may be used.
    pub(crate) pool: &'a Pool,
    /// The variables whose memory is that of an output, with the steps that need not run.
    pub(crate) carried: &'a [&'a (Carry, usize)],
    /// Has the run end soon.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl Memory<'_> {
    /// The output that has the memory of what was read of a variable.
    fn carried(&self, read: &TensorId) -> Option<usize> {
        let found = self.carried.iter().find(|(carry, _)| carry.read == *read);
        found.map(|(carry, _)| carry.output)
    }
}

/// An error if a run is to end.
pub(crate) fn go_on(stop: &AtomicBool) -> Result<(), Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    }
}

/// A flag that nobody sets.
pub(crate) fn never() -> &'static Arc<AtomicBool> {
    static NEVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    &NEVER
}

/// Runs `plan`; `times`, if given, gets the time of each step.
pub(crate) fn execute(
    plan: &Arc<Plan>,
    memory: &mut Memory<'_>,
    times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    match &plan.native {
        Some(native) => call(plan, native, memory, times),
        None => walk(plan, memory),
    }
}

/// The length in bytes of a buffer of the nest: what is in its slot must have just that.
fn check(plan: &Plan, memory: &Memory<'_>, buffer: usize) -> Result<usize, Error> {
    let (buffer, slot) = (&plan.nest.buffers[buffer], &plan.slots[buffer]);
    let need = buffer.byte_len();
    let found = match slot {
        Slot::Parameter(k) => memory.inputs.get(*k).map(|t| t.bytes().len()),
        Slot::Constant(tensor) => Some(tensor.bytes().len()),
        Slot::Kept(id) => {
            let carried = memory.carried(id).and_then(|k| memory.outputs.get(k));
            carried.or(memory.kept.get(id)).map(|t| t.bytes().len())
        }
        Slot::Output(k) => memory.outputs.get(*k).map(|t| t.bytes().len()),
        Slot::Arena(offset) => {
            let end = need.and_then(|n| n.checked_add(*offset));
            need.filter(|_| end.is_some_and(|end| end <= memory.arena.bytes().len()))
        }
        Slot::Absent => need,
    };
    match found {
        Some(bytes) if found == need => Ok(bytes),
        _ => Err(Error::internal(format!(
            "buffer `{}` takes {need:?} bytes, found {found:?}",
            buffer.name
        ))),
    }
}

fn walk(plan: &Plan, memory: &mut Memory<'_>) -> Result<(), Error> {
    (0..plan.slots.len()).try_for_each(|buffer| check(plan, memory, buffer).map(drop))?;
    let mut outputs: FxHashMap<usize, &mut [u8]> = FxHashMap::default();
    for (k, tensor) in memory.outputs.iter_mut().enumerate() {
        outputs.insert(k, tensor.make_mut()?);
    }
    let mut bytes = Vec::with_capacity(plan.slots.len());
    for (buffer, slot) in plan.nest.buffers.iter().zip(&plan.slots) {
        bytes.push(match slot {
            Slot::Parameter(k) => BufferBytes::Read(memory.inputs[*k].bytes()),
            Slot::Constant(tensor) => BufferBytes::Read(tensor.bytes()),
            Slot::Kept(id) => BufferBytes::Read(memory.kept[id].bytes()),
            Slot::Output(k) => match outputs.remove(k) {
                Some(bytes) => BufferBytes::Write(bytes),
                None => return Err(Error::internal(format!("output {k} has two buffers"))),
            },
            _ if buffer.role == Role::Temporary => BufferBytes::Temporary,
            _ => BufferBytes::Read(&[]),
        });
    }
    interpret_until(&plan.nest, &mut bytes, memory.stop).map_err(|e| match e {
        InterpretError::Stopped => Error::Cancelled,
        InterpretError::Memory { bytes, .. } => TensorError::OutOfMemory { bytes }.into(),
        InterpretError::Fault(fault) => Error::Fault(fault.message(&plan.nest)),
        other => Error::internal(other),
    })
}

fn call(
    plan: &Arc<Plan>,
    native: &Native,
    memory: &mut Memory<'_>,
    mut times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    let call = Call::of(plan, native, memory)?;
    if native.shared_cost > WORTH_WAKING {
        memory.pool.wake();
    }
    let is_left_out = |step| memory.carried.iter().any(|(_, copy)| *copy == step);
    let mut start = 0;
    while start < native.steps.len() {
        let group = &native.steps[start..native.turns(start)];
        let mut spent = times.is_some().then(|| vec![Duration::ZERO; group.len()]);
        for turn in 0..group[0].turns.map_or(1, |turns| turns.count) {
            go_on(memory.stop)?;
            for k in (0..group.len()).filter(|k| !is_left_out(start + k)) {
                let begin = spent.is_some().then(Instant::now);
                call.step(start + k, turn, memory.pool)?;
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
    *memory.call = Some(call);
    Ok(())
}

/// A run of a plan: what its steps are called with.
///
/// Threads that share the steps may hold it for a moment longer than the run, but do nothing with it then.
pub(crate) struct Call {
    plan: Arc<Plan>,
    /// Where each buffer of the nest is, and how many bytes it takes.
    buffers: Vec<(Pointer, usize)>,
    /// Where the buffers of all steps are, step after step.
    arguments: Vec<Pointer>,
    arena: Pointer,
    /// The first task of the step that had a fault.
    fault: Mutex<Option<(usize, Fault)>>,
    /// Has the run end soon.
    stop: Arc<AtomicBool>,
    /// Whether a task has ended early for that.
    is_cut_short: AtomicBool,
}

impl Call {
    /// A run of `plan` on `memory`.
    fn of(plan: &Arc<Plan>, native: &Native, memory: &mut Memory<'_>) -> Result<Arc<Call>, Error> {
        let used = memory.call.take().and_then(Arc::into_inner);
        let used = used.filter(|call| Arc::ptr_eq(&call.plan, plan));
        let mut call = used.unwrap_or_else(|| Call {
            plan: plan.clone(),
            buffers: Vec::new(),
            arguments: Vec::new(),
            arena: Pointer(std::ptr::null_mut()),
            fault: Mutex::new(None),
            stop: memory.stop.clone(),
            is_cut_short: AtomicBool::new(false),
        });
        if !Arc::ptr_eq(&call.stop, memory.stop) {
            call.stop = memory.stop.clone();
        }
        *call.is_cut_short.get_mut() = false;
        call.buffers.clear();
        call.arguments.clear();
        let arena = memory.arena.make_mut()?.as_mut_ptr();
        call.arena = Pointer(arena);
        let read = |tensor: &Tensor| tensor.bytes().as_ptr().cast_mut();
        for (buffer, slot) in plan.slots.iter().enumerate() {
            let bytes = check(plan, memory, buffer)?;
            let pointer = match slot {
                Slot::Parameter(k) => read(&memory.inputs[*k]),
                Slot::Constant(tensor) => read(tensor),
                Slot::Kept(id) => match memory.carried(id) {
                    Some(k) => memory.outputs[k].make_mut()?.as_mut_ptr(),
                    None => read(&memory.kept[id]),
                },
                Slot::Output(k) => memory.outputs[*k].make_mut()?.as_mut_ptr(),
                Slot::Arena(offset) => arena.wrapping_add(*offset),
                Slot::Absent => std::ptr::null_mut(),
            };
            call.buffers.push((Pointer(pointer), bytes));
        }
        for step in &native.steps {
            let pointers = step.kernel.buffers.iter();
            let pointers = pointers.map(|b| call.buffers[b.0 as usize].0);
            call.arguments.extend(pointers);
        }
        Ok(Arc::new(call))
    }

    /// Runs a turn of a step, the only one if it takes none.
    fn step(self: &Arc<Call>, number: usize, turn: usize, pool: &Pool) -> Result<(), Error> {
        let (native, step) = self.at(number);
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
        match (&step.work, &step.follow) {
            // The parts before were done with the tasks of the step before.
            (Work::Code { .. }, Some(follow)) => {
                for part in &follow.rest {
                    self.part(number, part.clone(), 0);
                }
            }
            (Work::Code { function, .. }, None) => {
                let parts = native.code.parts(*function);
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
            (Work::Product(product), _) => {
                share(PACKING, product.tasks(PACKING));
                share(COMPUTING, product.tasks(COMPUTING));
            }
        }
        if self.is_cut_short.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if matches!(step.work, Work::Product(_)) {
            // Whether the first fault is that of a part which follows is known when all are done.
            return Ok(());
        }
        match self.take_fault() {
            Some((_, fault)) => Err(Error::Fault(fault.message(&step.kernel.nest))),
            None => Ok(()),
        }
    }

    /// Keeps a fault, if none was found before it.
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

    fn at(&self, step: usize) -> (&Native, &Step) {
        match &self.plan.native {
            Some(native) => (native, &native.steps[step]),
            None => unreachable!("plans without code are not called"),
        }
    }

    /// Does a part of a kernel that is code; no other thread does so under the number `worker`.
    fn part(&self, number: usize, part: Range<usize>, worker: usize) {
        let (native, step) = self.at(number);
        let Work::Code { function, pieces } = &step.work else {
            return;
        };
        let arguments = &self.arguments[step.arguments..][..step.kernel.buffers.len()];
        let start = part.start;
        let scratch = step.scratch + worker * native.code.scratch_bytes(*function);
        let scratch = Pointer(self.arena.0.wrapping_add(scratch));
        let run = |piece| {
            go_on(&self.stop).map_err(|_| Interrupt::Stopped)?;
            // SAFETY: there is a pointer for every buffer of the kernel, and `check` has found each of them to
            // have the bytes that the buffer takes. Inputs, constants and kept tensors are only read: the verifier
            // refuses a stage that writes to an input. Outputs are distinct tensors of which `memory` is the only
            // owner; one that has the memory of a kept tensor is written only by steps after all that read this
            // tensor (`keep_journals`). Temporaries of steps that run beside each other do not overlap in the arena
            // (`Native::place`), which nothing else uses. Steps run one after the other, but for a kernel that
            // follows the tasks of a contraction: it writes nothing that the contraction uses, and reads only
            // results of tasks that are done (`Effects::may_overlap`, `Footprint::within`). Chunks of one kernel lie apart
            // (`ParallelChunks`). The run does not end before them. Scratch memory lies in the arena as temporaries do, a
            // piece for each worker.
            unsafe {
                native
                    .code
                    .run_part(*function, arguments, piece, scratch, &self.stop)
            }
        };
        match native
            .code
            .parts(*function)
            .pieces(part, *pieces)
            .try_for_each(run)
        {
            Ok(()) => {}
            Err(Interrupt::Stopped) => self.is_cut_short.store(true, Ordering::Relaxed),
            Err(Interrupt::Fault(fault)) => self.note((start, fault)),
        }
    }
}

impl Tasks for Call {
    fn task(&self, round: Round, task: usize, worker: usize) {
        let (native, step) = self.at(round.step);
        match &step.work {
            Work::Code { function, .. } => {
                // The phase of code is the number of its parts.
                let part = match step.turns {
                    Some(_) => round.turn..round.turn + 1,
                    None => native.code.parts(*function).range(task, round.phase),
                };
                self.part(round.step, part, worker);
            }
            Work::Product(product) => {
                let place = |buffer: usize| self.buffers[step.kernel.buffers[buffer].0 as usize];
                let scratch = Pointer(self.arena.0.wrapping_add(step.scratch));
                // SAFETY: the buffers and the scratch memory are as in `part`. The result overlaps no operand, as a
                // contraction loads nothing that it writes (`Contraction::of`), and the kernel that follows its
                // tasks writes nothing that it uses. The second phase is started when the first has ended.
                unsafe { product.task(place, scratch, round, task, worker, &self.stop) };
                // Whether it was cut short is not known: the results are used only if it surely was not.
                if self.stop.load(Ordering::Relaxed) {
                    self.is_cut_short.store(true, Ordering::Relaxed);
                    return;
                }
                let next = native.steps.get(round.step + 1);
                if round.phase == COMPUTING
                    && let Some(follow) = next.and_then(|next| next.follow.as_ref())
                    && let Some(part) = &follow.parts[task]
                {
                    self.part(round.step + 1, part.clone(), worker);
                }
            }
        }
    }
}

/// An arena of at least `bytes` bytes: `arena` itself, if it is large enough.
pub(crate) fn grow(arena: &mut Tensor, bytes: usize) -> Result<(), Error> {
    if arena.bytes().len() < bytes {
        *arena = Tensor::zeros(ElementType::U8, &[bytes])?;
    }
    Ok(())
}
