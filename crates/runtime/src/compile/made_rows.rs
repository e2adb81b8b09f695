//! How the tasks of a contraction may make their rows ([`Producer`]): what is known of that for all shapes, and the parts at those
//! of a plan.
//!
//! The code runs later than its place in the plan says. So nothing in between may write what it reads, and the contraction and
//! its [consumers](crate::compile::consumer), other tasks of which may be ahead, may not either.

use crate::compile::chain::{ALL_STAGES, Chain, MOST_BUFFERS, window_element};
use crate::compile::contraction::{self, PackedContraction};
use crate::compile::kernel::Kernel;
use crate::compile::parallelism::workers;
use crate::compile::producer::Producer;
use crate::compile::step::{Engine, Step};
use std::ops::Range;
use vinelift_nest::{Aliases, BufferId, Effects, Footprint, Nest, Stage, SubNest};

/// Rows of a contraction that the tasks of that may make, at all shapes.
pub(crate) struct MadeRows {
    /// How many kernels before the contraction the code is.
    pub(crate) distance: usize,
    /// The buffer of the whole nest that has the rows.
    operand: BufferId,
    /// The bytes of an element.
    size: usize,
    /// The elements that each turn of the code makes.
    made: Footprint,
}

/// How many kernels before a contraction the code is at most.
const MOST_DISTANCE: usize = 8;

/// The least bytes of rows that are made in tasks: fewer stay in the cache anyway.
const LEAST_BYTES: usize = 256 << 10;

/// The bytes of rows, and of the results that become of them, that a task may have: they stay in the second cache.
const TASK_BYTES: usize = 128 << 10;

impl MadeRows {
    /// Of the contraction `last` and the kernels `before` it, in order. `users` counts the kernels that use each buffer of `nest`;
    /// `footprint(distance, buffer)` is that of a buffer in the kernel which is `distance` kernels before the contraction.
    pub(crate) fn of<'k>(
        nest: &Nest,
        before: impl DoubleEndedIterator<Item = &'k SubNest>,
        last: &SubNest,
        aliases: &Aliases,
        users: &[u32],
        mut footprint: impl FnMut(usize, BufferId) -> Option<Footprint>,
    ) -> Option<MadeRows> {
        let operands = contraction::operands(last)?;
        let mut others = Effects::of_kernel(last, aliases);
        for (distance, code) in (1..=MOST_DISTANCE).zip(before.rev()) {
            let effects = Effects::of_kernel(code, aliases);
            let mut written = operands.into_iter().filter(|o| effects.writes(*o));
            let Some(operand) = written.next() else {
                others = others.and(&effects);
                continue;
            };
            // Its columns are those of all tasks.
            if written.next().is_some() {
                return None;
            }
            let size = window_element(nest.buf(operand))?;
            let is_own = users[operand.0 as usize] == 2 && code.buffers.len() <= MOST_BUFFERS;
            let may_fault = code.nest.stages.iter().any(Stage::may_fault);
            let is_apart = others.may_overlap(&effects, operand, aliases);
            if !is_own || may_fault || !is_apart || !effects.writes_only(operand) {
                return None;
            }
            return Some(MadeRows {
                distance,
                operand,
                size,
                made: footprint(distance, code.local(operand)?)?,
            });
        }
        None
    }

    /// The contraction of `kernel` in tasks that make their rows by the step `code`, with these and the memory for the rows.
    /// `None` if that does not pay, or if parts of the code make no rows of the contraction.
    pub(crate) fn bound_to(
        &self,
        values: &[usize],
        code: &Step,
        (kernel, contraction): (&Kernel, &PackedContraction),
        threads: usize,
    ) -> Option<(PackedContraction, Producer, Chain)> {
        let Engine::Code { function, .. } = &code.engine else {
            return None;
        };
        let (chunks, made) = (function.chunks(), self.made.bound_to(values)?);
        let rows = made.elements(&(0..chunks.extent))?.len();
        let row_bytes = rows.checked_mul(self.size)?;
        if code.consumer.is_some() || code.turns.is_some() || row_bytes < LEAST_BYTES {
            return None;
        }
        let cost = contraction.cost.saturating_add(code.cost);
        let workers = workers(cost, threads);
        let bytes = row_bytes.checked_add(contraction.result_bytes()?)?;
        let tasks = contraction.row_tasks(bytes.div_ceil(TASK_BYTES), workers)?;
        let parts = chunks.ranges(tasks);
        let made = parts.iter().map(|part| made.elements(part));
        let made: Vec<Range<usize>> = made.collect::<Option<_>>()?;
        let mut chain = Chain::default();
        chain.add(self.operand, self.size, &made, ALL_STAGES)?;
        let mut by_rows = contraction.by_rows(kernel.local(self.operand)?, &made, workers)?;
        by_rows.cost = cost;
        let producer = Producer {
            distance: self.distance,
            parts,
        };
        Some((by_rows, producer, chain))
    }
}
