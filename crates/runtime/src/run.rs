//! One run of a unit: segment by segment, with the calls between them.

use crate::carry::Carry;
use crate::execute::{Call as NativeCall, Memory, execute, go_on, grow};
use crate::plan::{Call, Output, Plan};
use crate::request::KernelTime;
use crate::unit::{Unit, Workshop};
use crate::{Error, Shape};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use vinelift_graph::{
    self as graph, ControlError, Known, NodeIndex, NodeKind, Stop, Strings, TensorId,
};
use vinelift_ops::TensorType;
use vinelift_tensor::{ElementType, Tensor};
use vinelift_xml::BodyKind;

/// What variables hold, by name.
pub(crate) type Variables = BTreeMap<String, Tensor>;

/// A run of a model with its sub-graphs.
pub(crate) struct Run<'a> {
    pub(crate) workshop: &'a Workshop,
    pub(crate) texts: Texts<'a>,
    /// For each unit.
    pub(crate) scratch: &'a mut [Scratch],
    pub(crate) variables: &'a mut Variables,
    pub(crate) times: Option<&'a mut Vec<KernelTime>>,
    /// Has the run end soon.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

/// What runs of a unit use again.
pub(crate) struct Scratch {
    /// Temporaries.
    arena: Tensor,
    /// The last call of native code.
    call: Option<Arc<NativeCall>>,
    /// Outputs of segments, of the type and shape that they had last.
    spare: FxHashMap<TensorId, Tensor>,
    /// Journals of updates.
    journals: Vec<Tensor>,
    /// The plan of the last first segment, with the shapes that it is for.
    first: Option<(Vec<Shape>, Arc<Plan>)>,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Error> {
        Ok(Scratch {
            arena: Tensor::zeros(ElementType::U8, &[0])?,
            call: None,
            spare: FxHashMap::default(),
            journals: Vec::new(),
            first: None,
        })
    }

    /// Has the next run compute `tensor` into `memory`, if it is of its type and shape.
    pub(crate) fn lend(&mut self, tensor: TensorId, memory: Tensor) {
        self.spare.insert(tensor, memory);
    }

    /// Lets go of memory that was lent.
    pub(crate) fn take_back(&mut self, tensor: TensorId) {
        self.spare.remove(&tensor);
    }

    /// Memory for an output of a plan.
    fn memory(&mut self, (tensor, element, shape): &Output) -> Result<Tensor, Error> {
        let element = run_time_type(*element);
        match self.spare.remove(tensor) {
            Some(used) if used.element_type() == element && used.shape() == shape => Ok(used),
            _ => Ok(Tensor::zeros(element, shape)?),
        }
    }

    /// Has memory for journals of these types and shapes, in which nothing is written down.
    fn keep_journals(&mut self, journals: &[(ElementType, Shape)]) -> Result<(), Error> {
        let is = |t: &Tensor, (element, shape): &(ElementType, Shape)| {
            t.element_type() == *element && t.shape() == shape
        };
        let fit = self.journals.len() == journals.len()
            && self.journals.iter().zip(journals).all(|(t, j)| is(t, j));
        if !fit {
            let memory = |(element, shape): &(ElementType, Shape)| Tensor::zeros(*element, shape);
            self.journals = journals.iter().map(memory).collect::<Result<_, _>>()?;
        }
        for journal in &mut self.journals {
            journal.make_mut()?.fill(!0);
        }
        Ok(())
    }
}

/// What a run of one unit has found so far.
struct State<'a> {
    unit: &'a Unit,
    inputs: &'a [Tensor],
    known: Known,
    /// The contents of `known.computed`.
    kept: FxHashMap<TensorId, Tensor>,
    /// Those in memory that the next run can use.
    own: Vec<TensorId>,
}

