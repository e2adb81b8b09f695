//! A model or a sub-graph with the code that was made for it.

use crate::class::{Alone, Class};
use crate::classes::{Classes, Found};
use crate::compile::constants::Prologue;
use crate::compile::draft::{Draft, growing_in};
use crate::compile::interface::Interface;
use crate::compile::plan::Plan;
use crate::compile::symbolic_plan::SymbolicPlan;
use crate::compile::{Settings, Shared};
use crate::execute::constants;
use crate::execute::pool::Pool;
use crate::growths::Growths;
use crate::heat::Heat;
use crate::key::{Key, Kind};
use crate::making::{Making, alone};
use crate::stack::with_large_stack;
use crate::statistics::Statistics;
use crate::stop::{self, never};
use crate::{Config, Error, Level, Model, Specialization};
use lru::LruCache;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vinelift_codegen::{Compiler, Options};
use vinelift_graph::{
    self as graph, Given, Known, NodeIndex, NodeKind, Segment, Stop, Strings, TensorId, Types,
    specialize,
};
use vinelift_tensor::{Extent, Shape, extents};
use vinelift_xml::BodyKind;

/// A model or a sub-graph, with its plans.
pub(crate) struct Unit {
    /// Its number among the units of a compiled model.
    pub(crate) number: usize,
    /// The layers, and the tensors by which they meet a run.
    pub(crate) interface: Interface,
    /// The types of its tensors, as far as they do not depend on the shapes of its inputs.
    inferred: Option<Arc<Types>>,
    is_body: bool,
    bodies: FxHashMap<(NodeIndex, BodyKind), Unit>,
    classes: Mutex<Classes>,
    plans: Mutex<LruCache<Key, Arc<Plan>>>,
    making: Making<Key>,
    making_classes: Making<Kind>,
    growths: Mutex<Growths>,
    /// Whether there are variables of changing shapes that may grow in memory with room.
    may_grow: bool,
    /// How often a segment was compiled, how often for shapes of a class that are hot, and how often a plan was bound to
    /// other numbers of a class.
    compiled: AtomicUsize,
    specialized: AtomicUsize,
    bound: AtomicUsize,
    /// How long plans of classes have run, in nanoseconds.
    generic_time: AtomicU64,
}

/// A plan, and the constants' plan that was run before it was finished.
pub(crate) struct Made {
    pub(crate) prologue: Option<Prologue>,
    pub(crate) plan: Plan,
}

impl Made {
    /// The constants' plan, if there is one, and the plan.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Plan> {
        let prologue = self.prologue.as_ref().map(|p| &*p.plan);
        prologue.into_iter().chain([&self.plan])
    }
}

/// What all units of a compiled model share.
pub(crate) struct Workshop {
    /// For its name in messages.
    pub(crate) model: Model,
    pub(crate) compiler: Arc<Compiler>,
    /// What plans share.
    pub(crate) shared: Shared,
    pub(crate) config: Config,
    /// The threads of runs.
    pub(crate) pool: Pool,
    /// The texts of all string constants. Runs add their own to a copy.
    pub(crate) strings: Strings,
}

impl Workshop {
    /// How code is compiled.
    fn options(&self) -> Options {
        Options {
            vectors: self.config.vectors,
            ..Options::default()
        }
    }

    fn settings<'a>(
        &'a self,
        shared: &'a Shared,
        level: Level,
        options: &'a Options,
        stop: &'a Arc<AtomicBool>,
    ) -> Settings<'a> {
        Settings {
            compiler: &self.compiler,
            shared,
            options,
            level,
            threads: self.pool.threads(),
            stop,
        }
    }
}

/// The plans that a run takes, each once, in order.
#[derive(Default)]
pub(crate) struct Taken {
    seen: FxHashSet<(usize, Key)>,
    pub(crate) plans: Vec<TakenPlan>,
}

