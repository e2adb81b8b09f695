//! Runs: packing and computing.

use crate::coded::Coded;
use crate::compute::Run;
use crate::geometry::share_start;
use crate::memory::elements;
use crate::packed::{Form, Packed};
use crate::partition::{ColumnSource, LINE, RowSource, TaskPartition, TaskShare};
use crate::simd::HasEngine;
use crate::{Element, PreparedContraction};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// An operand of a run.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// The elements where the strides of the contraction say. They need no alignment.
    Plain(&'a [u8]),
    /// Some of these: as many bytes, from the element of number `start` on. Only for rows of a plan that was made for
    /// [rows](PreparedContraction::plan_rows), and enough for those of the task.
    Window {
        /// The bytes that are there.
        bytes: &'a [u8],
        /// The number of the first element.
        start: usize,
    },
    /// The elements as [`PreparedContraction::pack_left`] or the like of the same kernel laid them out.
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
    /// The number of the first element that is there; other than 0 only if those that the task writes
    /// [lie together](TaskPartition::region).
    pub out_start: usize,
    /// [`TaskPartition::shared_bytes`] bytes of any content.
    pub shared: *mut u8,
    /// Once this is true, tasks end soon, whatever is done by then.
    pub stop: &'a AtomicBool,
}

impl PreparedContraction {
    /// Runs a task of the first phase.
    ///
    /// # Panics
    /// if an operand is too small, or not in the form that the plan is for, or the plan is another
    /// kernel's.
    ///
    /// # Safety
    /// `buffers.shared` points to [`TaskPartition::shared_bytes`] bytes that
    /// may be written, and which nothing but tasks of this run uses meanwhile.
    pub unsafe fn run_packing_task(&self, plan: &TaskPartition, task: usize, buffers: &Buffers) {
        match self.element {
            // SAFETY: the caller's.
            Element::F32 => unsafe { self.packing_task::<f32>(plan, task, buffers) },
            // SAFETY: the caller's.
            Element::F64 => unsafe { self.packing_task::<f64>(plan, task, buffers) },
            // SAFETY: the caller's.
            Element::U8I8 | Element::I8U8 => unsafe {
                self.packing_task::<i32>(plan, task, buffers)
            },
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
    /// [`TaskPartition::worker_bytes`] bytes that may be written and which nothing else uses meanwhile.
    pub unsafe fn run_task(
        &self,
        plan: &TaskPartition,
        task: usize,
        buffers: &Buffers,
        worker: *mut u8,
    ) {
        match self.element {
            // SAFETY: the caller's.
            Element::F32 => unsafe { self.task::<f32>(plan, task, buffers, worker) },
            // SAFETY: the caller's.
            Element::F64 => unsafe { self.task::<f64>(plan, task, buffers, worker) },
            // SAFETY: the caller's.
            Element::U8I8 | Element::I8U8 => unsafe {
                self.task::<i32>(plan, task, buffers, worker)
            },
        }
    }

    /// Runs all tasks, one after another.
    ///
    /// # Panics
    /// if an operand, `out` or `scratch` is too small, or an operand not in the form that the plan
    /// is for, or the plan is not one of this kernel.
    pub fn run(
        &self,
        plan: &TaskPartition,
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
            out_start: 0,
            shared,
            stop: &AtomicBool::new(false),
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
    /// as [`run_packing_task`](PreparedContraction::run_packing_task).
    unsafe fn packing_task<T: HasEngine>(
        &self,
        plan: &TaskPartition,
        task: usize,
        buffers: &Buffers,
    ) {
        assert!(plan.kernel == self.number, "the plan is another kernel's");
        assert!(task < plan.packing, "no such task");
        let (from, _) = self.columns_operand::<T>(plan, buffers);
        let engine = self.engine::<T>();
        let panels = &self.packed.panels;
        let start = |task| share_start(self.columns.copies * panels.len(), plan.packing, task);
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
                    from.add(offset * self.item_bytes::<T>(true)),
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

    /// The column side, and how it is coded.
    fn columns_operand<'a, T: HasEngine>(
        &self,
        plan: &TaskPartition,
        buffers: &Buffers<'a>,
    ) -> (*const u8, Option<&'a Coded>) {
        let operand = if self.exchanged {
            buffers.left
        } else {
            buffers.right
        };
        let form = match plan.columns {
            ColumnSource::Packed => Form::Packed,
            ColumnSource::Coded => Form::Coded,
            ColumnSource::Plain
            | ColumnSource::Across
            | ColumnSource::Shared
            | ColumnSource::Own => Form::Plain,
        };
        self.operand::<T>(operand, form, true)
    }

    /// The row side, and how it is coded.
    fn rows_operand<'a, T: HasEngine>(
        &self,
        plan: &TaskPartition,
        part: &TaskShare,
        buffers: &Buffers<'a>,
    ) -> (*const u8, Option<&'a Coded>) {
        let operand = if self.exchanged {
            buffers.right
        } else {
            buffers.left
        };
        if let (
            Operand::Window { bytes, start },
            RowSource::Own | RowSource::Strided | RowSource::Widened | RowSource::Direct { .. },
        ) = (operand, plan.rows)
        {
            let size = size_of::<T::Item>();
            let needed = self.row_elements(part);
            let is_there =
                |r: &Range<usize>| r.start >= start && (r.end - start) * size <= bytes.len();
            assert!(
                needed.as_ref().is_some_and(is_there),
                "a window of {} elements from {start} on has not all of {needed:?}",
                bytes.len() / size
            );
            return (bytes.as_ptr().wrapping_sub(start * size), None);
        }
        let form = match plan.rows {
            RowSource::Packed => Form::Packed,
            RowSource::Coded => Form::Coded,
            RowSource::Own | RowSource::Strided | RowSource::Widened | RowSource::Direct { .. } => {
                Form::Plain
            }
        };
        self.operand::<T>(operand, form, false)
    }

    /// The first byte of an operand that comes in the given form.
    fn operand<'a, T: HasEngine>(
        &self,
        operand: Operand<'a>,
        form: Form,
        columns: bool,
    ) -> (*const u8, Option<&'a Coded>) {
        let (side, _, count) = self.side(columns);
        match (operand, form) {
            (Operand::Plain(bytes), Form::Plain) => {
                let size = self.item_bytes::<T>(columns);
                (elements(bytes, side.needed, size), None)
            }
            (Operand::Packed(packed), Form::Packed | Form::Coded) => {
                let code = packed.code();
                assert!(
                    code.is_some() == (form == Form::Coded),
                    "the packed operand is not in the form that was planned for"
                );
                let elements = match code {
                    Some(code) if count > 0 => {
                        let bytes = self.coded_bytes(code, columns) * side.copies;
                        packed.elements(bytes, 1, columns)
                    }
                    _ => packed.elements(count, size_of::<T>(), columns),
                };
                (elements, code)
            }
            _ => panic!("an operand is not in the form that was planned for"),
        }
    }

    /// # Safety
    /// as [`run_task`](PreparedContraction::run_task).
    unsafe fn task<T: HasEngine>(
        &self,
        plan: &TaskPartition,
        task: usize,
        buffers: &Buffers,
        worker: *mut u8,
    ) {
        assert!(plan.kernel == self.number, "the plan is another kernel's");
        let part = &plan.parts[task];
        let out = (buffers.out_start, buffers.out_bytes);
        check_out(part.region.as_ref(), self.out_needed, size_of::<T>(), out);
        let out_start = buffers.out.cast::<T>().wrapping_sub(buffers.out_start);
        let (rows, row_code) = self.rows_operand::<T>(plan, part, buffers);
        let (columns, column_code) = match plan.columns {
            ColumnSource::Shared => (aligned(buffers.shared).cast_const(), None),
            _ => self.columns_operand::<T>(plan, buffers),
        };
        let worker = aligned(worker);
        let run = Run {
            kernel: self,
            plan,
            part,
            engine: self.engine::<T>(),
            row_code,
            column_code,
            own_rows: worker.cast(),
            own_columns: worker.wrapping_add(plan.rows_bytes()).cast(),
            stop: buffers.stop,
        };
        let one = |code: Option<&Coded>, columns: bool| match code {
            Some(code) => self.coded_bytes(code, columns),
            None if columns => self.packed_columns() * size_of::<T>(),
            None => self.packed_rows() * size_of::<T>(),
        };
        for batch in part.batch.clone() {
            let [row, column, out, row_copy, column_copy] = self.batch.at(batch);
            // Pointers are only followed where `k` is not empty; then the operands have all elements
            // that these offsets lead to.
            let rows = rows.wrapping_add(match plan.rows {
                RowSource::Packed | RowSource::Coded => row_copy * one(row_code, false),
                RowSource::Direct { .. }
                | RowSource::Strided
                | RowSource::Widened
                | RowSource::Own => row * size_of::<T::Item>(),
            });
            let columns = columns.wrapping_add(match plan.columns {
                ColumnSource::Packed | ColumnSource::Shared | ColumnSource::Coded => {
                    column_copy * one(column_code, true)
                }
                ColumnSource::Plain | ColumnSource::Across | ColumnSource::Own => {
                    column * self.item_bytes::<T>(true)
                }
            });
            let out = out_start.wrapping_add(out);
            // SAFETY: the operands were checked to have all elements that the task uses, and `out` too; the caller
            // promises the rest.
            unsafe {
                let left_columns = self.columns.needed.wrapping_sub(column);
                run.batch(rows, columns, left_columns, out);
            }
        }
        if let Some(release) = run.engine.release {
            // SAFETY: the engine is of this machine.
            unsafe { release() }
        }
    }
}

/// Checks that `out`, whose elements have `size` bytes and of which `bytes` are there from element `start` on, has those of
/// the `region` that a task writes, or all that are `needed` where these do not lie together.
///
/// # Panics
/// if it has not.
pub(crate) fn check_out(
    region: Option<&Range<usize>>,
    needed: usize,
    size: usize,
    (start, bytes): (usize, usize),
) {
    let written = match (region, start) {
        (Some(region), start) if region.start >= start => region.end - start,
        (None, 0) => needed,
        (_, start) => panic!("`out` begins at element {start}, after some that a task writes"),
    };
    let written = written * size;
    assert!(bytes >= written, "`out` has {bytes} bytes of {written}");
}

/// The next start of a cache line.
pub(crate) fn aligned(pointer: *mut u8) -> *mut u8 {
    pointer.wrapping_add(pointer.addr().wrapping_neg() % LINE)
}