impl Run<'_> {
    /// The results of `unit` for these inputs. Strings are numbers, in both.
    pub(crate) fn unit(&mut self, unit: &Unit, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let mut state = State {
            unit,
            inputs,
            known: Known::default(),
            kept: FxHashMap::default(),
            own: Vec::new(),
        };
        for (tensor, variable) in &unit.reads {
            if let Some(value) = self.variables.get(variable) {
                let ty = TensorType::new(value.element_type(), value.shape().into());
                state.known.computed.insert(*tensor, ty);
                state.kept.insert(*tensor, self.texts.encode(value)?);
            }
        }
        let last = loop {
            go_on(self.stop)?;
            let plan = self.plan(&state)?;
            self.segment(&plan, &mut state)?;
            if !plan.is_followed() {
                break plan;
            }
            for call in &plan.calls {
                self.call(call, &plan, &mut state)?;
            }
            for tensor in &plan.wanted {
                let value = state.value(*tensor, &plan, &mut self.texts)?;
                let value = self.texts.decode(&value, state.element(*tensor))?;
                state.known.values.insert(*tensor, value);
            }
        };
        let results = unit.results.iter();
        let results = results.map(|source| state.value(*source, &last, &mut self.texts));
        let results = results.collect::<Result<Vec<Tensor>, Error>>()?;
        // Only now: all readers have seen what the variables held before.
        let mut replaced = Vec::new();
        for (source, variable) in &unit.assigns {
            let value = state.value(*source, &last, &mut self.texts)?;
            let value = self.texts.decode(&value, state.element(*source))?;
            let before = self.variables.insert(variable.clone(), value);
            replaced.push((*source, before));
        }
        let spare = &mut self.scratch[unit.number].spare;
        for tensor in state.own {
            if let Some(value) = state.kept.remove(&tensor) {
                spare.insert(tensor, value);
            }
        }
        // What variables hold must stay: the next run writes to what they held before.
        drop(state.kept);
        for (source, before) in replaced {
            spare.remove(&source);
            spare.extend(before.filter(Tensor::is_unshared).map(|t| (source, t)));
        }
        Ok(results)
    }

    /// The plan for what is known.
    fn plan(&mut self, state: &State<'_>) -> Result<Arc<Plan>, Error> {
        let is_first = state.known.computed.is_empty() && state.known.values.is_empty();
        let first = &mut self.scratch[state.unit.number].first;
        let shapes = || state.inputs.iter().map(Tensor::shape);
        if let Some((known, plan)) = first
            && is_first
            && known.iter().map(Vec::as_slice).eq(shapes())
        {
            return Ok(plan.clone());
        }
        let shapes: Vec<Shape> = shapes().map(<[usize]>::to_vec).collect();
        let plan = state
            .unit
            .plan(&shapes, &state.known, self.workshop, self.stop)?;
        if is_first {
            *first = Some((shapes, plan.clone()));
        }
        Ok(plan)
    }

    /// Runs one segment; its outputs are kept afterwards.
    fn segment(&mut self, plan: &Arc<Plan>, state: &mut State<'_>) -> Result<(), Error> {
        let scratch = &mut self.scratch[state.unit.number];
        grow(&mut scratch.arena, plan.arena)?;
        scratch.keep_journals(&plan.journals)?;
        let held = plan.carries.iter().filter_map(|carry| {
            let output = &plan.outputs[carry.0.output];
            let held = carry.0.take(self.variables, &mut state.kept, output)?;
            Some((carry, held))
        });
        let held: Vec<(&(Carry, usize), Tensor)> = held.collect();
        let memory = |(k, output)| match held.iter().find(|((carry, _), _)| carry.output == k) {
            Some((_, held)) => Ok(held.clone()),
            None => scratch.memory(output),
        };
        let outputs = plan.outputs.iter().enumerate().map(memory);
        let outputs = outputs.collect::<Result<Vec<Tensor>, Error>>();
        let mut carried = Vec::with_capacity(held.len());
        for (carry, held) in held {
            carried.push(carry);
            if outputs.is_err() {
                carry.0.give_back(self.variables, held);
            }
        }
        let mut outputs = outputs?;
        let journals = outputs.len();
        outputs.append(&mut scratch.journals);
        let mut memory = Memory {
            inputs: state.inputs,
            kept: &state.kept,
            outputs: &mut outputs,
            arena: &mut scratch.arena,
            call: &mut scratch.call,
            pool: &self.workshop.pool,
            carried: &carried,
            stop: self.stop,
        };
        let mut durations = Vec::new();
        let timed = self.times.is_some();
        let end = execute(plan, &mut memory, timed.then_some(&mut durations));
        if end.is_err() {
            for (carry, _) in carried {
                carry.take_back(self.variables, &mut outputs, &plan.slots)?;
            }
        }
        scratch.journals = outputs.split_off(journals);
        end?;
        if let (Some(times), Some(native)) = (self.times.as_deref_mut(), &plan.native) {
            let steps = native.steps.iter().zip(durations);
            times.extend(steps.map(|(step, time)| KernelTime {
                name: step.name().to_owned(),
                layers: step.layers().map(str::to_owned).collect(),
                time,
                how: step.how(),
                flops: step.flops(),
                bytes: step.bytes(),
            }));
        }
        if plan.is_followed() || !state.unit.assigns.is_empty() {
            state.known.computed.extend(plan.computed());
        }
        for ((tensor, ..), value) in plan.outputs.iter().zip(outputs) {
            state.kept.insert(*tensor, value);
            state.own.push(*tensor);
        }
        Ok(())
    }

    /// Calls a node that stands between nests; its outputs are kept afterwards.
    fn call(&mut self, call: &Call, plan: &Plan, state: &mut State<'_>) -> Result<(), Error> {
        let graph = &state.unit.graph;
        let node = graph.node(call.node);
        let mut inputs = Vec::new();
        for tensor in graph.inputs(call.node) {
            inputs.push(state.value(tensor, plan, &mut self.texts)?);
        }
        let start = Instant::now();
        let outputs = match &node.kind {
            NodeKind::Control(control) => {
                let mut bodies = Bodies {
                    run: self,
                    unit: state.unit,
                    call,
                };
                let outputs = control.run(&inputs, &mut bodies);
                outputs.map_err(|e| match e {
                    ControlError::Body(e) => e,
                    other => Error::Fault(format!("{}: {other}", node.label())),
                })?
            }
            _ => self.native(call.node, &inputs, state)?,
        };
        if let Some(times) = self.times.as_deref_mut() {
            times.push(KernelTime {
                name: node.layer.name.clone(),
                layers: vec![node.layer.name.clone()],
                time: start.elapsed(),
                how: "called".to_owned(),
                flops: 0,
                bytes: 0,
            });
        }
        for ((tensor, ty), value) in call.outputs.iter().zip(outputs) {
            let fits = run_time_type(ty.element) == value.element_type()
                && ty.shape.contains(value.shape());
            if !fits {
                let text = format!("{}: inferred {ty}, found {value}", node.label());
                return Err(Error::internal(text));
            }
            let exact = TensorType::new(ty.element, value.shape().into());
            state.known.computed.insert(*tensor, exact);
            state.kept.insert(*tensor, value);
        }
        Ok(())
    }

    fn native(
        &mut self,
        node: NodeIndex,
        inputs: &[Tensor],
        state: &State<'_>,
    ) -> Result<Vec<Tensor>, Error> {
        let graph = &state.unit.graph;
        let tensors = graph.inputs(node).into_iter().zip(inputs);
        let inputs: Vec<Tensor> = tensors
            .map(|(tensor, value)| self.texts.decode(value, state.element(tensor)))
            .collect::<Result<_, _>>()?;
        let outputs = graph.evaluate(node, &inputs, Stop::when(self.stop));
        let outputs = outputs.map_err(|e| match e.problem.is_cancelled() {
            true => Error::Cancelled,
            false => Error::Fault(e.to_string()),
        })?;
        outputs.iter().map(|t| self.texts.encode(t)).collect()
    }
}

