//! Contractions of rows with constants of few bits whose sums are scaled group by group.

use super::tasks::{sharing, tasks_of};
use super::{ContractionKind, MOST_SCRATCH, PackedContraction, Place, in_buffer, isa};
use crate::compile::Settings;
use crate::compile::coding_source::CodingSource;
use crate::compile::constant_operand::{Constants, is_of_left, is_of_right};
use crate::compile::packed_operands::{PlanSlots, Unpacked};
use std::ops::Range;
use std::slice::from_raw_parts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::Pointer;
use vinelift_kernels::{
    Grouped, GroupedBuffers, GroupedDim, GroupedPartition, GroupedProduct, GroupedRows, Packed,
};
use vinelift_nest::{BufferId, Contraction, GroupRows, Groups, Points, Stride, Strided, SubNest};

/// Such a contraction, with its kernel.
pub(super) struct GroupedContraction {
    kernel: GroupedProduct,
    plan: GroupedPartition,
    /// The rows, and the size of an element.
    rows: Strided,
    row_size: usize,
    /// The scales or the sums of their groups.
    points: Option<Strided>,
    columns: Arc<Packed>,
    out: Strided,
}

impl GroupedContraction {
    /// Of the only stage of `step`, whose sums have these groups. `slots` says where each of its buffers is found. `None` if
    /// there is no kernel for it.
    pub(super) fn packed(
        contraction: &Contraction,
        groups: &Groups,
        step: &SubNest,
        slots: &PlanSlots,
        settings: &Settings<'_>,
    ) -> Option<PackedContraction> {
        let (rows, points) = match &groups.rows {
            GroupRows::Quantized { scales } => (GroupedRows::Bytes, Some(scales)),
            GroupRows::Floats { sums } => (GroupedRows::Floats, sums.as_ref()),
        };
        let points = match points {
            Some(Points::Tensor { from, steps }) => Some((*from, steps.as_slice())),
            Some(Points::Value(_)) => return None,
            None => None,
        };
        let steps = points.map(|(_, steps)| steps);
        let constants = Constants { step, slots };
        let columns = constants.factor(contraction, &contraction.right, 0, is_of_right)??;
        let (bytes, source) = (columns.0, columns.1?);
        let problem = problem(contraction, groups.axes, steps, rows, &source)?;
        let kernel = GroupedProduct::new(&problem, isa(settings.options.vectors)).ok()?;
        let unpacked = Unpacked {
            constant: constants.address(&contraction.right),
            bytes,
            coding: Some(&source),
        };
        let columns = slots.packed(
            &settings.shared.operands,
            &unpacked,
            || kernel.layout(),
            || {
                // The values are many: they are only looked at where something is packed.
                let right = &contraction.right;
                let coding = constants.coding(contraction, right, &source, is_of_right)?;
                kernel.pack(bytes, &coding)
            },
        )?;
        let (cost, workers) = sharing(kernel.flops(), None, settings.threads);
        let plan = kernel.plan(tasks_of(workers));
        if plan.worker_bytes().saturating_mul(workers) > MOST_SCRATCH {
            return None;
        }
        let contraction = GroupedContraction {
            kernel,
            plan,
            rows: contraction.left.tensor,
            row_size: match rows {
                GroupedRows::Bytes => size_of::<i8>(),
                GroupedRows::Floats => size_of::<f32>(),
            },
            points: points.map(|(from, _)| from),
            columns,
            out: contraction.out,
        };
        Some(PackedContraction {
            kind: ContractionKind::Grouped(Box::new(contraction)),
            workers,
            cost,
        })
    }

    pub(super) fn results(&self) -> BufferId {
        self.out.buffer
    }

    pub(super) fn worker_bytes(&self) -> usize {
        self.plan.worker_bytes()
    }

    /// The constants, packed.
    pub(super) fn columns(&self) -> &Arc<Packed> {
        &self.columns
    }

    pub(super) fn needs(&self) -> [Option<BufferId>; 3] {
        [Some(self.rows), self.points, Some(self.out)].map(|tensor| Some(tensor?.buffer))
    }

    pub(super) fn name(&self) -> &str {
        self.kernel.name()
    }

    pub(super) fn flops(&self) -> u64 {
        self.kernel.flops()
    }

    pub(super) fn regions(&self) -> Option<Vec<Range<usize>>> {
        let regions = (0..self.plan.tasks()).map(|task| self.plan.region(task));
        in_buffer(regions, &self.out)
    }

    pub(super) fn tasks(&self) -> usize {
        self.plan.tasks()
    }

