//! Steps that are contractions: a kernel made for them runs them, with constant operands packed before.

use crate::factors::{Constants, is_of_left, is_of_right};
use crate::follow::Follow;
use crate::plan::Slot;
use crate::pool::Round;
use crate::steps::worth;
use std::ops::Range;
use std::slice::from_raw_parts;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::Pointer;
use vinelift_kernels as kernels;
use vinelift_kernels::{Buffers, Element, Form, Packed};
use vinelift_nest::{Contraction, Stride, Strided, SubNest};
use vinelift_tensor::ElementType;

/// A contraction that is ready to run.
pub(crate) struct Product {
    kernel: kernels::PreparedContraction,
    plan: kernels::TaskPartition,
    out: Strided,
    left: Operand,
    right: Operand,
    element: Element,
    /// How far the operands and the result move from turn to turn.
    turn: Stride,
    /// How many threads share it.
    pub(crate) workers: usize,
    /// About how long it takes one thread, with the kernel that follows it, in nanoseconds.
    pub(crate) cost: u64,
}

struct Operand {
    from: Strided,
    /// Its elements, if they are constant.
    packed: Option<Packed>,
}

/// The floating-point operations in a nanosecond that a slow thread does, to be on the safe side.
const FLOPS_PER_NANOSECOND: u64 = 60;

/// The phase in which operands are packed, and the one after it.
pub(crate) const PACKING: usize = 0;
pub(crate) const COMPUTING: usize = 1;

/// The most that one contraction may use besides its operands.
const MOST_SCRATCH: usize = 1 << 30;

impl Product {
    /// For the only stage of `step`. `slots` says where each of its buffers is found; `threads` is how
    /// many may share it; if a kernel is to follow it task by task, `follower` is what that takes, in
    /// nanoseconds. `None` if there is no kernel for it.
    pub(crate) fn new(
        contraction: &Contraction,
        step: &SubNest,
        slots: &[Slot],
        threads: usize,
        follower: Option<u64>,
    ) -> Option<Product> {
        let left_type = step.nest.buf(contraction.left.tensor.buffer).ty;
        let element = match contraction.ty {
            ElementType::F32 => Element::F32,
            ElementType::F64 => Element::F64,
            _ if left_type == ElementType::U8 => Element::U8I8,
            _ => Element::I8U8,
        };
        let problem = problem(contraction, element);
        let still = Stride {
            extent: 1,
            left: 0,
            right: 0,
            out: 0,
        };
        let turn = contraction.turn.unwrap_or(still);
        let constants = Constants { step, slots };
        let left = constants.factor(contraction, &contraction.left, turn.left, is_of_left)?;
        let right = constants.factor(contraction, &contraction.right, turn.right, is_of_right)?;
        // Tiles that decode have vectors along the operand they decode anyway.
        let packed = [&left, &right].map(|side| matches!(side, Some((_, None))));
        let kernel = kernels::PreparedContraction::with_packed(&problem, packed).ok()?;
        let left = match left {
            Some((bytes, Some(coding))) => Some(kernel.pack_left_coded(bytes, &coding)?),
            Some((bytes, None)) => Some(kernel.pack_left(bytes)?),
            None => None,
        };
        let right = match right {
            Some((bytes, Some(coding))) => Some(kernel.pack_right_coded(bytes, &coding)?),
            Some((bytes, None)) => Some(kernel.pack_right(bytes)?),
            None => None,
        };
        let form = |packed: &Option<Packed>| packed.as_ref().map_or(Form::Plain, Packed::form);
        let cost = (kernel.flops() / FLOPS_PER_NANOSECOND).saturating_add(follower.unwrap_or(0));
        let workers = worth(cost, threads);
        // A few for each, so that a thread which is late leaves its share to others.
        let tasks = if workers == 1 { 1 } else { 4 * workers };
        let plan = |tasks| kernel.plan(form(&left), form(&right), tasks);
        let (mut plan, fewer) = match follower
            .map(|_| Follow::tasks(results(&problem).saturating_mul(element.bytes())))
        {
            Some(more) if more > tasks => (plan(more), Some(plan(tasks))),
            _ => (plan(tasks), None),
        };
        // Packing more at a time for more tasks is not worth it.
        if let Some(fewer) = fewer.filter(|fewer| fewer.shared_bytes() < plan.shared_bytes()) {
            plan = fewer;
        }
        let scratch = plan.worker_bytes().saturating_mul(workers);
        if plan.shared_bytes().saturating_add(scratch) > MOST_SCRATCH {
            return None;
        }
        Some(Product {
            out: contraction.out,
            left: Operand {
                from: contraction.left.tensor,
                packed: left,
            },
            right: Operand {
                from: contraction.right.tensor,
                packed: right,
            },
            element,
            turn,
            workers,
            cost,
            kernel,
            plan,
        })
    }

