//! Convolutions of bytes with constant windows of 3 × 3.

use super::problem::{element, problem, results};
use super::tasks::{consumed_tasks, sharing, tasks_of};
use super::{Consumers, ContractionKind, MOST_SCRATCH, PackedContraction, Place, in_buffer, isa};
use crate::compile::Settings;
use crate::compile::constant_operand::{Constants, is_of_left, is_of_right};
use crate::compile::packed_operands::{PlanSlots, Unpacked};
use std::ops::Range;
use std::slice::from_raw_parts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::Pointer;
use vinelift_kernels::{Packed, WinogradBuffers, WinogradConvolution, WinogradPartition};
use vinelift_nest::{BufferId, Contraction, Strided, SubNest};

/// Such a convolution, with its kernel.
pub(super) struct Convolution {
    kernel: WinogradConvolution,
    plan: WinogradPartition,
    image: Strided,
    windows: Arc<Packed>,
    out: Strided,
}

impl Convolution {
    /// Of the only stage of `step`. `slots` says where each of its buffers is found. `None` if there is no such kernel for it, or
    /// others are as fast.
    pub(super) fn packed(
        contraction: &Contraction,
        step: &SubNest,
        slots: &PlanSlots,
        settings: &Settings<'_>,
        consumers: Option<Consumers>,
    ) -> Option<PackedContraction> {
        let Contraction {
            left, right, out, ..
        } = contraction;
        let element = element(contraction, step);
        let are_plain = left.coding.is_none() && right.coding.is_none();
        if !element.is_byte() || !are_plain || contraction.turn.is_some() {
            return None;
        }
        let constants = Constants { step, slots };
        let [of_left, of_right] = [
            constants.factor(contraction, left, 0, is_of_left)?,
            constants.factor(contraction, right, 0, is_of_right)?,
        ];
        let (image, windows, bytes, are_right) = match (of_left, of_right) {
            (None, Some((bytes, _))) => (left, right, bytes, true),
            (Some((bytes, _)), None) => (right, left, bytes, false),
            _ => return None,
        };
        let problem = problem(contraction, element, None);
        let isa = isa(settings.options.vectors);
        let kernel = WinogradConvolution::new(&problem, isa, are_right)?;
        let unpacked = Unpacked {
            constant: constants.address(windows),
            bytes,
            coding: None,
        };
        let windows = slots.packed(
            &settings.shared.operands,
            &unpacked,
            || kernel.layout(),
            || kernel.pack(bytes),
        )?;
        let (cost, workers) = sharing(kernel.flops(), consumers, settings.threads);
        let bytes = results(&problem).saturating_mul(element.bytes());
        let consumed = consumers.map_or(0, |_| consumed_tasks(bytes));
        let plan = kernel.plan(tasks_of(workers).max(consumed));
        if plan.worker_bytes().saturating_mul(workers) > MOST_SCRATCH {
            return None;
        }
        let convolution = Convolution {
            kernel,
            plan,
            image: image.tensor,
            windows,
            out: *out,
        };
        Some(PackedContraction {
            kind: ContractionKind::Winograd(Box::new(convolution)),
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
    pub(super) fn windows(&self) -> &Arc<Packed> {
        &self.windows
    }

    pub(super) fn needs(&self) -> [Option<BufferId>; 3] {
        [Some(self.image.buffer), Some(self.out.buffer), None]
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
        let place = |tensor: &Strided, size: usize| {
            buffers(tensor.buffer.0 as usize).from(tensor.base, size)
        };
        let (image, image_bytes, _) = place(&self.image, size_of::<u8>());
        let (out, out_bytes, out_start) = place(&self.out, size_of::<i32>());
        let own = scratch.0.wrapping_add(worker * self.plan.worker_bytes());
        // SAFETY: `Place::from` stays inside what is there of each buffer, which the caller has vouched for. The image is no window, as
        // this is never chained to another contraction (`PackedContraction::by_rows`). The plan is the kernel's.
        unsafe {
            let buffers = WinogradBuffers {
                image: from_raw_parts(image, image_bytes),
                windows: &self.windows,
                out,
                out_bytes,
                out_start: out_start.unwrap_or(0),
                stop,
            };
            self.kernel.run_task(&self.plan, task, &buffers, own);
        }
    }
}
