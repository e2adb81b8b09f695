//! The kernels of a nest: which of them are contractions, which are code, and the code.

use crate::Error;
use crate::compile::Settings;
use crate::compile::consumer::{Consumer, reach};
use crate::compile::contraction::{Consumers, Neighbours, PackedContraction};
use crate::compile::forms::Forms;
use crate::compile::functions::Function;
use crate::compile::kernel::Kernel;
use crate::compile::link::Link;
use crate::compile::parallelism::{pieces, tasks, workers};
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step, Turns};
use crate::stop;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vinelift_codegen::KernelText;
use vinelift_nest::{
    Aliases, BoundFootprint, Contraction, Footprint, Nest, Stage, SubNest, compiler_threads,
    kernel_ranges,
};

/// The kernels of a plan.
pub(crate) struct Native {
    pub(crate) steps: Vec<Step>,
    /// The cost of the steps that threads share: nanoseconds on one thread.
    pub(crate) shared_cost: u64,
}

/// The kernels of a nest, for all values of its symbols.
pub(crate) struct Kernels {
    all: Vec<Candidate>,
    /// Whether contractions have kernels of their own.
    contracts: bool,
    /// Whether the operands of its contractions have been packed once.
    is_packed: OnceLock<()>,
}

/// A kernel before its symbols have numbers.
struct Candidate {
    kernel: Arc<Kernel>,
    /// Its code, unless it is a contraction at the example.
    function: Option<Function>,
    /// How it uses the results of the kernel before it, if that is a contraction with which it may be fused.
    reach: Option<Footprint>,
    /// How it may be chained to the kernel before it, if that may be fused with the contraction before it.
    link: Option<Link>,
    /// The engine of a contraction, if that is the same for all numbers.
    contraction: OnceLock<Option<Arc<PackedContraction>>>,
    /// The number of the first kernel which, if both are contractions without constant operands, has the same engine: it may
    /// be this one.
    first_alike: usize,
}

/// Where symbols have numbers: these, and the bytes of each buffer of the nest.
pub(crate) struct Numbers<'a> {
    pub(crate) values: &'a Arc<[usize]>,
    pub(crate) lengths: &'a [Option<usize>],
}

