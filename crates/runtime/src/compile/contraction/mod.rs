//! Contractions that a kernel made for them runs, with constant operands packed beforehand.

mod grouped;
mod operands;
mod problem;
mod strided;
mod tasks;
mod winograd;

use crate::compile::Settings;
use crate::compile::packed_operands::PlanSlots;
use grouped::GroupedContraction;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use strided::StridedContraction;
use tasks::tasks_of;
use vinelift_codegen::{Pointer, Vectors};
use vinelift_kernels as kernels;
use vinelift_kernels::Packed;
use vinelift_nest::{Border, BufferId, Contraction, Strided, SubNest};
use winograd::Convolution;

/// A contraction with its kernel, how that is cut into tasks, and its constant operands as the kernel reads them.
pub(crate) struct PackedContraction {
    kind: ContractionKind,
    /// The number of threads that share it.
    pub(crate) workers: usize,
    /// Its cost, with that of the consumer that is fused with it: nanoseconds on one thread.
    pub(crate) cost: u64,
}

enum ContractionKind {
    /// Of any strided operands.
    Strided(StridedContraction),
    /// Of rows with codes whose sums are scaled group by group.
    Grouped(Box<GroupedContraction>),
    /// Of bytes, with constant windows of 3 × 3.
    Winograd(Box<Convolution>),
}

impl PackedContraction {
    /// Of the only stage of `step`. `slots` says where each of its buffers is found, and `borders` which elements of the left
    /// operand are zero. `None` if there is no kernel for the contraction.
    pub(crate) fn new(
        contraction: &Contraction,
        step: &SubNest,
        borders: Vec<Border>,
        slots: &PlanSlots,
        settings: &Settings<'_>,
        neighbours: Neighbours,
    ) -> Option<PackedContraction> {
        if let Some(groups) = &contraction.groups {
            return GroupedContraction::packed(contraction, groups, step, slots, settings);
        }
        let consumers = neighbours.consumers;
        Convolution::packed(contraction, step, slots, settings, consumers).or_else(|| {
            StridedContraction::packed(contraction, step, borders, slots, settings, neighbours)
        })
    }

    /// Whether it was made to fit the kernels that use its results.
    pub(crate) fn is_fitted(&self) -> bool {
        !matches!(self.kind, ContractionKind::Grouped(_))
    }

    /// The same contraction in `step`, which has the same form but may have other constants; `None` if it has to be made anew.
    pub(crate) fn in_step(
        &self,
        step: &SubNest,
        borders: &[Border],
        slots: &PlanSlots,
        settings: &Settings<'_>,
    ) -> Option<PackedContraction> {
        let ContractionKind::Strided(contraction) = &self.kind else {
            return None;
        };
        Some(PackedContraction {
            kind: ContractionKind::Strided(contraction.in_step(step, borders, slots, settings)?),
            ..*self
        })
    }

    /// The same contraction with one task for each of these ranges of elements of `buffer`, a buffer of its step; `None` unless each
    /// range is whole rows of the contraction, and they follow each other and cover all rows.
    pub(crate) fn by_rows(
        &self,
        buffer: BufferId,
        elements: &[Range<usize>],
        workers: usize,
    ) -> Option<PackedContraction> {
        let ContractionKind::Strided(contraction) = &self.kind else {
            return None;
        };
        Some(PackedContraction {
            kind: ContractionKind::Strided(contraction.by_rows(buffer, elements)?),
            workers,
            cost: self.cost,
        })
    }

    /// The number of tasks of whole rows, at least `tasks`, for `workers` threads; `None` if it does not pay that each task reads all
    /// columns.
    pub(crate) fn row_tasks(&self, tasks: usize, workers: usize) -> Option<usize> {
        let ContractionKind::Strided(contraction) = &self.kind else {
            return None;
        };
        let pays = contraction.columns_stay_cached();
        pays.then(|| tasks.max(tasks_of(workers)))
    }

    /// The bytes of the results.
    pub(crate) fn result_bytes(&self) -> Option<usize> {
        match &self.kind {
            ContractionKind::Strided(contraction) => Some(contraction.result_bytes()),
            ContractionKind::Grouped(_) | ContractionKind::Winograd(_) => None,
        }
    }

