//! The steps of a plan: kernels that are native code, and contractions.

use crate::Error;
use crate::arena::{Lifetime, place};
use crate::execute::go_on;
use crate::follow::Follow;
use crate::plan::Slot;
use crate::product::Product;
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::{Code, Compiler, KernelText, Options};
use vinelift_nest::{
    Aliases, BufferId, Contraction, Footprint, Nest, Role, Stage, SubNest, compiler_threads,
    kernel_ranges,
};

/// The kernels of a plan.
pub(crate) struct Native {
    pub(crate) code: Code,
    pub(crate) steps: Vec<Step>,
    /// About how long the steps that threads share take one of them, in nanoseconds.
    pub(crate) shared_cost: u64,
}

/// One call of one kernel.
pub(crate) struct Step {
    /// The stages, for messages and texts.
    pub(crate) kernel: SubNest,
    pub(crate) work: Work,
    /// How often it runs, in turns with its neighbours of the same group.
    pub(crate) turns: Option<Turns>,
    /// Among how many threads it is shared.
    pub(crate) workers: usize,
    /// Into how many parts it is cut then, if it is code.
    pub(crate) tasks: usize,
    /// About how long it takes one thread, in nanoseconds.
    pub(crate) cost: u64,
    /// The number of buffers that the steps before it are called with.
    pub(crate) arguments: usize,
    /// How it follows the step before it, if it does.
    pub(crate) follow: Option<Follow>,
    /// Where its scratch memory begins in the arena.
    pub(crate) scratch: usize,
}

/// That steps take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    group: u32,
    pub(crate) count: usize,
}

/// What a step calls.
pub(crate) enum Work {
    /// A function of the code.
    Code {
        /// Which one.
        function: usize,
        /// Into how many parts it is cut even on one thread, so that what one stage leaves in the cache is still
        /// there for the next.
        pieces: usize,
    },
    /// A contraction kernel.
    Product(Box<Product>),
}

/// What a step will call.
enum Ready {
    /// A contraction kernel, and how the step after it uses what it computes.
    Product(Box<Product>, Option<Footprint>),
    /// The code of the kernel, or of another with the same canonical form.
    Code(Nest),
}

/// The nanoseconds that are worth the handing over of a share to a thread that looks for one.
const WORTH_A_SHARE: u64 = 4_000;

/// How many threads work of so many nanoseconds is worth, of those there are.
pub(crate) fn worth(cost: u64, threads: usize) -> usize {
    let shares = usize::try_from(cost / WORTH_A_SHARE).unwrap_or(usize::MAX);
    shares.clamp(1, threads)
}

/// The nanoseconds for each thread from which on it is worth to cut work into more tasks than there are threads,
/// so that one which is late leaves some of its share to others.
const WORTH_MORE_TASKS: u64 = 100_000;
/// How many tasks there are for each thread then.
const MORE_TASKS: usize = 4;

/// Into how many parts a kernel is best cut that so many threads share, and that takes one of them so long.
fn tasks(code: &Code, function: usize, cost: u64, workers: usize) -> usize {
    let parts = code.parts(function);
    // What a task packs is packed for it alone, and short runs of many rows take longer than they save.
    let is_even = code.scratch_bytes(function) == 0 && parts.dim.is_none();
    let is_long = cost / workers as u64 >= WORTH_MORE_TASKS;
    let each = if is_even && is_long { MORE_TASKS } else { 1 };
    parts.count(each * workers)
}

/// About how long a nest takes one thread.
fn nanoseconds(nest: &Nest) -> u64 {
    nest.work() as u64 / 10
}

/// What a part of a kernel may use of a cache.
const PIECE_BYTES: usize = 128 << 10;

/// The nanoseconds that a part of a kernel may take, between two looks whether the run is to end; of one that packs,
/// which each part does anew.
const PIECE_NANOSECONDS: u64 = 2_000_000;
const PACKING_PIECE_NANOSECONDS: u64 = 30_000_000;

