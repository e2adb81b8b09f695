//! The plans that the last run took: a run takes the same ones again as long as it meets the same shapes and values.

use crate::compile::plan::Plan;
use crate::plan_key::Value;
use crate::run::values::Values;
use crate::{Shape, Tensor};
use std::sync::Arc;

/// The plans of the last run of a unit, segment by segment.
#[derive(Default)]
pub(super) struct Path {
    steps: Vec<(Arrival, Arc<Plan>)>,
    /// [`Unit::generation`](crate::unit::Unit::generation) when they were taken.
    generation: usize,
    /// How many of them this run has taken.
    taken: usize,
}

/// The shapes and values that a run learns between one segment and the next.
#[derive(PartialEq)]
struct Arrival {
    /// Of the inputs, of what variables held if they held something, or of what calls gave.
    shapes: Vec<Option<Shape>>,
    /// Copies of the values that were waited for: the run does not keep the tensors.
    values: Vec<(Shape, Value)>,
}

impl Path {
    /// A run begins; there may be other plans if `generation` is not that of the last.
    pub(super) fn begin(&mut self, generation: usize) {
        self.taken = 0;
        if self.generation != generation {
            self.generation = generation;
            self.steps.clear();
        }
    }

    /// The plan that the last run took here, if this one has come the same way; `before` is the plan of the segment
    /// before.
    pub(super) fn next(&mut self, values: &Values<'_>, before: Option<&Plan>) -> Option<Arc<Plan>> {
        let (arrival, plan) = self.steps.get(self.taken)?;
        if !arrival.is_that_of(values, before) {
            return None;
        }
        self.taken += 1;
        Some(plan.clone())
    }

    /// Notes that this run takes `plan`, and not what the last one took.
    pub(super) fn take(&mut self, values: &Values<'_>, before: Option<&Plan>, plan: &Arc<Plan>) {
        self.steps.truncate(self.taken);
        self.steps.push((Arrival::of(values, before), plan.clone()));
        self.taken += 1;
    }
}

impl Arrival {
    fn of(values: &Values<'_>, before: Option<&Plan>) -> Arrival {
        Arrival {
            shapes: shapes(values, before)
                .map(|s| s.map(<[usize]>::to_vec))
                .collect(),
            values: waited_for(values, before).collect(),
        }
    }

    fn is_that_of(&self, values: &Values<'_>, before: Option<&Plan>) -> bool {
        let own = self.shapes.iter().map(Option::as_deref);
        own.eq(shapes(values, before)) && waited_for(values, before).eq(self.values.iter().cloned())
    }
}

fn shapes<'v>(
    values: &'v Values<'_>,
    before: Option<&'v Plan>,
) -> impl Iterator<Item = Option<&'v [usize]>> {
    let inputs = before.is_none().then(|| values.inputs.iter()).into_iter();
    let inputs = inputs.flatten().map(|input| Some(input.shape()));
    let calls = before.into_iter().flat_map(|plan| &plan.calls);
    let given = calls.flat_map(|call| call.outputs.iter().map(|(tensor, _)| *tensor));
    let read = before.is_none().then(|| values.reads()).into_iter();
    let tensors = read.flatten().chain(given);
    inputs.chain(tensors.map(|tensor| values.kept.get(&tensor).map(Tensor::shape)))
}

fn waited_for<'v>(
    values: &'v Values<'_>,
    before: Option<&'v Plan>,
) -> impl Iterator<Item = (Shape, Value)> {
    let wanted = before.into_iter().flat_map(|plan| &plan.wanted);
    let wanted = wanted.filter_map(|tensor| values.known.values.get(tensor));
    wanted.map(|value| (value.shape().to_vec(), Value::of(value)))
}
