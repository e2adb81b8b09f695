//! Runs a plan on the tensors of a request.

use crate::Error;
use crate::plan::{Plan, Slot};
use crate::pool::Pool;
use crate::steps::{Native, Step, Work, length};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vinelift_graph::TensorId;
use vinelift_nest::{BufferBytes, Fault, InterpretError, Role, interpret};
use vinelift_tensor::{ElementType, Tensor};

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
    /// The threads that may be used.
    pub(crate) pool: &'a Pool,
    /// Has the run end before its next kernel.
    pub(crate) stop: Option<&'a AtomicBool>,
}

/// An error if a run is to end.
pub(crate) fn go_on(stop: Option<&AtomicBool>) -> Result<(), Error> {
    match stop {
        Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Cancelled),
        _ => Ok(()),
    }
}

/// Runs `plan`; `times`, if given, gets the time of each step.
pub(crate) fn execute(
    plan: &Plan,
    memory: &mut Memory<'_>,
    times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    let lengths = check(plan, memory)?;
    match &plan.native {
        Some(native) => call(plan, native, memory, lengths, times),
        None => walk(plan, memory),
    }
}

/// Every buffer of the nest must find as many bytes as it takes, which are given back.
fn check(plan: &Plan, memory: &Memory<'_>) -> Result<Vec<usize>, Error> {
    let mut lengths = Vec::with_capacity(plan.slots.len());
    for (buffer, slot) in plan.nest.buffers.iter().zip(&plan.slots) {
        let need = length(buffer);
        let found = match slot {
            Slot::Parameter(k) => memory.inputs.get(*k).map(|t| t.bytes().len()),
            Slot::Constant(tensor) => Some(tensor.bytes().len()),
            Slot::Kept(id) => memory.kept.get(id).map(|t| t.bytes().len()),
            Slot::Output(k) => memory.outputs.get(*k).map(|t| t.bytes().len()),
            Slot::Arena(offset) => {
                let end = need.and_then(|n| n.checked_add(*offset));
                need.filter(|_| end.is_some_and(|end| end <= memory.arena.bytes().len()))
            }
            Slot::Absent => need,
        };
        match found {
            Some(bytes) if found == need => lengths.push(bytes),
            _ => {
                return Err(Error::internal(format!(
                    "buffer `{}` takes {need:?} bytes, found {found:?}",
                    buffer.name
                )));
            }
        }
    }
    Ok(lengths)
}

fn walk(plan: &Plan, memory: &mut Memory<'_>) -> Result<(), Error> {
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
    interpret(&plan.nest, &mut bytes).map_err(|e| match e {
        InterpretError::Fault(fault) => Error::Fault(fault.message(&plan.nest)),
        other => Error::internal(other),
    })
}

fn call(
    plan: &Plan,
    native: &Native,
    memory: &mut Memory<'_>,
    lengths: Vec<usize>,
    mut times: Option<&mut Vec<Duration>>,
) -> Result<(), Error> {
    let arena = memory.arena.make_mut()?.as_mut_ptr();
    let mut outputs = Vec::with_capacity(memory.outputs.len());
    for tensor in memory.outputs.iter_mut() {
        outputs.push(tensor.make_mut()?.as_mut_ptr());
    }
    let read = |tensor: &Tensor| tensor.bytes().as_ptr().cast_mut();
    let pointers: Vec<*mut u8> = plan
        .slots
        .iter()
        .map(|slot| match slot {
            Slot::Parameter(k) => read(&memory.inputs[*k]),
            Slot::Constant(tensor) => read(tensor),
            Slot::Kept(id) => read(&memory.kept[id]),
            Slot::Output(k) => outputs[*k],
            Slot::Arena(offset) => arena.wrapping_add(*offset),
            Slot::Absent => std::ptr::null_mut(),
        })
        .collect();
    let caller = Caller {
        native,
        pointers,
        lengths,
        arena,
        pool: memory.pool,
    };
    let mut start = 0;
    while start < native.steps.len() {
        let group = &native.steps[start..native.turns(start)];
        let mut spent = times.is_some().then(|| vec![Duration::ZERO; group.len()]);
        for turn in 0..group[0].turns.map_or(1, |turns| turns.count) {
            go_on(memory.stop)?;
            for (k, step) in group.iter().enumerate() {
                let begin = spent.is_some().then(Instant::now);
                caller.call(step, turn)?;
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
    Ok(())
}

/// What steps are called with.
struct Caller<'a> {
    native: &'a Native,
    /// Where each buffer of the nest is, and how many bytes it takes.
    pointers: Vec<*mut u8>,
    lengths: Vec<usize>,
    arena: *mut u8,
    pool: &'a Pool,
}

impl Caller<'_> {
    fn call(&self, step: &Step, turn: usize) -> Result<(), Error> {
        let buffers = step.kernel.buffers.iter().map(|b| b.0 as usize);
        match &step.work {
            Work::Code {
                function,
                shares,
                pieces,
            } => {
                let arguments: Vec<*mut u8> = buffers.map(|b| self.pointers[b]).collect();
                let whole = self.native.code.parts(*function);
                let parts = match step.turns {
                    Some(_) => std::iter::once(turn..turn + 1).collect(),
                    None => whole.ranges(self.pool.threads().min(*shares)),
                };
                let done = share(&arguments, parts, self.pool, |arguments, part| {
                    // SAFETY: there is a pointer for every buffer of the kernel, and `check` has found
                    // each of them to have the bytes that the buffer takes. Inputs, constants and kept
                    // tensors are only read: the verifier refuses a stage that writes to an input. Outputs
                    // are distinct tensors of which `memory` is the only owner; temporaries that are
                    // alive together do not overlap in the arena, which nothing else uses. Nobody uses
                    // them while the parts of the kernel run.
                    let run =
                        |piece| unsafe { self.native.code.run_part(*function, arguments, piece) };
                    whole.pieces(part, *pieces).try_for_each(run)
                });
                done.map_err(|fault| Error::Fault(fault.message(&step.kernel.nest)))
            }
            Work::Product(product) => {
                let place = |b: usize| (self.pointers[b].expose_provenance(), self.lengths[b]);
                let buffers: Vec<(usize, usize)> = buffers.map(place).collect();
                let scratch = self.arena.wrapping_add(product.scratch);
                let scratch = scratch.expose_provenance();
                // SAFETY: as above. Scratch memory lies in the arena as temporaries do.
                unsafe { product.run(&buffers, scratch, turn, self.pool) };
                Ok(())
            }
        }
    }
}

/// Runs the parts of a kernel on the threads of `pool`.
fn share(
    arguments: &[*mut u8],
    parts: Vec<Range<usize>>,
    pool: &Pool,
    run: impl Fn(&[*mut u8], Range<usize>) -> Result<(), Fault> + Sync,
) -> Result<(), Fault> {
    if let [whole] = parts.as_slice() {
        return run(arguments, whole.clone());
    }
    // Threads share addresses, not pointers.
    let addresses: Vec<usize> = arguments.iter().map(|p| p.expose_provenance()).collect();
    pool.run(&parts, |part| {
        let pointers = addresses.iter();
        let pointers: Vec<*mut u8> = pointers
            .map(|a| std::ptr::with_exposed_provenance_mut(*a))
            .collect();
        run(&pointers, part)
    })
}

/// An arena of at least `bytes` bytes: `arena` itself, if it is large enough.
pub(crate) fn grow(arena: &mut Tensor, bytes: usize) -> Result<(), Error> {
    if arena.bytes().len() < bytes {
        *arena = Tensor::zeros(ElementType::U8, &[bytes])?;
    }
    Ok(())
}
