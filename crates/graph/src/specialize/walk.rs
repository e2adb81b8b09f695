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
use vinelift_nest::{BufferId, MAX_RANK, Nest, ValueRange};
use vinelift_ops::{IndexPolicy, Infer, Instance, Native, Op, OpDef, TensorType};
use vinelift_tensor::{PartialShape, Tensor, element_count, symbols};

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

impl Mode {
    /// Whether it is a run, which comes back to what it cannot lower yet.
    pub(super) fn is_run(self) -> bool {
        matches!(self, Mode::Run { .. })
    }
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
    /// Tensors that are computed from constants alone, of which some stay codes.
    pub(super) of_codes: FxHashSet<TensorId>,
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
        let types = known.types();
        let available = types.keys().copied().collect();
        Walk {
            model,
            given,
            known,
            mode,
            strings,
            types: Types {
                types,
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
            available,
            of_codes: FxHashSet::default(),
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
        if self.is_symbolic && self.mode.is_run() {
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
        if !outputs.is_empty() && outputs.iter().all(|t| self.known.has(*t)) {
            return None;
        }
        let inputs = self.model.inputs(node);
        if self.mode.is_run() && inputs.iter().any(|t| self.is_open(*t)) {
            return None;
        }
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

    /// Whether a tensor is made in a later segment, and has extents that nobody knows before. That segment infers the layers that read
    /// it: inferring them now could only pin symbols, for which extents that are not known must be equal to others.
    fn is_open(&self, tensor: TensorId) -> bool {
        let ty = self.types.get(tensor);
        ty.is_some_and(|ty| !ty.shape.is_static()) && !self.available.contains(&tensor)
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

    pub(super) fn are_available(&self, tensors: &[TensorId]) -> bool {
        tensors.iter().all(|t| self.available.contains(t))
    }

    /// How operators treat indices that are out of range.
    pub(super) fn policy(&self) -> IndexPolicy {
        match self.mode {
            Mode::Run { policy, .. } => policy,
            _ => IndexPolicy::Spec,
        }
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