/// A plan that a run has taken.
pub(crate) struct TakenPlan {
    /// The number of its unit.
    pub(crate) unit: usize,
    /// Of the inputs.
    pub(crate) shapes: Vec<Shape>,
    pub(crate) known: Known,
}

/// What is compiled in the background after a run.
pub(crate) enum Later {
    /// A plan for shapes that have become hot.
    Plan(TakenPlan),
    /// The class of shapes that are to come if variables go on growing.
    Class { unit: usize, key: Key, known: Known },
}

impl Taken {
    /// Loops may take any number of plans; nobody looks at more.
    const MOST: usize = 1000;

    /// Notes that a run takes a plan of a unit.
    pub(crate) fn note(&mut self, unit: usize, shapes: &[Shape], known: &Known) {
        let is_new =
            self.plans.len() < Taken::MOST && self.seen.insert((unit, Key::new(shapes, known)));
        if is_new {
            self.plans.push(TakenPlan {
                unit,
                shapes: shapes.to_vec(),
                known: known.clone(),
            });
        }
    }
}

/// The bytes of packed constants that the plans of a unit may hold together, unless one alone holds more.
const MOST_PACKED: usize = 256 << 20;

impl Unit {
    /// The unit of a model, of which `inferred` is known, or of a body, and those of its sub-graphs. `strings` gets the
    /// texts of all constants, `count` is the number of units so far.
    pub(crate) fn new(
        graph: &Arc<graph::Model>,
        inferred: Option<Arc<Types>>,
        config: &Config,
        strings: &mut Strings,
        count: &mut usize,
    ) -> Result<Unit, Error> {
        let number = *count;
        *count += 1;
        let mut bodies = FxHashMap::default();
        for index in graph.graph.node_indices() {
            let node = graph.node(index);
            if let NodeKind::Constant(tensor) = &node.kind {
                strings.encode(tensor)?;
            }
            for (kind, body) in &node.bodies {
                let unit = Unit::new(body, None, config, strings, count)?;
                bodies.insert((index, *kind), unit);
            }
        }
        let interface = Interface::of(graph);
        let is_dynamic = |id: &str| {
            let ty = graph.variable(id);
            ty.is_none_or(|ty| !ty.shape.is_static())
        };
        let may_grow = inferred.is_some()
            && config.level == Level::Scheduled
            && config.specialization != Specialization::Always
            && interface.reads.iter().any(|(_, id)| is_dynamic(id));
        Ok(Unit {
            number,
            interface,
            is_body: inferred.is_none(),
            inferred,
            bodies,
            classes: Mutex::default(),
            plans: Mutex::new(LruCache::new(config.cache_size)),
            making: Making::default(),
            making_classes: Making::default(),
            growths: Mutex::default(),
            may_grow,
            compiled: AtomicUsize::new(0),
            specialized: AtomicUsize::new(0),
            bound: AtomicUsize::new(0),
            generic_time: AtomicU64::new(0),
        })
    }

    /// The unit of a sub-graph of one of its nodes.
    pub(crate) fn body(&self, node: NodeIndex, kind: BodyKind) -> Result<&Unit, Error> {
        let missing = || Error::internal(format!("no {} of node {node:?}", kind.element()));
        self.bodies.get(&(node, kind)).ok_or_else(missing)
    }

    /// Where the bytes of the constants begin that live as long as the unit.
    pub(crate) fn constants(&self, into: &mut FxHashSet<usize>) {
        let graph = &self.interface.graph;
        for node in graph.graph.node_weights() {
            if let NodeKind::Constant(tensor) = &node.kind {
                into.insert(tensor.bytes().as_ptr() as usize);
            }
        }
        self.bodies.values().for_each(|body| body.constants(into));
    }

    /// What has been made so far, by the unit and those of its sub-graphs.
    pub(crate) fn statistics(&self, all: &mut Statistics) {
        all.plans += self.compiled.load(Ordering::Relaxed);
        all.specialized += self.specialized.load(Ordering::Relaxed);
        all.bound += self.bound.load(Ordering::Relaxed);
        all.packed_bytes += packed_bytes(&self.plans());
        self.bodies.values().for_each(|body| body.statistics(all));
    }

