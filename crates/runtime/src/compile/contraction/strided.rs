//! Contractions over strided operands.

use super::operands::{Constant, constant_operands, form, pack};
use super::problem::{element, problem, results, turn};
use super::tasks::{plan, plan_rows, sharing};
use super::{
    ContractionKind, MOST_SCRATCH, Neighbours, PACKING, PackedContraction, Place, in_buffer, isa,
};
use crate::compile::Settings;
use crate::compile::constant_operand::Constants;
use crate::compile::packed_operands::PlanSlots;
use std::ops::Range;
use std::slice::from_raw_parts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::Pointer;
use vinelift_kernels as kernels;
use vinelift_kernels::{Buffers, Element, Form, Narrow, Packed};
use vinelift_nest::{Border, BufferId, Contraction, Factor, Stride, Strided, SubNest, are_finite};

/// A contraction with its kernel, how that is cut into tasks, and its constant operands as the kernel reads them.
pub(crate) struct StridedContraction {
    contraction: Arc<Contraction>,
    kernel: Arc<kernels::PreparedContraction>,
    /// Where the left operand is known to be zero.
    borders: Arc<[Border]>,
    plan: Arc<kernels::TaskPartition>,
    left: Operand,
    right: Operand,
    element: Element,
}

#[derive(Clone)]
struct Operand {
    /// Its elements, if they are constant.
    packed: Option<Arc<Packed>>,
    /// The bytes of an element where they are not.
    size: usize,
}

impl StridedContraction {
    /// As [`PackedContraction::new`].
    pub(super) fn packed(
        contraction: &Contraction,
        step: &SubNest,
        borders: Vec<Border>,
        slots: &PlanSlots,
        settings: &Settings<'_>,
        Neighbours { rows_of, consumers }: Neighbours,
    ) -> Option<PackedContraction> {
        let element = element(contraction, step);
        let problem = problem(contraction, element, rows_of);
        let constants = Constants { step, slots };
        let [left, right] = constant_operands(&constants, contraction)?;
        let forms = [&left, &right].map(form);
        let isa = isa(settings.options.vectors);
        let narrow = [&contraction.left, &contraction.right].map(|side| constants.narrow(side));
        let suits_loops = narrow[0].is_some() && contraction.suits_loops(|axis| axis.left)
            || narrow[1].is_some() && contraction.suits_loops(|axis| axis.right);
        if suits_loops {
            return None;
        }
        let mut kernel =
            kernels::PreparedContraction::with_narrow(&problem, isa, forms, narrow).ok()?;
        if !borders.is_empty() && turn(contraction).extent == 1 {
            let padding: Vec<kernels::Padding> = borders.iter().map(padding).collect();
            let is_finite = || has_finite_weights(contraction, &right);
            kernel.leave_out_padding(&padding, is_finite);
        }
        let [left_size, right_size] = narrow.map(|narrow| match narrow {
            Some(_) => Narrow::BYTES,
            None => element.operand_bytes(),
        });
        let [left, right] = pack(&kernel, contraction, &constants, [left, right], settings)?;
        let (cost, workers) = sharing(kernel.flops(), consumers, settings.threads);
        let results = results(&problem).saturating_mul(element.bytes());
        let task_bytes = consumers.map(|_| results);
        let taken = consumers.and_then(|consumers| consumers.taken);
        let taken = taken.filter(|_| left.is_none() && right.is_none());
        let by_rows = taken.and_then(|taken| plan_rows(&kernel, &problem, workers, taken));
        let plan = by_rows.unwrap_or_else(|| plan(&kernel, [&left, &right], workers, task_bytes));
        let scratch = plan.worker_bytes().saturating_mul(workers);
        if plan.shared_bytes().saturating_add(scratch) > MOST_SCRATCH {
            return None;
        }
        let contraction = StridedContraction {
            contraction: Arc::new(contraction.clone()),
            left: Operand {
                packed: left,
                size: left_size,
            },
            right: Operand {
                packed: right,
                size: right_size,
            },
            element,
            kernel: Arc::new(kernel),
            borders: borders.into(),
            plan: Arc::new(plan),
        };
        Some(PackedContraction {
            kind: ContractionKind::Strided(contraction),
            workers,
            cost,
        })
    }

