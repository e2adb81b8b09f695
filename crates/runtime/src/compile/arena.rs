//! The arena: one block of memory for temporaries and scratch memory. Those that do not live at the same time share it.

use crate::Error;
use crate::compile::kernels::Native;
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step};
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, PoisonError};
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

/// An offset for each of some buffers, and the bytes of all.
pub(crate) struct Placement {
    lifetimes: Vec<Lifetime>,
    offsets: Vec<usize>,
    total: usize,
}

/// The last placement for a class of shapes. Shapes that differ by little have the same, since sizes are
/// [rounded](rounded) up.
#[derive(Default)]
pub(crate) struct LastPlacement(Mutex<Option<Arc<Placement>>>);

impl LastPlacement {
    /// The placement of buffers with these lifetimes; `None` if their sizes overflow.
    fn of(&self, lifetimes: Vec<Lifetime>) -> Option<Arc<Placement>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.lifetimes == lifetimes) {
            return Some(last.clone());
        }
        let (offsets, total) = place(&lifetimes)?;
        let placement = Arc::new(Placement {
            lifetimes,
            offsets,
            total,
        });
        *last = Some(placement.clone());
        Some(placement)
    }
}

/// Sizes are rounded up to a multiple of at least this.
const LEAST_STEP: usize = 1 << 10;

/// A size that is at most an eighth or [`LEAST_STEP`] larger, and is the same for sizes that differ by little.
fn rounded(bytes: usize) -> usize {
    // A power of two between a sixteenth and an eighth.
    let step = (bytes / 16 + 1).checked_next_power_of_two();
    let step = step.unwrap_or(1).max(LEAST_STEP);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

impl Native {
    /// Gives every temporary and all scratch memory a place in the arena, whose size in bytes it returns, and lets go of
    /// constants that no step reads. `last` is the last placement for the class of these shapes, if they are of one.
    ///
    /// # Errors
    /// If that is more than an address space has.
    pub(crate) fn place(
        &mut self,
        nest: &Nest,
        lengths: &[Option<usize>],
        slots: &mut [Slot],
        last: Option<&LastPlacement>,
    ) -> Result<usize, Error> {
        let times = self.times();
        let mut needed = vec![false; slots.len()];
        for step in &self.steps {
            for buffer in &step.kernel.used {
                needed[buffer.0 as usize] |= step.needs(*buffer);
            }
        }
        for (slot, needed) in slots.iter_mut().zip(needed) {
            if matches!(slot, Slot::Constant(_)) && !needed {
                *slot = Slot::Absent;
            }
        }
        let buffers = self.lifetimes(nest, lengths);
        let mut all: Vec<Lifetime> = buffers.iter().map(|(_, l)| *l).collect();
        all.extend(times.iter().enumerate().map(|(step, &(first, last))| {
            let bytes = self.scratch_bytes(step);
            Lifetime { bytes, first, last }
        }));
        let too_large = || {
            let text = "the model's temporaries do not fit into memory at these shapes";
            Error::Input(text.to_owned())
        };
        let chains = self.steps.iter().zip(&times);
        all.extend(chains.map(|(step, &(first, last))| {
            let chain = step.chain.as_ref();
            let bytes = chain.map_or(0, |c| c.worker_bytes.saturating_mul(step.workers));
            Lifetime { bytes, first, last }
        }));
        let placement = match last {
            Some(last) => {
                all.iter_mut().for_each(|l| l.bytes = rounded(l.bytes));
                last.of(all)
            }
            None => LastPlacement::default().of(all),
        };
        let placement = placement.ok_or_else(too_large)?;
        let (own, scratch) = placement.offsets.split_at(buffers.len());
        let (scratch, chained) = scratch.split_at(self.steps.len());
        for ((buffer, _), offset) in buffers.iter().zip(own) {
            slots[buffer.0 as usize] = Slot::Arena(*offset);
        }
        for ((step, offset), chained) in self.steps.iter_mut().zip(scratch).zip(chained) {
            step.scratch = *offset;
            if let Some(chain) = &mut step.chain {
                chain.scratch = *chained;
            }
        }
        Ok(placement.total)
    }

    /// The temporaries of the nest that have memory of their own, in order, and when they hold something; `lengths` are the
    /// bytes of all buffers.
    pub(crate) fn lifetimes(
        &self,
        nest: &Nest,
        lengths: &[Option<usize>],
    ) -> Vec<(BufferId, Lifetime)> {
        let mut lifetimes: Vec<Option<Lifetime>> = vec![None; nest.buffers.len()];
        let chains = self.steps.iter().filter_map(|step| step.chain.as_ref());
        let windows = chains.flat_map(|chain| &chain.windows);
        let windows: FxHashSet<BufferId> = windows.map(|window| window.buffer).collect();
        for (step, (first, last)) in self.steps.iter().zip(self.times()) {
            for buffer in &step.kernel.used {
                if nest.buf(*buffer).role == Role::Temporary && !windows.contains(buffer) {
                    let number = buffer.0 as usize;
                    let bytes = lengths[number].unwrap_or(usize::MAX);
                    let new = Lifetime { bytes, first, last };
                    lifetimes[number].get_or_insert(new).last = last;
                }
            }
        }
        let all = (0..).map(BufferId).zip(lifetimes);
        all.filter_map(|(buffer, lifetime)| Some((buffer, lifetime?)))
            .collect()
    }

    /// For each step, the first and the last of the steps that run at the same time: those of all its turns, and a
    /// contraction with its consumer.
    fn times(&self) -> Vec<(usize, usize)> {
        let mut times: Vec<(usize, usize)> = Vec::with_capacity(self.steps.len());
        while times.len() < self.steps.len() {
            let (start, end) = (times.len(), self.turns(times.len()));
            times.resize(end, (start, end - 1));
        }
        for (number, step) in self.steps.iter().enumerate() {
            if step.consumer.is_some() {
                let (first, last) = (times[number - 1].0, times[number].1);
                times[number].0 = first;
                let producers = number - chained(&self.steps[..number]);
                times[producers..number]
                    .iter_mut()
                    .for_each(|time| time.1 = last);
            }
        }
        times
    }

    /// Bytes of scratch memory that a step needs in a run; of code, as many for each thread that runs it.
    fn scratch_bytes(&self, number: usize) -> usize {
        let step = &self.steps[number];
        match &step.engine {
            Engine::Contraction(contraction) => contraction.scratch_bytes(),
            Engine::Code { function, .. } => {
                let producer = step.consumer.as_ref().map(|_| &self.steps[number - 1]);
                let workers = producer.map_or(1, |p| p.workers).max(step.workers);
                function.scratch_bytes().saturating_mul(workers)
            }
        }
    }
}

/// How many of the last of these steps run with each other: a contraction, and those with its tasks.
fn chained(steps: &[Step]) -> usize {
    let consumers = steps.iter().rev();
    1 + consumers.take_while(|step| step.consumer.is_some()).count()
}

/// An offset for each buffer, and the size of the whole; `None` if that overflows.
///
/// Greedy by size: the largest first, each at the lowest offset where it meets none that lives at the
/// same time.
fn place(lifetimes: &[Lifetime]) -> Option<(Vec<usize>, usize)> {
    let mut by_size: Vec<usize> = (0..lifetimes.len()).collect();
    by_size.sort_by_key(|i| (std::cmp::Reverse(lifetimes[*i].bytes), *i));
    let mut offsets = vec![0; lifetimes.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for i in by_size {
        let buffer = lifetimes[i];
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
        assert_eq!([1, 1000, 1024].map(rounded), [1024; 3]);
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
