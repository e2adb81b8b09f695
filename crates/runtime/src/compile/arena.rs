//! The arena: one block of memory for temporaries and scratch memory. Those that do not live at the same time share it.

use crate::Error;
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step, turns_end};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use vinelift_nest::{BufferId, Nest, Role};

/// A buffer, with the first and the last step between which it holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub(crate) bytes: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Every buffer starts at a multiple of this: a cache line.
const ALIGNMENT: usize = 64;

/// Where buffers and steps have their memory in the arena.
pub(crate) struct Placement {
    /// The temporaries that have memory, with their offsets.
    buffers: Vec<(BufferId, usize)>,
    /// For each buffer of the nest, the bytes that it has room for, if it has memory in the arena.
    rooms: Vec<Option<usize>>,
    steps: Vec<StepMemory>,
    /// The bytes of all.
    pub(crate) total: usize,
}

/// The memory of a step in the arena, besides its temporaries.
#[derive(Clone, Copy, Default)]
pub(crate) struct StepMemory {
    /// The offset of its scratch memory.
    pub(crate) scratch: usize,
    /// The offset of the windows of its chain, if it has a chain.
    pub(crate) windows: usize,
    /// The bytes that scratch memory and windows have room for.
    rooms: [usize; 2],
}

/// Sizes are rounded up to a multiple of at least this: a page.
const LEAST_STEP: usize = 4 << 10;

