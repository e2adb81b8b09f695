//! The kernels of a nest: which of them are contractions, which are code, and the code.

use crate::Error;
use crate::compile::Settings;
use crate::compile::binding::Binding;
use crate::compile::chain::{MOST_BUFFERS, OwnResults, window_element};
use crate::compile::consumer::reach;
use crate::compile::contraction::{Consumers, Neighbours, PackedContraction};
use crate::compile::coupled::Coupled;
use crate::compile::forms::Forms;
use crate::compile::kernel::Kernel;
use crate::compile::link::Link;
use crate::compile::made_rows::MadeRows;
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step};
use crate::compile::symbolic_kernel::{Numbers, SymbolicKernel};
use crate::stop;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vinelift_nest::{
    Aliases, Contraction, Footprint, Nest, Stage, SubNest, compiler_threads, kernel_ranges,
};

/// The kernels of a nest, for all values of its symbols.
pub(crate) struct Kernels {
    all: Vec<SymbolicKernel>,
    coupled: Vec<Coupled>,
    /// Whether contractions have kernels of their own.
    contracts: bool,
    /// Whether the operands of its contractions have been packed once.
    is_packed: OnceLock<()>,
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
        let mut all: Vec<SymbolicKernel> = Vec::with_capacity(kernels.len());
        let mut arguments = 0;
        for (kernel, is_contraction) in kernels {
            let before = arguments;
            arguments += kernel.buffers().len();
            let own_results = match is_contraction {
                false => own_results(nest, &all, &kernel, &users),
                true => None,
            };
            let (reach, link) = match is_contraction {
                false => (follows(&all, &kernel, aliases, &mut forms), None),
                true => {
                    let link = link(nest, &all, &kernel, aliases, &users, &mut forms);
                    (None, link)
                }
            };
            let made_rows = match is_contraction {
                false => None,
                true => made_rows(nest, &all, &kernel, aliases, &users, &mut forms),
            };
            all.push(SymbolicKernel {
                kernel: Arc::new(kernel),
                function: if is_contraction {
                    None
                } else {
                    functions.next()
                },
                reach,
                own_results,
                link,
                made_rows,
                arguments: before,
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
            coupled: Coupled::of(&all),
            all,
            contracts,
            is_packed: OnceLock::new(),
        })
    }

