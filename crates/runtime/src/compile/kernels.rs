//! The kernels of a nest: which of them are contractions, which are code, and the code.

use crate::Error;
use crate::compile::Settings;
use crate::compile::binding::Binding;
use crate::compile::borders::{borders_of, find_left_writers, left_borders};
use crate::compile::contraction::{Consumers, Neighbours, PackedContraction, TakenResults};
use crate::compile::coupled::Coupled;
use crate::compile::couplings::{Couplings, consumers};
use crate::compile::kernel::Kernel;
use crate::compile::packed_operands::PlanSlots;
use crate::compile::step::{Engine, Step};
use crate::compile::symbolic_kernel::{Numbers, SymbolicKernel};
use crate::stop;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};
use vinelift_nest::{Aliases, Contraction, Nest, Stage, SubNest, compiler_threads, kernel_ranges};

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
        let known = kernels.iter().map(|(kernel, _)| kernel);
        let mut couplings = Couplings::new(nest, aliases, known, &canonical);
        let mut all: Vec<SymbolicKernel> = Vec::with_capacity(kernels.len());
        let mut arguments = 0;
        for (kernel, is_contraction) in kernels {
            let before = arguments;
            arguments += kernel.buffers().len();
            all.push(SymbolicKernel {
                coupling: couplings.of(&all, &kernel, is_contraction),
                kernel: Arc::new(kernel),
                function: match is_contraction {
                    true => None,
                    false => functions.next(),
                },
                arguments: before,
                contraction: OnceLock::new(),
                left_writers: Vec::new(),
                first_alike: all.len(),
            });
        }
        prefer_chains(&mut all);
        couplings.find_alike(&mut all);
        find_left_writers(nest, &mut all);
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

    /// The steps of all kernels where symbols have `numbers`; `None` if an extent is out of bounds then. Steps that depend on no number
    /// which has changed since the `last` binding are taken from there.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(super) fn bound_to(
        &self,
        numbers: &Numbers<'_>,
        last: Option<&Binding>,
        slots: &PlanSlots,
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

    /// The engines of these kernels, in order; `None` if an extent is out of bounds.
    fn engines(
        &self,
        kernels: Vec<usize>,
        values: &[usize],
        slots: &PlanSlots,
        settings: &Settings<'_>,
    ) -> Result<Option<Vec<Engine>>, Error> {
        let engine = |k: usize| {
            stop::check(settings.stop)?;
            self.engine(k, values, slots, settings)
        };
        if self.is_packed.get().is_some() {
            return self.distinct_engines(kernels, values, slots, settings, engine);
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
        values: &[usize],
        slots: &PlanSlots,
        settings: &Settings<'_>,
        engine: impl Fn(usize) -> Result<Option<Engine>, Error>,
    ) -> Result<Option<Vec<Engine>>, Error> {
        let has_constants = |k: usize| {
            let mut used = self.all[k].kernel.used.iter();
            used.any(|b| slots.constant(*b).is_some())
        };
        let mut firsts: FxHashMap<usize, (usize, Arc<PackedContraction>)> = FxHashMap::default();
        let mut engines: Vec<Engine> = Vec::with_capacity(kernels.len());
        for k in kernels {
            let first = self.all[k].first_alike;
            let alike = firsts.get(&first).and_then(|(made, alike)| {
                if !has_constants(k) && !has_constants(*made) {
                    return Some(alike.clone());
                }
                let borders = left_borders(&self.all, k, values);
                let alike = alike.in_step(&self.all[k].kernel.stages, &borders, slots, settings)?;
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

    /// The engine of kernel `k`: its code, unless there is a contraction kernel for it. `None` if an extent is out of bounds.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    fn engine(
        &self,
        k: usize,
        values: &[usize],
        slots: &PlanSlots,
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
        let packed = match symbolic.contraction.get() {
            Some(packed) => packed.clone(),
            None => {
                let packed = self.contraction(k, values, slots, settings);
                if self.is_same_for_all(k, packed.as_deref()) {
                    symbolic.contraction.get_or_init(|| packed.clone());
                }
                packed
            }
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

    /// Whether the contraction kernel that kernel `k` has is the one for all numbers.
    fn is_same_for_all(&self, k: usize, packed: Option<&PackedContraction>) -> bool {
        let has_symbols = |c: &SymbolicKernel| c.kernel.stages.nest.is_symbolic();
        let is_fitted = packed.is_none_or(PackedContraction::is_fitted);
        let depends_on_others = is_fitted && self.consumers(k).any(has_symbols);
        !depends_on_others && !has_symbols(&self.all[k])
    }

    /// The contraction kernel for kernel `k`, if there is one.
    fn contraction(
        &self,
        k: usize,
        values: &[usize],
        slots: &PlanSlots,
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
            taken: self.taken_results(k, values),
        });
        let link = self.all[k].coupling.link.as_ref();
        let rows_of = link.and_then(|link| kernel.local(link.operand));
        let neighbours = Neighbours { rows_of, consumers };
        let borders = borders_of(&self.all, k, &contraction, values);
        let stages = &kernel.stages;
        let packed =
            PackedContraction::new(&contraction, stages, borders, slots, settings, neighbours);
        packed.map(Arc::new)
    }

    /// How the kernels that may be chained to the contraction `k` take its results; `None` if there are none.
    fn taken_results(&self, k: usize, values: &[usize]) -> Option<TakenResults> {
        let [code, _] = self.consumers(k).collect::<Vec<_>>()[..] else {
            return None;
        };
        let chunks = code.function.as_ref()?.bound_to(values)?.chunks();
        let turn = code.coupling.reach.as_ref()?.bound_to(values)?;
        Some(TakenResults {
            least: turn.elements(&(0..chunks.grain))?.len(),
            turn: turn.step(),
        })
    }

    /// The kernels that may be fused with the contraction `k`.
    fn consumers(&self, k: usize) -> impl Iterator<Item = &SymbolicKernel> {
        self.all[consumers(&self.all, k)].iter()
    }
}

/// Has no contraction make its rows that may begin a chain: tasks that go through all of a chain save more than a copy of rows.
fn prefer_chains(all: &mut [SymbolicKernel]) {
    for last in 2..all.len() {
        if all[last].coupling.link.is_some() {
            all[last - 2].coupling.made_rows = None;
        }
    }
}
