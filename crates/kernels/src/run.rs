//! Runs: packing and computing.

use crate::compute::Run;
use crate::geometry::part_start;
use crate::packed::Packed;
use crate::plan::{LINE, Plan, Rows, Source};
use crate::simd::Float;
use crate::{Element, Kernel};

/// An operand of a run.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// The elements where the strides of the contraction say. They need no alignment.
    Plain(&'a [u8]),
    /// The elements as [`Kernel::pack_left`] or [`Kernel::pack_right`] of the same kernel laid them
    /// out.
    Packed(&'a Packed),
}

/// The memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct Buffers<'a> {
    /// The left operand.
    pub left: Operand<'a>,
    /// The right operand.
    pub right: Operand<'a>,
    /// Where the result goes. It needs no alignment.
    pub out: *mut u8,
    /// How many bytes of it there are.
    pub out_bytes: usize,
    /// [`Plan::shared_bytes`] bytes of any content.
    pub shared: *mut u8,
}

impl Kernel {
    /// Runs a task of the first phase.
    ///
    /// # Panics
    /// if an operand is too small, or not in the form that the plan is for, or the plan is another
    /// kernel's.
    ///
    /// # Safety
    /// `buffers.shared` points to [`Plan::shared_bytes`] bytes that
    /// may be written, and which nothing but tasks of this run uses meanwhile.
    pub unsafe fn run_packing_task(&self, plan: &Plan, task: usize, buffers: &Buffers) {
        match self.element {
            // SAFETY: the caller's.
            Element::F32 => unsafe { self.packing_task::<f32>(plan, task, buffers) },
            // SAFETY: the caller's.
            Element::F64 => unsafe { self.packing_task::<f64>(plan, task, buffers) },
        }
    }

    /// Runs a task of the second phase, which needs that all of the first are done. No two tasks write
    /// the same elements of `out`.
    ///
    /// # Panics
    /// if an operand or `out` is too small, or an operand not in the form that the plan is for, or
    /// the plan is another kernel's.
    ///
    /// # Safety
    /// `buffers.out` points to `out_bytes` bytes that may be read and
    /// written, outside of the operands, and nothing else uses the elements that the task writes
    /// meanwhile; `buffers.shared` is what the first phase wrote; `worker` points to
    /// [`Plan::worker_bytes`] bytes that may be written and which nothing else uses meanwhile.
    pub unsafe fn run_task(&self, plan: &Plan, task: usize, buffers: &Buffers, worker: *mut u8) {
        match self.element {
            // SAFETY: the caller's.
            Element::F32 => unsafe { self.task::<f32>(plan, task, buffers, worker) },
            // SAFETY: the caller's.
            Element::F64 => unsafe { self.task::<f64>(plan, task, buffers, worker) },
        }
    }

    /// Runs all tasks, one after another.
    ///
    /// # Panics
    /// if an operand, `out` or `scratch` is too small, or an operand not in the form that the plan
    /// is for, or the plan is not one of this kernel.
    pub fn run(
        &self,
        plan: &Plan,
        left: Operand,
        right: Operand,
        out: &mut [u8],
        scratch: &mut [u8],
    ) {
        assert!(
            scratch.len() >= plan.shared_bytes() + plan.worker_bytes(),
            "too little scratch memory"
        );
        let (shared, worker) = scratch.split_at_mut(plan.shared_bytes());
        let (worker, shared) = (worker.as_mut_ptr(), shared.as_mut_ptr());
        let buffers = Buffers {
            left,
            right,
            out: out.as_mut_ptr(),
            out_bytes: out.len(),
            shared,
        };
        for task in 0..plan.packing_tasks() {
            // SAFETY: the scratch memory is exclusively ours.
            unsafe { self.run_packing_task(plan, task, &buffers) }
        }
        for task in 0..plan.tasks() {
            // SAFETY: as above; so is `out`, which as a unique reference lies outside the operands.
            unsafe { self.run_task(plan, task, &buffers, worker) }
        }
    }

    /// # Safety
    /// as [`run_packing_task`](Kernel::run_packing_task).
    unsafe fn packing_task<T: Float>(&self, plan: &Plan, task: usize, buffers: &Buffers) {
        assert!(plan.kernel == self.number, "the plan is another kernel's");
        assert!(task < plan.packing, "no such task");
        let from = self.columns_operand::<T>(plan, buffers);
        let engine = T::engine(self.isa);
        let panels = &self.packed.panels;
        let start = |task| part_start(self.columns.copies * panels.len(), plan.packing, task);
        // SAFETY: `shared` has room for all copies of the packed columns; an operand's elements are
        // there for every batch.
        unsafe {
            let shared: *mut T = aligned(buffers.shared).cast();
            let mut number = start(task);
            while number < start(task + 1) {
                let copy = number / panels.len();
                let offset = self.batch_of_column_copy(copy);
                let until = start(task + 1).min((copy + 1) * panels.len());
                let panels = &panels[number % panels.len()..][..until - number];
                let place = copy * self.packed_columns() + self.packed_place(&panels[0], self.k);
                self.pack_columns(
                    engine,
                    from.add(offset),
                    shared.add(place),
                    panels,
                    0,
                    self.k,
                );
                number = until;
            }
        }
    }

