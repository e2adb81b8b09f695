//! Kernels that follow a contraction task by task: they use what a task computed while it is in the cache.
//!
//! Their parts run while other tasks still read operands, so all that the two kernels may have in common is the
//! results ([`Effects::may_overlap`]), and a part uses only those of its own task ([`Footprint`]).

use crate::product::Product;
use std::ops::Range;
use vinelift_nest::{Aliases, BufferId, Effects, Footprint, ParallelChunks, SubNest};

/// How the parts of a kernel follow the tasks of the contraction before it. Together they are the whole.
#[derive(Debug)]
pub(crate) struct Follow {
    /// For each task, the part that uses nothing which another task computes.
    pub(crate) parts: Vec<Option<Range<usize>>>,
    /// What is left when all tasks are done.
    pub(crate) rest: Vec<Range<usize>>,
}

/// How many bytes of results a task may leave for the kernel that follows it.
const TASK_BYTES: usize = 256 << 10;

impl Follow {
    /// How the turns of `next` use what `first` computes, both of the same nest, if `next` can follow: if it
    /// uses the results in the order in which they are computed, and nothing else that `first` writes, and
    /// writes nothing that `first` uses.
    pub(crate) fn reach(first: &SubNest, next: &SubNest, aliases: &Aliases) -> Option<Footprint> {
        let [stage] = first.nest.stages.as_slice() else {
            return None;
        };
        let results = first.buffers[stage.target.0 as usize];
        let position = next.buffers.iter().position(|b| *b == results)?;
        let [before, after] = [first, next].map(|kernel| Effects::of_kernel(kernel, aliases));
        if !after.may_overlap(&before, results, aliases) {
            return None;
        }
        Footprint::of(&next.nest, BufferId(u32::try_from(position).ok()?))
    }

    /// In how many tasks a contraction is best done whose results take so many bytes.
    pub(crate) fn tasks(bytes: usize) -> usize {
        bytes.div_ceil(TASK_BYTES).max(1)
    }

    /// For a kernel of these parts; nothing if there is nothing to win.
    pub(crate) fn new(
        product: &Product,
        reach: Footprint,
        parts: ParallelChunks,
    ) -> Option<Follow> {
        let regions = product.regions().filter(|regions| regions.len() > 1)?;
        let followers: Vec<_> = regions.iter().map(|r| reach.within(parts, r)).collect();
        let mut rest = Vec::new();
        let mut start = 0;
        for part in followers
            .iter()
            .flatten()
            .chain([&(parts.extent..parts.extent)])
        {
            if part.start > start {
                rest.push(start..part.start);
            }
            start = part.end;
        }
        let rest_fits = rest.iter().all(|part| parts.allow(part));
        (rest_fits && followers.iter().any(Option::is_some)).then_some(Follow {
            parts: followers,
            rest,
        })
    }
}