    /// The buffer of the step that it writes.
    pub(crate) fn results(&self) -> BufferId {
        match &self.kind {
            ContractionKind::Strided(contraction) => contraction.results(),
            ContractionKind::Grouped(contraction) => contraction.results(),
            ContractionKind::Winograd(convolution) => convolution.results(),
        }
    }

    /// Bytes of scratch memory for a run: of what all workers share, and of each.
    pub(crate) fn scratch_bytes(&self) -> usize {
        let (shared, of_worker) = match &self.kind {
            ContractionKind::Strided(contraction) => contraction.scratch_bytes(),
            ContractionKind::Grouped(contraction) => (0, contraction.worker_bytes()),
            ContractionKind::Winograd(convolution) => (0, convolution.worker_bytes()),
        };
        shared + of_worker * self.workers
    }

    /// Operands that are constant, packed.
    pub(crate) fn packed(&self) -> impl Iterator<Item = &Arc<Packed>> {
        let operands = match &self.kind {
            ContractionKind::Strided(contraction) => contraction.operands(),
            ContractionKind::Grouped(contraction) => [None, Some(contraction.columns())],
            ContractionKind::Winograd(convolution) => [None, Some(convolution.windows())],
        };
        operands.into_iter().flatten()
    }

    /// The buffers of the step that a run needs: not operands that are packed.
    pub(crate) fn needs(&self) -> impl Iterator<Item = usize> {
        let buffers = match &self.kind {
            ContractionKind::Strided(contraction) => contraction.needs(),
            ContractionKind::Grouped(contraction) => contraction.needs(),
            ContractionKind::Winograd(convolution) => convolution.needs(),
        };
        buffers.into_iter().flatten().map(|b| b.0 as usize)
    }

    /// The kernel, for texts.
    pub(crate) fn name(&self) -> &str {
        match &self.kind {
            ContractionKind::Strided(contraction) => contraction.name(),
            ContractionKind::Grouped(contraction) => contraction.name(),
            ContractionKind::Winograd(convolution) => convolution.name(),
        }
    }

    /// Its floating-point operations, in all turns.
    pub(crate) fn flops(&self) -> u64 {
        match &self.kind {
            ContractionKind::Strided(contraction) => contraction.flops(),
            ContractionKind::Grouped(contraction) => contraction.flops(),
            ContractionKind::Winograd(convolution) => convolution.flops(),
        }
    }

    /// Which elements of the buffer of the results each task of the second phase computes, if those of
    /// each lie together.
    pub(crate) fn regions(&self) -> Option<Vec<Range<usize>>> {
        match &self.kind {
            ContractionKind::Strided(contraction) => contraction.regions(),
            ContractionKind::Grouped(contraction) => contraction.regions(),
            ContractionKind::Winograd(convolution) => convolution.regions(),
        }
    }

    /// Whether the results may be in a [window](crate::compile::chain::Window).
    pub(crate) fn writes_windows(&self) -> bool {
        match self.kind {
            ContractionKind::Strided(_) | ContractionKind::Winograd(_) => true,
            ContractionKind::Grouped(_) => false,
        }
    }

    /// The number of tasks of a phase.
    pub(crate) fn tasks(&self, phase: usize) -> usize {
        match &self.kind {
            ContractionKind::Strided(contraction) => contraction.tasks(phase),
            ContractionKind::Grouped(_) | ContractionKind::Winograd(_) if phase == PACKING => 0,
            ContractionKind::Grouped(contraction) => contraction.tasks(),
            ContractionKind::Winograd(convolution) => convolution.tasks(),
        }
    }

    /// Runs a task of a phase of a turn; without turns, that is turn 0. `buffers` says where each buffer of the step is.
    /// Once `stop` is true the task ends soon, and its results are not complete.
    ///
    /// # Safety
    ///
    /// Each pointer is valid for reads of its bytes, and that of the result for writes. Meanwhile nothing but tasks of
    /// the same phase uses the result, which overlaps no operand. `scratch` points to
    /// [`PackedContraction::scratch_bytes`] bytes that nothing else uses. No other task runs under the number `worker`,
    /// and [`PACKING`] has ended before [`COMPUTING`] begins.
    pub(crate) unsafe fn task(
        &self,
        buffers: impl Fn(usize) -> Place,
        scratch: Pointer,
        (turn, phase): (usize, usize),
        task: usize,
        worker: usize,
        stop: &AtomicBool,
    ) {
        // SAFETY: the caller vouches for the memory, as this function's contract lists.
        unsafe {
            match &self.kind {
                ContractionKind::Strided(contraction) => {
                    contraction.task(buffers, scratch, (turn, phase), task, worker, stop)
                }
                ContractionKind::Grouped(contraction) => {
                    contraction.task(buffers, scratch, task, worker, stop)
                }
                ContractionKind::Winograd(convolution) => {
                    convolution.task(buffers, scratch, task, worker, stop)
                }
            }
        }
    }
}

