//! Kernels: the ranges of stages that become one native function each.

use crate::analysis::{ParallelChunks, Work, dim_apart, may_collide};
use crate::ir::{Nest, Role, Stage};
use std::cell::LazyCell;
use std::ops::Range;

/// The stages of each kernel of a nest, in the order in which they run.
///
/// A kernel has the stages of one layer that follow each other. A stage is a kernel by itself if `is_alone` says so, if it takes
/// turns, or if threads cannot share it and its target is large. Where threads could share one of several stages but not all of them
/// as one kernel, the stages are kernels apart, too.
///
/// Layers between two sums that are alone are one kernel where each only uses what the one before it makes for it, such as the
/// scale, the mask and the softmax between the products of attention, so that a task of the first sum may go through all.
pub fn kernel_ranges(nest: &Nest, is_alone: impl Fn(&Stage) -> bool) -> Vec<Range<usize>> {
    let layers = layer_ranges(nest, is_alone);
    layers
        .into_iter()
        .flat_map(|stages| split_for_threads(nest, stages))
        .collect()
}

/// As [`kernel_ranges`], whether or not threads can share stages together.
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
    joined_between_sums(nest, kernels, &alone)
}

/// Makes one kernel of the kernels between two sums that are `alone`, where these are a chain.
fn joined_between_sums(
    nest: &Nest,
    kernels: Vec<Range<usize>>,
    alone: &[bool],
) -> Vec<Range<usize>> {
    let is_code = |kernel: &Range<usize>| !alone[kernel.start];
    let ends = LazyCell::new(|| ends_of_use(nest));
    let mut joined = Vec::with_capacity(kernels.len());
    let mut start = 0usize;
    for between in kernels.chunk_by(|a, b| is_code(a) && is_code(b)) {
        let end = start + between.len();
        let before = start.checked_sub(1).filter(|_| between.len() > 1);
        let with_sums = before.and_then(|before| kernels.get(before..=end));
        match with_sums.filter(|chain| is_chain(nest, chain, &ends)) {
            Some([before, .., after]) => joined.push(before.end..after.start),
            _ => joined.extend_from_slice(between),
        }
        start = end;
    }
    joined
}

/// For each buffer, the end of the stages that load from it: one more than the number of the last of them, or 0.
fn ends_of_use(nest: &Nest) -> Vec<usize> {
    let mut ends = vec![0; nest.buffers.len()];
    for (number, stage) in nest.stages.iter().enumerate() {
        for buffer in stage.loads() {
            ends[buffer.0 as usize] = number + 1;
        }
    }
    ends
}

/// Whether these kernels are two sums and code between them that threads can share as one kernel, where each reads what the one
/// before it makes last, and no others read what that code makes but for the last of it. `ends` is [`ends_of_use`].
fn is_chain(nest: &Nest, kernels: &[Range<usize>], ends: &[usize]) -> bool {
    let [before, code @ .., after] = kernels else {
        return false;
    };
    let is_sum = |kernel: &Range<usize>| nest.stages[kernel.start].value.folds();
    let reads_last = |pair: &[Range<usize>]| {
        let last = nest.stages[pair[0].end - 1].target;
        nest.read_in(pair[1].clone()).contains(&last)
    };
    let is_for_next = |pair: &[Range<usize>]| {
        let mut made = nest.stages[pair[0].clone()].iter().map(|s| s.target);
        made.all(|buffer| {
            nest.buf(buffer).role == Role::Temporary && ends[buffer.0 as usize] <= pair[1].end
        })
    };
    is_sum(before)
        && is_sum(after)
        && kernels.windows(2).all(reads_last)
        && code.windows(2).all(is_for_next)
        && is_shared(nest, before.end..after.start)
}

/// Cuts stages into kernels: a stage is in the kernel of the one before it if threads can share both, or if no thread would
/// start for the kernel, or if threads can share neither.
fn split_for_threads(nest: &Nest, stages: Range<usize>) -> Vec<Range<usize>> {
    let all = stages.clone();
    let all = all.fold(Amount::default(), |amount, stage| amount.and(nest, stage));
    if stages.len() == 1 || !all.is_long() || is_shared(nest, stages.clone()) {
        return vec![stages];
    }
    let mut kernels = Vec::new();
    let mut start = stages.start;
    let mut amount = Amount::default().and(nest, start);
    for next in stages.start + 1..stages.end {
        amount = amount.and(nest, next);
        let is_shared = |stages| is_shared(nest, stages);
        let goes_with =
            || is_shared(start..next + 1) || !is_shared(start..next) && !is_shared(next..next + 1);
        let stays = !amount.is_long() || next - start < MOST_STAGES && goes_with();
        if !stays {
            kernels.push(start..next);
            start = next;
            amount = Amount::default().and(nest, next);
        }
    }
    kernels.push(start..stages.end);
    kernels
}