    /// The same contraction in `step`, which has the same form but may have other constants. `None` if other operands of it are
    /// constants, or memory is short.
    pub(super) fn in_step(
        &self,
        step: &SubNest,
        borders: &[Border],
        slots: &PlanSlots,
        settings: &Settings<'_>,
    ) -> Option<StridedContraction> {
        let constants = Constants { step, slots };
        let found = constant_operands(&constants, &self.contraction)?;
        let are_alike =
            [&found[0], &found[1]].map(form) == self.forms() && borders == &*self.borders;
        let leaves_out = self.kernel.leaves_out_padding();
        if !are_alike || leaves_out && !has_finite_weights(&self.contraction, &found[1]) {
            return None;
        }
        let [left, right] = pack(&self.kernel, &self.contraction, &constants, found, settings)?;
        Some(StridedContraction {
            contraction: self.contraction.clone(),
            kernel: self.kernel.clone(),
            borders: self.borders.clone(),
            plan: self.plan.clone(),
            left: Operand {
                packed: left,
                ..self.left
            },
            right: Operand {
                packed: right,
                ..self.right
            },
            ..*self
        })
    }

    /// As [`PackedContraction::by_rows`].
    pub(super) fn by_rows(
        &self,
        buffer: BufferId,
        elements: &[Range<usize>],
    ) -> Option<StridedContraction> {
        let length = self.kernel.dense_rows()?;
        let from = match self.kernel.rows_are_left() {
            true => self.contraction.left.tensor,
            false => self.contraction.right.tensor,
        };
        let [left, right] = self.forms();
        let form = if self.kernel.rows_are_left() {
            left
        } else {
            right
        };
        let is_plain = form == Form::Plain && self.turn().extent == 1;
        if from.buffer != buffer || !is_plain || length == 0 {
            return None;
        }
        let row = |element: usize| {
            let element = element.checked_sub(from.base)?;
            element.is_multiple_of(length).then_some(element / length)
        };
        let rows = elements.iter().map(|e| Some(row(e.start)?..row(e.end)?));
        let rows: Vec<Range<usize>> = rows.collect::<Option<_>>()?;
        let mut end = 0;
        let follow = rows
            .iter()
            .all(|rows| rows.start == std::mem::replace(&mut end, rows.end));
        if !follow || end != self.kernel.rows() {
            return None;
        }
        Some(StridedContraction {
            contraction: self.contraction.clone(),
            kernel: self.kernel.clone(),
            borders: self.borders.clone(),
            plan: Arc::new(self.kernel.plan_rows(left, right, &rows)?),
            left: self.left.clone(),
            right: self.right.clone(),
            ..*self
        })
    }

    /// The buffer of the step that it writes.
    pub(super) fn results(&self) -> BufferId {
        self.contraction.out.buffer
    }

    /// Bytes of scratch memory: of what all workers share, and of each.
    pub(super) fn scratch_bytes(&self) -> (usize, usize) {
        (self.plan.shared_bytes(), self.plan.worker_bytes())
    }

    /// The operands, if they are constant, packed.
    pub(super) fn operands(&self) -> [Option<&Arc<Packed>>; 2] {
        [&self.left, &self.right].map(|operand| operand.packed.as_ref())
    }

    /// How the kernel reads each operand: as it is, packed, or packed with its coding.
    fn forms(&self) -> [Form; 2] {
        let packed = self.operands();
        packed.map(|packed| packed.map_or(Form::Plain, |p| p.form()))
    }

    /// The bytes of the results.
    pub(super) fn result_bytes(&self) -> usize {
        self.kernel.elements()[2].saturating_mul(self.element.bytes())
    }

    /// Whether all columns of a batch may be read again for a few rows at a time.
    pub(super) fn columns_stay_cached(&self) -> bool {
        self.kernel.columns_stay_cached()
    }