/// A size that is at most an eighth or [`LEAST_STEP`] larger, and is the same for sizes that differ by little.
fn rounded(bytes: usize) -> usize {
    // A power of two between a sixteenth and an eighth.
    let step = (bytes / 16 + 1).checked_next_power_of_two();
    let step = step.unwrap_or(1).max(LEAST_STEP);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

/// Whether a buffer of `bytes` may stay where there is room for `room` bytes: it fits, and would get at least about half as much if it
/// were placed anew.
fn fits(bytes: usize, room: usize) -> bool {
    bytes <= room && room / 2 <= rounded(bytes)
}

impl Placement {
    /// Gives all temporaries of `nest` and all scratch memory of the steps a place; `lengths` are the bytes of all buffers.
    /// Of a plan for a class of shapes, each has room to grow a little.
    ///
    /// # Errors
    /// If that is more than an address space has.
    pub(crate) fn of(
        nest: &Nest,
        steps: &[Arc<Step>],
        lengths: &[Option<usize>],
        is_of_class: bool,
    ) -> Result<Placement, Error> {
        let buffers = lifetimes(nest, steps, lengths);
        let mut all: Vec<Lifetime> = buffers.iter().map(|(_, l)| *l).collect();
        for (number, &(first, last)) in times(steps).iter().enumerate() {
            all.extend(step_bytes(steps, number).map(|bytes| Lifetime { bytes, first, last }));
        }
        if is_of_class {
            all.iter_mut().for_each(|l| l.bytes = rounded(l.bytes));
        }
        let (offsets, total) = place(&all).ok_or_else(|| {
            let text = "the model's temporaries do not fit into memory at these shapes";
            Error::Input(text.to_owned())
        })?;
        let (own, of_steps) = all.split_at(buffers.len());
        let mut rooms = vec![None; nest.buffers.len()];
        for ((buffer, _), lifetime) in buffers.iter().zip(own) {
            rooms[buffer.0 as usize] = Some(lifetime.bytes);
        }
        let (own, offsets) = offsets.split_at(buffers.len());
        let buffers = buffers.iter().map(|(buffer, _)| *buffer);
        let of_steps = of_steps.as_chunks().0.iter().zip(offsets.as_chunks().0);
        Ok(Placement {
            buffers: buffers.zip(own.iter().copied()).collect(),
            rooms,
            steps: of_steps
                .map(|(of_step, &[scratch, windows])| StepMemory {
                    scratch,
                    windows,
                    rooms: of_step.map(|memory: Lifetime| memory.bytes),
                })
                .collect(),
            total,
        })
    }

    /// Whether the binding `after` of a class, of which the steps and the bytes of all buffers are given, may have this placement,
    /// and the slots with it, as the binding `before` has.
    pub(crate) fn is_kept(&self, [before, after]: [SizedSteps<'_>; 2]) -> bool {
        let has_room = |(length, room): (&Option<usize>, &Option<usize>)| {
            room.is_none_or(|room| length.is_some_and(|bytes| fits(bytes, room)))
        };
        let lengths = before.1.iter().zip(after.1.iter().zip(&self.rooms));
        let mut changed = lengths.filter(|(before, (after, _))| before != after);
        let is_step_kept = |number: usize| {
            let steps = [before.0, after.0];
            Arc::ptr_eq(&before.0[number], &after.0[number]) || {
                let bytes = step_bytes(after.0, number);
                let mut bytes = bytes.into_iter().zip(self.steps[number].rooms);
                bytes.all(|(bytes, room)| fits(bytes, room)) && is_used_alike(steps, number)
            }
        };
        before.0.len() == after.0.len()
            && changed.all(|(_, after)| has_room(after))
            && (0..after.0.len()).all(is_step_kept)
    }

    /// Where a step has its memory.
    pub(crate) fn step(&self, number: usize) -> StepMemory {
        self.steps[number]
    }

    /// The slots of a plan, from those of its inputs, constants and outputs: temporaries are where they were placed, and
    /// constants that no step needs are let go.
    pub(crate) fn slots(&self, steps: &[Arc<Step>], slots: &[Slot]) -> Arc<[Slot]> {
        let mut needed = vec![false; slots.len()];
        for step in steps {
            for buffer in &step.kernel.used {
                needed[buffer.0 as usize] |= step.needs(*buffer);
            }
        }
        let slots = slots.iter().zip(needed).map(|(slot, needed)| match slot {
            Slot::Constant(_) if !needed => Slot::Absent,
            slot => slot.clone(),
        });
        let mut slots: Vec<Slot> = slots.collect();
        for (buffer, offset) in &self.buffers {
            slots[buffer.0 as usize] = Slot::Arena(*offset);
        }
        slots.into()
    }
}

/// Steps, and the bytes of each buffer of their nest.
pub(crate) type SizedSteps<'s> = (&'s [Arc<Step>], &'s [Option<usize>]);

/// Whether a step of two bindings of a class runs at the same time as the same others, and needs the same buffers.
fn is_used_alike(bindings: [&[Arc<Step>]; 2], number: usize) -> bool {
    let [before, after] = bindings.map(|steps| &*steps[number]);
    let distance = |step: &Step| step.producer.as_ref().map(|producer| producer.distance);
    let mut used = after.kernel.used.iter();
    before.turns == after.turns
        && before.consumer.is_some() == after.consumer.is_some()
        && distance(before) == distance(after)
        && windowed(before).eq(windowed(after))
        && used.all(|buffer| before.needs(*buffer) == after.needs(*buffer))
}

/// The buffers that have windows in the chain of a step.
fn windowed(step: &Step) -> impl Iterator<Item = BufferId> {
    let windows = step.chain.iter().flat_map(|chain| &chain.windows);
    windows.map(|window| window.buffer)
}

/// The bytes of the scratch memory of a step, and those of the windows of its chain, for all threads that run it.
fn step_bytes(steps: &[Arc<Step>], number: usize) -> [usize; 2] {
    let step = &steps[number];
    let scratch = match &step.engine {
        Engine::Contraction(contraction) => contraction.scratch_bytes(),
        Engine::Code { function, .. } => {
            let after = step.makes_rows.map(|distance| number + distance);
            let before = step.consumer.as_ref().map(|_| number - 1);
            let contraction = after.or(before).map(|number| &steps[number]);
            let workers = contraction.map_or(1, |c| c.workers).max(step.workers);
            function.scratch_bytes().saturating_mul(workers)
        }
    };
    let windows = step.chain.as_ref().map_or(0, |c| c.worker_bytes);
    [scratch, windows.saturating_mul(step.workers)]
}

/// The temporaries of the nest that have memory of their own, in order, and when they hold something; `lengths` are the
/// bytes of all buffers.
pub(crate) fn lifetimes(
    nest: &Nest,
    steps: &[Arc<Step>],
    lengths: &[Option<usize>],
) -> Vec<(BufferId, Lifetime)> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; nest.buffers.len()];
    let windows: FxHashSet<BufferId> = steps.iter().flat_map(|step| windowed(step)).collect();
    for (step, (first, last)) in steps.iter().zip(times(steps)) {
        for buffer in &step.kernel.used {
            if nest.buf(*buffer).role == Role::Temporary && !windows.contains(buffer) {
                let number = buffer.0 as usize;
                let bytes = lengths[number].unwrap_or(usize::MAX);
                let new = Lifetime { bytes, first, last };
                let lifetime = lifetimes[number].get_or_insert(new);
                // A step that makes rows for a later one runs as late as this.
                lifetime.last = lifetime.last.max(last);
            }
        }
    }
    let all = (0..).map(BufferId).zip(lifetimes);
    all.filter_map(|(buffer, lifetime)| Some((buffer, lifetime?)))
        .collect()
}

