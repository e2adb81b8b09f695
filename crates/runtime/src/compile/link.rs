//! How a contraction may be chained to the code before it, and that to the contraction before it ([`Chain`]): what is known
//! of that for all shapes, and the chain at those of a plan.

use crate::compile::chain::{Chain, MOST_BUFFERS, window_element};
use crate::compile::consumer::Consumer;
use crate::compile::contraction::{self, PackedContraction};
use crate::compile::kernel::Kernel;
use crate::compile::step::{Engine, Step};
use std::ops::{Range, RangeInclusive};
use vinelift_nest::{Aliases, BufferId, Effects, Footprint, Nest, SubNest};

/// A contraction and the two kernels before it, at all shapes, if they may be a chain.
pub(crate) struct Link {
    /// The buffer of the whole nest that the code writes and the contraction takes rows of.
    pub(crate) operand: BufferId,
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
    /// The stages of the chain from the first to the last that use it: that of the first contraction has the number 0.
    live: RangeInclusive<usize>,
}

impl Link {
    /// Of three kernels of `nest` that follow each other; `users` says how many kernels use each of its buffers, and
    /// `footprint` how the chunks of the code use one of the code's buffers.
    pub(crate) fn of(
        nest: &Nest,
        [first, code, last]: [&SubNest; 3],
        aliases: &Aliases,
        users: &[u32],
        mut footprint: impl FnMut(BufferId) -> Option<Footprint>,
    ) -> Option<Link> {
        let operands = contraction::operands(last)?.into_iter();
        let effects = |kernel| Effects::of_kernel(kernel, aliases);
        let (before, after) = (effects(code), effects(last));
        let mut written = operands.filter(|operand| before.writes(*operand));
        let operand = written.next().filter(|_| written.next().is_none())?;
        let before = before.and(&effects(first));
        if !after.may_overlap(&before, operand, aliases) || code.buffers.len() > MOST_BUFFERS {
            return None;
        }
        let chained = [first, code, last];
        let stages = chained.iter().flat_map(|kernel| {
            let stages = kernel.nest.stages.iter();
            stages.map(move |stage| (*kernel, Effects::of_stage(stage)))
        });
        let stages: Vec<(&SubNest, Effects)> = stages.collect();
        let temporaries = (0..).map(BufferId).zip(&code.buffers);
        let temporaries = temporaries.filter_map(|(local, &buffer)| {
            let of_chain = chained
                .iter()
                .filter(|kernel| kernel.buffers.contains(&buffer));
            let is_own = users[buffer.0 as usize] == of_chain.count() as u32;
            let uses = |(kernel, effects): &(&SubNest, Effects)| {
                kernel
                    .local(buffer)
                    .is_some_and(|local| effects.uses(local))
            };
            let first = stages.iter().position(uses)?;
            Some(Temporary {
                buffer,
                size: window_element(nest.buf(buffer))?,
                used: footprint(local)?,
                is_own,
                live: first..=stages.iter().rposition(uses)?,
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
            flops: last.flops(),
            ..Chain::default()
        };
        let mut rows = None;
        for temporary in &self.temporaries {
            let Some(turn) = temporary.used.bound_to(values) else {
                continue;
            };
            let used = parts.iter().map(|part| turn.elements(part));
            let mut used: Vec<Range<usize>> = used.collect::<Option<_>>()?;
            if temporary.buffer == self.operand {
                rows = Some(last.by_rows(kernel.local(self.operand)?, &used, producer.workers)?);
            }
            if temporary.buffer == results {
                for (used, region) in used.iter_mut().zip(&regions) {
                    *used = used.start.min(region.start)..used.end.max(region.end);
                }
            }
            let may_be_window = temporary.buffer != results || producer.writes_windows();
            if temporary.is_own && may_be_window {
                chain.add(
                    temporary.buffer,
                    temporary.size,
                    &used,
                    temporary.live.clone(),
                )?;
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