    /// The offset of a batch that has the column side with number `copy`.
    fn batch_of_column_copy(&self, copy: usize) -> usize {
        self.batch
            .axes()
            .iter()
            .filter(|axis| axis.strides[4] != 0)
            .map(|axis| copy / axis.strides[4] % axis.extent * axis.strides[1])
            .sum()
    }

    /// The column side, if it is plain.
    fn columns_operand<T>(&self, plan: &Plan, buffers: &Buffers) -> *const T {
        let operand = if self.exchanged {
            buffers.left
        } else {
            buffers.right
        };
        match (operand, plan.columns) {
            (Operand::Packed(packed), Source::Packed) => {
                let one = self.packed_columns() * self.columns.copies;
                packed.elements(if self.columns.needed == 0 { 0 } else { one }, true)
            }
            (Operand::Plain(bytes), Source::Plain | Source::Shared | Source::Own) => {
                elements(bytes, self.columns.needed)
            }
            _ => panic!("the column side is not in the form that was planned for"),
        }
    }

    /// The row side.
    fn rows_operand<T>(&self, plan: &Plan, buffers: &Buffers) -> *const T {
        let operand = if self.exchanged {
            buffers.right
        } else {
            buffers.left
        };
        match (operand, plan.rows) {
            (Operand::Packed(packed), Rows::Packed) => {
                let one = self.packed_rows() * self.rows.copies;
                packed.elements(if self.rows.needed == 0 { 0 } else { one }, false)
            }
            (Operand::Plain(bytes), Rows::Own | Rows::Direct { .. }) => {
                elements(bytes, self.rows.needed)
            }
            _ => panic!("the row side is not in the form that was planned for"),
        }
    }

    /// # Safety
    /// as [`run_task`](Kernel::run_task).
    unsafe fn task<T: Float>(&self, plan: &Plan, task: usize, buffers: &Buffers, worker: *mut u8) {
        assert!(plan.kernel == self.number, "the plan is another kernel's");
        let part = &plan.parts[task];
        let bytes = self.out_needed * size_of::<T>();
        assert!(
            buffers.out_bytes >= bytes,
            "`out` has {} bytes of {bytes}",
            buffers.out_bytes
        );
        let rows: *const T = self.rows_operand(plan, buffers);
        let columns: *const T = match plan.columns {
            Source::Shared => aligned(buffers.shared).cast(),
            _ => self.columns_operand(plan, buffers),
        };
        let worker = aligned(worker);
        let run = Run {
            kernel: self,
            plan,
            part,
            engine: T::engine(self.isa),
            own_rows: worker.cast(),
            own_columns: worker.wrapping_add(plan.rows_bytes()).cast(),
        };
        for batch in part.batch.clone() {
            let [row, column, out, row_copy, column_copy] = self.batch.at(batch);
            // Pointers are only followed where `k` is not empty; then the operands have all elements
            // that these offsets lead to.
            let rows = rows.wrapping_add(match plan.rows {
                Rows::Packed => row_copy * self.packed_rows(),
                Rows::Direct { .. } | Rows::Own => row,
            });
            let columns = columns.wrapping_add(match plan.columns {
                Source::Packed | Source::Shared => column_copy * self.packed_columns(),
                Source::Plain | Source::Own => column,
            });
            // SAFETY: the operands were checked to have all elements, and `out` too; the caller
            // promises the rest.
            unsafe {
                let out = buffers.out.cast::<T>().add(out);
                let left_columns = self.columns.needed.wrapping_sub(column);
                run.batch(rows, columns, left_columns, out);
            }
        }
    }
}

/// The elements of an operand.
///
/// # Panics
/// if there are fewer than `needed`.
pub(crate) fn elements<T>(bytes: &[u8], needed: usize) -> *const T {
    let needed = needed * size_of::<T>();
    assert!(
        bytes.len() >= needed,
        "an operand has {} bytes of {needed}",
        bytes.len()
    );
    bytes.as_ptr().cast()
}

/// The next start of a cache line.
fn aligned(pointer: *mut u8) -> *mut u8 {
    pointer.wrapping_add(pointer.addr().wrapping_neg() % LINE)
}
