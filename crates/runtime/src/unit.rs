//! A model or a sub-graph with the code that was made for it.

mod make;
mod of_class;
mod prepare;

use crate::class::Class;
use crate::classes::Classes;
use crate::compile::interface::Interface;
use crate::compile::plan::Plan;
use crate::compile::symbolic_plan::SymbolicPlan;
use crate::context::Context;
use crate::deferred::Deferred;
use crate::growth_cache::GrowthCache;
use crate::plan_key::{KeyKind, PlanKey};
use crate::single_flight::{SingleFlight, hold};
use crate::stack::with_large_stack;
use crate::statistics::Statistics;
use crate::{Config, Error, Level, Specialization};
use lru::LruCache;
pub(crate) use make::Made;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vinelift_graph::{
    self as graph, Control, Given, Known, NodeIndex, NodeKind, Segment, Stop, Strings, Types,
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
    plans: Mutex<LruCache<PlanKey, Arc<Plan>>>,
    /// The plans, and the classes, that a thread is making right now.
    plans_in_flight: SingleFlight<PlanKey>,
    classes_in_flight: SingleFlight<KeyKind>,
    growth_cache: Mutex<GrowthCache>,
    /// Whether it is a model that leaves shapes of its inputs open.
    is_open: bool,
    /// Whether there are variables of changing shapes that may grow in memory with room.
    may_grow: bool,
    /// How many plans were compiled.
    compiled: AtomicUsize,
    /// How many of these for the first shapes, or for shapes of a class that were hot.
    specialized: AtomicUsize,
    /// How often a plan of a class was bound to the numbers of other shapes.
    bound: AtomicUsize,
    /// How long plans of classes have run, in nanoseconds.
    generic_time: AtomicU64,
}

/// The bytes of packed constants that the plans of a unit may hold together, unless one alone holds more.
const MOST_PACKED: usize = 256 << 20;

