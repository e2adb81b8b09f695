//! The kernels of a plan, in numbers.

use crate::compile::arena::Placement;
use crate::compile::step::Step;
use std::sync::Arc;

/// The kernels of a plan.
#[derive(Clone)]
pub(crate) struct Native {
    pub(crate) steps: Arc<[Arc<Step>]>,
    /// Where they have their memory in the arena.
    pub(crate) placement: Arc<Placement>,
    /// The cost of the steps that threads share: nanoseconds on one thread.
    pub(crate) shared_cost: u64,
}

impl Native {
    /// These steps, with their memory.
    pub(super) fn new(steps: Vec<Arc<Step>>, placement: Arc<Placement>) -> Native {
        let shared = steps.iter().filter(|step| step.workers > 1);
        let shared_cost = shared.fold(0, |sum: u64, step| sum.saturating_add(step.cost));
        Native {
            steps: steps.into(),
            placement,
            shared_cost,
        }
    }
}