/// For each step, the first and the last of the steps that run at the same time: those of all its turns, a
/// contraction with its consumer, and code with the contraction for which it makes rows.
fn times(steps: &[Arc<Step>]) -> Vec<(usize, usize)> {
    let mut times: Vec<(usize, usize)> = Vec::with_capacity(steps.len());
    while times.len() < steps.len() {
        let (start, end) = (times.len(), turns_end(steps, times.len()));
        times.resize(end, (start, end - 1));
    }
    for (number, step) in steps.iter().enumerate() {
        if step.consumer.is_some() {
            let (first, last) = (times[number - 1].0, times[number].1);
            times[number].0 = first;
            let producers = number - chained(&steps[..number]);
            times[producers..number]
                .iter_mut()
                .for_each(|time| time.1 = last);
        }
    }
    for (number, step) in steps.iter().enumerate() {
        if let Some(producer) = &step.producer {
            times[number - producer.distance].1 = times[number].1;
        }
    }
    times
}

/// How many of the last of these steps run with each other: a contraction, and those with its tasks.
fn chained(steps: &[Arc<Step>]) -> usize {
    let consumers = steps.iter().rev();
    1 + consumers.take_while(|step| step.consumer.is_some()).count()
}

/// An offset for each buffer, and the size of the whole; `None` if that overflows.
///
/// Greedy by size: the largest first, each at the lowest offset where it meets none that lives at the
/// same time. What has no bytes may lie anywhere.
fn place(lifetimes: &[Lifetime]) -> Option<(Vec<usize>, usize)> {
    let mut by_size: Vec<usize> = (0..lifetimes.len()).collect();
    by_size.sort_by_key(|i| (std::cmp::Reverse(lifetimes[*i].bytes), *i));
    let mut offsets = vec![0; lifetimes.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for i in by_size {
        let buffer = lifetimes[i];
        if buffer.bytes == 0 {
            break;
        }
        let mut at = 0usize;
        // `placed` is ordered by offset, so the first gap that is large enough is the lowest.
        for &other in &placed {
            let o = lifetimes[other];
            if o.first > buffer.last || buffer.first > o.last {
                continue;
            }
            if offsets[other] >= at.checked_add(buffer.bytes)? {
                break;
            }
            at = at.max(
                offsets[other]
                    .checked_add(o.bytes)?
                    .checked_next_multiple_of(ALIGNMENT)?,
            );
        }
        offsets[i] = at;
        total = total.max(at.checked_add(buffer.bytes)?);
        let position = placed.partition_point(|p| offsets[*p] <= at);
        placed.insert(position, i);
    }
    Some((offsets, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_by_little() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1, usize::MAX / 2, usize::MAX]) {
            let rounded = rounded(bytes);
            assert!(rounded >= bytes && rounded - bytes <= (bytes / 8).max(LEAST_STEP));
        }
        assert_eq!([1, 4000, 4096].map(rounded), [4096; 3]);
    }

    #[test]
    fn only_what_lives_apart_shares() {
        let lifetime = |bytes, first, last| Lifetime { bytes, first, last };
        let buffers = [
            lifetime(100, 0, 1),
            lifetime(50, 1, 2),
            lifetime(100, 2, 3),
            lifetime(10, 0, 3),
        ];
        let (offsets, total) = place(&buffers).unwrap();
        assert_eq!(offsets, [0, 128, 0, 192]);
        assert_eq!(total, 202);
        assert_eq!(
            place(&[lifetime(usize::MAX, 0, 1), lifetime(64, 0, 1)]),
            None
        );
    }
}