impl Kernels {
    /// The kernels of a nest, with code; equal ones are compiled once. Stages that are `alone` are kernels of their own,
    /// and so are contractions, if `contracts`; `aliases` are buffers that may be the same memory.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn of(
        nest: &Nest,
        contracts: bool,
        alone: &dyn Fn(&Stage) -> bool,
        aliases: &Aliases,
        settings: &Settings<'_>,
    ) -> Result<Kernels, Error> {
        let is_contraction =
            |nest: &Nest, stage: &Stage| contracts && Contraction::of(nest, stage).is_some();
        let extract = |stages| {
            let stages = nest.extract(stages);
            let is_contraction = match stages.nest.stages.as_slice() {
                [stage] => is_contraction(&stages.nest, stage),
                _ => false,
            };
            (Kernel::new(stages), is_contraction)
        };
        let ranges = kernel_ranges(nest, |stage| alone(stage) || is_contraction(nest, stage));
        let kernels = compiler_threads::map(ranges, extract);
        stop::check(settings.stop)?;
        let nests = kernels.iter().map(|(kernel, _)| &kernel.stages.nest);
        let canonical = compiler_threads::map(nests.clone().collect(), Nest::canonical);
        let code = kernels.iter().zip(canonical.iter().zip(nests));
        let code = code.filter(|((_, is_contraction), _)| !is_contraction);
        let code: Vec<(&Nest, &Nest)> = code.map(|(_, nests)| nests).collect();
        let functions = settings.shared.functions.of(&code, settings)?;
        let mut functions = functions.into_iter();
        let mut users = vec![0; nest.buffers.len()];
        for buffer in kernels.iter().flat_map(|(kernel, _)| &kernel.used) {
            users[buffer.0 as usize] += 1;
        }
        let mut forms = Forms::of(&canonical);
        let mut all: Vec<Candidate> = Vec::with_capacity(kernels.len());
        for (kernel, is_contraction) in kernels {
            let (reach, link) = match is_contraction {
                false => (follows(&all, &kernel, aliases, &mut forms), None),
                true => {
                    let link = link(nest, &all, &kernel, aliases, &users, &mut forms);
                    (None, link)
                }
            };
            all.push(Candidate {
                kernel: Arc::new(kernel),
                function: if is_contraction {
                    None
                } else {
                    functions.next()
                },
                reach,
                link,
                contraction: OnceLock::new(),
                first_alike: all.len(),
            });
        }
        let mut firsts: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for k in 0..all.len() {
            let firsts = firsts.entry(forms.number(k)).or_default();
            let mut alike = firsts.iter().filter(|f| are_alike(&all, &forms, [**f, k]));
            match alike.next().copied() {
                Some(first) => all[k].first_alike = first,
                None => firsts.push(k),
            }
        }
        Ok(Kernels {
            all,
            contracts,
            is_packed: OnceLock::new(),
        })
    }

    /// The stages of each kernel.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &SubNest> {
        self.all.iter().map(|candidate| &candidate.kernel.stages)
    }

    /// The kernels where symbols have `numbers`; `None` if an extent then is none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn bound_to(
        &self,
        numbers: &Numbers<'_>,
        slots: &[Slot],
        settings: &Settings<'_>,
    ) -> Result<Option<Native>, Error> {
        let engine = |k: usize| {
            stop::check(settings.stop)?;
            self.engine(k, numbers.values, slots, settings)
        };
        let engines: Option<Vec<Engine>> = match self.is_packed.get() {
            Some(()) => self.engines(slots, engine)?,
            None => {
                // Each by itself: packing one operand may take much longer than all the rest.
                let all = (0..self.all.len()).collect();
                let engines = compiler_threads::map_apart(all, || (), |(), k| engine(k));
                engines.into_iter().collect::<Result<_, Error>>()?
            }
        };
        let _ = self.is_packed.set(());
        Ok(engines.map(|engines| self.native(engines, numbers, settings.threads)))
    }

    /// All engines, one after the other: that of contractions that are alike is made once.
    fn engines(
        &self,
        slots: &[Slot],
        engine: impl Fn(usize) -> Result<Option<Engine>, Error>,
    ) -> Result<Option<Vec<Engine>>, Error> {
        let has_constants = |k: usize| {
            let mut used = self.all[k].kernel.used.iter();
            used.any(|b| matches!(slots[b.0 as usize], Slot::Constant(_)))
        };
        let mut engines: Vec<Engine> = Vec::with_capacity(self.all.len());
        for (k, candidate) in self.all.iter().enumerate() {
            let alike = match engines.get(candidate.first_alike) {
                Some(Engine::Contraction(alike)) => Some(alike.clone()),
                _ => None,
            };
            let is_same = || !has_constants(k) && !has_constants(candidate.first_alike);
            let engine = match alike.filter(|_| is_same()) {
                Some(alike) => Some(Engine::Contraction(alike)),
                None => engine(k)?,
            };
            let Some(engine) = engine else {
                return Ok(None);
            };
            engines.push(engine);
        }
        Ok(Some(engines))
    }

    /// The engine of kernel `k`: its code, unless there is a contraction kernel for it. `None` if an extent is none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    fn engine(
        &self,
        k: usize,
        values: &[usize],
        slots: &[Slot],
        settings: &Settings<'_>,
    ) -> Result<Option<Engine>, Error> {
        let candidate = &self.all[k];
        if let Some(function) = &candidate.function {
            let function = function.bound_to(values);
            return Ok(function.map(|function| Engine::Code {
                function,
                pieces: 1,
            }));
        }
        let packed = || self.contraction(k, values, slots, settings);
        let has_symbols = |c: &Candidate| c.kernel.stages.nest.is_symbolic();
        let packed = match has_symbols(candidate) || self.consumers(k).any(has_symbols) {
            true => packed(),
            false => candidate.contraction.get_or_init(packed).clone(),
        };
        if let Some(packed) = packed {
            return Ok(Some(Engine::Contraction(packed)));
        }
        let nest = candidate.kernel.nest(values);
        if nest.is_symbolic() {
            return Ok(None);
        }
        let functions = settings
            .shared
            .functions
            .of(&[(&nest.canonical(), &nest)], settings)?;
        let mut functions = functions.into_iter();
        Ok(functions.next().map(|function| Engine::Code {
            function,
            pieces: 1,
        }))
    }

    /// The contraction kernel for kernel `k`, if there is one.
    fn contraction(
        &self,
        k: usize,
        values: &[usize],
        slots: &[Slot],
        settings: &Settings<'_>,
    ) -> Option<Arc<PackedContraction>> {
        let kernel = &self.all[k].kernel;
        let step = SubNest {
            nest: kernel.nest(values).into_owned(),
            buffers: kernel.buffers().to_vec(),
        };
        let [stage] = step.nest.stages.as_slice() else {
            return None;
        };
        let contraction = Contraction::of(&step.nest, stage).filter(|_| self.contracts)?;
        let costs = self.consumers(k).map(|next| next.kernel.cost(values));
        let consumers = costs.reduce(u64::saturating_add).map(|cost| Consumers {
            cost,
            take_rows: self.least_elements(k, values),
        });
        let link = self.all[k].link.as_ref();
        let rows_of = link.and_then(|link| kernel.local(link.operand));
        let neighbours = Neighbours { rows_of, consumers };
        PackedContraction::new(&contraction, &step, slots, settings, neighbours).map(Arc::new)
    }

    /// The least elements of results of the contraction `k` that the kernels which may be chained to it can take; `None` if
    /// there are none.
    fn least_elements(&self, k: usize, values: &[usize]) -> Option<usize> {
        let [code, _] = self.consumers(k).collect::<Vec<_>>()[..] else {
            return None;
        };
        let chunks = code.function.as_ref()?.bound_to(values)?.chunks();
        let turn = code.reach.as_ref()?.bound_to(values)?;
        Some(turn.elements(&(0..chunks.grain))?.len())
    }

    /// The kernels that may be fused with the contraction `k`.
    fn consumers(&self, k: usize) -> impl Iterator<Item = &Candidate> {
        self.all[consumers(&self.all, k)].iter()
    }

    /// The steps that call the engines.
    fn native(&self, engines: Vec<Engine>, numbers: &Numbers<'_>, threads: usize) -> Native {
        let mut steps: Vec<Step> = Vec::with_capacity(self.all.len());
        for (candidate, engine) in self.all.iter().zip(engines) {
            let before = steps.last();
            let arguments = before.map_or(0, |s| s.arguments + s.kernel.buffers().len());
            let reach = candidate.reach.as_ref();
            let reach = reach.and_then(|reach| reach.bound_to(numbers.values));
            let consumer = before
                .zip(reach)
                .and_then(|(before, reach)| consumer(&before.engine, &engine, reach));
            let mut step = step(&candidate.kernel, engine, numbers, threads);
            step.arguments = arguments;
            step.consumer = consumer;
            if let Some(link) = &candidate.link {
                link_to(&mut steps, link, &mut step);
            }
            steps.push(step);
        }
        let shared = steps.iter().filter(|step| step.workers > 1);
        let shared_cost = shared.fold(0, |sum: u64, step| sum.saturating_add(step.cost));
        Native { steps, shared_cost }
    }
}

