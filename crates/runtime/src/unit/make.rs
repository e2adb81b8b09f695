//! From a segment to a plan: what depends on constants alone is run on the way.

use super::Unit;
use crate::compile::constants::Prologue;
use crate::compile::draft::Draft;
use crate::compile::plan::Plan;
use crate::compile::{Settings, Shared};
use crate::context::Context;
use crate::execute::constants;
use crate::plan_key::PlanKey;
use crate::{Error, Level};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::Options;
use vinelift_graph::{Known, Segment};
use vinelift_tensor::Shape;

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

impl Unit {
    /// The draft of a segment, after what depends on constants alone has been run, and the plan of that.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(super) fn draft(
        &self,
        segment: Segment,
        context: &Context,
        settings: &Settings<'_>,
    ) -> Result<(Draft, Option<Prologue>), Error> {
        let mut draft = Draft::new(&self.interface, segment, settings)?;
        let prologue = draft.prologue(settings)?;
        if let Some(prologue) = &prologue {
            draft.set_constants(constants(prologue, &context.pool, settings.stop)?);
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
        context: &Context,
        level: Level,
        options: &Options,
        stop: &Arc<AtomicBool>,
    ) -> Result<Made, Error> {
        // Code that plans share has no text.
        let own = Shared::default();
        let shared = match options.capture_text {
            true => &own,
            false => &context.shared,
        };
        let settings = context.settings(shared, level, options, stop);
        let (draft, prologue) = self.draft(segment, context, &settings)?;
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
        context: &Context,
        level: Level,
        options: &Options,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Made>, Error> {
        let key = PlanKey::new(shapes, known);
        let own = Shared::default();
        let settings = context.settings(&own, level, options, stop);
        let class = self.class_of_segments(&key, known, context, stop, |segment| {
            let (draft, prologue) = self.draft(segment, context, &settings)?;
            Ok((prologue, draft.finish(&settings)?))
        });
        let Ok(class) = class else { return Ok(None) };
        let values = class.values(&key);
        let bound = |values: Vec<usize>| class.made.1.bound_to(&values, &settings);
        let plan = values.map_or(Ok(None), bound)?;
        let prologue = class.made.0;
        Ok(plan.map(|plan| Made { prologue, plan }))
    }
}