    /// Bytes of scratch memory for a run.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.plan.shared_bytes() + self.plan.worker_bytes() * self.workers
    }

    /// Bytes of packed operands.
    pub(crate) fn packed_bytes(&self) -> usize {
        let operands = [&self.left, &self.right].into_iter();
        operands.flat_map(|o| &o.packed).map(Packed::bytes).sum()
    }

    /// The buffers of the step that a run needs: not operands that are packed.
    pub(crate) fn needs(&self) -> impl Iterator<Item = usize> {
        let operands = [&self.left, &self.right].into_iter();
        let plain = operands.filter(|operand| operand.packed.is_none());
        let buffers = plain
            .map(|operand| operand.from.buffer)
            .chain([self.out.buffer]);
        buffers.map(|b| b.0 as usize)
    }

    /// How it runs, for texts.
    pub(crate) fn name(&self) -> &str {
        self.plan.name()
    }

    /// Its floating-point operations, in all turns.
    pub(crate) fn flops(&self) -> u64 {
        self.kernel.flops().saturating_mul(self.turn.extent as u64)
    }

    /// Which elements of the buffer of the results each task of the second phase computes, if those of
    /// each lie together.
    pub(crate) fn regions(&self) -> Option<Vec<Range<usize>>> {
        let regions = (0..self.plan.tasks()).map(|task| self.plan.region(task));
        let moved = regions.map(|r| r.map(|r| r.start + self.out.base..r.end + self.out.base));
        (self.turn.extent == 1).then(|| moved.collect())?
    }

    /// How many tasks a phase has.
    pub(crate) fn tasks(&self, phase: usize) -> usize {
        match phase {
            PACKING => self.plan.packing_tasks(),
            _ => self.plan.tasks(),
        }
    }

    /// Runs a task of a phase, of a turn, the only one if it takes none. `buffers` says where each buffer
    /// of the step is and how many bytes it has. Soon after `stop` has become true it ends, whatever is done by then.
    ///
    /// # Safety
    ///
    /// Each pointer is to as many bytes as its length says: valid for reads, and those of the result for
    /// writes. Nothing but tasks of the same phase uses the result meanwhile, which overlaps no operand.
    /// `scratch` points to [`Product::scratch_bytes`] bytes that are used by nothing else. No other task runs under the number `worker`, and the first phase was run before the second.
    pub(crate) unsafe fn task(
        &self,
        buffers: impl Fn(usize) -> (Pointer, usize),
        scratch: Pointer,
        Round { turn, phase, .. }: Round,
        task: usize,
        worker: usize,
        stop: &AtomicBool,
    ) {
        let shared = scratch.0;
        // SAFETY: the caller vouches for the memory; the plan is the kernel's.
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
    /// That of [`Product::task`].
    unsafe fn memory<'a>(
        &'a self,
        buffers: &impl Fn(usize) -> (Pointer, usize),
        shared: *mut u8,
        turn: usize,
        stop: &'a AtomicBool,
    ) -> Buffers<'a> {
        let place = |from: &Strided, step: usize, size: usize| {
            let (pointer, length) = buffers(from.buffer.0 as usize);
            let base = ((from.base + turn * step) * size).min(length);
            (pointer.0.wrapping_add(base), length - base)
        };
        let operand = |operand: &'a Operand, step: usize| match &operand.packed {
            Some(packed) => kernels::Operand::Packed(packed),
            None => {
                let (pointer, length) = place(&operand.from, step, self.element.operand_bytes());
                // SAFETY: the caller's.
                kernels::Operand::Plain(unsafe { from_raw_parts(pointer, length) })
            }
        };
        let (out, out_bytes) = place(&self.out, self.turn.out, self.element.bytes());
        Buffers {
            left: operand(&self.left, self.turn.left),
            right: operand(&self.right, self.turn.right),
            out,
            out_bytes,
            shared,
            stop,
        }
    }
}

/// The contraction as the kernels know it: each axis by the operands that it moves in.
fn problem(contraction: &Contraction, element: Element) -> kernels::Contraction {
    let mut problem = kernels::Contraction {
        element,
        batch: vec![],
        m: vec![],
        n: vec![],
        k: vec![],
    };
    let (outer, inner) = contraction.axes.split_at(contraction.outer);
    for axis in outer {
        let group = match axis {
            axis if is_of_left(axis) => &mut problem.m,
            axis if is_of_right(axis) => &mut problem.n,
            _ => &mut problem.batch,
        };
        group.push(dim(axis));
    }
    problem.k.extend(inner.iter().map(dim));
    problem
}

/// How many elements the results have.
fn results(problem: &kernels::Contraction) -> usize {
    let dims = [&problem.batch, &problem.m, &problem.n]
        .into_iter()
        .flatten();
    dims.map(|dim| dim.extent).fold(1, usize::saturating_mul)
}

fn dim(axis: &Stride) -> kernels::Dim {
    kernels::Dim::new(axis.extent, axis.left, axis.right, axis.out)
}
