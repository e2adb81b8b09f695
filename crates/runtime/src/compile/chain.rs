//! Chains: a contraction, code that uses its results, and a contraction of what that makes, as the two products of
//! attention with the softmax between them.
//!
//! Each task of the first goes through all three with its rows while they are in the cache. What lies between the
//! products is no larger then than what one task of each thread uses, so the memory of attention is linear in the
//! length of a text. The values and the order of all operations are those of three kernels one after the other.

use crate::compile::consumer::Consumer;
use crate::compile::contraction::PackedContraction;
use crate::compile::kernel::Kernel;
use crate::compile::step::{Engine, Step};
use std::ops::Range;
use vinelift_nest::{
    Aliases, Buffer, BufferId, Contraction, Effects, Footprint, Nest, Role, SubNest,
};

/// How a contraction may be chained to the code before it, and that to the contraction before it.
pub(crate) struct Link {
    /// The buffer of the whole nest that the code writes and the contraction takes rows of.
    operand: BufferId,
    /// The temporaries of the code.
    temporaries: Vec<Temporary>,
}

/// A temporary of the code of a chain.
struct Temporary {
    buffer: BufferId,
    /// The bytes of an element.
    size: usize,
    /// The elements that each turn of the code uses.
    used: Footprint,
    /// Whether no kernel but those of the chain uses it.
    is_own: bool,
}

/// What the first step of a chain knows of the others.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The temporaries that each thread has a part of.
    pub(crate) windows: Vec<Window>,
    /// The bytes of all parts for one thread.
    pub(crate) worker_bytes: usize,
    /// Where that of the first thread begins in the arena.
    pub(crate) scratch: usize,
    /// The floating-point operations of the other contraction.
    pub(crate) flops: u64,
}

/// A temporary of which only the elements of one task have memory, for each thread.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) buffer: BufferId,
    /// Where it begins in the memory of a thread.
    pub(crate) offset: usize,
    /// The bytes of the buffer before it, for each task.
    pub(crate) before: Vec<usize>,
    /// The bytes that it has room for.
    pub(crate) bytes: usize,
}

/// Windows start at a multiple of this, and kernels may load a vector that begins in one: two lines of the cache.
const ALIGNMENT: usize = 128;

/// The most buffers of code in a chain.
pub(crate) const MOST_BUFFERS: usize = 32;

impl Link {
    /// Of three kernels of `nest` that follow each other; `users` says how many kernels use each of its buffers.
    pub(crate) fn of(
        nest: &Nest,
        [first, code, last]: [&SubNest; 3],
        aliases: &Aliases,
        users: &[u32],
    ) -> Option<Link> {
        let [stage] = last.nest.stages.as_slice() else {
            return None;
        };
        let contraction = Contraction::of(&last.nest, stage)?;
        let effects = |kernel| Effects::of_kernel(kernel, aliases);
        let (before, after) = (effects(code), effects(last));
        let factors = [&contraction.left, &contraction.right].into_iter();
        let operands = factors.map(|factor| last.buffers[factor.tensor.buffer.0 as usize]);
        let mut written = operands.filter(|operand| before.writes(*operand));
        let operand = written.next().filter(|_| written.next().is_none())?;
        let before = before.and(&effects(first));
        if !after.may_overlap(&before, operand, aliases) || code.buffers.len() > MOST_BUFFERS {
            return None;
        }
        let chained = [first, code, last];
        let temporaries = (0..).map(BufferId).zip(&code.buffers);
        let temporaries = temporaries.filter_map(|(local, &buffer)| {
            let Buffer { role, ty, .. } = nest.buf(buffer);
            let of_chain = chained
                .iter()
                .filter(|kernel| kernel.buffers.contains(&buffer));
            let is_own = users[buffer.0 as usize] == of_chain.count() as u32;
            Some(Temporary {
                buffer,
                size: Some(ty.bits() / 8)
                    .filter(|_| *role == Role::Temporary && !ty.is_packed())?,
                used: Footprint::of(&code.nest, local)?,
                is_own,
            })
        });
        let temporaries: Vec<Temporary> = temporaries.collect();
        let is_known = temporaries.iter().any(|t| t.buffer == operand);
        is_known.then_some(Link {
            operand,
            temporaries,
        })
    }

    /// The contraction in as many tasks as the first step has, each for the rows that the same task of the code makes,
    /// and what the first step must know then; `None` if these are no rows of it.
    pub(crate) fn bound_to(
        &self,
        values: &[usize],
        [first, code]: [&Step; 2],
        (kernel, last): (&Kernel, &PackedContraction),
    ) -> Option<(PackedContraction, Consumer, Chain)> {
        let Engine::Contraction(producer) = &first.engine else {
            return None;
        };
        let consumer = code.consumer.as_ref().filter(|c| c.rest.is_empty())?;
        let parts: Vec<Range<usize>> = consumer.parts.iter().cloned().collect::<Option<_>>()?;
        let results = first.kernel.buffers()[producer.results().0 as usize];
        let regions = producer.regions()?;
        let mut chain = Chain {
            windows: Vec::new(),
            worker_bytes: 0,
            scratch: 0,
            flops: last.flops(),
        };
        let mut rows = None;
        for temporary in &self.temporaries {
            let Some(turn) = temporary.used.bound_to(values) else {
                continue;
            };
            let used = parts.iter().map(|part| turn.elements(part));
            let mut used: Vec<Range<usize>> = used.collect::<Option<_>>()?;
            if temporary.buffer == self.operand {
                let local = kernel.buffers().iter().position(|b| *b == self.operand)?;
                let local = BufferId(u32::try_from(local).ok()?);
                rows = Some(last.by_rows(local, &used, producer.workers)?);
            }
            if temporary.buffer == results {
                for (used, region) in used.iter_mut().zip(&regions) {
                    *used = used.start.min(region.start)..used.end.max(region.end);
                }
            }
            if temporary.is_own {
                chain.add(temporary.buffer, temporary.size, &used)?;
            }
        }
        let tasks = 0..parts.len();
        let consumer = Consumer {
            parts: tasks.map(|task| Some(task..task + 1)).collect(),
            rest: Vec::new(),
        };
        Some((rows?, consumer, chain))
    }
}

impl Chain {
    /// Adds a temporary of which the tasks use these elements of `size` bytes.
    fn add(&mut self, buffer: BufferId, size: usize, used: &[Range<usize>]) -> Option<()> {
        let most = used.iter().map(Range::len).max()?.checked_mul(size)?;
        let before = used.iter().map(|used| used.start.checked_mul(size));
        self.windows.push(Window {
            buffer,
            offset: self.worker_bytes,
            before: before.collect::<Option<_>>()?,
            bytes: most,
        });
        let room = most
            .checked_add(ALIGNMENT)?
            .checked_next_multiple_of(ALIGNMENT)?;
        self.worker_bytes = self.worker_bytes.checked_add(room)?;
        Some(())
    }

    /// The window of a buffer, if it has one.
    pub(crate) fn window(&self, buffer: BufferId) -> Option<&Window> {
        self.windows.iter().find(|window| window.buffer == buffer)
    }
}