    /// The stages of each kernel.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &SubNest> {
        self.all.iter().map(|symbolic| &symbolic.kernel.stages)
    }

    /// The steps of all kernels where symbols have `numbers`; `None` if an extent then is none. Those of kernels for which no
    /// number is another than in the `last` binding are taken from there.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(super) fn bound_to(
        &self,
        numbers: &Numbers<'_>,
        last: Option<&Binding>,
        slots: &[Slot],
        settings: &Settings<'_>,
    ) -> Result<Option<Vec<Arc<Step>>>, Error> {
        let last = last.map(|last| (last.changes(numbers.values), last.steps()));
        let kept = self.coupled.iter().map(|coupled| match &last {
            Some((changes, steps)) if !coupled.depend_on(changes) => {
                steps.get(coupled.kernels.clone())
            }
            _ => None,
        });
        let kept: Vec<Option<&[Arc<Step>]>> = kept.collect();
        let anew = self.coupled.iter().zip(&kept);
        let anew = anew.filter(|(_, kept)| kept.is_none());
        let anew: Vec<usize> = anew.flat_map(|(c, _)| c.kernels.clone()).collect();
        let Some(engines) = self.engines(anew, numbers.values, slots, settings)? else {
            return Ok(None);
        };
        let mut engines = engines.into_iter();
        let mut steps = Vec::with_capacity(self.all.len());
        for (coupled, kept) in self.coupled.iter().zip(kept) {
            match kept {
                Some(kept) => steps.extend_from_slice(kept),
                None => {
                    let symbolic = self.all[coupled.kernels.clone()].iter().zip(&mut engines);
                    let made = Coupled::steps(symbolic, numbers, settings.threads);
                    steps.extend(made.into_iter().map(Arc::new));
                }
            }
        }
        Ok(Some(steps))
    }

    /// The engines of these kernels, in order; `None` if an extent is none.
    fn engines(
        &self,
        kernels: Vec<usize>,
        values: &[usize],
        slots: &[Slot],
        settings: &Settings<'_>,
    ) -> Result<Option<Vec<Engine>>, Error> {
        let engine = |k: usize| {
            stop::check(settings.stop)?;
            self.engine(k, values, slots, settings)
        };
        if self.is_packed.get().is_some() {
            return self.distinct_engines(kernels, slots, settings, engine);
        }
        // Each by itself: packing one operand may take much longer than all the rest.
        let engines = compiler_threads::map_apart(kernels, || (), |(), k| engine(k));
        let engines = engines.into_iter().collect::<Result<_, Error>>()?;
        let _ = self.is_packed.set(());
        Ok(engines)
    }

    /// The engines of these kernels, one after the other: contractions that are alike share all but their constants.
    fn distinct_engines(
        &self,
        kernels: Vec<usize>,
        slots: &[Slot],
        settings: &Settings<'_>,
        engine: impl Fn(usize) -> Result<Option<Engine>, Error>,
    ) -> Result<Option<Vec<Engine>>, Error> {
        let has_constants = |k: usize| {
            let mut used = self.all[k].kernel.used.iter();
            used.any(|b| matches!(slots[b.0 as usize], Slot::Constant(_)))
        };
        let mut firsts: FxHashMap<usize, (usize, Arc<PackedContraction>)> = FxHashMap::default();
        let mut engines: Vec<Engine> = Vec::with_capacity(kernels.len());
        for k in kernels {
            let first = self.all[k].first_alike;
            let alike = firsts.get(&first).and_then(|(made, alike)| {
                if !has_constants(k) && !has_constants(*made) {
                    return Some(alike.clone());
                }
                let alike = alike.in_step(&self.all[k].kernel.stages, slots, settings)?;
                Some(Arc::new(alike))
            });
            let engine = match alike {
                Some(alike) => Some(Engine::Contraction(alike)),
                None => engine(k)?,
            };
            let Some(engine) = engine else {
                return Ok(None);
            };
            if let Engine::Contraction(contraction) = &engine {
                firsts
                    .entry(first)
                    .or_insert_with(|| (k, contraction.clone()));
            }
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
        let symbolic = &self.all[k];
        if let Some(function) = &symbolic.function {
            let function = function.bound_to(values);
            return Ok(function.map(|function| Engine::Code {
                function,
                pieces: 1,
            }));
        }
        let packed = || self.contraction(k, values, slots, settings);
        let has_symbols = |c: &SymbolicKernel| c.kernel.stages.nest.is_symbolic();
        let packed = match has_symbols(symbolic) || self.consumers(k).any(has_symbols) {
            true => packed(),
            false => symbolic.contraction.get_or_init(packed).clone(),
        };
        if let Some(packed) = packed {
            return Ok(Some(Engine::Contraction(packed)));
        }
        let nest = symbolic.kernel.nest(values);
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
        let [stage] = kernel.stages.nest.stages.as_slice() else {
            return None;
        };
        let contraction = Contraction::at(&kernel.stages.nest, stage, values);
        let contraction = contraction.filter(|_| self.contracts)?;
        let costs = self.consumers(k).map(|next| next.kernel.cost(values));
        let consumers = costs.reduce(u64::saturating_add).map(|cost| Consumers {
            cost,
            take_rows: self.least_elements(k, values),
        });
        let link = self.all[k].link.as_ref();
        let rows_of = link.and_then(|link| kernel.local(link.operand));
        let neighbours = Neighbours { rows_of, consumers };
        let packed =
            PackedContraction::new(&contraction, &kernel.stages, slots, settings, neighbours);
        packed.map(Arc::new)
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
    fn consumers(&self, k: usize) -> impl Iterator<Item = &SymbolicKernel> {
        self.all[consumers(&self.all, k)].iter()
    }
}

/// The kernels that may be fused with the contraction `k`.
fn consumers(all: &[SymbolicKernel], k: usize) -> Range<usize> {
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
fn are_alike(all: &[SymbolicKernel], forms: &Forms, [a, b]: [usize; 2]) -> bool {
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
    all: &[SymbolicKernel],
    kernel: &Kernel,
    aliases: &Aliases,
    forms: &mut Forms,
) -> Option<Footprint> {
    let last = all.last().filter(|last| last.function.is_none())?;
    let chained = if last.link.is_some() { 3 } else { 1 };
    let made_rows = last.made_rows.as_ref();
    let makes_rows = made_rows.map(|rows| &all[all.len() - 1 - rows.distance]);
    let producers = makes_rows.into_iter().chain(&all[all.len() - chained..]);
    let producers = producers.map(|c| &c.kernel.stages);
    let results = reach(producers, &kernel.stages, aliases)?;
    forms.footprint(all.len(), &kernel.stages, results)
}

/// The results of the last of these kernels, if that is a contraction and no kernel but this code, which `users` counts, uses
/// them.
fn own_results(
    nest: &Nest,
    all: &[SymbolicKernel],
    code: &Kernel,
    users: &[u32],
) -> Option<OwnResults> {
    let contraction = all.last().filter(|last| last.function.is_none())?;
    let [stage] = contraction.kernel.stages.nest.stages.as_slice() else {
        return None;
    };
    let buffer = contraction.kernel.buffers()[stage.target.0 as usize];
    let size = window_element(nest.buf(buffer))?;
    let is_own = code.local(buffer).is_some()
        && users[buffer.0 as usize] == 2
        && code.buffers().len() <= MOST_BUFFERS;
    is_own.then_some(OwnResults { buffer, size })
}

/// How a contraction may be chained to the last two of these kernels.
fn link(
    nest: &Nest,
    all: &[SymbolicKernel],
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

/// The rows of a contraction that code among these kernels makes, if its tasks may make them.
fn made_rows(
    nest: &Nest,
    all: &[SymbolicKernel],
    kernel: &Kernel,
    aliases: &Aliases,
    users: &[u32],
    forms: &mut Forms,
) -> Option<MadeRows> {
    let before = all.iter().map(|c| &c.kernel.stages);
    let footprint = |distance: usize, buffer| {
        let number = all.len() - distance;
        all[number].function.as_ref()?;
        forms.footprint(number, &all[number].kernel.stages, buffer)
    };
    MadeRows::of(nest, before, &kernel.stages, aliases, users, footprint)
}