/// How much some stages do.
#[derive(Clone, Copy, Default)]
struct Amount {
    work: usize,
    /// Whether they do more than to fill what fits into the cache.
    does_more: bool,
}

impl Amount {
    /// With one stage more.
    fn and(self, nest: &Nest, stage: usize) -> Amount {
        let work = Work::of_range(nest, stage..stage + 1).at(&nest.symbols);
        let stage = &nest.stages[stage];
        let bytes = nest.buf(stage.target).byte_len();
        let fills = stage.value.as_const().is_some() && bytes.is_some_and(|bytes| bytes < LARGE);
        Amount {
            work: self.work.saturating_add(work),
            does_more: self.does_more || !fills,
        }
    }

    /// Whether there is enough for several threads. A fill of what fits into the cache is not: one thread does it as fast as
    /// several, which would take the lines from each other's caches.
    fn is_long(self) -> bool {
        self.does_more && self.work >= 2 * Work::LEAST_SHARE
    }
}

/// The most stages of a kernel that threads cannot share: whether they can is asked of all of them for each one more.
const MOST_STAGES: usize = 256;

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
    use crate::ir::{Binary, Role, Scalar, SubNest};
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

    #[test]
    fn many_stages_that_threads_cannot_share_are_several_kernels() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[100], Role::Input);
        let y = nest.buffer("y", F32, &[100], Role::Output);
        let layer = nest.layer("l", "Op, opset1");
        for _ in 0..2 * MOST_STAGES + 1 {
            nest.define(vec![layer], y, |n, at| n.load(x, at.to_vec()));
        }
        let kernels = kernel_ranges(&nest, |_| false);
        assert!(kernels.iter().all(|stages| stages.len() < 2 * MOST_STAGES));
    }

    /// `p = x·w`, `q = 2 p`, `t = q - Σ q`, `y = t·w`, of which all are layers apart; `q` is an output, too, if `is_shown`, and
    /// `t` sums over rows, or over columns.
    fn kernels_between_sums(is_shown: bool, over_rows: bool) -> Vec<Range<usize>> {
        let mut nest = Nest::new();
        let (n, role) = (64, Role::Temporary);
        let x = nest.buffer("x", F32, &[n, n], Role::Input);
        let p = nest.buffer("p", F32, &[n, n], role.clone());
        let q_role = if is_shown { Role::Output } else { role.clone() };
        let q = nest.buffer("q", F32, &[n, n], q_role);
        let t = nest.buffer("t", F32, &[n, n], role);
        let y = nest.buffer("y", F32, &[n, n], Role::Output);
        let mut layers = ["p", "q", "t", "y"].map(|name| vec![nest.layer(name, "Op, opset1")]);
        let product = |from| {
            move |nest: &mut Nest, at: &[Scalar]| {
                let k = nest.axis(n);
                let point = Scalar::axis(k.id);
                let left = nest.load(from, vec![at[0].clone(), point.clone()]);
                let right = nest.load(x, vec![point, at[1].clone()]);
                let term = Scalar::binary(Binary::Term, left, right);
                Scalar::reduce(Binary::Add, vec![k], zero(F32), term)
            }
        };
        let mut layer = |k: usize| std::mem::take(&mut layers[k]);
        nest.define(layer(0), p, product(x));
        nest.define(layer(1), q, |n, at| n.load(p, at.to_vec()) * 2.0);
        nest.define(layer(2), t, |nest, at| {
            let k = nest.axis(n);
            let mut of = at.to_vec();
            of[usize::from(over_rows)] = Scalar::axis(k.id);
            let one = nest.load(q, of);
            nest.load(q, at.to_vec()) - Scalar::reduce(Binary::Add, vec![k], zero(F32), one)
        });
        nest.define(layer(3), y, product(t));
        kernel_ranges(&nest, |stage| stage.target == p || stage.target == y)
    }

    #[test]
    fn a_chain_between_two_sums_is_one_kernel() {
        assert_eq!(kernels_between_sums(false, true), [0..1, 1..3, 3..4]);
        // Others read what is between, or threads cannot share it.
        assert_eq!(kernels_between_sums(true, true).len(), 4);
        assert_eq!(kernels_between_sums(false, false).len(), 4);
    }
}