/// Into how many parts a kernel is cut at least, as far as it can be. `scratch` are the bytes that it packs.
fn pieces(nest: &Nest, scratch: usize) -> usize {
    let bytes = nest.buffers.iter().map(|b| b.byte_len().unwrap_or(0));
    let for_cache = match nest.stages.len() {
        0 | 1 => 1,
        _ => bytes.fold(0, usize::saturating_add) / PIECE_BYTES + 1,
    };
    let most = match scratch {
        0 => PIECE_NANOSECONDS,
        _ => PACKING_PIECE_NANOSECONDS,
    };
    let for_time = usize::try_from(nanoseconds(nest) / most).unwrap_or(usize::MAX - 1) + 1;
    for_cache.max(for_time)
}

/// How the kernels of a nest are made.
pub(crate) struct Making<'a> {
    pub(crate) compiler: &'a Compiler,
    pub(crate) options: &'a Options,
    /// How many threads may share a kernel; with `None` there are no kernels for contractions.
    pub(crate) threads: Option<usize>,
    /// Has it end soon with an error.
    pub(crate) stop: &'a AtomicBool,
}

/// Compiles the kernels of a nest, equal ones once. Stages that are `apart` are kernels of their own; `aliases` are
/// buffers that may be the same memory.
pub(crate) fn compile(
    nest: &Nest,
    slots: &[Slot],
    apart: &dyn Fn(&Stage) -> bool,
    aliases: &Aliases,
    making: &Making<'_>,
) -> Result<Native, Error> {
    let &Making {
        compiler,
        options,
        threads,
        stop,
    } = making;
    let contraction = |nest: &Nest, stage: &Stage| match threads {
        Some(_) => Contraction::of(nest, stage),
        None => None,
    };
    let extract = |stages| {
        let kernel = nest.extract(stages);
        let only = match kernel.nest.stages.as_slice() {
            [stage] => contraction(&kernel.nest, stage),
            _ => None,
        };
        (kernel, only)
    };
    let kernels = kernel_ranges(nest, |stage| {
        apart(stage) || contraction(nest, stage).is_some()
    });
    let kernels: Vec<(SubNest, Option<Contraction>)> = compiler_threads::map(kernels, extract);
    let ready = |k: usize| {
        go_on(stop)?;
        let (kernel, only) = &kernels[k];
        // How the next kernel uses what this one computes, if it is a contraction.
        let mut reach = None;
        let product = only.as_ref().and_then(|c| {
            let next = kernels.get(k + 1).filter(|(_, only)| only.is_none());
            reach = next.and_then(|(next, _)| Follow::reach(kernel, next, aliases));
            let next = next.filter(|_| reach.is_some());
            let follower = next.map(|(next, _)| nanoseconds(&next.nest));
            Product::new(c, kernel, slots, threads.unwrap_or(1), follower)
        });
        Ok(match product {
            Some(product) => Ready::Product(Box::new(product), reach),
            None => Ready::Code(kernel.nest.canonical()),
        })
    };
    // Each by itself: to pack an operand may take much longer than all the rest.
    let ready = compiler_threads::map_apart((0..kernels.len()).collect(), || (), |(), k| ready(k));
    let ready: Vec<Ready> = ready.into_iter().collect::<Result<_, Error>>()?;
    let mut functions: FxHashMap<Nest, usize> = FxHashMap::default();
    let mut unique: Vec<&Nest> = Vec::new();
    let mut works: Vec<(Work, Option<Footprint>)> = Vec::with_capacity(kernels.len());
    for (ready, (kernel, _)) in ready.into_iter().zip(&kernels) {
        works.push(match ready {
            Ready::Product(product, reach) => (Work::Product(product), reach),
            Ready::Code(canonical) => {
                let next = unique.len();
                let function = *functions.entry(canonical).or_insert(next);
                if function == next {
                    unique.push(&kernel.nest);
                }
                (
                    Work::Code {
                        function,
                        pieces: 1,
                    },
                    None,
                )
            }
        });
    }
    go_on(stop)?;
    let code = compiler.compile_until(&unique, options, stop)?;
    let mut steps: Vec<Step> = Vec::with_capacity(kernels.len());
    let mut reaches: Vec<Option<Footprint>> = vec![None];
    for ((kernel, _), (mut work, reach)) in kernels.into_iter().zip(works) {
        if let Work::Code {
            function,
            pieces: count,
        } = &mut work
        {
            *count = pieces(&kernel.nest, code.scratch_bytes(*function));
        }
        let first = kernel.nest.stages.first();
        let turns = first.and_then(|stage| {
            Some(Turns {
                group: stage.group?,
                count: stage.turns(),
            })
        });
        let (cost, workers, tasks) = match (&work, turns) {
            (Work::Product(product), _) => (product.cost, product.workers, 0),
            (Work::Code { .. }, Some(_)) => (nanoseconds(&kernel.nest), 1, 1),
            (Work::Code { function, .. }, None) => {
                let cost = nanoseconds(&kernel.nest);
                let workers = worth(cost, threads.unwrap_or(1));
                (cost, workers, tasks(&code, *function, cost, workers))
            }
        };
        let turned = turns.map_or(1, |turns| turns.count as u64);
        let arguments = steps
            .last()
            .map_or(0, |s| s.arguments + s.kernel.buffers.len());
        steps.push(Step {
            kernel,
            work,
            turns,
            workers,
            tasks,
            cost: cost.saturating_mul(turned),
            arguments,
            follow: None,
            scratch: 0,
        });
        reaches.push(reach);
    }
    // Nothing follows the last step.
    reaches.truncate(steps.len());
    for (next, reach) in reaches.into_iter().enumerate() {
        let Some(reach) = reach else { continue };
        if let (Work::Product(product), Work::Code { function, .. }) =
            (&steps[next - 1].work, &steps[next].work)
        {
            steps[next].follow = Follow::new(product, reach, code.parts(*function));
        }
    }
    let shared = steps.iter().filter(|step| step.workers > 1);
    let shared_cost = shared.fold(0, |sum: u64, step| sum.saturating_add(step.cost));
    Ok(Native {
        code,
        steps,
        shared_cost,
    })
}

