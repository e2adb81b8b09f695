//! Runs a unit: segment by segment, each specialised to what the ones before it found, with the calls between them.

mod calls;
mod path;
mod profile;
mod scratch;
mod values;
mod variables;

use crate::compile::interface::Interface;
use crate::compile::plan::{Output, Plan};
use crate::compile::variables::InPlaceUpdate;
use crate::context::Context;
use crate::deferred::Deferred;
use crate::execute::{Memory, execute, grow};
use crate::stop;
use crate::taken_plans::{TakenPlan, TakenPlans};
use crate::unit::Unit;
use crate::{Error, Shape, Tensor};
pub use profile::KernelTime;
use rustc_hash::FxHashSet;
pub(crate) use scratch::Scratch;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
pub(crate) use values::Texts;
use values::Values;
use variables::InPlace;
pub(crate) use variables::{Before, Held, Variables};
use vinelift_nest::Order;
use vinelift_ops::TensorType;

/// A run of a model with its sub-graphs.
pub(crate) struct Run<'a> {
    pub(crate) context: &'a Context,
    pub(crate) texts: Texts<'a>,
    /// For each unit.
    pub(crate) scratch: &'a mut [Scratch],
    pub(crate) variables: &'a mut Variables,
    pub(crate) times: Option<&'a mut Vec<KernelTime>>,
    /// Gets the plans that it takes.
    pub(crate) taken: Option<&'a mut TakenPlans>,
    /// Gets what is to be compiled for runs to come.
    pub(crate) deferred: &'a mut Vec<Deferred>,
    /// Once true, the run ends soon.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl Run<'_> {
    /// The results of `unit` for these inputs.
    ///
    /// # Errors
    /// [`Error::Fault`] for values that no layer can take, [`Error::Cancelled`], and those of memory.
    pub(crate) fn unit(&mut self, unit: &Unit, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, Error> {
        let interface = &unit.interface;
        let mut values = Values::new(interface, inputs, &mut self.texts)?;
        self.read_variables(&mut values, interface)?;
        // The tensors whose memory the next run can use.
        let mut own = FxHashSet::default();
        let mut before: Option<Arc<Plan>> = None;
        self.scratch[unit.number].path.begin(unit.generation());
        let last = loop {
            stop::check(self.stop)?;
            let plan = self.plan(unit, &mut values, before.as_deref())?;
            self.segment(unit, &plan, &mut values)?;
            own.extend(plan.outputs.iter().map(|(tensor, ..)| *tensor));
            if !plan.is_followed() {
                break plan;
            }
            let shape_values = plan.shape_values.iter().cloned();
            values.known.values.extend(shape_values);
            for call in &plan.calls {
                self.call(unit, call, &plan, &mut values)?;
            }
            for tensor in &plan.wanted {
                let value = values.get(*tensor, &plan, &self.texts)?;
                values.known.values.insert(*tensor, value);
            }
            let spare = &mut self.scratch[unit.number].spare;
            let forgotten = values.forget(&plan.forgotten);
            spare.extend(forgotten.filter(|(tensor, _)| own.contains(tensor)));
            before = Some(plan);
        };
        let results = interface.results.iter();
        let results = results.map(|source| values.get(*source, &last, &self.texts));
        let results = results.collect::<Result<Vec<Tensor>, Error>>()?;
        // Only now: all readers have seen what the variables held before.
        let mut replaced = Vec::new();
        for (source, variable) in &interface.assigns {
            let value = values.get(*source, &last, &self.texts)?;
            let held = Held::after(value, last.growth(*source));
            let before = self.variables.insert(variable.clone(), held);
            replaced.push((*source, before.map(Held::into_memory)));
        }
        let spare = &mut self.scratch[unit.number].spare;
        for tensor in own {
            if let Some(value) = values.kept.remove(&tensor) {
                spare.insert(tensor, value);
            }
        }
        // The memory that a variable holds is no longer spare, but the memory that it held before is.
        drop(values);
        for (source, before) in replaced {
            spare.remove(&source);
            spare.extend(before.filter(Tensor::is_unshared).map(|t| (source, t)));
        }
        Ok(results)
    }

    /// Makes known what variables hold. What lies in memory with room is kept only once there is a plan.
    fn read_variables(
        &mut self,
        values: &mut Values<'_>,
        interface: &Interface,
    ) -> Result<(), Error> {
        for (tensor, variable) in &interface.reads {
            let Some(held) = self.variables.get(variable) else {
                continue;
            };
            let (element, shape) = (held.memory().element_type(), held.shape());
            let ty = TensorType::new(element, shape.as_slice().into());
            let fits = interface.graph.expect_held(tensor.node, &ty);
            fits.map_err(|e| Error::Fault(e.to_string()))?;
            match held.capacity() {
                Some(_) => values.declare(*tensor, element, &shape),
                None => values.set(*tensor, held.memory().clone(), &mut self.texts)?,
            }
        }
        Ok(())
    }

    /// The plan of the next segment, after that of `before`.
    fn plan(
        &mut self,
        unit: &Unit,
        values: &mut Values<'_>,
        before: Option<&Plan>,
    ) -> Result<Arc<Plan>, Error> {
        let shapes = |values: &Values<'_>| {
            let inputs = values.inputs.iter().map(|t| t.shape().to_vec());
            inputs.collect::<Vec<Shape>>()
        };
        if let Some(taken) = self.taken.as_deref_mut() {
            taken.note(unit.number, &shapes(values), &values.known);
        }
        if before.is_none() && !unit.interface.reads.is_empty() {
            if unit.may_grow()
                && let Some(plan) = self.plan_with_room(unit, &shapes(values), values)?
            {
                return Ok(plan);
            }
            self.keep_variables(values, &unit.interface)?;
        }
        let path = &mut self.scratch[unit.number].path;
        if let Some(plan) = path.next(values, before) {
            return Ok(plan);
        }
        let plan = unit.plan(&shapes(values), &values.known, self.context, self.stop)?;
        path.take(values, before, &plan);
        Ok(plan)
    }

    /// The plan by which variables grow in the memory that they hold, which gets room for that; `None` if there is none.
    fn plan_with_room(
        &mut self,
        unit: &Unit,
        shapes: &[Shape],
        values: &mut Values<'_>,
    ) -> Result<Option<Arc<Plan>>, Error> {
        let growing = unit.growing(shapes, &values.known, self.context, self.stop)?;
        for (tensor, axis, extent) in &growing {
            let mut reads = unit.interface.reads.iter();
            let variable = reads.find(|(read, _)| read == tensor);
            let held = variable.and_then(|(_, variable)| self.variables.get_mut(variable));
            let held = held.ok_or_else(|| Error::internal("a variable that holds nothing"))?;
            // A second handle to it would force a copy when it is changed in place.
            values.kept.remove(tensor);
            held.make_room(*axis, *extent)?;
            let capacity = held.capacity().unwrap_or_default();
            values.known.room.insert(*tensor, capacity.into());
        }
        if growing.is_empty() {
            return Ok(None);
        }
        let (context, deferred) = (self.context, &mut *self.deferred);
        let plan = unit.plan_with_room(shapes, &values.known, context, self.stop, deferred)?;
        for (tensor, variable) in &unit.interface.reads {
            if values.known.room.contains_key(tensor)
                && plan.is_some()
                && let Some(held) = self.variables.get(variable)
            {
                values.kept.insert(*tensor, held.memory().clone());
            }
        }
        values.known.room.clear();
        if plan.is_some() {
            self.keep_variables(values, &unit.interface)?;
        }
        Ok(plan)
    }

    /// Has the tensors be kept that variables hold, and that are not kept yet.
    fn keep_variables(
        &mut self,
        values: &mut Values<'_>,
        interface: &Interface,
    ) -> Result<(), Error> {
        for (tensor, variable) in &interface.reads {
            if let Some(held) = self.variables.get(variable)
                && !values.kept.contains_key(tensor)
            {
                let value = held.tensor().cloned();
                let text = || format!("out of memory: variable '{variable}', which grows");
                let missing = || Error::Fault(text());
                values.set(*tensor, value.ok_or_else(missing)?, &mut self.texts)?;
            }
        }
        Ok(())
    }

    /// Runs one segment; its outputs are kept afterwards.
    fn segment(
        &mut self,
        unit: &Unit,
        plan: &Arc<Plan>,
        values: &mut Values<'_>,
    ) -> Result<(), Error> {
        let scratch = &mut self.scratch[unit.number];
        grow(&mut scratch.arena, plan.binding.arena())?;
        scratch.keep_journals(&plan.journals)?;
        let (mut outputs, taken) = outputs(unit, plan, values, self.variables, scratch)?;
        let in_place: Vec<&InPlaceUpdate> = taken.iter().map(|taken| taken.update).collect();
        let journals = outputs.len();
        outputs.append(&mut scratch.journals);
        let mut memory = Memory {
            inputs: &values.inputs,
            kept: &values.kept,
            outputs: &mut outputs,
            arena: &mut scratch.arena,
            launch: &mut scratch.launch,
            pool: &self.context.pool,
            in_place: &in_place,
            stop: self.stop,
        };
        let mut durations = Vec::new();
        let timed = self.times.is_some();
        let start = plan.hotness.is_some().then(Instant::now);
        let end = execute(plan, &mut memory, timed.then_some(&mut durations));
        if let Some(start) = start
            && unit.add_run(plan, start.elapsed())
        {
            self.deferred.push(Deferred::Plan(TakenPlan {
                unit: unit.number,
                shapes: values.inputs.iter().map(|t| t.shape().to_vec()).collect(),
                known: values.known.clone(),
            }));
        }
        if end.is_err() {
            for taken in taken {
                taken.undo(self.variables, &mut outputs, &plan.binding.slots)?;
            }
        }
        scratch.journals = outputs.split_off(journals);
        end?;
        if let (Some(times), Some(native)) = (self.times.as_deref_mut(), &plan.binding.native) {
            let steps = native.steps.iter().zip(durations);
            let batches = plan.micro_batches();
            times.extend(steps.map(|(step, time)| KernelTime::of_step(step, batches, time)));
        }
        if plan.is_followed() {
            values.known.computed.extend(plan.computed());
        }
        values.keep(plan, outputs);
        Ok(())
    }
}

