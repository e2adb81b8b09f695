//! Plans for classes of shapes: found or made, and bound to the shapes of a run.

use super::Unit;
use crate::class::{Alone, Class, Settled};
use crate::classes::Found;
use crate::compile::Settings;
use crate::compile::draft::growing_in;
use crate::compile::plan::Plan;
use crate::compile::symbolic_plan::SymbolicPlan;
use crate::context::Context;
use crate::deferred::Deferred;
use crate::hotness::Hotness;
use crate::plan_key::PlanKey;
use crate::single_flight::hold;
use crate::stack::with_large_stack;
use crate::stop;
use crate::{Error, Specialization};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vinelift_graph::{Known, Segment, TensorId, specialize};
use vinelift_tensor::{Extent, Shape};

impl Unit {
    /// The variables that a plan with room lets grow where shapes are these: the tensor that is read, the axis, and the
    /// extent afterwards.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn growing(
        &self,
        shapes: &[Shape],
        known: &Known,
        context: &Context,
        stop: &AtomicBool,
    ) -> Result<Vec<(TensorId, usize, usize)>, Error> {
        if known.computed.is_empty() {
            return Ok(Vec::new());
        }
        let key = PlanKey::new(shapes, known);
        let mut kind = key.kind();
        let mut growing = self.growth_cache().of(&kind, &key);
        if growing.is_none() {
            let level = context.config.level;
            let found = |segment: Segment| Ok(growing_in(&segment, &self.interface, level));
            let class =
                || Ok::<_, Error>(self.class_of_segments(&key, known, context, stop, found));
            let class = with_large_stack(class)?;
            stop::check(stop)?;
            let mut growth_cache = self.growth_cache();
            growth_cache.add(&kind, class);
            growing = growth_cache.of(&kind, &key);
        }
        let growing = growing.unwrap_or_default();
        kind.set_room(growing.iter().map(|(tensor, ..)| *tensor).collect());
        Ok(match self.classes().is_pinned(&kind) {
            true => Vec::new(),
            false => growing,
        })
    }

    /// The plan by which variables grow in memory that has room; `None` if there is none for these shapes. `deferred` gets
    /// what the runs to come will need.
    pub(crate) fn plan_with_room(
        &self,
        shapes: &[Shape],
        known: &Known,
        context: &Context,
        stop: &Arc<AtomicBool>,
        deferred: &mut Vec<Deferred>,
    ) -> Result<Option<Arc<Plan>>, Error> {
        let key = PlanKey::new(shapes, known);
        if let Some(plan) = self.plans().get(&key) {
            return Ok(Some(plan.clone()));
        }
        let ahead = self.growth_cache().ahead(&key);
        if let Some(ahead) = ahead
            && self.class_of(&ahead).is_none()
        {
            deferred.push(Deferred::Class {
                unit: self.number,
                key: ahead,
                known: known.clone(),
            });
        }
        let plan = self.plan_of_class(&key, known, context, stop)?;
        Ok(plan.map(|plan| {
            let plan = Arc::new(plan);
            self.plans().put(key, plan.clone());
            plan
        }))
    }

    /// The plan for `key`, made from what there is for a class of keys; `None` if it is in no class, or if it is the first
    /// of its kind and gets a plan of its own.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(super) fn plan_of_class(
        &self,
        key: &PlanKey,
        known: &Known,
        context: &Context,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Plan>, Error> {
        if context.config.specialization == Specialization::Always {
            return Ok(None);
        }
        if self.starts_alone(key, context.config.specialization)
            && matches!(self.classes().find(&key.kind(), key), Found::First)
        {
            self.specialized
                .fetch_add(usize::from(self.is_open), Ordering::Release);
            return Ok(None);
        }
        self.plan_of_any_class(key, known, context, stop)
    }

    /// Whether the first shapes of the kind of `key` get a plan of their own. Many models and bodies never meet others:
    /// these need no class, which takes longer to compile and whose code is then compiled once more when it is hot.
    fn starts_alone(&self, key: &PlanKey, specialization: Specialization) -> bool {
        // Sizes that a run finds, and those of variables that may grow, differ at the next run.
        let others_follow = self.may_grow || !key.computed.is_empty() || !key.values.is_empty();
        self.is_body || (specialization == Specialization::Hot && !others_follow)
    }

    /// The plan for `key` of its class, which is made if there is none; `None` if it is in no class.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn plan_of_any_class(
        &self,
        key: &PlanKey,
        known: &Known,
        context: &Context,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Plan>, Error> {
        let kind = key.kind();
        let options = context.options();
        let settings = context.settings(&context.shared, context.config.level, &options, stop);
        let find = || self.classes().find(&kind, key);
        let mut found = find();
        if !matches!(found, Found::Class(..) | Found::Pinned) {
            let lock = self.classes_in_flight.of(&kind);
            let _held = hold(&lock, stop)?;
            found = find();
            if !matches!(found, Found::Class(..) | Found::Pinned) {
                let made = || Ok::<_, Error>(self.class(key, known, context, &settings));
                match with_large_stack(made)? {
                    Ok(class) => {
                        self.compiled.fetch_add(1, Ordering::Relaxed);
                        let class = Arc::new(class);
                        self.classes().add(&kind, class.clone());
                        return match class.values(key) {
                            Some(values) => bind(&class, &values, key, &settings, context),
                            None => Ok(None),
                        };
                    }
                    Err(Alone::Pinned(_)) => self.classes().pin(&kind),
                    Err(Alone::Unsuited(_)) => {
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
        bind(&class, &values, key, &settings, context)
    }

    /// The class of the shapes of `key`, with its plan.
    fn class(
        &self,
        key: &PlanKey,
        known: &Known,
        context: &Context,
        settings: &Settings<'_>,
    ) -> Result<Class<SymbolicPlan>, Alone> {
        self.class_of_segments(key, known, context, settings.stop, |segment| {
            let (draft, _) = self.draft(segment, context, settings)?;
            draft.finish(settings)
        })
    }

    /// Why the shapes of `key` are in no class, if one cannot be made.
    pub(crate) fn why_alone(
        &self,
        key: &PlanKey,
        known: &Known,
        context: &Context,
    ) -> Option<Alone> {
        let options = context.options();
        let level = context.config.level;
        let settings = context.settings(&context.shared, level, &options, stop::never());
        let alone = || Ok::<_, Error>(self.class(key, known, context, &settings).err());
        with_large_stack(alone).ok()?
    }

    /// The class of the shapes of `key`, with what `finish` makes of its segment.
    pub(crate) fn class_of_segments<T>(
        &self,
        key: &PlanKey,
        known: &Known,
        context: &Context,
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
            let given = self.given(shapes, known, &context.config, stop);
            let segment = specialize(graph, given, &mut context.strings.clone());
            segment.map_err(|e| context.model.error(e))
        };
        let finish = |mut segment: Segment| {
            segment.nest.adopt_symbols();
            finish(segment)
        };
        let inferred = self.inferred.as_deref();
        let settled = self.settled(key);
        Class::of(
            key,
            known,
            is_input_static,
            inferred,
            settled,
            lower,
            finish,
        )
    }

    /// The numbers that were settled when it was found out which variables grow: lowering does not ask for their memory.
    fn settled(&self, key: &PlanKey) -> Option<Settled> {
        if key.room.is_empty() {
            return None;
        }
        let mut key = key.clone();
        key.room.clear();
        self.growth_cache().settled(&key.kind(), &key)
    }
}

/// The plan of a class for `key`, whose symbols have `values`.
fn bind(
    class: &Class<SymbolicPlan>,
    values: &[usize],
    key: &PlanKey,
    settings: &Settings<'_>,
    context: &Context,
) -> Result<Option<Plan>, Error> {
    let plan = class.made.bound_to(values, settings)?;
    // Variables that grow come by other shapes in each run.
    let may_be_hot = context.config.specialization == Specialization::Hot && key.room.is_empty();
    let hotness = may_be_hot.then(|| Hotness::new(class.time));
    Ok(plan.map(|plan| Plan { hotness, ..plan }))
}
