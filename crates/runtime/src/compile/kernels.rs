//! The kernels of a nest: which of them are contractions, which are code, and the code.

use crate::Error;
use crate::compile::Settings;
use crate::compile::consumer::{Consumer, reach};
use crate::compile::contraction::PackedContraction;
use crate::compile::functions::Function;
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
    /// Its code, if there is some already.
    function: Option<Function>,
}

/// The engine of a kernel before there is code.
enum Choice {
    /// A contraction kernel, and how the kernel after it uses its results if the two are fused.
    Contraction(Box<PackedContraction>, Option<Footprint>),
    /// Code that there is.
    Function(Function),
    /// The code of the kernel, or of another with the same canonical form.
    Code(Nest),
}

/// The kernels of a nest whose extents have symbols, with code for all their values.
#[derive(Clone)]
pub(crate) struct SymbolicKernels {
    /// Each with its code, unless it is a contraction at the example.
    kernels: Vec<(SubNest, Option<Function>)>,
    contracts: bool,
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
    with_engines(candidates, slots, aliases, settings)
}

impl SymbolicKernels {
    /// Compiles the kernels of a nest, as [`compile`] does.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn of(
        nest: &Nest,
        contracts: bool,
        alone: &dyn Fn(&Stage) -> bool,
        settings: &Settings<'_>,
    ) -> Result<SymbolicKernels, Error> {
        let candidates = candidates(nest, contracts, alone);
        let is_code = |c: &&Candidate| c.contraction.is_none();
        let code: Vec<&Candidate> = candidates.iter().filter(is_code).collect();
        let canonical =
            compiler_threads::map(code, |c| (c.kernel.nest.canonical(), &c.kernel.nest));
        let functions = settings.shared.functions.of(&canonical, settings)?;
        let mut functions = functions.into_iter();
        let of = |c: Candidate| {
            let function = match c.contraction {
                Some(_) => None,
                None => functions.next(),
            };
            (c.kernel, function)
        };
        Ok(SymbolicKernels {
            kernels: candidates.into_iter().map(of).collect(),
            contracts,
        })
    }

    /// The kernels where the symbol of number `k` is `values[k]`; `None` if an extent then is none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn bound_to(
        &self,
        values: &[usize],
        slots: &[Slot],
        aliases: &Aliases,
        settings: &Settings<'_>,
    ) -> Result<Option<Native>, Error> {
        let bound = |(kernel, function): &(SubNest, Option<Function>)| {
            let kernel = match kernel.nest.is_symbolic() {
                true => SubNest {
                    nest: kernel.nest.bound_to(values)?,
                    buffers: kernel.buffers.clone(),
                },
                false => kernel.clone(),
            };
            let function = match function {
                Some(function) => Some(function.bound_to(values)?),
                None => None,
            };
            let contraction = match kernel.nest.stages.as_slice() {
                [stage] if self.contracts && function.is_none() => {
                    Contraction::of(&kernel.nest, stage)
                }
                _ => None,
            };
            Some(Candidate {
                kernel,
                contraction,
                function,
            })
        };
        let candidates: Option<Vec<Candidate>> = self.kernels.iter().map(bound).collect();
        let native = candidates.map(|all| with_engines(all, slots, aliases, settings));
        native.transpose()
    }
}

/// The kernels with their engines: what is no contraction and has no code is compiled, equal kernels once.
///
/// # Errors
/// [`Error::Cancelled`], and those of memory.
fn with_engines(
    candidates: Vec<Candidate>,
    slots: &[Slot],
    aliases: &Aliases,
    settings: &Settings<'_>,
) -> Result<Native, Error> {
    let choose = |k: usize| {
        stop::check(settings.stop)?;
        Ok(choose(&candidates, k, slots, aliases, settings))
    };
    // Each by itself: packing one operand may take much longer than all the rest.
    let all = (0..candidates.len()).collect();
    let choices = compiler_threads::map_apart(all, || (), |(), k| choose(k)).into_iter();
    let choices: Vec<Choice> = choices.collect::<Result<_, Error>>()?;
    stop::check(settings.stop)?;
    let mut kernels: Vec<(Nest, &Nest)> = Vec::new();
    let mut engines: Vec<Option<(Engine, Option<Footprint>)>> = Vec::new();
    let code = |function| {
        (
            Engine::Code {
                function,
                pieces: 1,
            },
            None,
        )
    };
    for (choice, candidate) in choices.into_iter().zip(&candidates) {
        engines.push(match choice {
            Choice::Contraction(contraction, reach) => {
                Some((Engine::Contraction(contraction), reach))
            }
            Choice::Function(function) => Some(code(function)),
            Choice::Code(canonical) => {
                kernels.push((canonical, &candidate.kernel.nest));
                None
            }
        });
    }
    let functions = settings.shared.functions.of(&kernels, settings)?;
    let mut functions = functions.into_iter();
    let missing = || Error::internal("a kernel has no code");
    let engine = |engine| match engine {
        Some(engine) => Ok(engine),
        None => functions.next().map(code).ok_or_else(missing),
    };
    let engines = engines
        .into_iter()
        .map(engine)
        .collect::<Result<_, Error>>()?;
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
            function: None,
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
        function,
    } = &candidates[k];
    let code = || match function {
        Some(function) => Choice::Function(function.clone()),
        None => Choice::Code(kernel.nest.canonical()),
    };
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