/// The buffers of the whole nest that have the left and the right operand of the only stage of `step`, if that is a contraction
/// whose sums are not scaled group by group.
pub(crate) fn operands(step: &SubNest) -> Option<[BufferId; 2]> {
    let [stage] = step.nest.stages.as_slice() else {
        return None;
    };
    let contraction = Contraction::of(&step.nest, stage).filter(|c| c.groups.is_none())?;
    let factors = [&contraction.left, &contraction.right];
    Some(factors.map(|factor| step.buffers[factor.tensor.buffer.0 as usize]))
}

/// The same elements of the buffer that the results lie in as these `regions` of the results; `None` if one is not known.
fn in_buffer(
    regions: impl Iterator<Item = Option<Range<usize>>>,
    results: &Strided,
) -> Option<Vec<Range<usize>>> {
    let base = results.base;
    let moved = regions.map(|region| region.map(|r| r.start + base..r.end + base));
    moved.collect()
}

/// The kernels that a contraction may be fused with.
#[derive(Clone, Copy, Default)]
pub(crate) struct Neighbours {
    /// The buffer of the step whose rows the tasks of another contraction make, if it may be
    /// [chained](crate::compile::chain) to that.
    pub(crate) rows_of: Option<BufferId>,
    pub(crate) consumers: Option<Consumers>,
}

/// The kernels that use the results of each task of a contraction while they are in the cache.
#[derive(Clone, Copy)]
pub(crate) struct Consumers {
    /// Their cost: nanoseconds on one thread.
    pub(crate) cost: u64,
    /// If there is a contraction among them, which takes whole rows: how they take the results.
    pub(crate) taken: Option<TakenResults>,
}

/// How kernels that are chained to a contraction take its results: in turns of consecutive elements.
#[derive(Clone, Copy)]
pub(crate) struct TakenResults {
    /// The least elements that a task must have.
    pub(crate) least: usize,
    /// How many elements further a turn begins than the one before.
    pub(crate) turn: usize,
}

/// A buffer of a step in a run.
pub(crate) struct Place {
    pub(crate) pointer: Pointer,
    /// The bytes that are there.
    pub(crate) bytes: usize,
    /// The bytes of the buffer before them, if it is a [window](crate::compile::chain::Window).
    pub(crate) before: Option<usize>,
}

impl Place {
    /// What is there of the buffer from element `base` on, where elements have `size` bytes: the first byte, how many there are,
    /// and in a window how far after `base` the element is that they begin with.
    fn from(self, base: usize, size: usize) -> (*mut u8, usize, Option<usize>) {
        let (base, before) = (base * size, self.before.unwrap_or(0));
        let skipped = base.saturating_sub(before).min(self.bytes);
        let start = self.before.map(|_| before.saturating_sub(base) / size);
        let pointer = self.pointer.0.wrapping_add(skipped);
        (pointer, self.bytes - skipped, start)
    }
}

/// The phase in which operands are packed, and the one after it.
pub(crate) const PACKING: usize = 0;
pub(crate) const COMPUTING: usize = 1;

/// The most that one contraction may use besides its operands.
const MOST_SCRATCH: usize = 1 << 30;

/// The instruction set that contraction kernels use under a limit on vector width; the portable one if this machine has
/// none within it.
pub(crate) fn isa(vectors: Vectors) -> kernels::Isa {
    use kernels::Isa;
    match vectors {
        Vectors::Widest => Isa::fastest(),
        Vectors::Bits256 => Isa::best_of_256_bits(),
        Vectors::Bits128 => Isa::Portable,
    }
}
