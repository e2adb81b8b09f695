//! Runs a unit: segment by segment, each specialised to what the ones before it found, with the calls between them.

mod calls;
mod profile;
mod scratch;
mod values;
mod variables;

use crate::compile::plan::{Output, Plan};
use crate::compile::variables::InPlaceUpdate;
use crate::execute::{Memory, execute, grow};
use crate::stop;
use crate::unit::{Taken, Unit, Workshop};
use crate::{Error, Shape, Tensor};
pub use profile::KernelTime;
pub(crate) use scratch::Scratch;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
pub(crate) use values::Texts;
use values::Values;
pub(crate) use variables::Variables;

/// A run of a model with its sub-graphs.
pub(crate) struct Run<'a> {
    pub(crate) workshop: &'a Workshop,
    pub(crate) texts: Texts<'a>,
    /// For each unit.
    pub(crate) scratch: &'a mut [Scratch],
    pub(crate) variables: &'a mut Variables,
    pub(crate) times: Option<&'a mut Vec<KernelTime>>,
    /// Gets the plans that it takes.
    pub(crate) taken: Option<&'a mut Taken>,
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
        for (tensor, variable) in &interface.reads {
            if let Some(value) = self.variables.get(variable) {
                values.set(*tensor, value.clone(), &mut self.texts)?;
            }
        }
        // The tensors whose memory the next run can use.
        let mut own = Vec::new();
        let last = loop {
            stop::check(self.stop)?;
            let plan = self.plan(unit, &values)?;
            self.segment(unit, &plan, &mut values)?;
            own.extend(plan.outputs.iter().map(|(tensor, ..)| *tensor));
            if !plan.is_followed() {
                break plan;
            }
            for call in &plan.calls {
                self.call(unit, call, &plan, &mut values)?;
            }
            for tensor in &plan.wanted {
                let value = values.get(*tensor, &plan, &self.texts)?;
                values.known.values.insert(*tensor, value);
            }
        };
        let results = interface.results.iter();
        let results = results.map(|source| values.get(*source, &last, &self.texts));
        let results = results.collect::<Result<Vec<Tensor>, Error>>()?;
        // Only now: all readers have seen what the variables held before.
        let mut replaced = Vec::new();
        for (source, variable) in &interface.assigns {
            let value = values.get(*source, &last, &self.texts)?;
            let before = self.variables.insert(variable.clone(), value);
            replaced.push((*source, before));
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

    /// The plan of the next segment.
    fn plan(&mut self, unit: &Unit, values: &Values<'_>) -> Result<Arc<Plan>, Error> {
        let known = &values.known;
        let is_first = known.computed.is_empty() && known.values.is_empty();
        if let Some(taken) = self.taken.as_deref_mut() {
            let shapes: Vec<Shape> = values.inputs.iter().map(|t| t.shape().to_vec()).collect();
            taken.note(unit.number, &shapes, known);
        }
        let first = &mut self.scratch[unit.number].first;
        let shapes = || values.inputs.iter().map(Tensor::shape);
        if let Some((of, plan)) = first
            && is_first
            && of.iter().map(Vec::as_slice).eq(shapes())
        {
            return Ok(plan.clone());
        }
        let shapes: Vec<Shape> = shapes().map(<[usize]>::to_vec).collect();
        let plan = unit.plan(&shapes, known, self.workshop, self.stop)?;
        if is_first {
            *first = Some((shapes, plan.clone()));
        }
        Ok(plan)
    }

    /// Runs one segment; its outputs are kept afterwards.
    fn segment(
        &mut self,
        unit: &Unit,
        plan: &Arc<Plan>,
        values: &mut Values<'_>,
    ) -> Result<(), Error> {
        let scratch = &mut self.scratch[unit.number];
        grow(&mut scratch.arena, plan.arena)?;
        scratch.keep_journals(&plan.journals)?;
        let (mut outputs, in_place) = outputs(plan, values, self.variables, scratch)?;
        let journals = outputs.len();
        outputs.append(&mut scratch.journals);
        let mut memory = Memory {
            inputs: &values.inputs,
            kept: &values.kept,
            outputs: &mut outputs,
            arena: &mut scratch.arena,
            launch: &mut scratch.launch,
            pool: &self.workshop.pool,
            in_place: &in_place,
            stop: self.stop,
        };
        let mut durations = Vec::new();
        let timed = self.times.is_some();
        let end = execute(plan, &mut memory, timed.then_some(&mut durations));
        if end.is_err() {
            for update in in_place {
                update.undo(self.variables, &mut outputs, &plan.slots)?;
            }
        }
        scratch.journals = outputs.split_off(journals);
        end?;
        if let (Some(times), Some(native)) = (self.times.as_deref_mut(), &plan.native) {
            let steps = native.steps.iter().zip(durations);
            times.extend(steps.map(|(step, time)| KernelTime::of_step(step, time)));
        }
        if plan.is_followed() {
            values.known.computed.extend(plan.computed());
        }
        values.keep(plan, outputs);
        Ok(())
    }
}

/// Memory for the outputs of a plan, and the updates among them that are in place: their outputs have the memory of the
/// variable.
fn outputs<'p>(
    plan: &'p Plan,
    values: &mut Values<'_>,
    variables: &mut Variables,
    scratch: &mut Scratch,
) -> Result<(Vec<Tensor>, Vec<&'p InPlaceUpdate>), Error> {
    let held = plan.updates.iter().filter_map(|update| {
        let output = &plan.outputs[update.output];
        let held = update.take(variables, &mut values.kept, output)?;
        Some((update, held))
    });
    let held: Vec<(&InPlaceUpdate, Tensor)> = held.collect();
    let memory =
        |(k, output): (usize, &Output)| match held.iter().find(|(update, _)| update.output == k) {
            Some((_, held)) => Ok(held.clone()),
            None => scratch.memory(output),
        };
    let outputs = plan.outputs.iter().enumerate().map(memory);
    let outputs = outputs.collect::<Result<Vec<Tensor>, Error>>();
    let mut in_place = Vec::with_capacity(held.len());
    for (update, held) in held {
        in_place.push(update);
        if outputs.is_err() {
            update.give_back(variables, held);
        }
    }
    Ok((outputs?, in_place))
}
