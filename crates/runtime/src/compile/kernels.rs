//! The kernels of a nest: which of them are contractions, which are code, and the code.

use crate::Error;
use crate::compile::Settings;
use crate::compile::consumer::{Consumer, reach};
use crate::compile::contraction::PackedContraction;
use crate::compile::parallelism::{cost, pieces, tasks, workers};
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step, Turns};
use crate::stop;
use vinelift_codegen::KernelText;
use vinelift_nest::{
    Aliases, Contraction, Footprint, Nest, Stage, SubNest, compiler_threads, kernel_ranges,
};

/// The kernels of a plan.
pub(crate) struct Native {
    pub(crate) steps: Vec<Step>,
    /// The cost of the steps that threads share: nanoseconds on one thread.
    pub(crate) shared_cost: u64,
}

/// A kernel before it has an engine.
struct Candidate {
    kernel: SubNest,
    contraction: Option<Contraction>,
}

/// The engine of a kernel before there is code.
enum Choice {
    /// A contraction kernel, and how the kernel after it uses its results if the two are fused.
    Contraction(Box<PackedContraction>, Option<Footprint>),
    /// The code of the kernel, or of another with the same canonical form.
    Code(Nest),
}

/// Compiles the kernels of a nest, equal ones once. Stages that are `alone` are kernels of their own, and so are
/// contractions, if `contracts`; `aliases` are buffers that may be the same memory.
///
/// # Errors
/// [`Error::Cancelled`], and those of memory.
pub(crate) fn compile(
    nest: &Nest,
    slots: &[Slot],
    contracts: bool,
    alone: &dyn Fn(&Stage) -> bool,
    aliases: &Aliases,
    settings: &Settings<'_>,
) -> Result<Native, Error> {
    let candidates = candidates(nest, contracts, alone);
    let choose = |k: usize| {
        stop::check(settings.stop)?;
        Ok(choose(&candidates, k, slots, aliases, settings))
    };
    // Each by itself: packing one operand may take much longer than all the rest.
    let all = (0..candidates.len()).collect();
    let choices = compiler_threads::map_apart(all, || (), |(), k| choose(k)).into_iter();
    let choices: Vec<Choice> = choices.collect::<Result<_, Error>>()?;
    stop::check(settings.stop)?;
    let mut contractions = Vec::new();
    let mut kernels: Vec<(Nest, &Nest)> = Vec::new();
    for (choice, candidate) in choices.into_iter().zip(&candidates) {
        contractions.push(match choice {
            Choice::Contraction(contraction, reach) => Some((contraction, reach)),
            Choice::Code(canonical) => {
                kernels.push((canonical, &candidate.kernel.nest));
                None
            }
        });
    }
    let mut functions = settings
        .shared
        .functions
        .of(&kernels, settings)?
        .into_iter();
    let mut engines: Vec<(Engine, Option<Footprint>)> = Vec::with_capacity(candidates.len());
    for contraction in contractions {
        engines.push(match contraction {
            Some((contraction, reach)) => (Engine::Contraction(contraction), reach),
            None => {
                let missing = || Error::internal("a kernel has no code");
                let (function, pieces) = (functions.next().ok_or_else(missing)?, 1);
                (Engine::Code { function, pieces }, None)
            }
        });
    }
    let (steps, reaches) = steps(candidates, engines, settings.threads);
    Ok(Native::new(steps, reaches))
}

/// The kernels of a nest, with those that are contractions.
fn candidates(nest: &Nest, contracts: bool, alone: &dyn Fn(&Stage) -> bool) -> Vec<Candidate> {
    let contraction = |nest: &Nest, stage: &Stage| match contracts {
        true => Contraction::of(nest, stage),
        false => None,
    };
    let extract = |stages| {
        let kernel = nest.extract(stages);
        let contraction = match kernel.nest.stages.as_slice() {
            [stage] => contraction(&kernel.nest, stage),
            _ => None,
        };
        Candidate {
            kernel,
            contraction,
        }
    };
    let kernels = kernel_ranges(nest, |stage| {
        alone(stage) || contraction(nest, stage).is_some()
    });
    compiler_threads::map(kernels, extract)
}