    /// The unit of this number, itself included, and the line that names it if it is a sub-graph.
    pub(crate) fn find(&self, number: usize) -> Option<(&Unit, String)> {
        if self.number == number {
            return Some((self, String::new()));
        }
        self.bodies.iter().find_map(|((node, kind), body)| {
            let (unit, inner) = body.find(number)?;
            let label = self.interface.graph.node(*node).label();
            let own = || format!("# {} of {label}\n", kind.element());
            Some((unit, if inner.is_empty() { own() } else { inner }))
        })
    }

    /// The number of plans that are kept, those of sub-graphs included.
    pub(crate) fn cached_plans(&self) -> usize {
        let own = self.plans().len();
        own + self.bodies.values().map(Unit::cached_plans).sum::<usize>()
    }

    /// The shapes and values that a segment is specialised to.
    pub(crate) fn given<'a>(
        &'a self,
        shapes: &'a [Vec<Extent>],
        known: &'a Known,
        config: &Config,
        stop: &'a AtomicBool,
    ) -> Given<'a> {
        Given {
            shapes,
            known,
            inferred: self.inferred.as_deref(),
            policy: config.index_policy,
            is_body: self.is_body,
            stop: Stop::when(stop),
        }
    }

    /// The plan for these shapes and what is known, made if it is not in the cache.
    pub(crate) fn plan(
        &self,
        shapes: &[Shape],
        known: &Known,
        workshop: &Workshop,
        stop: &Arc<AtomicBool>,
    ) -> Result<Arc<Plan>, Error> {
        let key = Key::new(shapes, known);
        if let Some(plan) = self.plans().get(&key) {
            return Ok(plan.clone());
        }
        // One thread makes what several ask for at once, and the others wait for it.
        let making = self.making.of(&key);
        let _only = alone(&making, stop)?;
        if let Some(plan) = self.plans().get(&key) {
            return Ok(plan.clone());
        }
        // Not under the lock of all plans: other requests go on with the plans they have.
        let plan = match self.plan_of_class(&key, known, workshop, stop)? {
            Some(plan) => {
                let alone = || with_large_stack(|| self.segment(shapes, known, workshop, stop));
                debug_assert!(plan.agrees_with(&alone()?));
                plan
            }
            None => self.plan_alone(shapes, known, workshop, stop)?,
        };
        let plan = Arc::new(plan);
        let mut plans = self.plans();
        plans.put(key, plan.clone());
        // Plans of a class share what they pack.
        let is_bound = !plan.values.is_empty();
        while plans.len() > 1 && !is_bound && packed_bytes(&plans) > MOST_PACKED {
            plans.pop_lru();
        }
        Ok(plan)
    }

    /// Has shapes run a plan of their own from now on, instead of that of their class.
    ///
    /// # Errors
    /// As [`Self::plan`]; the plan stays what it was.
    fn specialize(
        &self,
        shapes: &[Shape],
        known: &Known,
        workshop: &Workshop,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Error> {
        let plan = self.plan_alone(shapes, known, workshop, stop)?;
        self.plans().put(Key::new(shapes, known), Arc::new(plan));
        // Whoever sees the number asks for its plans again.
        self.specialized.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// A number that is another one after plans were replaced.
    pub(crate) fn generation(&self) -> usize {
        self.specialized.load(Ordering::Acquire)
    }

    /// Adds a run of a plan; whether its shapes are to be [specialised](Self::specialize) now.
    pub(crate) fn warm(&self, plan: &Plan, run: Duration) -> bool {
        let heat = plan.heat.as_ref();
        heat.is_some_and(|heat| heat.add(run, &self.generic_time))
    }

    /// The plan for these shapes and no others.
    fn plan_alone(
        &self,
        shapes: &[Shape],
        known: &Known,
        workshop: &Workshop,
        stop: &Arc<AtomicBool>,
    ) -> Result<Plan, Error> {
        with_large_stack(|| {
            self.compiled.fetch_add(1, Ordering::Relaxed);
            let segment = self.segment(shapes, known, workshop, stop)?;
            let (options, level) = (workshop.options(), workshop.config.level);
            Ok(self.make(segment, workshop, level, &options, stop)?.plan)
        })
    }

    /// The class to which a key belongs, if it was met.
    pub(crate) fn class_of(&self, key: &Key) -> Option<Arc<Class<SymbolicPlan>>> {
        let found = self.classes().look(&key.kind(), key);
        found.map(|(class, _)| class)
    }

    /// Whether [`Unit::growing`] may find any.
    pub(crate) fn may_grow(&self) -> bool {
        self.may_grow
    }

    /// The variables that a plan with room lets grow where shapes are these: the tensor that is read, the axis, and the
    /// extent afterwards.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn growing(
        &self,
        shapes: &[Shape],
        known: &Known,
        workshop: &Workshop,
        stop: &AtomicBool,
    ) -> Result<Vec<(TensorId, usize, usize)>, Error> {
        if known.computed.is_empty() {
            return Ok(Vec::new());
        }
        let key = Key::new(shapes, known);
        let mut kind = key.kind();
        let mut growing = self.growths().of(&kind, &key);
        if growing.is_none() {
            let level = workshop.config.level;
            let found = |segment: Segment| Ok(growing_in(&segment, &self.interface, level));
            let class =
                || Ok::<_, Error>(self.class_of_segments(&key, known, workshop, stop, found));
            let class = with_large_stack(class)?;
            stop::check(stop)?;
            let mut growths = self.growths();
            growths.add(&kind, class);
            growing = growths.of(&kind, &key);
        }
        let growing = growing.unwrap_or_default();
        kind.set_room(growing.iter().map(|(tensor, ..)| *tensor).collect());
        Ok(match self.classes().is_pinned(&kind) {
            true => Vec::new(),
            false => growing,
        })
    }

    /// The plan by which variables grow in memory that has room; `None` if there is none for these shapes. `later` gets
    /// what the runs to come will need.
    pub(crate) fn plan_with_room(
        &self,
        shapes: &[Shape],
        known: &Known,
        workshop: &Workshop,
        stop: &Arc<AtomicBool>,
        later: &mut Vec<Later>,
    ) -> Result<Option<Arc<Plan>>, Error> {
        let key = Key::new(shapes, known);
        if let Some(plan) = self.plans().get(&key) {
            return Ok(Some(plan.clone()));
        }
        let ahead = self.growths().ahead(&key);
        if let Some(ahead) = ahead
            && self.class_of(&ahead).is_none()
        {
            later.push(Later::Class {
                unit: self.number,
                key: ahead,
                known: known.clone(),
            });
        }
        let plan = self.plan_of_class(&key, known, workshop, stop)?;
        Ok(plan.map(|plan| {
            let plan = Arc::new(plan);
            self.plans().put(key, plan.clone());
            plan
        }))
    }

    /// Compiles what runs to come will need.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory; runs then compile what they need.
    pub(crate) fn compile(
        &self,
        later: &Later,
        workshop: &Workshop,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Error> {
        match later {
            Later::Plan(plan) => self.specialize(&plan.shapes, &plan.known, workshop, stop),
            Later::Class { key, known, .. } => {
                self.plan_of_class(key, known, workshop, stop).map(drop)
            }
        }
    }

    fn growths(&self) -> MutexGuard<'_, Growths> {
        self.growths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plans(&self) -> MutexGuard<'_, LruCache<Key, Arc<Plan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment for these shapes alone.
    fn segment(
        &self,
        shapes: &[Shape],
        known: &Known,
        workshop: &Workshop,
        stop: &AtomicBool,
    ) -> Result<Segment, Error> {
        let shapes: Vec<Vec<Extent>> = shapes.iter().map(|s| extents(s)).collect();
        let given = self.given(&shapes, known, &workshop.config, stop);
        let segment = specialize(&self.interface.graph, given, &mut workshop.strings.clone());
        segment.map_err(|e| workshop.model.error(e))
    }

    /// The plan for `key`, made from what there is for a class of keys; `None` if it is in no class.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    fn plan_of_class(
        &self,
        key: &Key,
        known: &Known,
        workshop: &Workshop,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Plan>, Error> {
        if workshop.config.specialization == Specialization::Always {
            return Ok(None);
        }
        let kind = key.kind();
        let options = workshop.options();
        let settings = workshop.settings(&workshop.shared, workshop.config.level, &options, stop);
        let find = || self.classes().find(&kind, key);
        let mut found = find();
        // Many bodies always get the same shapes.
        if self.is_body && matches!(found, Found::First) {
            return Ok(None);
        }
        if !matches!(found, Found::Class(..) | Found::Pinned) {
            let making = self.making_classes.of(&kind);
            let _only = alone(&making, stop)?;
            found = find();
            if !matches!(found, Found::Class(..) | Found::Pinned) {
                let made = || Ok::<_, Error>(self.class(key, known, workshop, &settings));
                match with_large_stack(made)? {
                    Ok(class) => {
                        self.compiled.fetch_add(1, Ordering::Relaxed);
                        let class = Arc::new(class);
                        self.classes().add(&kind, class.clone());
                        return match class.values(key) {
                            Some(values) => bind(&class, &values, key, &settings, workshop),
                            None => Ok(None),
                        };
                    }
                    Err(Alone::Pinned) => self.classes().pin(&kind),
                    Err(Alone::Unsuited) => {
                        stop::check(stop)?;
                        if !key.room.is_empty() {
                            self.classes().pin(&kind);
                        }
                    }
                }
            }
        }
        let Found::Class(class, values) = found else {
            return Ok(None);
        };
        self.bound.fetch_add(1, Ordering::Relaxed);
        bind(&class, &values, key, &settings, workshop)
    }

    fn classes(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The class of the shapes of `key`, with its plan.
    fn class(
        &self,
        key: &Key,
        known: &Known,
        workshop: &Workshop,
        settings: &Settings<'_>,
    ) -> Result<Class<SymbolicPlan>, Alone> {
        self.class_of_segments(key, known, workshop, settings.stop, |segment| {
            let (draft, _) = self.draft(segment, workshop, settings)?;
            draft.finish(settings)
        })
    }

    /// The class of the shapes of `key`, with what `finish` makes of its segment.
    pub(crate) fn class_of_segments<T>(
        &self,
        key: &Key,
        known: &Known,
        workshop: &Workshop,
        stop: &AtomicBool,
        mut finish: impl FnMut(Segment) -> Result<T, Error>,
    ) -> Result<Class<T>, Alone> {
        let graph = &self.interface.graph;
        let is_input_static = |k: usize, d: usize| {
            let ty = graph.parameters.get(k).map(|p| graph.declared_type(*p));
            let dim = ty.and_then(|ty| ty.shape.dims()?.get(d).copied());
            // A body takes what it gets.
            dim.and_then(|dim| dim.get()) == Some(key.shapes[k][d])
        };
        let lower = |shapes: &[Vec<Extent>], known: &Known| {
            let given = self.given(shapes, known, &workshop.config, stop);
            let segment = specialize(graph, given, &mut workshop.strings.clone());
            segment.map_err(|e| workshop.model.error(e))
        };
        let finish = |mut segment: Segment| {
            segment.nest.adopt_symbols();
            finish(segment)
        };
        let inferred = self.inferred.as_deref();
        Class::of(key, known, is_input_static, inferred, lower, finish)
    }

    /// The draft of a segment, after what depends on constants alone has been run, and the plan of that.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    fn draft(
        &self,
        segment: Segment,
        workshop: &Workshop,
        settings: &Settings<'_>,
    ) -> Result<(Draft, Option<Prologue>), Error> {
        let mut draft = Draft::new(&self.interface, segment, settings)?;
        let prologue = draft.prologue(settings)?;
        if let Some(prologue) = &prologue {
            draft.set_constants(constants(prologue, &workshop.pool, settings.stop)?);
        }
        Ok((draft, prologue))
    }

    /// The plan of a segment at a level, after what depends on constants alone has been run.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn make(
        &self,
        segment: Segment,
        workshop: &Workshop,
        level: Level,
        options: &Options,
        stop: &Arc<AtomicBool>,
    ) -> Result<Made, Error> {
        // Code that plans share has no text.
        let own = Shared::default();
        let shared = match options.capture_text {
            true => &own,
            false => &workshop.shared,
        };
        let settings = workshop.settings(shared, level, options, stop);
        let (draft, prologue) = self.draft(segment, workshop, &settings)?;
        let plan = draft.finish(&settings)?.bound_to(&[], &settings)?;
        let plan = plan.ok_or_else(|| Error::internal("shapes that have symbols"))?;
        Ok(Made { prologue, plan })
    }

    /// As [`Self::make`], the plan of the class of these shapes, with the class; `None` if they are in none.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub(crate) fn make_of_class(
        &self,
        (shapes, known): (&[Shape], &Known),
        workshop: &Workshop,
        level: Level,
        options: &Options,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Made>, Error> {
        let key = Key::new(shapes, known);
        let own = Shared::default();
        let settings = workshop.settings(&own, level, options, stop);
        let class = self.class_of_segments(&key, known, workshop, stop, |segment| {
            let (draft, prologue) = self.draft(segment, workshop, &settings)?;
            Ok((prologue, draft.finish(&settings)?))
        });
        let Ok(class) = class else { return Ok(None) };
        let values = class.values(&key);
        let bound = |values: Vec<usize>| class.made.1.bound_to(&values, &settings);
        let plan = values.map_or(Ok(None), bound)?;
        let prologue = class.made.0;
        Ok(plan.map(|plan| Made { prologue, plan }))
    }

    /// Makes the plans for inputs of these shapes, as far as shapes do not depend on what a run finds.
    pub(crate) fn prepare(&self, shapes: &[Shape], workshop: &Workshop) -> Result<(), Error> {
        let mut known = Known::default();
        loop {
            let plan = self.plan(shapes, &known, workshop, never())?;
            let types = plan.calls.iter().flat_map(|c| &c.outputs);
            let all_static = types.clone().all(|(_, ty)| ty.shape.is_static());
            if plan.calls.is_empty() || !plan.wanted.is_empty() || !all_static {
                return Ok(());
            }
            known.computed.extend(plan.computed());
            known.computed.extend(types.cloned());
            known.forget(&plan.forgotten);
        }
    }
}

/// The plan of a class for `key`, whose symbols have `values`.
fn bind(
    class: &Class<SymbolicPlan>,
    values: &[usize],
    key: &Key,
    settings: &Settings<'_>,
    workshop: &Workshop,
) -> Result<Option<Plan>, Error> {
    let plan = class.made.bound_to(values, settings)?;
    // Variables that grow come by other shapes in each run.
    let may_be_hot = workshop.config.specialization == Specialization::Hot && key.room.is_empty();
    let heat = may_be_hot.then(|| Heat::new(class.time));
    Ok(plan.map(|plan| Plan { heat, ..plan }))
}

/// Bytes of the packed constants of plans; what several share counts once.
fn packed_bytes(plans: &LruCache<Key, Arc<Plan>>) -> usize {
    let mut seen = FxHashSet::default();
    let all = plans.iter().flat_map(|(_, plan)| plan.packed());
    let distinct = all.filter(|packed| seen.insert(Arc::as_ptr(packed)));
    distinct.map(|packed| packed.bytes()).sum()
}
