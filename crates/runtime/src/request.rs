//! One run of a model at a time.

use crate::compiled::CompiledModel;
use crate::run::{KernelTime, Run, Scratch, Texts, Variables};
use crate::stop::never;
use crate::taken::{Taken, TakenPlan};
use crate::{Error, Outputs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_graph::TensorId;
use vinelift_tensor::{ElementType, Tensor};

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
///     "layer 'gathered' (GatherElements, opset6): `indices`[0, 1] is 2, expected -2..=1"
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
            return Err(Error::Input(format!(
                "the model has no input {position}, it has {count}"
            )));
        };
        let fits =
            tensor.element_type() == port.element_type && port.shape.contains(tensor.shape());
        if !fits {
            let (ty, shape) = (tensor.element_type(), tensor.shape());
            return Err(Error::Input(format!(
                "input '{}' must be {}{}, found {ty}{shape:?}",
                port.name(),
                port.element_type,
                port.shape
            )));
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
                _ => Error::Input("the model has not run".to_owned()),
            })
    }

    fn no_output(&self, position: usize) -> Error {
        let count = self.compiled.outputs().len();
        Error::Input(format!(
            "the model has no output {position}, it has {count}"
        ))
    }

    /// The output called `name`, after a run.
    pub fn output_named(&self, name: &str) -> Result<&Tensor, Error> {
        self.output(self.compiled.output_index(name)?)
    }

    /// All outputs; none before a run.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// The value of the variable called `name`; `None` before a run has set it, or if there is no memory for a copy of one
    /// that grows.
    pub fn variable(&self, name: &str) -> Option<&Tensor> {
        self.compiled.0.caches.value(name, &self.variables)
    }

    /// The variables that hold something, in the order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.compiled.0.caches.values(&self.variables)
    }

    /// Gives variables memory of their own that have that of an input or output: for programs whose memory those are.
    ///
    /// # Errors
    /// If there is no memory; then no variable holds anything.
    pub fn own_variables(&mut self) -> Result<(), Error> {
        let inputs = self.inputs.iter().flatten();
        let tensors = || inputs.clone().chain(&self.outputs);
        let mut failed = None;
        for held in self.variables.values_mut() {
            let value = held.memory();
            let start = value.bytes().as_ptr();
            if tensors().any(|t| t.bytes().as_ptr_range().contains(&start)) {
                let (ty, shape) = (value.element_type(), value.shape());
                match Tensor::from_bytes(ty, shape, value.bytes()) {
                    Ok(own) => *held = own.into(),
                    Err(error) => failed = Some(error),
                }
            }
        }
        match failed {
            Some(error) => {
                self.reset();
                Err(error.into())
            }
            None => Ok(()),
        }
    }

    /// Sets what the variable called `name` holds when the next run starts.
    ///
    /// # Errors
    /// If the model has no such variable, or one of another type; if there is no memory to store it otherwise.
    pub fn set_variable(&mut self, name: &str, value: Tensor) -> Result<(), Error> {
        let model = self.compiled.model();
        if !model.summary().variables.iter().any(|v| v == name) {
            let text = format!("the model has no variable '{name}'");
            return Err(Error::Input(text));
        }
        if let Some(ty) = model.graph.variable(name)
            && !(ty.element == value.element_type() && ty.shape.contains(value.shape()))
        {
            let text = format!("variable '{name}' must be {ty}, found {value}");
            return Err(Error::Input(text));
        }
        let caches = &self.compiled.0.caches;
        caches.set(name, value, &mut self.variables)
    }

    /// Has the variable called `name` hold nothing, so that the next run starts from its initial value.
    pub fn reset_variable(&mut self, name: &str) {
        self.compiled.0.caches.reset(name, &mut self.variables);
    }

    /// Has every variable hold nothing, so that the next run starts from their initial values.
    pub fn reset(&mut self) {
        self.variables.clear();
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
        let mut taken = Taken::default();
        self.run(RunOptions::default(), Some(&mut taken))?;
        Ok(taken.plans)
    }

    fn run(&mut self, options: RunOptions<'_>, taken: Option<&mut Taken>) -> Result<(), Error> {
        self.outputs.clear();
        let compiled = self.compiled.clone();
        let (workshop, unit) = (&compiled.0.workshop, &compiled.0.unit);
        let mut lending = Lending {
            offered: &mut self.lent,
            scratch: &mut self.scratch,
            unit: unit.number,
            lent: &mut self.computed_into,
        };
        let inputs = inputs(&self.inputs, &compiled)?;
        while lending.scratch.len() < compiled.0.units {
            lending.scratch.push(Scratch::new()?);
        }
        lending.lend(&compiled);
        let mut later = Vec::new();
        let mut run = Run {
            workshop,
            texts: Texts::new(&workshop.strings),
            scratch: lending.scratch,
            variables: &mut self.variables,
            times: options.times,
            taken,
            later: &mut later,
            stop: options.stop.unwrap_or(never()),
        };
        let outputs = run.unit(unit, inputs);
        later.into_iter().for_each(|job| compiled.compile(job));
        self.outputs = outputs?;
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

/// The memory that is lent to one run, which lets go of it whatever its end: a panic is one, too.
struct Lending<'a> {
    /// For each output, or for none.
    offered: &'a mut Vec<Option<Tensor>>,
    scratch: &'a mut Vec<Scratch>,
    /// The unit of the model itself.
    unit: usize,
    /// The tensors that are to be computed into memory that was lent.
    lent: &'a mut Vec<TensorId>,
}