impl Unit {
    /// The unit of a model, whose types are `inferred`, or of a body that `control` runs, with the units of its sub-graphs.
    /// `strings` gets the texts of all constants; `count` is the number of units so far, and counts on.
    pub(crate) fn new(
        graph: &Arc<graph::Model>,
        inferred: Option<Arc<Types>>,
        control: Option<&Control>,
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
                let control = match &node.kind {
                    NodeKind::Control(control) => Some(control),
                    _ => None,
                };
                let unit = Unit::new(body, None, control, config, strings, count)?;
                bodies.insert((index, *kind), unit);
            }
        }
        let grows =
            config.level == Level::Scheduled && config.specialization != Specialization::Always;
        let interface = match control.filter(|_| grows) {
            Some(control) => Interface::of_loop(graph, control, number),
            None => Interface::of(graph),
        };
        // Other variables of a body stay as they are: it runs several times, and a run that fails needs what they held.
        let is_carried = interface.carried.len() == interface.reads.len();
        let is_dynamic = |id: &str| {
            let ty = graph.variable(id);
            ty.is_none_or(|ty| !ty.shape.is_static())
        };
        let may_grow = grows
            && (inferred.is_some() || is_carried)
            && interface.reads.iter().any(|(_, id)| is_dynamic(id));
        Ok(Unit {
            number,
            is_open: inferred.is_some() && leaves_open(graph),
            interface,
            is_body: inferred.is_none(),
            inferred,
            bodies,
            classes: Mutex::default(),
            plans: Mutex::new(LruCache::new(config.cache_size)),
            plans_in_flight: SingleFlight::default(),
            classes_in_flight: SingleFlight::default(),
            growth_cache: Mutex::default(),
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

    /// The variables that its sub-graphs set, each time they run.
    pub(crate) fn set_by_bodies(&self) -> Vec<String> {
        let of_body = |body: &Unit| {
            let own = body.interface.assigns.iter();
            let own: Vec<String> = own.map(|(_, variable)| variable.clone()).collect();
            [own, body.set_by_bodies()].concat()
        };
        self.bodies.values().flat_map(of_body).collect()
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

    /// Adds what the unit and those of its sub-graphs have made so far.
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
        context: &Context,
        stop: &Arc<AtomicBool>,
    ) -> Result<Arc<Plan>, Error> {
        let key = PlanKey::new(shapes, known);
        if let Some(plan) = self.plans().get(&key) {
            return Ok(plan.clone());
        }
        // One thread makes what several ask for at once, and the others wait for it.
        let lock = self.plans_in_flight.of(&key);
        let _held = hold(&lock, stop)?;
        if let Some(plan) = self.plans().get(&key) {
            return Ok(plan.clone());
        }
        // Not under the lock of all plans: other requests go on with the plans they have.
        let plan = match self.plan_of_class(&key, known, context, stop)? {
            Some(plan) => {
                let alone = || with_large_stack(|| self.segment(shapes, known, context, stop));
                debug_assert!(plan.agrees_with(&alone()?));
                plan
            }
            None => self.plan_alone(shapes, known, context, stop)?,
        };
        let plan = Arc::new(plan);
        let mut plans = self.plans();
        plans.put(key, plan.clone());
        // Plans of a class share what they pack.
        let is_bound = !plan.binding.values.is_empty();
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
        context: &Context,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Error> {
        let plan = self.plan_alone(shapes, known, context, stop)?;
        self.plans()
            .put(PlanKey::new(shapes, known), Arc::new(plan));
        // Whoever sees the number asks for its plans again.
        self.specialized.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// A number that is another one after plans were replaced.
    pub(crate) fn generation(&self) -> usize {
        self.specialized.load(Ordering::Acquire)
    }

    /// Counts a run of a plan. Returns whether its shapes are to be [specialised](Self::specialize) now.
    pub(crate) fn add_run(&self, plan: &Plan, run: Duration) -> bool {
        let hotness = plan.hotness.as_ref();
        hotness.is_some_and(|hotness| hotness.add(run, &self.generic_time))
    }

    /// The plan for these shapes and no others.
    fn plan_alone(
        &self,
        shapes: &[Shape],
        known: &Known,
        context: &Context,
        stop: &Arc<AtomicBool>,
    ) -> Result<Plan, Error> {
        with_large_stack(|| {
            self.compiled.fetch_add(1, Ordering::Relaxed);
            let segment = self.segment(shapes, known, context, stop)?;
            let (options, level) = (context.options(), context.config.level);
            Ok(self.make(segment, context, level, &options, stop)?.plan)
        })
    }

    /// The class to which a key belongs, if it was met.
    pub(crate) fn class_of(&self, key: &PlanKey) -> Option<Arc<Class<SymbolicPlan>>> {
        let found = self.classes().look(&key.kind(), key);
        found.map(|(class, _)| class)
    }

    /// Whether [`Unit::growing`] may find any.
    pub(crate) fn may_grow(&self) -> bool {
        self.may_grow
    }

    /// Compiles what runs to come will need.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory; runs then compile what they need.
    pub(crate) fn compile(
        &self,
        deferred: &Deferred,
        context: &Context,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Error> {
        match deferred {
            Deferred::Plan(plan) => self.specialize(&plan.shapes, &plan.known, context, stop),
            Deferred::Class { key, known, .. } => {
                self.plan_of_any_class(key, known, context, stop).map(drop)
            }
        }
    }

    fn growth_cache(&self) -> MutexGuard<'_, GrowthCache> {
        self.growth_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn plans(&self) -> MutexGuard<'_, LruCache<PlanKey, Arc<Plan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment for these shapes alone.
    fn segment(
        &self,
        shapes: &[Shape],
        known: &Known,
        context: &Context,
        stop: &AtomicBool,
    ) -> Result<Segment, Error> {
        let shapes: Vec<Vec<Extent>> = shapes.iter().map(|s| extents(s)).collect();
        let given = self.given(&shapes, known, &context.config, stop);
        let segment = specialize(&self.interface.graph, given, &mut context.strings.clone());
        segment.map_err(|e| context.model.error(e))
    }

    fn classes(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a shape of an input is not all known.
fn leaves_open(graph: &graph::Model) -> bool {
    let mut types = graph.parameters.iter().map(|p| graph.declared_type(*p));
    types.any(|ty| !ty.shape.is_static())
}

/// Bytes of the packed constants of plans; what several share counts once.
fn packed_bytes(plans: &LruCache<PlanKey, Arc<Plan>>) -> usize {
    let mut seen = FxHashSet::default();
    let all = plans.iter().flat_map(|(_, plan)| plan.packed());
    let distinct = all.filter(|packed| seen.insert(Arc::as_ptr(packed)));
    distinct.map(|packed| packed.bytes()).sum()
}
