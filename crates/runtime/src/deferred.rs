//! Compilations that a run leaves to the background.

use crate::plan_key::PlanKey;
use crate::taken_plans::TakenPlan;
use vinelift_graph::Known;

/// A compilation that a run leaves to the background.
pub(crate) enum Deferred {
    /// A plan for shapes that have become hot.
    Plan(TakenPlan),
    /// The class of shapes that are to come if variables go on growing.
    Class {
        unit: usize,
        key: PlanKey,
        known: Known,
    },
}