impl Step {
    /// The name of the tensor that it writes last.
    pub(crate) fn name(&self) -> &str {
        let nest = &self.kernel.nest;
        nest.stages.last().map_or("", |s| &nest.buf(s.target).name)
    }

    /// The names of its layers.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &str> {
        self.kernel.nest.layers.iter().map(|l| l.name.as_str())
    }

    /// How it runs, for texts.
    pub(crate) fn how(&self) -> String {
        match (&self.work, &self.follow) {
            (Work::Product(product), _) => format!("contraction, {}", product.name()),
            (Work::Code { .. }, None) => "code".to_owned(),
            (Work::Code { .. }, Some(_)) => {
                "code, run with the tasks of the contraction before it".to_owned()
            }
        }
    }

    /// Its floating-point operations, if it is a contraction.
    pub(crate) fn flops(&self) -> u64 {
        match &self.work {
            Work::Product(product) => product.flops(),
            Work::Code { .. } => 0,
        }
    }

    /// The bytes of all its buffers.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self
            .kernel
            .nest
            .buffers
            .iter()
            .map(|b| b.byte_len().unwrap_or(0));
        bytes.fold(0, |sum, n| sum.saturating_add(n as u64))
    }

    /// The buffers of the whole nest that it needs when it runs.
    fn needs(&self) -> Vec<BufferId> {
        match &self.work {
            Work::Code { .. } => self.kernel.buffers.clone(),
            Work::Product(product) => product.needs().map(|b| self.kernel.buffers[b]).collect(),
        }
    }
}

