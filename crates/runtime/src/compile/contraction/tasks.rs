//! How contractions are cut into tasks, and how many threads share these.

use super::problem::results;
use super::{Consumers, TakenResults};
use crate::compile::parallelism::{self, TASKS_PER_THREAD};
use std::sync::Arc;
use vinelift_kernels as kernels;
use vinelift_kernels::{Form, Packed};

/// The bytes of results that a task may leave to a consumer that is fused with it: they are still in the cache.
const TASK_BYTES: usize = 256 << 10;

/// The least bytes of results of a task of a chain.
const LEAST_TASK_BYTES: usize = 64 << 10;

/// The floating-point operations in a nanosecond of a slow thread, so that costs are rather too small.
const FLOPS_PER_NANOSECOND: u64 = 60;

/// The most bytes of columns of a batch that each task of a chain may read for its rows: they stay in the second or third cache.
pub(super) const CHAINED_COLUMNS: usize = 4 << 20;

/// How a contraction of `flops` floating-point operations is shared: its cost with that of what is fused with it, in
/// nanoseconds on one thread, and the number of threads.
pub(super) fn sharing(flops: u64, consumers: Option<Consumers>, threads: usize) -> (u64, usize) {
    let consumers = consumers.map_or(0, |consumers| consumers.cost);
    let cost = (flops / FLOPS_PER_NANOSECOND).saturating_add(consumers);
    (cost, parallelism::workers(cost, threads))
}

/// The number of tasks for this many threads.
pub(super) fn tasks_of(workers: usize) -> usize {
    match workers {
        1 => 1,
        _ => TASKS_PER_THREAD * workers,
    }
}

/// The number of tasks of a contraction whose consumer is to find the results, this many bytes, in the cache.
pub(super) fn consumed_tasks(results: usize) -> usize {
    results.div_ceil(TASK_BYTES)
}

/// How the kernel is cut into tasks for `workers` threads. `consumed`: the bytes of the results, if a consumer uses those
/// of each task while they are in the cache.
pub(super) fn plan(
    kernel: &kernels::PreparedContraction,
    packed: [&Option<Arc<Packed>>; 2],
    workers: usize,
    consumed: Option<usize>,
) -> kernels::TaskPartition {
    let [left, right] = packed.map(|side| side.as_ref().map_or(Form::Plain, |p| p.form()));
    let plan = |tasks| kernel.plan(left, right, tasks);
    let tasks = tasks_of(workers);
    let smaller = consumed.map_or(tasks, consumed_tasks);
    let smaller = smaller.min(kernel.most_row_tasks());
    if smaller <= tasks {
        return plan(tasks);
    }
    // More tasks are not worth it if they need more shared memory for packed panels.
    let (smaller, plain) = (plan(smaller), plan(tasks));
    match plain.shared_bytes() < smaller.shared_bytes() {
        true => plain,
        false => smaller,
    }
}

/// How the kernel is cut into tasks of whole rows for `workers` threads, each of whole turns of results as they are `taken`; `None` if
/// the columns of a batch, which each task reads, are more than [`CHAINED_COLUMNS`]. A task has about as many bytes of results as
/// it reads of columns, within [`LEAST_TASK_BYTES`] and [`TASK_BYTES`].
pub(super) fn plan_rows(
    kernel: &kernels::PreparedContraction,
    problem: &kernels::Contraction,
    workers: usize,
    taken: TakenResults,
) -> Option<kernels::TaskPartition> {
    let columns = match kernel.rows_are_left() {
        true => &problem.n,
        false => &problem.m,
    };
    let points = |dims: &[kernels::Dim]| {
        let extents = dims.iter().map(|dim| dim.extent);
        extents.fold(1, usize::saturating_mul)
    };
    let (length, size) = (points(columns).max(1), problem.element.bytes());
    let bytes = length
        .saturating_mul(points(&problem.k))
        .saturating_mul(size);
    let tasks = tasks_of(workers);
    let results = results(problem).saturating_mul(size);
    let task_bytes = bytes.clamp(LEAST_TASK_BYTES, TASK_BYTES);
    let tasks = tasks.max(results.div_ceil(task_bytes));
    let whole_rows = taken.turn.is_multiple_of(length);
    let unit = if whole_rows { taken.turn / length } else { 1 };
    let ranges = kernel.row_ranges(tasks, taken.least.div_ceil(length), unit);
    let pays = bytes <= CHAINED_COLUMNS;
    pays.then(|| kernel.plan_rows(Form::Plain, Form::Plain, &ranges))?
}