impl Lending<'_> {
    /// Has the outputs that memory is offered for computed into it. Of several that are the same tensor, the
    /// first is.
    fn lend(&mut self, compiled: &CompiledModel) {
        let ports = compiled
            .outputs()
            .iter()
            .zip(&compiled.0.unit.interface.results);
        let ports = ports.zip(&compiled.0.is_first_of_its_tensor);
        for (memory, ((port, tensor), is_first)) in self.offered.drain(..).zip(ports) {
            let fits = |memory: &Tensor| memory.element_type() == port.element_type;
            if let Some(memory) = memory.filter(fits)
                && port.element_type != ElementType::String
                && *is_first
            {
                self.lent.push(*tensor);
                self.scratch[self.unit].lend(*tensor, memory);
            }
        }
    }
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        self.offered.clear();
        if let Some(scratch) = self.scratch.get_mut(self.unit) {
            self.lent
                .drain(..)
                .for_each(|tensor| scratch.take_back(tensor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Core;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    fn request() -> InferRequest {
        let core = Core::new().unwrap();
        let model = core.read_model_from_memory(crate::doc::GATHER.as_bytes(), Vec::new());
        core.compile_model(&model.unwrap())
            .unwrap()
            .create_request()
    }

    fn set_inputs(request: &mut InferRequest, indices: &[i32]) {
        let data = Tensor::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
        request.set_input("data", data).unwrap();
        let indices = Tensor::from_slice(&[indices.len() / 2, 2], indices).unwrap();
        request.set_input("indices", indices).unwrap();
    }

    /// Memory whose owner can tell when it is let go of.
    struct Lent(
        Vec<u8>,
        #[expect(dead_code, reason = "it is counted")] Arc<()>,
    );

    impl AsRef<[u8]> for Lent {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl AsMut<[u8]> for Lent {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }

    #[test]
    fn outputs_are_written_to_what_is_lent_for_one_run() {
        let mut request = request();
        let owner = Arc::new(());
        let lend = |shape: &[usize]| {
            let bytes = vec![0; shape.iter().product::<usize>() * 4];
            Tensor::from_memory(ElementType::F32, shape, Lent(bytes, owner.clone())).unwrap()
        };
        for (shape, is_used) in [(&[1, 2], true), (&[2, 1], false), (&[1, 2], true)] {
            set_inputs(&mut request, &[1, 0]);
            let memory = lend(shape);
            let start = memory.bytes().as_ptr();
            request.lend_output(0, memory).unwrap();
            request.infer().unwrap();
            let output = request.output(0).unwrap();
            assert_eq!(*output.as_slice::<f32>().unwrap(), [3.0, 2.0]);
            assert_eq!(output.bytes().as_ptr() == start, is_used);
            assert_eq!(Arc::strong_count(&owner) == 2, is_used);
            request.clear();
            assert_eq!(Arc::strong_count(&owner), 1, "it is let go of");
        }
        // A run that fails lets go of it, too.
        set_inputs(&mut request, &[1, 7]);
        request.lend_output(0, lend(&[1, 2])).unwrap();
        request.infer().unwrap_err();
        assert_eq!(Arc::strong_count(&owner), 1);
        let other = Tensor::zeros(ElementType::I32, &[1, 2]).unwrap();
        request.lend_output(0, other.clone()).unwrap();
        set_inputs(&mut request, &[0, 0]);
        request.infer().unwrap();
        assert_eq!(request.output(0).unwrap().element_type(), ElementType::F32);
        assert_eq!(
            request.lend_output(1, other).unwrap_err().to_string(),
            "the model has no output 1, it has 1"
        );
        request.clear();
        let missing = request.infer().unwrap_err().to_string();
        assert!(
            missing.starts_with("no tensor for input 'data'"),
            "{missing}"
        );
    }

    /// A run that ends in a panic lets go of what was lent, too: here the first of two parts of the run cannot
    /// read its input, and the second would write the output.
    #[test]
    fn what_is_lent_is_given_back_after_a_panic() {
        struct Unreadable([u8; 16], Arc<AtomicBool>);
        impl AsRef<[u8]> for Unreadable {
            fn as_ref(&self) -> &[u8] {
                assert!(!self.1.load(Ordering::Relaxed), "told to");
                &self.0
            }
        }
        impl AsMut<[u8]> for Unreadable {
            fn as_mut(&mut self) -> &mut [u8] {
                &mut self.0
            }
        }
        let text = r#"<net name="found" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>
            <output><port id="0"/></output></layer>
            <layer id="1" name="found" type="NonZero" version="opset3"><data output_type="i64"/>
            <input><port id="0"/></input><output><port id="1"/></output></layer>
            <layer id="2" name="floats" type="Convert" version="opset1"><data destination_type="f32"/>
            <input><port id="0"/></input><output><port id="1"/></output></layer>
            <layer id="3" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
            </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
            <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></net>"#;
        let core = Core::new().unwrap();
        let model = core.read_model_from_memory(text.as_bytes(), Vec::new());
        let compiled = core.compile_model(&model.unwrap()).unwrap();
        let mut request = compiled.create_request();
        let is_broken = Arc::new(AtomicBool::new(false));
        let ones: Vec<u8> = [0f32, 1.0, 0.0, 1.0]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let input = Unreadable(ones.try_into().unwrap(), is_broken.clone());
        let input = Tensor::from_memory(ElementType::F32, &[4], input).unwrap();
        request.set_input("x", input).unwrap();
        let owner = Arc::new(());
        let memory = Lent(vec![0; 8], owner.clone());
        let memory = Tensor::from_memory(ElementType::F32, &[1, 2], memory).unwrap();
        request.lend_output(0, memory).unwrap();
        is_broken.store(true, Ordering::Relaxed);
        catch_unwind(AssertUnwindSafe(|| request.infer())).unwrap_err();
        assert_eq!(Arc::strong_count(&owner), 1, "it is let go of");
        is_broken.store(false, Ordering::Relaxed);
        request.infer().unwrap();
        // NumPy: np.array(np.nonzero([0, 1, 0, 1])).
        let found = request.output(0).unwrap();
        assert_eq!(*found.as_slice::<f32>().unwrap(), [1.0, 3.0]);
    }

    /// A variable to which each run adds its input.
    #[test]
    fn a_variable_goes_from_one_memory_to_another_and_back() {
        let core = Core::new().unwrap();
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples");
        let path = format!("{samples}/read_value/opset6_adds_up.xml");
        let model = core.read_model(path).unwrap();
        let mut request = core.compile_model(&model).unwrap().create_request();
        let run = |request: &mut InferRequest| {
            let x = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
            request.set_input("x", x).unwrap();
            request.infer().unwrap();
            request.variable("counter").unwrap().clone()
        };
        let place = |t: Tensor| t.bytes().as_ptr();
        let first = place(run(&mut request));
        let second = place(run(&mut request));
        assert_ne!(first, second);
        assert_eq!(place(run(&mut request)), first);
        // The kept tensors do not change.
        let kept = run(&mut request);
        let numbers = |t: &Tensor| t.as_slice::<f32>().unwrap().to_vec();
        let before = numbers(&kept);
        for _ in 0..3 {
            assert_ne!(place(run(&mut request)), place(kept.clone()));
        }
        assert_eq!(numbers(&kept), before);
        let after = [before[0] + 4.0, before[1] + 8.0];
        assert_eq!(numbers(&run(&mut request)), after);
    }

    #[test]
    fn a_run_that_is_stopped_is_an_error() {
        let mut request = request();
        set_inputs(&mut request, &[1, 0]);
        for (stop, ends) in [(true, true), (false, false), (true, true)] {
            let done = request.infer_with(RunOptions {
                stop: Some(&Arc::new(AtomicBool::new(stop))),
                times: None,
            });
            assert_eq!(matches!(done, Err(Error::Cancelled)), ends);
            assert_eq!(request.outputs().is_empty(), ends);
        }
    }
}