impl State<'_> {
    /// A tensor that has been computed, is constant, or is an input; strings as numbers.
    fn value(&self, tensor: TensorId, plan: &Plan, texts: &mut Texts<'_>) -> Result<Tensor, Error> {
        if let Some(value) = self.kept.get(&tensor) {
            return Ok(value.clone());
        }
        if let Some(value) = plan.constants.get(&tensor) {
            return texts.encode(value);
        }
        let mut parameters = self.unit.graph.parameters.iter();
        let position = parameters.position(|p| *p == tensor.node);
        let missing = || Error::internal(format!("tensor {tensor:?} was not computed"));
        position
            .and_then(|p| self.inputs.get(p).cloned())
            .ok_or_else(missing)
    }

    /// The element type of a tensor that has a value, as far as that says whether it holds strings.
    fn element(&self, tensor: TensorId) -> ElementType {
        if let Some(ty) = self.known.computed.get(&tensor) {
            return ty.element;
        }
        let graph = &self.unit.graph;
        match &graph.node(tensor.node).kind {
            NodeKind::Parameter(_) => graph.declared_type(tensor.node).element,
            NodeKind::Constant(value) => value.element_type(),
            _ => ElementType::U8, // Constants that were computed hold no strings as numbers.
        }
    }
}

/// The sub-graphs of a node.
struct Bodies<'a, 'b> {
    run: &'a mut Run<'b>,
    unit: &'a Unit,
    call: &'a Call,
}

impl graph::Body<Error> for Bodies<'_, '_> {
    fn run(&mut self, kind: BodyKind, parameters: Vec<Tensor>) -> Result<Vec<Tensor>, Error> {
        let body = self.unit.body(self.call.node, kind)?;
        self.run.unit(body, &parameters)
    }

    fn parameter(&self, parameter: usize) -> TensorType {
        let body = self.unit.body(self.call.node, BodyKind::Body);
        let declared = body.ok().and_then(|b| {
            let node = b.graph.parameters.get(parameter)?;
            Some(b.graph.declared_type(*node))
        });
        declared.unwrap_or(TensorType::new(ElementType::I64, [].as_slice().into()))
    }

    fn output(&self, output: usize) -> &TensorType {
        &self.call.outputs[output].1
    }
}

/// The texts of a run: those of the model, copied only once a run adds its own.
pub(crate) struct Texts<'a> {
    base: &'a Strings,
    own: Option<Strings>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(base: &'a Strings) -> Texts<'a> {
        Texts { base, own: None }
    }

    /// Strings as numbers.
    pub(crate) fn encode(&mut self, tensor: &Tensor) -> Result<Tensor, Error> {
        if tensor.strings().is_none() {
            return Ok(tensor.clone());
        }
        Ok(self
            .own
            .get_or_insert_with(|| self.base.clone())
            .encode(tensor)?)
    }

    /// Numbers as strings, if that is what they stand for.
    pub(crate) fn decode(&self, value: &Tensor, element: ElementType) -> Result<Tensor, Error> {
        self.decoded(value.clone(), element)
    }

    /// As [`Texts::decode`].
    pub(crate) fn decoded(&self, value: Tensor, element: ElementType) -> Result<Tensor, Error> {
        if element != ElementType::String {
            return Ok(value);
        }
        let strings = self.own.as_ref().unwrap_or(self.base);
        Ok(strings.decode(value.shape(), value.bytes())?)
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