    /// # Safety
    /// as [`PackedContraction::task`].
    pub(super) unsafe fn task(
        &self,
        buffers: impl Fn(usize) -> Place,
        scratch: Pointer,
        task: usize,
        worker: usize,
        stop: &AtomicBool,
    ) {
        // None of them is a window.
        let place = |tensor: &Strided, size: usize| {
            let (pointer, bytes, _) = buffers(tensor.buffer.0 as usize).from(tensor.base, size);
            (pointer, bytes)
        };
        let (rows, row_bytes) = place(&self.rows, self.row_size);
        let points = self.points.map(|points| place(&points, size_of::<f32>()));
        let (out, out_bytes) = place(&self.out, size_of::<f32>());
        let own = scratch.0.wrapping_add(worker * self.plan.worker_bytes());
        // SAFETY: `Place::from` stays inside what is there of each buffer, which the caller has vouched for. The plan is the
        // kernel's.
        unsafe {
            let buffers = GroupedBuffers {
                rows: from_raw_parts(rows, row_bytes),
                points: match points {
                    Some((points, bytes)) => from_raw_parts(points, bytes),
                    None => &[],
                },
                packed: &self.columns,
                out,
                out_bytes,
                stop,
            };
            self.kernel.run_task(&self.plan, task, &buffers, own);
        }
    }
}

/// The contraction as the kernel knows it, where the first `groups` axes summed over are those of the groups, and the scales or sums
/// of these step like this with each axis if there are any; `None` if it has other strides than the kernel is for.
fn problem(
    contraction: &Contraction,
    groups: usize,
    point_steps: Option<&[usize]>,
    rows: GroupedRows,
    source: &CodingSource,
) -> Option<Grouped> {
    let (outer, inner) = contraction.axes.split_at(contraction.outer);
    let mut m = Vec::new();
    let mut columns: Vec<&Stride> = Vec::new();
    for (at, axis) in outer.iter().enumerate() {
        match axis {
            axis if axis.extent == 1 => {}
            axis if is_of_left(axis) => m.push(GroupedDim {
                extent: axis.extent,
                rows: axis.left,
                points: point_steps.map_or(0, |steps| steps[at]),
                out: axis.out,
            }),
            axis if is_of_right(axis) => columns.push(axis),
            _ => return None,
        }
    }
    let column_step = columns.last()?.right;
    let (block, block_out) = blocks(&columns)?;
    let (groups, elements) = inner.split_at(groups);
    let is_row = is_dense(inner.iter().map(|axis| (axis.extent, axis.left)), 1);
    let k_step = inner.last()?.right;
    let are_codes = is_dense(inner.iter().map(|axis| (axis.extent, axis.right)), k_step)
        && is_dense(
            columns.iter().map(|axis| (axis.extent, axis.right)),
            column_step,
        );
    let are_groups = point_steps.is_none_or(|steps| {
        let extents = groups.iter().map(|axis| axis.extent);
        let (of_groups, of_elements) = steps[contraction.outer..].split_at(groups.len());
        is_dense(extents.zip(of_groups.iter().copied()), 1)
            && of_elements.iter().all(|step| *step == 0)
    });
    let is_still = contraction.turn.is_none();
    (is_row && are_codes && are_groups && is_still).then(|| Grouped {
        rows,
        m,
        n: columns.iter().map(|axis| axis.extent).product(),
        block,
        block_out,
        k: inner.iter().map(|axis| axis.extent).product(),
        group: elements.iter().map(|axis| axis.extent).product(),
        code: source.code,
        column_step,
        k_step,
        coding_group: source.group,
    })
}

/// How many columns lie side by side in the result, and how far it is to the next; `None` if these are not blocks that follow
/// each other evenly.
fn blocks(columns: &[&Stride]) -> Option<(usize, usize)> {
    let mut block = 1;
    let mut rest = columns.iter().rev().peekable();
    while let Some(axis) = rest.next_if(|axis| axis.out == block) {
        block *= axis.extent;
    }
    let rest: Vec<(usize, usize)> = rest.map(|axis| (axis.extent, axis.out)).collect();
    match rest.first() {
        None => Some((block, 0)),
        Some((_, step)) => {
            let is_even = is_dense(rest.iter().copied().rev(), *step);
            (is_even && block > 1).then_some((block, *step))
        }
    }
}

/// Whether axes of these extents and strides, outermost first, step as one that steps by `step`.
fn is_dense(axes: impl DoubleEndedIterator<Item = (usize, usize)>, step: usize) -> bool {
    let mut next = step;
    axes.rev().all(|(extent, stride)| {
        let fits = extent == 1 || stride == next;
        next = next.saturating_mul(extent);
        fits
    })
}