    /// The buffers of the step that a run needs: not operands that are packed.
    pub(super) fn needs(&self) -> [Option<BufferId>; 3] {
        let Contraction {
            left, right, out, ..
        } = &*self.contraction;
        let of = |operand: &Operand, factor: &Factor| {
            operand.packed.is_none().then_some(factor.tensor.buffer)
        };
        [
            of(&self.left, left),
            of(&self.right, right),
            Some(out.buffer),
        ]
    }

    /// How far the operands and the result move from turn to turn.
    fn turn(&self) -> Stride {
        turn(&self.contraction)
    }

    /// The kernel, for texts.
    pub(super) fn name(&self) -> &str {
        self.plan.name()
    }

    /// Its floating-point operations, in all turns.
    pub(super) fn flops(&self) -> u64 {
        self.kernel
            .flops()
            .saturating_mul(self.turn().extent as u64)
    }

    /// As [`PackedContraction::regions`].
    pub(super) fn regions(&self) -> Option<Vec<Range<usize>>> {
        let regions = (0..self.plan.tasks()).map(|task| self.plan.region(task));
        (self.turn().extent == 1).then(|| in_buffer(regions, &self.contraction.out))?
    }

    /// The number of tasks of a phase.
    pub(super) fn tasks(&self, phase: usize) -> usize {
        match phase {
            PACKING => self.plan.packing_tasks(),
            _ => self.plan.tasks(),
        }
    }

    /// # Safety
    /// as [`PackedContraction::task`].
    pub(super) unsafe fn task(
        &self,
        buffers: impl Fn(usize) -> Place,
        scratch: Pointer,
        (turn, phase): (usize, usize),
        task: usize,
        worker: usize,
        stop: &AtomicBool,
    ) {
        let shared = scratch.0;
        // SAFETY: the caller vouches for the memory, as this function's contract lists; the plan is the kernel's.
        unsafe {
            let memory = self.memory(&buffers, shared, turn, stop);
            if phase == PACKING {
                return self.kernel.run_packing_task(&self.plan, task, &memory);
            }
            let own = self.plan.shared_bytes() + worker * self.plan.worker_bytes();
            let own = shared.wrapping_add(own);
            self.kernel.run_task(&self.plan, task, &memory, own);
        }
    }

    /// The memory of a run.
    ///
    /// # Safety
    ///
    /// The caller keeps the contract of [`PackedContraction::task`].
    unsafe fn memory<'a>(
        &'a self,
        buffers: &impl Fn(usize) -> Place,
        shared: *mut u8,
        turn: usize,
        stop: &'a AtomicBool,
    ) -> Buffers<'a> {
        let place = |from: &Strided, step: usize, size: usize| {
            buffers(from.buffer.0 as usize).from(from.base + turn * step, size)
        };
        let operand = |operand: &'a Operand, factor: &Factor, step: usize| match &operand.packed {
            Some(packed) => kernels::Operand::Packed(packed),
            None => {
                let (pointer, length, start) = place(&factor.tensor, step, operand.size);
                // SAFETY: `Place::from` stays inside what is there of the buffer, which the caller has vouched for.
                let bytes = unsafe { from_raw_parts(pointer, length) };
                match start {
                    Some(start) => kernels::Operand::Window { bytes, start },
                    None => kernels::Operand::Plain(bytes),
                }
            }
        };
        let Contraction {
            left, right, out, ..
        } = &*self.contraction;
        let moves = self.turn();
        let (out, out_bytes, out_start) = place(out, moves.out, self.element.bytes());
        Buffers {
            left: operand(&self.left, left, moves.left),
            right: operand(&self.right, right, moves.right),
            out,
            out_bytes,
            out_start: out_start.unwrap_or(0),
            shared,
            stop,
        }
    }
}

/// Whether the right operand is a constant of finite elements.
fn has_finite_weights(contraction: &Contraction, right: &Constant<'_>) -> bool {
    match right {
        Some((weights, None)) => are_finite(contraction.ty, weights),
        _ => false,
    }
}

/// A border as the kernels know it.
fn padding(border: &Border) -> kernels::Padding {
    let Border {
        stride,
        extent,
        first,
        inside,
    } = border.clone();
    kernels::Padding {
        stride,
        extent,
        first,
        inside,
    }
}