/// The engine of candidate `k`.
fn choose(
    candidates: &[Candidate],
    k: usize,
    slots: &[Slot],
    aliases: &Aliases,
    settings: &Settings<'_>,
) -> Choice {
    let Candidate {
        kernel,
        contraction,
    } = &candidates[k];
    let code = || Choice::Code(kernel.nest.canonical());
    let Some(contraction) = contraction else {
        return code();
    };
    let next = candidates.get(k + 1).filter(|c| c.contraction.is_none());
    let reach = next.and_then(|next| reach(kernel, &next.kernel, aliases));
    let consumer = next.filter(|_| reach.is_some());
    let consumer = consumer.map(|next| cost(&next.kernel.nest));
    match PackedContraction::new(contraction, kernel, slots, settings, consumer) {
        Some(packed) => Choice::Contraction(Box::new(packed), reach),
        None => code(),
    }
}

/// The steps that call the engines, and for each how it uses the results of the one before it if the two are fused.
fn steps(
    candidates: Vec<Candidate>,
    engines: Vec<(Engine, Option<Footprint>)>,
    threads: usize,
) -> (Vec<Step>, Vec<Option<Footprint>>) {
    let mut steps: Vec<Step> = Vec::with_capacity(candidates.len());
    let mut reaches: Vec<Option<Footprint>> = vec![None];
    for (candidate, (mut engine, reach)) in candidates.into_iter().zip(engines) {
        let kernel = candidate.kernel;
        let turns = kernel.nest.stages.first().and_then(|stage| {
            let (group, count) = (stage.group?, stage.turns());
            Some(Turns { group, count })
        });
        let (cost, workers, tasks) = match &mut engine {
            Engine::Contraction(contraction) => (contraction.cost, contraction.workers, 0),
            Engine::Code {
                function,
                pieces: count,
            } => {
                *count = pieces(&kernel.nest, function.scratch_bytes());
                let cost = cost(&kernel.nest);
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
        let before = steps.last();
        let arguments = before.map_or(0, |s| s.arguments + s.kernel.buffers.len());
        steps.push(Step {
            kernel,
            engine,
            turns,
            workers,
            tasks,
            cost: cost.saturating_mul(turns.map_or(1, |turns| turns.count as u64)),
            arguments,
            consumer: None,
            scratch: 0,
        });
        reaches.push(reach);
    }
    (steps, reaches)
}

impl Native {
    fn new(mut steps: Vec<Step>, reaches: Vec<Option<Footprint>>) -> Native {
        for (number, reach) in reaches.into_iter().enumerate().skip(1) {
            let (Some(reach), Some(step)) = (reach, steps.get(number)) else {
                continue;
            };
            if let (Engine::Contraction(producer), Engine::Code { function, .. }) =
                (&steps[number - 1].engine, &step.engine)
            {
                steps[number].consumer = Consumer::new(producer, reach, function.chunks());
            }
        }
        let shared = steps.iter().filter(|step| step.workers > 1);
        let shared_cost = shared.fold(0, |sum: u64, step| sum.saturating_add(step.cost));
        Native { steps, shared_cost }
    }

    /// The text of the code of a step, if it was asked for.
    pub(crate) fn text<'s>(&self, step: &'s Step) -> Option<&'s KernelText> {
        match &step.engine {
            Engine::Code { function, .. } => function.text(),
            Engine::Contraction(_) => None,
        }
    }

    /// The steps that run in turns with the one at `start`: `start..turns(start)`.
    pub(crate) fn turns(&self, start: usize) -> usize {
        let turns = self.steps[start].turns;
        let rest = self.steps[start + 1..].iter();
        let more = rest.take_while(|s| turns.is_some() && s.turns == turns);
        start + 1 + more.count()
    }
}
