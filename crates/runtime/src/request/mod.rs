//! One run of a model at a time.

mod lending;
#[cfg(test)]
mod tests;
mod variables;

use crate::compiled::CompiledModel;
use crate::run::{Before, KernelTime, Run, Scratch, Texts, Variables};
use crate::stop::never;
use crate::taken_plans::{TakenPlan, TakenPlans};
use crate::{Error, Outputs};
use lending::Lending;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_graph::TensorId;
use vinelift_tensor::Tensor;

/// The tensors of one run of a model, and what its variables hold from one run to the next. Not shared: each thread
/// has requests of its own.
///
/// ```
/// use vinelift::{Core, Tensor};
///
/// let core = Core::new()?;
/// let model = core.read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())?;
/// let mut request = core.compile_model(&model)?.create_request();
/// request.set_input("data", Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
/// request.set_input("indices", Tensor::from_slice(&[1, 2], &[0i32, 2])?)?;
/// assert_eq!(
///     request.infer().unwrap_err().to_string(),
///     "model: layer 'gathered' (GatherElements, opset6): `indices`[0, 1] is 2, expected -2..=1"
/// );
/// # Ok::<(), vinelift::Error>(())
/// ```
pub struct InferRequest {
    compiled: CompiledModel,
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
    /// The tensors that the outputs of the next run are to be written to.
    lent: Vec<Option<Tensor>>,
    /// The tensors that were computed into such memory; empty between runs.
    computed_into: Vec<TensorId>,
    /// Memory that runs use again, for each unit.
    scratch: Vec<Scratch>,
    variables: Variables,
}

/// Options of one run.
#[derive(Debug, Default)]
pub struct RunOptions<'a> {
    /// Ends the run with [`Error::Cancelled`] soon after this has become true: within a tenth of a second, also
    /// while it compiles.
    pub stop: Option<&'a Arc<AtomicBool>>,
    /// Gets the time of each kernel; nothing if it is interpreted.
    pub times: Option<&'a mut Vec<KernelTime>>,
}

impl std::fmt::Debug for InferRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InferRequest")
            .field("model", &self.compiled.model().name())
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

impl CompiledModel {
    /// A request of its own inputs and outputs.
    pub fn create_request(&self) -> InferRequest {
        InferRequest::new(self.clone())
    }

    /// Runs the model once, on tensors for the inputs of these names, and gives the outputs by theirs. A
    /// [`InferRequest`] that is used again spares the memory that a first run asks for, and keeps variables.
    ///
    /// ```
    /// use vinelift::{Core, Tensor};
    ///
    /// let core = Core::new()?;
    /// let model = core.read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())?;
    /// let compiled = core.compile_model(&model)?;
    /// let outputs = compiled.run([
    ///     ("data", Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?),
    ///     ("indices", Tensor::from_slice(&[1, 2], &[1i32, 0])?),
    /// ])?;
    /// assert_eq!(*outputs["gathered"].as_slice::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), vinelift::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no input of a name, and those of [`InferRequest::infer`].
    pub fn run<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<Outputs, Error> {
        let mut request = self.create_request();
        for (name, tensor) in inputs {
            request.set_input(name, tensor)?;
        }
        request.infer()?;
        Ok(Outputs::new(
            self.clone(),
            std::mem::take(&mut request.outputs),
        ))
    }
}

impl InferRequest {
    fn new(compiled: CompiledModel) -> InferRequest {
        let inputs = vec![None; compiled.inputs().len()];
        InferRequest {
            compiled,
            inputs,
            outputs: Vec::new(),
            lent: Vec::new(),
            computed_into: Vec::new(),
            scratch: Vec::new(),
            variables: Variables::new(),
        }
    }

    /// The model that it runs.
    pub fn compiled_model(&self) -> &CompiledModel {
        &self.compiled
    }

    /// Sets the input called `name`, a name of the tensor or of its layer.
    ///
    /// # Errors
    /// If there is none, or if its type or shape is not what the model takes.
    pub fn set_input(&mut self, name: &str, tensor: Tensor) -> Result<(), Error> {
        self.set_input_at(self.compiled.input_index(name)?, tensor)
    }

    /// Sets the input at `position`.
    pub fn set_input_at(&mut self, position: usize, tensor: Tensor) -> Result<(), Error> {
        let count = self.inputs.len();
        let Some(port) = self.compiled.inputs().get(position) else {
            let text = format!("the model has no input {position}, it has {count}");
            return Err(self.compiled.misuse(text));
        };
        let fits =
            tensor.element_type() == port.element_type && port.shape.contains(tensor.shape());
        if !fits {
            let (ty, shape) = (tensor.element_type(), tensor.shape());
            let (name, expected_type, expected) = (port.name(), port.element_type, &port.shape);
            let text =
                format!("input '{name}' must be {expected_type}{expected}, found {ty}{shape:?}");
            return Err(self.compiled.misuse(text));
        }
        self.inputs[position] = Some(tensor);
        Ok(())
    }

    /// The tensor that the input at `position` has.
    pub fn input(&self, position: usize) -> Option<&Tensor> {
        self.inputs.get(position)?.as_ref()
    }

