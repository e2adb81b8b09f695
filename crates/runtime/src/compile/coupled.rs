//! Kernels that are run with each other's tasks, and the steps that are made of them.

use crate::compile::chain::{ALL_STAGES, OwnResults};
use crate::compile::consumer::Consumer;
use crate::compile::link::Link;
use crate::compile::made_rows::MadeRows;
use crate::compile::parallelism::{pieces, tasks, workers};
use crate::compile::step::{Engine, Step, Turns};
use crate::compile::symbolic_kernel::{Numbers, SymbolicKernel};
use std::ops::Range;
use std::sync::Arc;
use vinelift_nest::BoundFootprint;
use vinelift_tensor::SymbolSet;

/// Consecutive kernels that may be fused or chained with each other. Their steps depend on nothing but the values of their symbols.
pub(super) struct Coupled {
    pub(super) kernels: Range<usize>,
    symbols: SymbolSet,
}

impl Coupled {
    /// All kernels of a nest, in order.
    pub(super) fn of(all: &[SymbolicKernel]) -> Vec<Coupled> {
        let mut coupled: Vec<Coupled> = Vec::new();
        for (k, symbolic) in all.iter().enumerate() {
            let symbols = SymbolSet::of(symbolic.kernel.stages.nest.symbolic_extents());
            let is_joined = symbolic.coupling.reach.is_some() || symbolic.coupling.link.is_some();
            let made_rows = symbolic.coupling.made_rows.as_ref();
            let first = k - made_rows.map_or(usize::from(is_joined), |rows| rows.distance);
            let mut new = Coupled {
                kernels: k..k + 1,
                symbols,
            };
            while let Some(before) = coupled.pop_if(|before| before.kernels.end > first) {
                new.kernels.start = before.kernels.start;
                new.symbols.extend(&before.symbols);
            }
            coupled.push(new);
        }
        coupled
    }

    /// Whether their steps may change with these symbols.
    pub(super) fn depend_on(&self, changes: &SymbolSet) -> bool {
        self.symbols.meets(changes)
    }

    /// The steps that call the engines of its kernels.
    pub(super) fn steps<'c>(
        kernels: impl Iterator<Item = (&'c SymbolicKernel, Engine)>,
        numbers: &Numbers<'_>,
        threads: usize,
    ) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (symbolic, engine) in kernels {
            let reach = symbolic.coupling.reach.as_ref();
            let reach = reach.and_then(|reach| reach.bound_to(numbers.values));
            let before = steps.last().zip(reach);
            let consumer =
                before.and_then(|(before, reach)| consumer(&before.engine, &engine, reach));
            let mut step = step(symbolic, engine, numbers, threads);
            step.consumer = consumer;
            if let Some(rows) = &symbolic.coupling.made_rows {
                make_rows_in(&mut step, &mut steps, rows, threads);
            }
            if let (Some(results), Some(before)) = (symbolic.coupling.own_results, steps.last_mut())
            {
                add_own_results(before, &step, results);
            }
            if let Some(link) = &symbolic.coupling.link {
                link_to(&mut steps, link, &mut step);
            }
            steps.push(step);
        }
        steps
    }
}

/// Chains a step to the last two of `steps`, if it can be. A contraction that is chained itself begins no chain: its tasks are
/// those of another. Whether it is, only the numbers say.
fn link_to(steps: &mut [Step], link: &Link, step: &mut Step) {
    let (Engine::Contraction(contraction), [.., first, code]) = (&step.engine, steps) else {
        return;
    };
    if first.consumer.is_some() || first.producer.is_some() {
        return;
    }
    let last = (&*step.kernel, &**contraction);
    let linked = link.bound_to(&step.values, [first, code], last);
    if let Some((contraction, consumer, chain)) = linked {
        step.workers = contraction.workers;
        step.engine = Engine::Contraction(Arc::new(contraction));
        step.consumer = Some(consumer);
        first.chain = Some(chain);
    }
}

/// Has the tasks of the contraction `step` make its `rows`, if that pays: the code among `steps` runs then.
fn make_rows_in(step: &mut Step, steps: &mut [Step], rows: &MadeRows, threads: usize) {
    let before = steps.len().checked_sub(rows.distance);
    let (Engine::Contraction(contraction), Some(code)) = (
        &step.engine,
        before.and_then(|before| steps.get_mut(before)),
    ) else {
        return;
    };
    let last = (&*step.kernel, &**contraction);
    if let Some((contraction, producer, chain)) = rows.bound_to(&step.values, code, last, threads) {
        code.makes_rows = Some(rows.distance);
        (step.workers, step.cost) = (contraction.workers, contraction.cost);
        step.engine = Engine::Contraction(Arc::new(contraction));
        step.producer = Some(producer);
        step.chain = Some(chain);
    }
}

/// Gives a window to the results of the contraction `first`, which only `code` uses, if its tasks run all of that code.
fn add_own_results(first: &mut Step, code: &Step, results: OwnResults) -> Option<()> {
    let Engine::Contraction(contraction) = &first.engine else {
        return None;
    };
    let runs_all = code.consumer.as_ref()?.rest.is_empty();
    // A contraction that is chained itself begins no chain.
    if !runs_all || !contraction.writes_windows() || first.consumer.is_some() {
        return None;
    }
    let regions = contraction.regions()?;
    let chain = first.chain.get_or_insert_default();
    chain.add(results.buffer, results.size, &regions, ALL_STAGES)
}

/// How code runs with the tasks of a contraction, if it does.
fn consumer(before: &Engine, engine: &Engine, reach: BoundFootprint) -> Option<Consumer> {
    match (before, engine) {
        (Engine::Contraction(producer), Engine::Code { function, .. }) => {
            Consumer::new(producer, reach, function.chunks())
        }
        _ => None,
    }
}

/// The step that calls an engine.
fn step(
    symbolic: &SymbolicKernel,
    mut engine: Engine,
    numbers: &Numbers<'_>,
    threads: usize,
) -> Step {
    let kernel = &symbolic.kernel;
    let turns = kernel.stages.nest.stages.first().and_then(|stage| {
        let extent = stage.domain.first()?.extent;
        let (group, count) = (stage.group?, extent.at(numbers.values)?);
        Some(Turns { group, count })
    });
    let (cost, workers, tasks) = match &mut engine {
        Engine::Contraction(contraction) => (contraction.cost, contraction.workers, 0),
        Engine::Code {
            function,
            pieces: count,
        } => {
            let cost = kernel.cost(numbers.values);
            let lengths = kernel
                .buffers()
                .iter()
                .map(|b| numbers.lengths[b.0 as usize]);
            let bytes = lengths.fold(0, |sum: usize, n| sum.saturating_add(n.unwrap_or(0)));
            let stages = kernel.stages.nest.stages.len();
            *count = pieces(stages, bytes, cost, function.scratch_bytes());
            let workers = match turns {
                Some(_) => 1,
                None => workers(cost, threads),
            };
            let tasks = match turns {
                Some(_) => 1,
                None => tasks(function, cost, workers),
            };
            (cost, workers, tasks)
        }
    };
    Step {
        kernel: kernel.clone(),
        values: numbers.values.clone(),
        engine,
        turns,
        workers,
        tasks,
        cost: cost.saturating_mul(turns.map_or(1, |turns| turns.count as u64)),
        arguments: symbolic.arguments,
        consumer: None,
        chain: None,
        producer: None,
        makes_rows: None,
    }
}
