//! The walk: node by node, infer, lower or fold.

use super::budget::{Budget, Verdict};
use super::{Known, Source, Types};
use crate::error::{Error, LayerError, Problem};
use crate::model::{Model, NodeKind, TensorId};
use crate::strings::Strings;
use petgraph::graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
use vinelift_nest::{BufferId, LayerId, MAX_RANK, Nest, Role, ValueRange};
use vinelift_ops::{IndexPolicy, Infer, Instance, Lower, Native, Op, OpDef, TensorType};
use vinelift_tensor::{ElementType, PartialShape, Tensor, element_count, symbols};

/// The operator that quantises values.
pub(super) const FAKE_QUANTIZE: &str = "FakeQuantize";

/// The purpose of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The types of a model as it declares its parameters and variables.
    Declared,
    /// The types of a body whose parameters get what they are given.
    Body,
    /// A run, whose variables hold what is known of them.
    Run { is_body: bool, policy: IndexPolicy },
}

/// One walk over the nodes of a model.
pub(super) struct Walk<'a> {
    pub(super) model: &'a Model,
    /// The types or values of the parameters.
    given: &'a [TensorType],
    pub(super) known: &'a Known,
    pub(super) mode: Mode,
    pub(super) strings: &'a mut Strings,
    pub(super) types: Types,
    pub(super) budget: &'a Budget<'a>,
    /// Whether extents have symbols.
    pub(super) is_symbolic: bool,
    /// Whether the model quantises values.
    pub(super) is_quantized: bool,
    /// The results of an earlier walk over the same model, whose values need not be found again.
    pub(super) inferred: Option<&'a Types>,
    /// The types of all shapes that the model allows; `None` if that is what is looked for, and in bodies.
    pub(super) declared: Option<&'a Types>,
    /// Values of tensors that are constant, or were waited for.
    pub(super) values: FxHashMap<TensorId, Tensor>,
    /// The ranges of the elements of small tensors that are not constant.
    pub(super) bounds: FxHashMap<TensorId, Vec<ValueRange>>,
    /// The values at the example of those whose elements are known exactly, but have symbols.
    pub(super) examples: FxHashMap<TensorId, Tensor>,
    /// Tensors whose contents can be had when the nest runs.
    pub(super) available: FxHashSet<TensorId>,
    pub(super) nest: Nest,
    pub(super) buffers: FxHashMap<TensorId, BufferId>,
    pub(super) sources: Vec<(BufferId, Source)>,
    pub(super) wanted: BTreeSet<TensorId>,
    pub(super) calls: Vec<NodeIndex>,
    pub(super) errors: Vec<LayerError>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        model: &'a Model,
        given: &'a [TensorType],
        known: &'a Known,
        mode: Mode,
        budget: &'a Budget<'a>,
        strings: &'a mut Strings,
    ) -> Walk<'a> {
        let examples = known.formulas.iter();
        let examples = examples.map(|(tensor, (_, example))| (*tensor, example.clone()));
        let mut types = given.iter().chain(known.computed.values());
        let is_symbolic = types.any(|ty| ty.shape.is_symbolic()) || !known.formulas.is_empty();
        Walk {
            model,
            given,
            known,
            mode,
            strings,
            types: Types {
                types: known.computed.clone(),
                ..Types::default()
            },
            budget,
            is_symbolic,
            is_quantized: model.has_operator(FAKE_QUANTIZE),
            inferred: None,
            declared: None,
            values: known.values.clone(),
            bounds: known.formula_bounds(),
            examples: examples.collect(),
            available: known.computed.keys().copied().collect(),
            nest: Nest::new(),
            buffers: FxHashMap::default(),
            sources: Vec::new(),
            wanted: BTreeSet::new(),
            calls: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Walks over these nodes.
    pub(super) fn over<'n>(
        &mut self,
        mut nodes: impl Iterator<Item = &'n NodeIndex>,
    ) -> Result<(), Error> {
        let goes_on = |_: &&NodeIndex| !self.budget.is_cancelled();
        let budget = self.budget;
        for node in nodes.by_ref().take_while(goes_on) {
            self.node(*node);
        }
        if budget.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(Error::Layers(std::mem::take(&mut self.errors)))
    }

    pub(super) fn node(&mut self, node: NodeIndex) {
        // A pin that a body asks for is noted at the node that runs the body.
        if self.is_symbolic && matches!(self.mode, Mode::Run { .. }) {
            symbols::at(node.index());
        }
        let done = match &self.model.node(node).kind {
            NodeKind::Parameter(_) => self.parameter(node),
            NodeKind::Constant(tensor) => self.constant(node, tensor),
            NodeKind::Operator { def, op } => self.operator(node, def, op),
            NodeKind::Control(control) => self.control(node, control),
            NodeKind::ReadValue(variable) => self.read_value(node, variable),
            NodeKind::Assign(variable) => self.assign(node, variable),
            NodeKind::Result | NodeKind::Refused(_) => Ok(()),
        };
        if let Err(problem) = done {
            self.errors.push(LayerError {
                layer: self.model.node(node).label(),
                problem,
            });
        }
    }

    fn parameter(&mut self, node: NodeIndex) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        let declared = self.model.declared_type(node);
        let position = self.model.parameters.iter().position(|p| *p == node);
        let given = position.and_then(|p| self.given.get(p)).cloned();
        let TensorType { element, shape } =
            given.unwrap_or(TensorType::new(declared.element, PartialShape::DYNAMIC));
        let shape = match self.mode {
            Mode::Body | Mode::Run { is_body: true, .. } => shape,
            Mode::Declared | Mode::Run { .. } => {
                let declared = declared.shape;
                let both = declared.intersect(&shape);
                both.ok_or_else(|| Problem::Graph(format!("shape {shape}, expected {declared}")))?
            }
        };
        let is_static = shape.is_static();
        self.declare(&[tensor], &[TensorType::new(element, shape)])?;
        if is_static {
            self.available.insert(tensor);
        }
        Ok(())
    }

    fn constant(&mut self, node: NodeIndex, value: &Tensor) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        self.types.set(
            tensor,
            TensorType::new(value.element_type(), value.shape().into()),
        );
        self.values.insert(tensor, value.clone());
        self.available.insert(tensor);
        Ok(())
    }

    fn operator(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &Instance,
    ) -> Result<(), Problem> {
        let Some(Ports {
            inputs,
            outputs,
            types,
            values,
        }) = self.ports(node)
        else {
            return Ok(());
        };
        if self.is_folded(&outputs) {
            return Ok(());
        }
        let constants: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
        let bounds: Vec<Option<Vec<ValueRange>>> =
            inputs.iter().map(|t| self.bounds.get(t).cloned()).collect();
        let examples = inputs.iter().map(|t| self.examples.get(t).cloned());
        let examples: Vec<Option<Tensor>> = examples.collect();
        let known = constants.iter().zip(&examples);
        let values: Vec<Option<&Tensor>> = known.map(|(c, e)| c.or(e.as_ref())).collect();
        let cx = Infer::new(def.signature, &types, &values)?
            .with_bounds(&bounds)
            .with_outputs(outputs.len());
        let results = op.infer(&cx)?;
        self.declare(&outputs, &results)?;
        let op = match op {
            Instance::Lowered(op) => op.clone(),
            Instance::Native(native) => {
                let Some(op) = self.as_nest(&**native, def, &inputs) else {
                    self.native(node, def, &**native, &constants, &results);
                    return Ok(());
                };
                op
            }
        };
        self.bounds_of_types(&*op, &cx, &outputs);
        let missing: Vec<TensorId> = cx.missing().map(|i| inputs[i]).collect();
        self.wanted
            .extend(missing.iter().filter(|t| self.available.contains(t)));
        let is_ready = missing.is_empty() && types.iter().all(|t| t.shape.is_static());
        if !is_ready || !results.iter().all(|t| t.shape.is_static()) {
            return Ok(());
        }
        if self.needs_only_types(&inputs, &outputs) {
            if self.are_available(&inputs) {
                self.available.extend(outputs);
            }
            return Ok(());
        }
        self.lower(node, def, &op, &inputs, &outputs, (&values, &bounds))
    }

    /// A native operator as a loop nest, if there is one for all shapes that the model allows: a plan for a class of shapes calls
    /// what the plan for one of them calls.
    fn as_nest(
        &self,
        native: &dyn Native,
        def: &'static OpDef,
        inputs: &[TensorId],
    ) -> Option<Arc<dyn Op>> {
        let declared = self.declared?;
        let types = inputs.iter().map(|t| declared.get(*t).cloned());
        let types: Vec<TensorType> = types.collect::<Option<_>>()?;
        let value = |t: &TensorId| match &self.model.node(t.node).kind {
            NodeKind::Constant(value) => Some(value),
            _ => None,
        };
        let values: Vec<Option<&Tensor>> = inputs.iter().map(value).collect();
        native.as_nest(&Infer::new(def.signature, &types, &values).ok()?)
    }

    /// Takes over the values of `outputs` from the earlier walk; `false` if it has not found all of them.
    fn is_folded(&mut self, outputs: &[TensorId]) -> bool {
        let known = |t: &TensorId| Some((*t, self.inferred?.folded.get(t)?.clone()));
        let Some(values) = outputs.iter().map(known).collect::<Option<Vec<_>>>() else {
            return false;
        };
        for (tensor, value) in &values {
            let ty = TensorType::new(value.element_type(), value.shape().into());
            self.types.set(*tensor, ty);
            self.values.insert(*tensor, value.clone());
            self.available.insert(*tensor);
        }
        !values.is_empty()
    }

    /// Whether to compute the values of `node` now, of which the budget's verdict is this.
    pub(super) fn is_folding(&mut self, node: NodeIndex, verdict: Verdict) -> bool {
        if self.inferred.is_some_and(|t| t.left.contains(&node)) {
            return false;
        }
        if verdict == Verdict::Spent {
            self.types.left.insert(node);
        }
        verdict == Verdict::Compute
    }

    /// The inputs and outputs of a node; `None` if there is nothing left to do for it.
    pub(super) fn ports(&self, node: NodeIndex) -> Option<Ports> {
        let count = self.model.node(node).layer.outputs.len();
        let outputs: Vec<TensorId> = (0..count).map(|output| TensorId { node, output }).collect();
        if !outputs.is_empty() && outputs.iter().all(|t| self.known.computed.contains_key(t)) {
            return None;
        }
        let inputs = self.model.inputs(node);
        // A source of it may be wrong: the source's own error is reported then.
        let types: Option<Vec<_>> = inputs.iter().map(|t| self.types.get(*t).cloned()).collect();
        let values = inputs.iter().map(|t| self.values.get(t).cloned());
        Some(Ports {
            values: values.collect(),
            inputs,
            outputs,
            types: types?,
        })
    }

    /// Sets the types of a node's outputs.
    pub(super) fn declare(
        &mut self,
        outputs: &[TensorId],
        types: &[TensorType],
    ) -> Result<(), Problem> {
        if types.len() != outputs.len() {
            return Err(Problem::Graph(format!(
                "{} output ports, expected {}",
                outputs.len(),
                types.len()
            )));
        }
        for (tensor, ty) in outputs.iter().zip(types) {
            check(ty)?;
            self.types.set(*tensor, ty.clone());
        }
        Ok(())
    }

    fn lower(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &Arc<dyn Op>,
        inputs: &[TensorId],
        outputs: &[TensorId],
        (values, bounds): (&[Option<&Tensor>], &[Option<Vec<ValueRange>>]),
    ) -> Result<(), Problem> {
        let before = Mark {
            buffers: self.nest.buffers.len(),
            stages: self.nest.stages.len(),
            sources: self.sources.len(),
        };
        let label = self.model.node(node).label();
        let layer: LayerId = self.nest.layer(&label.name, &label.op);
        let sources = match self.decompression(node, def) {
            Some(found) => vec![self.lower_decompression(node, &found, layer)?],
            None => inputs
                .iter()
                .map(|t| self.input_buffer(*t))
                .collect::<Result<Vec<_>, _>>()?,
        };
        let targets: Vec<BufferId> = outputs
            .iter()
            .map(|t| self.new_buffer(*t, Role::Temporary))
            .collect();
        let policy = self.policy();
        let nest = &mut self.nest;
        let has_state = !self.model.assigns.is_empty();
        let lower = Lower::new(nest, def.signature, layer, sources, targets, values, policy);
        op.lower(&mut lower.with_bounds(bounds).with_state(has_state));
        let read = self.nest.read_in(before.stages..self.nest.stages.len());
        self.inline_scalars(&before, &read);

        let own = |b: &BufferId| b.0 as usize >= before.buffers && !self.is_input(*b);
        let constant = |b: &BufferId| self.constant_behind(*b).is_some();
        let has_symbols = self.is_symbolic && self.has_symbols(&before, outputs);
        let is_constant = !has_symbols && read.iter().all(|b| own(b) || constant(b));
        let is_folded = is_constant && !self.keeps_codes(node, def, inputs, outputs);
        if is_folded && self.fold(node, &before, outputs)? {
            self.undo(&before);
            return Ok(());
        }
        self.bounds_of_stages(&before, inputs, outputs);
        if self.is_symbolic && self.keep_formulas(outputs)? {
            self.undo(&before);
            return Ok(());
        }
        if self.are_available(inputs) {
            self.available.extend(outputs);
        } else {
            self.undo(&before);
        }
        Ok(())
    }

    fn are_available(&self, tensors: &[TensorId]) -> bool {
        tensors.iter().all(|t| self.available.contains(t))
    }

    /// How operators treat indices that are out of range.
    pub(super) fn policy(&self) -> IndexPolicy {
        match self.mode {
            Mode::Run { policy, .. } => policy,
            _ => IndexPolicy::Spec,
        }
    }

    fn undo(&mut self, before: &Mark) {
        self.nest.stages.truncate(before.stages);
        self.nest.truncate_buffers(before.buffers);
        self.sources.truncate(before.sources);
        self.buffers.retain(|_, b| (b.0 as usize) < before.buffers);
    }

    /// The constant that an input buffer holds, if it holds one.
    pub(super) fn constant_behind(&self, buffer: BufferId) -> Option<&Tensor> {
        // Sources come in the order of their buffers.
        let position = self
            .sources
            .binary_search_by_key(&buffer, |(b, _)| *b)
            .ok()?;
        match &self.sources[position].1 {
            Source::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }

    fn is_input(&self, buffer: BufferId) -> bool {
        self.nest.buf(buffer).role == Role::Input
    }

    /// The buffer that holds a tensor, made an input of the nest if it is not computed in it.
    pub(super) fn input_buffer(&mut self, tensor: TensorId) -> Result<BufferId, Problem> {
        if let Some(&known) = self.buffers.get(&tensor) {
            return Ok(known);
        }
        if let Some(formulas) = self.formulas(tensor) {
            return Ok(self.formula_buffer(tensor, &formulas));
        }
        let buffer = self.new_buffer(tensor, Role::Input);
        let source = if let Some(value) = self.values.get(&tensor) {
            Source::Constant(self.strings.encode(value)?)
        } else if self.known.computed.contains_key(&tensor) {
            Source::Kept(tensor)
        } else if let Some(k) = self.model.parameters.iter().position(|p| *p == tensor.node) {
            Source::Parameter(k)
        } else {
            Source::Kept(tensor)
        };
        self.sources.push((buffer, source));
        Ok(buffer)
    }

    pub(super) fn new_buffer(&mut self, tensor: TensorId, role: Role) -> BufferId {
        let layer = &self.model.node(tensor.node).layer;
        let name = match layer.outputs.len() {
            0 | 1 => layer.name.clone(),
            _ => format!("{}.{}", layer.name, tensor.output),
        };
        // Every tensor that gets here has a static type.
        let ty = self.types.get(tensor);
        let (element, shape) = ty.map_or((ElementType::U8, None), |t| {
            (t.element, t.shape.to_extents())
        });
        let buffer = self
            .nest
            .buffer(&name, element, &shape.unwrap_or_default(), role);
        self.buffers.insert(tensor, buffer);
        buffer
    }
}

/// Whether a tensor of this type can be had.
fn check(ty: &TensorType) -> Result<(), Problem> {
    let rank = ty.shape.rank().unwrap_or(0);
    if rank > MAX_RANK {
        let text = format!("its output has rank {rank}, more than {MAX_RANK}");
        return Err(Problem::Graph(text));
    }
    if let Some(shape) = ty.shape.to_extents() {
        let shape = vinelift_tensor::example(&shape);
        let bytes = element_count(&shape).and_then(|n| ty.element.byte_len(n));
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        bytes.ok_or_else(|| Problem::Graph(format!("its output {ty} is too large")))?;
    }
    Ok(())
}

/// The inputs and outputs of a node.
pub(super) struct Ports {
    pub(super) inputs: Vec<TensorId>,
    pub(super) outputs: Vec<TensorId>,
    /// Of the inputs.
    pub(super) types: Vec<TensorType>,
    /// Of the inputs, where they are known.
    pub(super) values: Vec<Option<Tensor>>,
}

/// Lengths to go back to.
pub(super) struct Mark {
    pub(super) buffers: usize,
    pub(super) stages: usize,
    sources: usize,
}