    /// Whether the input at `position` has a tensor.
    pub fn has_input(&self, position: usize) -> bool {
        self.inputs.get(position).is_some_and(Option::is_some)
    }

    /// Lends `memory` to the next run, to write the output at `position` to it: if the output has the
    /// type and shape of `memory` and is no copy of an input or constant. [`InferRequest::output`] is then
    /// that memory. Otherwise, and after the run, `memory` is left alone.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn lend_output(&mut self, position: usize, memory: Tensor) -> Result<(), Error> {
        let count = self.compiled.outputs().len();
        self.lent.resize(count, None);
        let Some(place) = self.lent.get_mut(position) else {
            return Err(self.no_output(position));
        };
        *place = Some(memory);
        Ok(())
    }

    /// Lets go of all inputs and outputs, and of what was lent.
    pub fn clear(&mut self) {
        self.inputs.fill(None);
        self.outputs.clear();
        self.lent.clear();
    }

    /// Runs the model on the inputs.
    ///
    /// # Errors
    /// If an input is missing, if the shapes do not fit each other, or if an index in a tensor is out
    /// of range. The outputs are then those of no run.
    pub fn infer(&mut self) -> Result<(), Error> {
        self.infer_with(RunOptions::default())
    }

    /// As [`InferRequest::infer`], and tells how long each kernel took. Empty if it is interpreted.
    pub fn infer_profiled(&mut self) -> Result<Vec<KernelTime>, Error> {
        let mut times = Vec::new();
        self.infer_with(RunOptions {
            times: Some(&mut times),
            ..RunOptions::default()
        })?;
        Ok(times)
    }

    /// The output at `position`, after a run.
    pub fn output(&self, position: usize) -> Result<&Tensor, Error> {
        self.outputs
            .get(position)
            .ok_or_else(|| match self.compiled.outputs().len() {
                count if position >= count => self.no_output(position),
                _ => self.compiled.misuse("the model has not run".to_owned()),
            })
    }

    fn no_output(&self, position: usize) -> Error {
        let count = self.compiled.outputs().len();
        let text = format!("the model has no output {position}, it has {count}");
        self.compiled.misuse(text)
    }

    /// The output called `name`, after a run.
    pub fn output_named(&self, name: &str) -> Result<&Tensor, Error> {
        self.output(self.compiled.output_index(name)?)
    }

    /// All outputs; none before a run.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// As [`InferRequest::infer`], with what `options` ask for.
    ///
    /// # Errors
    /// As [`InferRequest::infer`], and [`Error::Cancelled`].
    pub fn infer_with(&mut self, options: RunOptions<'_>) -> Result<(), Error> {
        self.run(options, None)
    }

    /// Runs the model, and tells which plans that took.
    pub(crate) fn infer_recorded(&mut self) -> Result<Vec<TakenPlan>, Error> {
        let mut taken = TakenPlans::default();
        self.run(RunOptions::default(), Some(&mut taken))?;
        Ok(taken.plans)
    }

    fn run(
        &mut self,
        options: RunOptions<'_>,
        taken: Option<&mut TakenPlans>,
    ) -> Result<(), Error> {
        self.outputs.clear();
        let compiled = self.compiled.clone();
        let (context, unit) = (&compiled.0.context, &compiled.0.unit);
        let mut lending = Lending {
            offered: &mut self.lent,
            scratch: &mut self.scratch,
            unit: unit.number,
            lent: &mut self.computed_into,
        };
        let file = compiled.model().file();
        let inputs = inputs(&self.inputs, &compiled).map_err(|e| e.of_model(file))?;
        while lending.scratch.len() < compiled.0.units {
            lending.scratch.push(Scratch::new()?);
        }
        lending.lend(&compiled);
        let mut deferred = Vec::new();
        let before = Before::of(&compiled.0.set_by_bodies, &self.variables);
        let mut run = Run {
            context,
            texts: Texts::new(&context.strings),
            scratch: lending.scratch,
            variables: &mut self.variables,
            times: options.times,
            taken,
            deferred: &mut deferred,
            stop: options.stop.unwrap_or(never()),
        };
        let outputs = run.unit(unit, inputs);
        deferred.into_iter().for_each(|job| compiled.compile(job));
        if outputs.is_err() {
            before.put_back(&mut self.variables);
        }
        self.outputs = outputs.map_err(|e| e.of_model(file))?;
        Ok(())
    }
}

/// The inputs, in order.
///
/// # Errors
/// If some have no tensor; all of these are named.
fn inputs(inputs: &[Option<Tensor>], compiled: &CompiledModel) -> Result<Vec<Tensor>, Error> {
    let missing: Vec<String> = inputs
        .iter()
        .zip(compiled.inputs())
        .filter(|(tensor, _)| tensor.is_none())
        .map(|(_, port)| format!("'{}' {}{}", port.name(), port.element_type, port.shape))
        .collect();
    if !missing.is_empty() {
        return Err(Error::Input(format!(
            "no tensor for input {}",
            missing.join(", ")
        )));
    }
    Ok(inputs.iter().flatten().cloned().collect())
}