impl Native {
    /// The text of the code of a step, if it was asked for.
    pub(crate) fn text(&self, step: &Step) -> Option<&KernelText> {
        match step.work {
            Work::Code { function, .. } => self.code.text(function),
            Work::Product(_) => None,
        }
    }

    /// Bytes of constants that it holds beside those of the model.
    pub(crate) fn packed_bytes(&self) -> usize {
        let products = self.steps.iter().map(|step| match &step.work {
            Work::Product(product) => product.packed_bytes(),
            Work::Code { .. } => 0,
        });
        products.sum()
    }

    /// The end of the run of steps that take turns with the one at `start`, or just after that one.
    pub(crate) fn turns(&self, start: usize) -> usize {
        let turns = self.steps[start].turns;
        let rest = self.steps[start + 1..].iter();
        let more = rest.take_while(|s| turns.is_some() && s.turns == turns);
        start + 1 + more.count()
    }

    /// Bytes of scratch memory that a step needs in a run; of code, so many for each thread that runs it.
    fn scratch_bytes(&self, number: usize) -> usize {
        let step = &self.steps[number];
        match &step.work {
            Work::Product(product) => product.scratch_bytes(),
            Work::Code { function, .. } => {
                let leads = step.follow.as_ref().map(|_| self.steps[number - 1].workers);
                let workers = step.workers.max(leads.unwrap_or(0));
                self.code.scratch_bytes(*function).saturating_mul(workers)
            }
        }
    }

    /// Gives every temporary and all scratch memory a place in the arena, whose size it returns, and
    /// lets go of constants that no step reads.
    pub(crate) fn place(&mut self, nest: &Nest, slots: &mut [Slot]) -> Result<usize, Error> {
        let mut lifetimes: FxHashMap<BufferId, Lifetime> = FxHashMap::default();
        let mut needed = vec![false; slots.len()];
        let mut last = Vec::with_capacity(self.steps.len());
        let mut first = Vec::with_capacity(self.steps.len());
        while last.len() < self.steps.len() {
            let (start, end) = (last.len(), self.turns(last.len()));
            first.resize(end, start);
            last.resize(end, end - 1);
        }
        // What steps use that run together lives through both.
        for (number, step) in self.steps.iter().enumerate() {
            if step.follow.is_some() {
                first[number] = first[number - 1];
                last[number - 1] = last[number];
            }
        }
        for (number, step) in self.steps.iter().enumerate() {
            // What turns use lives through all of them.
            let (first, last) = (first[number], last[number]);
            for buffer in step.needs() {
                needed[buffer.0 as usize] = true;
                let b = nest.buf(buffer);
                if b.role == Role::Temporary {
                    let bytes = b.byte_len().unwrap_or(usize::MAX);
                    lifetimes
                        .entry(buffer)
                        .or_insert(Lifetime { bytes, first, last })
                        .last = last;
                }
            }
        }
        for (slot, needed) in slots.iter_mut().zip(needed) {
            if matches!(slot, Slot::Constant(_)) && !needed {
                *slot = Slot::Absent;
            }
        }
        let mut buffers: Vec<(BufferId, Lifetime)> = lifetimes.into_iter().collect();
        buffers.sort_unstable_by_key(|(b, _)| *b);
        let mut all: Vec<Lifetime> = buffers.iter().map(|(_, l)| *l).collect();
        all.extend((0..self.steps.len()).map(|number| Lifetime {
            bytes: self.scratch_bytes(number),
            first: first[number],
            last: last[number],
        }));
        let too_large = || {
            let text = "the model's temporaries do not fit into memory at these shapes";
            Error::Input(text.to_owned())
        };
        let (offsets, total) = place(&all).ok_or_else(too_large)?;
        let (own, scratch) = offsets.split_at(buffers.len());
        for ((buffer, _), offset) in buffers.iter().zip(own) {
            slots[buffer.0 as usize] = Slot::Arena(*offset);
        }
        for (step, offset) in self.steps.iter_mut().zip(scratch) {
            step.scratch = *offset;
        }
        Ok(total)
    }
}