/// Memory for the outputs of a plan, and the variables among them that are updated in place.
fn outputs<'p>(
    unit: &Unit,
    plan: &'p Plan,
    values: &mut Values<'_>,
    variables: &mut Variables,
    scratch: &mut Scratch,
) -> Result<(Vec<Tensor>, Vec<InPlace<'p>>), Error> {
    let take = |update: &'p InPlaceUpdate| {
        let output = &plan.outputs[update.output];
        let order = update.growth.as_ref().map(|growth| growth.order);
        let is_in_order = match order {
            Some(Order::By(indices)) => values.is_in_order(&plan.binding.slots[indices.0 as usize]),
            _ => true,
        };
        update.take(variables, &mut values.kept, output, is_in_order)
    };
    let mut taken: Vec<InPlace<'p>> = plan.updates.iter().filter_map(take).collect();
    let mut memory = |(k, output): (usize, &Output)| {
        let own = taken.iter_mut().find(|taken| taken.update.output == k);
        match own.and_then(|taken| taken.memory.take()) {
            Some(memory) => Ok(memory),
            None => {
                let (tensor, element, _) = *output;
                let growth = plan.growth(tensor);
                let shape = growth.map_or(&output.2, |growth| &growth.memory);
                let memory = scratch.memory(tensor, element, shape);
                memory.map_err(|error| {
                    let layer = unit.interface.graph.node(tensor.node).label();
                    Error::Fault(format!("{layer}: {error}"))
                })
            }
        }
    };
    let mut outputs = Vec::with_capacity(plan.outputs.len());
    for output in plan.outputs.iter().enumerate() {
        match memory(output) {
            Ok(tensor) => outputs.push(tensor),
            Err(error) => {
                for mut taken in taken {
                    let memory = taken.memory.take();
                    let memory = memory.or_else(|| outputs.get(taken.update.output).cloned());
                    if let Some(memory) = memory {
                        taken.give_back(variables, memory);
                    }
                }
                return Err(error);
            }
        }
    }
    Ok((outputs, taken))
}
