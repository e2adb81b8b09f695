//! One run of a model at a time.

use crate::execute::{Memory, execute, grow};
use crate::plan::Plan;
use crate::{CompiledModel, Error, Shape};
use rustc_hash::FxHashMap;
use std::time::Duration;
use vinelift_graph::{Known, Strings, TensorId};
use vinelift_ops::TensorType;
use vinelift_tensor::{ElementType, Tensor};

/// The tensors of one run of a model. Not shared: each thread has requests of its own.
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
    /// Memory that runs use again: the arena, and the outputs of each segment.
    arena: Tensor,
    spare: FxHashMap<(TensorId, Shape), Tensor>,
}

/// The time that one kernel took in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// What it computes: the name of the tensor it writes.
    pub name: String,
    /// The layers in it.
    pub layers: Vec<String>,
    /// How long it ran.
    pub time: Duration,
}

impl InferRequest {
    pub(crate) fn new(compiled: CompiledModel) -> InferRequest {
        let inputs = vec![None; compiled.inputs().len()];
        let arena =
            Tensor::from_slice::<u8>(&[0], &[]).unwrap_or_else(|_| unreachable!("an empty tensor"));
        InferRequest {
            compiled,
            inputs,
            outputs: Vec::new(),
            arena,
            spare: FxHashMap::default(),
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

    /// Runs the model on the inputs.
    ///
    /// # Errors
    /// If an input is missing, if the shapes do not fit each other, or if an index in a tensor is out
    /// of range. The outputs are then those of no run.
    pub fn infer(&mut self) -> Result<(), Error> {
        self.run(None)
    }

    /// As [`InferRequest::infer`], and tells how long each kernel took. Empty if it is interpreted.
    pub fn infer_profiled(&mut self) -> Result<Vec<KernelTime>, Error> {
        let mut times = Vec::new();
        self.run(Some(&mut times))?;
        Ok(times)
    }

    /// The output at `position`, after a run.
    pub fn output(&self, position: usize) -> Result<&Tensor, Error> {
        self.outputs
            .get(position)
            .ok_or_else(|| match self.compiled.outputs().len() {
                count if position >= count => Error::Input(format!(
                    "the model has no output {position}, it has {count}"
                )),
                _ => Error::Input("the model has not run".to_owned()),
            })
    }

    /// The output called `name`, after a run.
    pub fn output_named(&self, name: &str) -> Result<&Tensor, Error> {
        self.output(self.compiled.output_index(name)?)
    }

    /// All outputs; none before a run.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    fn run(&mut self, mut times: Option<&mut Vec<KernelTime>>) -> Result<(), Error> {
        self.outputs.clear();
        let compiled = self.compiled.clone();
        let mut texts = Texts {
            base: &compiled.0.strings,
            own: None,
        };
        let inputs = self.encoded_inputs(&mut texts)?;
        let shapes: Vec<Shape> = inputs.iter().map(|t| t.shape().to_vec()).collect();
        let mut known = Known::default();
        let mut kept: FxHashMap<TensorId, Tensor> = FxHashMap::default();
        let last = loop {
            let plan = compiled.0.plan(&shapes, &known)?;
            self.segment(&plan, &inputs, &mut kept, times.as_deref_mut())?;
            if plan.wanted.is_empty() {
                break plan;
            }
            for (tensor, element, shape) in &plan.outputs {
                known
                    .computed
                    .insert(*tensor, TensorType::new(*element, shape.as_slice().into()));
            }
            for tensor in &plan.wanted {
                let value = self.value(*tensor, &plan, &inputs, &kept)?;
                known.values.insert(*tensor, texts.decode(&value)?);
            }
        };
        let model = &compiled.model().graph;
        for result in &model.results {
            for source in model.inputs(*result) {
                let value = self.value(source, &last, &inputs, &kept)?;
                self.outputs.push(texts.decode(&value)?);
            }
        }
        for (tensor, value) in kept {
            self.spare.insert((tensor, value.shape().to_vec()), value);
        }
        Ok(())
    }

    /// The inputs with strings as numbers.
    fn encoded_inputs(&self, texts: &mut Texts<'_>) -> Result<Vec<Tensor>, Error> {
        let missing: Vec<String> = self
            .inputs
            .iter()
            .zip(self.compiled.inputs())
            .filter(|(tensor, _)| tensor.is_none())
            .map(|(_, port)| format!("'{}' {}{}", port.name(), port.element_type, port.shape))
            .collect();
        if !missing.is_empty() {
            return Err(Error::Input(format!(
                "no tensor for input {}",
                missing.join(", ")
            )));
        }
        self.inputs
            .iter()
            .flatten()
            .map(|t| texts.encode(t))
            .collect()
    }

    /// Runs one segment; its outputs are in `kept` afterwards.
    fn segment(
        &mut self,
        plan: &Plan,
        inputs: &[Tensor],
        kept: &mut FxHashMap<TensorId, Tensor>,
        times: Option<&mut Vec<KernelTime>>,
    ) -> Result<(), Error> {
        let mut outputs = Vec::with_capacity(plan.outputs.len());
        for (tensor, element, shape) in &plan.outputs {
            outputs.push(match self.spare.remove(&(*tensor, shape.clone())) {
                Some(used) => used,
                None => Tensor::zeros(run_time_type(*element), shape)?,
            });
        }
        grow(&mut self.arena, plan.arena)?;
        let mut memory = Memory {
            inputs,
            kept,
            outputs: &mut outputs,
            arena: &mut self.arena,
        };
        let mut durations = Vec::new();
        execute(plan, &mut memory, times.is_some().then_some(&mut durations))?;
        if let (Some(times), Some(native)) = (times, &plan.native) {
            times.extend(native.steps.iter().zip(durations).map(|(step, time)| {
                KernelTime {
                    name: step.name().to_owned(),
                    layers: step
                        .kernel
                        .nest
                        .layers
                        .iter()
                        .map(|l| l.name.clone())
                        .collect(),
                    time,
                }
            }));
        }
        for ((tensor, ..), value) in plan.outputs.iter().zip(outputs) {
            kept.insert(*tensor, value);
        }
        Ok(())
    }

    /// A tensor that has been computed, is constant, or is an input; strings as numbers.
    fn value(
        &self,
        tensor: TensorId,
        plan: &Plan,
        inputs: &[Tensor],
        kept: &FxHashMap<TensorId, Tensor>,
    ) -> Result<Value, Error> {
        if let Some(value) = kept.get(&tensor) {
            return Ok(Value {
                tensor: value.clone(),
                is_string: self.compiled.0.is_string(tensor),
            });
        }
        if let Some(value) = plan.constants.get(&tensor) {
            return Ok(Value {
                tensor: value.clone(),
                is_string: false,
            });
        }
        let position = self
            .compiled
            .model()
            .graph
            .parameters
            .iter()
            .position(|p| *p == tensor.node);
        match position.and_then(|p| inputs.get(p).zip(self.compiled.inputs().get(p))) {
            Some((value, port)) => Ok(Value {
                tensor: value.clone(),
                is_string: port.element_type == ElementType::String,
            }),
            None => Err(Error::internal(format!(
                "tensor {tensor:?} was not computed"
            ))),
        }
    }
}

/// A tensor as a nest sees it.
struct Value {
    tensor: Tensor,
    /// Whether its numbers stand for strings.
    is_string: bool,
}

/// The texts of a run: those of the model, copied only once a run adds its own.
struct Texts<'a> {
    base: &'a Strings,
    own: Option<Strings>,
}

impl Texts<'_> {
    fn encode(&mut self, tensor: &Tensor) -> Result<Tensor, Error> {
        if tensor.strings().is_none() {
            return Ok(tensor.clone());
        }
        Ok(self
            .own
            .get_or_insert_with(|| self.base.clone())
            .encode(tensor)?)
    }

    fn decode(&self, value: &Value) -> Result<Tensor, Error> {
        if !value.is_string {
            return Ok(value.tensor.clone());
        }
        let strings = self.own.as_ref().unwrap_or(self.base);
        Ok(strings.decode(value.tensor.shape(), value.tensor.bytes())?)
    }
}

/// The type of the bytes that hold a tensor while a model runs.
fn run_time_type(ty: ElementType) -> ElementType {
    if ty == ElementType::String {
        ElementType::U64
    } else {
        ty
    }
}
