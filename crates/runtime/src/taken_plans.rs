//! The plans that a run takes.

use crate::Shape;
use crate::plan_key::PlanKey;
use rustc_hash::FxHashSet;
use vinelift_graph::Known;

/// The plans that a run takes, each once, in order.
#[derive(Default)]
pub(crate) struct TakenPlans {
    seen: FxHashSet<(usize, PlanKey)>,
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

impl TakenPlans {
    /// Loops may take any number of plans; nobody looks at more.
    const MOST: usize = 1000;

    /// Notes that a run takes a plan of a unit.
    pub(crate) fn note(&mut self, unit: usize, shapes: &[Shape], known: &Known) {
        let is_new = self.plans.len() < TakenPlans::MOST
            && self.seen.insert((unit, PlanKey::new(shapes, known)));
        if is_new {
            self.plans.push(TakenPlan {
                unit,
                shapes: shapes.to_vec(),
                known: known.clone(),
            });
        }
    }
}
