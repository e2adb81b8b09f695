//! Kernels: the ranges of stages that become one native function each.

use crate::analysis::{ParallelChunks, Work, dim_apart, may_collide};
use crate::ir::{Nest, Stage};
use std::ops::Range;

/// The stages of each kernel of a nest, in the order in which they run. Stages of the same layer that follow each other stay
/// together, but for those that are alone: those that `is_alone` says, all that take turns, and those that threads cannot
/// share if their target is large. Stages that threads cannot share together are kernels apart, too, where that lets threads
/// share one of them.
pub fn kernel_ranges(nest: &Nest, is_alone: impl Fn(&Stage) -> bool) -> Vec<Range<usize>> {
    let layers = layer_ranges(nest, is_alone);
    layers
        .into_iter()
        .flat_map(|stages| split_for_threads(nest, stages))
        .collect()
}

/// The same, whether threads can share them together or not.
pub(crate) fn layer_ranges(nest: &Nest, is_alone: impl Fn(&Stage) -> bool) -> Vec<Range<usize>> {
    let alone = nest.stages.iter();
    let alone: Vec<bool> = alone
        .map(|stage| stage.group.is_some() || is_serial(nest, stage) || is_alone(stage))
        .collect();
    let mut kernels = Vec::new();
    let mut start = 0;
    for end in 1..=nest.stages.len() {
        let owner = |i: usize| nest.stages[i].layers.first();
        let ends = end == nest.stages.len() || alone[end - 1] || alone[end];
        if ends || owner(end) != owner(start) || owner(start).is_none() {
            kernels.push(start..end);
            start = end;
        }
    }
    kernels
}

/// Cuts stages into kernels: a stage is in the kernel of the one before it if threads can share both, or if no thread would
/// start for the kernel, or if threads can share neither.
fn split_for_threads(nest: &Nest, stages: Range<usize>) -> Vec<Range<usize>> {
    if stages.len() == 1 || !is_long(nest, stages.clone()) || is_shared(nest, stages.clone()) {
        return vec![stages];
    }
    let mut kernels = Vec::new();
    let mut start = stages.start;
    for next in stages.start + 1..stages.end {
        let stays = !is_long(nest, start..next + 1)
            || is_shared(nest, start..next + 1)
            || !is_shared(nest, start..next) && !is_shared(nest, next..next + 1);
        if !stays {
            kernels.push(start..next);
            start = next;
        }
    }
    kernels.push(start..stages.end);
    kernels
}

/// Whether there is enough work in these stages for several threads. A fill of what fits into the cache is not: one thread does
/// it as fast as several, which would take the lines from each other's caches.
fn is_long(nest: &Nest, stages: Range<usize>) -> bool {
    let fills = |stage: &Stage| {
        let bytes = nest.buf(stage.target).byte_len();
        stage.value.as_const().is_some() && bytes.is_some_and(|bytes| bytes < LARGE)
    };
    !nest.stages[stages.clone()].iter().all(fills)
        && Work::of_range(nest, stages).at(&nest.symbols) >= 2 * Work::LEAST_SHARE
}

/// Whether threads can share these stages as one kernel.
fn is_shared(nest: &Nest, stages: Range<usize>) -> bool {
    ParallelChunks::of_stages(nest, &nest.stages[stages]) != ParallelChunks::WHOLE
}

/// The least bytes of a large target: more than the cache of one core holds, so that a thread reads it as fast whichever thread
/// has written it.
const LARGE: usize = 2 << 20;

/// Whether threads can share neither a stage nor, in one kernel with it, the stages that write its target before: it writes a
/// large target at indices that may coincide.
fn is_serial(nest: &Nest, stage: &Stage) -> bool {
    let bytes = nest.buf(stage.target).byte_len();
    may_collide(stage) && dim_apart(stage).is_none() && bytes.is_none_or(|bytes| bytes >= LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::ir::{Role, SubNest};
    use vinelift_tensor::ElementType::F32;

    #[test]
    fn equal_kernels_have_equal_canonical_forms() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let (t, y) = (
            nest.buffer("t", F32, &[4], Role::Temporary),
            nest.buffer("y", F32, &[4], Role::Output),
        );
        let (first, second) = (
            nest.layer("first", "Exp, opset1"),
            nest.layer("second", "Exp, opset1"),
        );
        nest.define(vec![first], t, |n, at| n.load(x, at.to_vec()).exp());
        nest.define(vec![second], y, |n, at| n.load(t, at.to_vec()).exp());
        let kernels = kernel_ranges(&nest, |_| false);
        assert_eq!(kernels, [0..1, 1..2]);
        let kernels = kernels.into_iter().map(|stages| nest.extract(stages));
        let kernels: Vec<SubNest> = kernels.collect();
        assert_eq!(kernels[1].buffers, [t, y]);
        assert_eq!(
            kernels[1].nest.to_string(),
            "temporary t: f32[4]\noutput y: f32[4]\nfor i<4: y[i] = exp(t[i])  # second\n"
        );
        assert_eq!(
            kernels[0].nest.canonical().stages,
            kernels[1].nest.canonical().stages
        );
    }

    #[test]
    fn stages_of_one_layer_stay_together() {
        let mut nest = Nest::new();
        let y = nest.buffer("y", F32, &[4], Role::Output);
        let layer = nest.layer("l", "Op, opset1");
        nest.define(vec![layer], y, |_, _| number(0.0, F32));
        nest.define(vec![layer], y, |_, _| number(1.0, F32));
        assert_eq!(kernel_ranges(&nest, |_| false).len(), 1);
    }

    /// `t[i] = 0` over `i < border`, then `y[i, j] = x[i, j] + x[i, j]` over `i < rows`, all of one layer.
    fn bordered(border: usize, rows: usize) -> Vec<Range<usize>> {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[rows, 100], Role::Input);
        let t = nest.buffer("t", F32, &[border], Role::Temporary);
        let y = nest.buffer("y", F32, &[rows, 100], Role::Output);
        let layer = nest.layer("l", "Op, opset1");
        nest.define(vec![layer], t, |_, _| number(0.0, F32));
        nest.define(vec![layer], y, |n, at| {
            n.load(x, at.to_vec()) + n.load(x, at.to_vec())
        });
        kernel_ranges(&nest, |_| false)
    }

    #[test]
    fn stages_that_threads_cannot_share_together_are_kernels_apart() {
        assert_eq!(bordered(90, 700), [0..1, 1..2]);
        // Threads share them together, or do not start for as little.
        assert_eq!(bordered(700, 700).len(), 1);
        assert_eq!(bordered(90, 70).len(), 1);
    }

    #[test]
    fn fills_of_what_a_cache_holds_stay_together() {
        let fills = |rows: usize| {
            let mut nest = Nest::new();
            let t = nest.buffer("t", F32, &[rows, 1000], Role::Temporary);
            let layer = nest.layer("l", "Op, opset1");
            nest.define(vec![layer], t, |_, _| number(0.0, F32));
            nest.define(vec![layer], t, |_, _| number(1.0, F32));
            nest.stages[0].domain[0].extent = 2.into();
            nest.stages[1].domain[0].extent = (rows - 3).into();
            kernel_ranges(&nest, |_| false).len()
        };
        assert_eq!(fills(500), 1);
        assert_eq!(fills(600), 2);
    }
}
