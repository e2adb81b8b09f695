//! How many threads share a kernel, and into how many parts it is cut.
//!
//! Costs are nanoseconds on one thread, estimated from the number of operations.

use crate::compile::functions::Function;
use vinelift_nest::Work;

/// The least cost of a share.
const LEAST_SHARE: u64 = Work::LEAST_SHARE as u64 / 10;

/// The number of tasks for each of several threads, so that a thread which is late leaves some of its share to others.
pub(crate) const TASKS_PER_THREAD: usize = 4;

/// The least cost for each thread at which code is cut into [`TASKS_PER_THREAD`] tasks a thread, and not into one.
const LEAST_FOR_MORE_TASKS: u64 = 100_000;

/// The most bytes that a piece of several stages uses: they stay in the cache from one stage to the next.
const PIECE_BYTES: usize = 128 << 10;

/// The most cost of a piece: before each, its thread looks whether the run is to end. Pieces of kernels that pack are larger, as
/// each of them packs anew.
const PIECE_COST: u64 = 2_000_000;
const PACKING_PIECE_COST: u64 = 30_000_000;

/// The number of threads, up to `threads`, that are worth their start for work of this cost.
pub(crate) fn workers(cost: u64, threads: usize) -> usize {
    let shares = usize::try_from(cost / LEAST_SHARE).unwrap_or(usize::MAX);
    shares.clamp(1, threads)
}

/// The number of tasks into which a kernel of this cost is cut for `workers` threads.
pub(crate) fn tasks(function: &Function, cost: u64, workers: usize) -> usize {
    let parts = function.chunks();
    // Each task packs for itself, and a loop that is not the outermost costs each task a pass over those around it.
    let is_even = function.scratch_bytes() == 0 && parts.dim.is_none();
    let is_long = cost / workers as u64 >= LEAST_FOR_MORE_TASKS;
    let each = if is_even && is_long {
        TASKS_PER_THREAD
    } else {
        1
    };
    parts.count(each * workers)
}

/// The number of pieces into which each task is cut on its thread, as far as it can be: of a kernel of `stages` stages
/// whose buffers take `bytes`, and which packs `scratch` bytes.
pub(crate) fn pieces(stages: usize, bytes: usize, cost: u64, scratch: usize) -> usize {
    let for_cache = match stages {
        0 | 1 => 1,
        _ => bytes / PIECE_BYTES + 1,
    };
    let most = match scratch {
        0 => PIECE_COST,
        _ => PACKING_PIECE_COST,
    };
    let for_time = usize::try_from(cost / most).unwrap_or(usize::MAX - 1) + 1;
    for_cache.max(for_time)
}
