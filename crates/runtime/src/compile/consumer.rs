//! Producer–consumer fusion at run time: the kernel after a contraction uses the results of each of its tasks while
//! they are in the cache.
//!
//! Chunks of the consumer run while other tasks of the contraction still read operands, so all that the two kernels may
//! have in common is the results ([`Effects::may_overlap`]), and a chunk uses only those of its own task ([`Footprint`]).

use crate::compile::contraction::PackedContraction;
use std::ops::Range;
use vinelift_nest::{Aliases, BoundChunks, BoundFootprint, BufferId, Effects, SubNest};

/// The parts of a kernel by the tasks of the contraction before it. Together they are the whole.
#[derive(Debug)]
pub(crate) struct Consumer {
    /// For each task, the part that uses no result of another task.
    pub(crate) parts: Vec<Option<Range<usize>>>,
    /// The parts that are left when all tasks are done.
    pub(crate) rest: Vec<Range<usize>>,
}

/// The buffer of `consumer`, the kernel after a contraction in the same nest, that has the results of this. The contraction
/// is the last of `producers`, the other kernels run with its tasks. `None` if the consumer cannot: if it uses anything else
/// that the producers write, or writes what they use.
pub(crate) fn reach<'k>(
    producers: impl DoubleEndedIterator<Item = &'k SubNest>,
    consumer: &SubNest,
    aliases: &Aliases,
) -> Option<BufferId> {
    let mut producers = producers.rev();
    let contraction = producers.next()?;
    let [stage] = contraction.nest.stages.as_slice() else {
        return None;
    };
    let results = contraction.buffers[stage.target.0 as usize];
    let local = consumer.local(results)?;
    let effects = |kernel| Effects::of_kernel(kernel, aliases);
    let before = producers.fold(effects(contraction), |all, kernel| {
        all.and(&effects(kernel))
    });
    let may_overlap = effects(consumer).may_overlap(&before, results, aliases);
    may_overlap.then_some(local)
}

/// One thread runs what no task completes, after all tasks: for at most one part in this many of the time that all threads take for the
/// whole.
const MOST_REST: usize = 4;

impl Consumer {
    /// Of a kernel of these parts; `None` if no task completes a part, or if it takes longer to run the rest on one thread than all of
    /// them on several.
    pub(crate) fn new(
        producer: &PackedContraction,
        reach: BoundFootprint,
        parts: BoundChunks,
    ) -> Option<Consumer> {
        let regions = producer.regions().filter(|regions| regions.len() > 1)?;
        let of_tasks: Vec<_> = regions.iter().map(|r| reach.within(parts, r)).collect();
        let mut rest = Vec::new();
        let mut start = 0;
        let end = parts.extent..parts.extent;
        for part in of_tasks.iter().flatten().chain([&end]) {
            if part.start > start {
                rest.push(start..part.start);
            }
            start = part.end;
        }
        let rest_fits = rest.iter().all(|part| parts.allow(part));
        let left: usize = rest.iter().map(Range::len).sum();
        let is_little =
            left.saturating_mul(producer.workers.saturating_sub(1)) <= parts.extent / MOST_REST;
        let pays = is_little && of_tasks.iter().any(Option::is_some);
        (rest_fits && pays).then_some(Consumer {
            parts: of_tasks,
            rest,
        })
    }
}