/// The kernels that may be fused with the contraction `k`.
fn consumers(all: &[Candidate], k: usize) -> Range<usize> {
    let has_code = all.get(k + 1).is_some_and(|next| next.reach.is_some());
    let is_chained = has_code && all.get(k + 2).is_some_and(|last| last.link.is_some());
    let count = match (has_code, is_chained) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    k + 1..k + 1 + count
}

/// Whether two contractions of the same form are followed by the same kernels, and chained in the same way to what is
/// before them.
fn are_alike(all: &[Candidate], forms: &Forms, [a, b]: [usize; 2]) -> bool {
    let rows_of = |k: usize| {
        let link = all[k].link.as_ref()?;
        all[k].kernel.local(link.operand)
    };
    let [next_to_a, next_to_b] = [a, b].map(|k| consumers(all, k));
    let is_same = |(c, d): (usize, usize)| {
        let [c_reach, d_reach] = [c, d].map(|k| all[k].reach.as_ref());
        forms.number(c) == forms.number(d) && c_reach == d_reach
    };
    rows_of(a) == rows_of(b)
        && next_to_a.len() == next_to_b.len()
        && next_to_a.zip(next_to_b).all(is_same)
}

/// How code uses the results of the last of these kernels, if that is a contraction with which it may be fused.
fn follows(
    all: &[Candidate],
    kernel: &Kernel,
    aliases: &Aliases,
    forms: &mut Forms,
) -> Option<Footprint> {
    let last = all.last().filter(|last| last.function.is_none())?;
    let chained = if last.link.is_some() { 3 } else { 1 };
    let producers = all[all.len() - chained..].iter();
    let producers = producers.map(|c| &c.kernel.stages);
    let results = reach(producers, &kernel.stages, aliases)?;
    forms.footprint(all.len(), &kernel.stages, results)
}

/// How a contraction may be chained to the last two of these kernels.
fn link(
    nest: &Nest,
    all: &[Candidate],
    kernel: &Kernel,
    aliases: &Aliases,
    users: &[u32],
    forms: &mut Forms,
) -> Option<Link> {
    let [.., first, code] = all else {
        return None;
    };
    code.reach.as_ref()?;
    let kernels = [&first.kernel.stages, &code.kernel.stages, &kernel.stages];
    let footprint = |buffer| forms.footprint(all.len() - 1, &code.kernel.stages, buffer);
    Link::of(nest, kernels, aliases, users, footprint)
}

/// Chains a step to the last two of `steps`, if it can be. A contraction that is chained itself begins no chain: its tasks are
/// those of another. Whether it is, only the numbers say.
fn link_to(steps: &mut [Step], link: &Link, step: &mut Step) {
    let (Engine::Contraction(contraction), [.., first, code]) = (&step.engine, steps) else {
        return;
    };
    if first.consumer.is_some() {
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

/// How code runs with the tasks of a contraction, if it does.
fn consumer(before: &Engine, engine: &Engine, reach: BoundFootprint) -> Option<Consumer> {
    match (before, engine) {
        (Engine::Contraction(producer), Engine::Code { function, .. }) => {
            Consumer::new(producer, reach, function.chunks())
        }
        _ => None,
    }
}

/// The step that calls an engine, the first of its plan.
fn step(kernel: &Arc<Kernel>, mut engine: Engine, numbers: &Numbers<'_>, threads: usize) -> Step {
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
        arguments: 0,
        consumer: None,
        chain: None,
        scratch: 0,
    }
}

impl Native {
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
