//! The walk: node by node, infer, lower or fold.

use super::{Known, Segment, Source, Types, declared};
use crate::error::{Error, LayerError, Problem};
use crate::model::{Model, NodeKind, TensorId};
use crate::strings::Strings;
use petgraph::graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
use vinelift_nest::{BufferId, LayerId, Nest, Role};
use vinelift_ops::{IndexPolicy, Infer, Lower, Op, OpDef, TensorType};
use vinelift_tensor::{ElementType, PartialShape, Shape, Tensor, element_count};

/// One walk over the nodes of a model.
pub(super) struct Walk<'a> {
    model: &'a Model,
    shapes: &'a [PartialShape],
    known: &'a Known,
    policy: IndexPolicy,
    pub(super) strings: &'a mut Strings,
    pub(super) types: Types,
    /// Values of tensors that are constant, or were waited for.
    pub(super) values: FxHashMap<TensorId, Tensor>,
    /// Tensors whose contents can be had when the nest runs.
    pub(super) available: FxHashSet<TensorId>,
    pub(super) nest: Nest,
    pub(super) buffers: FxHashMap<TensorId, BufferId>,
    pub(super) sources: Vec<(BufferId, Source)>,
    wanted: BTreeSet<TensorId>,
    pub(super) errors: Vec<LayerError>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        model: &'a Model,
        shapes: &'a [PartialShape],
        known: &'a Known,
        policy: IndexPolicy,
        strings: &'a mut Strings,
    ) -> Walk<'a> {
        Walk {
            model,
            shapes,
            known,
            policy,
            strings,
            types: Types(known.computed.clone()),
            values: known.values.clone(),
            available: known.computed.keys().copied().collect(),
            nest: Nest::new(),
            buffers: FxHashMap::default(),
            sources: Vec::new(),
            wanted: BTreeSet::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn node(&mut self, node: NodeIndex) {
        let done = match &self.model.node(node).kind {
            NodeKind::Parameter(attributes) => self.parameter(node, attributes.element_type),
            NodeKind::Constant(tensor) => self.constant(node, tensor),
            NodeKind::Operator { def, op } => self.operator(node, def, op),
            NodeKind::Result | NodeKind::Refused(_) => Ok(()),
        };
        if let Err(problem) = done {
            self.errors.push(LayerError {
                layer: self.model.node(node).label(),
                problem,
            });
        }
    }

    fn parameter(&mut self, node: NodeIndex, element: ElementType) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        let position = self.model.parameters.iter().position(|p| *p == node);
        let shape = position
            .and_then(|p| self.shapes.get(p))
            .cloned()
            .unwrap_or(PartialShape::DYNAMIC);
        let declared = declared(self.model, node);
        let shape = declared
            .intersect(&shape)
            .ok_or_else(|| Problem::Graph(format!("shape {shape}, expected {declared}")))?;
        if shape.is_static() {
            self.available.insert(tensor);
        }
        self.types.0.insert(tensor, TensorType::new(element, shape));
        Ok(())
    }

    fn constant(&mut self, node: NodeIndex, value: &Tensor) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        self.types.0.insert(
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
        op: &Arc<dyn Op>,
    ) -> Result<(), Problem> {
        let count = self.model.node(node).layer.outputs.len();
        let outputs: Vec<TensorId> = (0..count).map(|output| TensorId { node, output }).collect();
        if !outputs.is_empty() && outputs.iter().all(|t| self.known.computed.contains_key(t)) {
            return Ok(());
        }
        let inputs = self.model.inputs(node);
        let Some(types) = inputs
            .iter()
            .map(|t| self.types.get(*t).cloned())
            .collect::<Option<Vec<_>>>()
        else {
            return Ok(()); // What feeds it is wrong, and is reported itself.
        };
        let values: Vec<Option<Tensor>> =
            inputs.iter().map(|t| self.values.get(t).cloned()).collect();
        let values: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
        let cx = Infer::new(def, &types, &values)?;
        let results = op.infer(&cx)?;
        if results.len() != count {
            return Err(Problem::Graph(format!(
                "{count} output ports, expected {}",
                results.len()
            )));
        }
        let missing: Vec<TensorId> = cx.missing().map(|i| inputs[i]).collect();
        let shapes: Option<Vec<Shape>> = results.iter().map(|t| t.shape.to_static()).collect();
        for (tensor, ty) in outputs.iter().zip(&results) {
            self.types.0.insert(*tensor, ty.clone());
        }
        self.wanted
            .extend(missing.iter().filter(|t| self.available.contains(t)));
        let (Some(shapes), true) = (
            shapes,
            missing.is_empty() && types.iter().all(|t| t.shape.is_static()),
        ) else {
            return Ok(());
        };
        for (ty, shape) in results.iter().zip(&shapes) {
            let bytes = element_count(shape).and_then(|n| ty.element.byte_len(n));
            bytes.ok_or_else(|| Problem::Graph(format!("its output {ty} is too large")))?;
        }
        self.lower(node, def, op, &inputs, &outputs, &values)
    }

    fn lower(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &Arc<dyn Op>,
        inputs: &[TensorId],
        outputs: &[TensorId],
        values: &[Option<&Tensor>],
    ) -> Result<(), Problem> {
        let before = Mark {
            buffers: self.nest.buffers.len(),
            stages: self.nest.stages.len(),
            sources: self.sources.len(),
        };
        let label = self.model.node(node).label();
        let layer: LayerId = self.nest.layer(&label.name, &label.op);
        let sources = inputs
            .iter()
            .map(|t| self.input_buffer(*t))
            .collect::<Result<Vec<_>, _>>()?;
        let targets: Vec<BufferId> = outputs
            .iter()
            .map(|t| self.new_buffer(*t, Role::Temporary))
            .collect();
        op.lower(&mut Lower::new(
            &mut self.nest,
            def,
            layer,
            sources,
            targets,
            values,
            self.policy,
        ));
        self.inline_scalars(&before);

        let read = self.nest.read_in(before.stages..self.nest.stages.len());
        let own = |b: &BufferId| b.0 as usize >= before.buffers && !self.is_input(*b);
        let constant = |b: &BufferId| {
            self.sources
                .iter()
                .any(|(id, s)| id == b && matches!(s, Source::Constant(_)))
        };
        if read.iter().all(|b| own(b) || constant(b)) && self.fold(&before, outputs)? {
            self.undo(&before);
            return Ok(());
        }
        if inputs.iter().all(|t| self.available.contains(t)) {
            self.available.extend(outputs);
        } else {
            self.undo(&before);
        }
        Ok(())
    }

    fn undo(&mut self, before: &Mark) {
        self.nest.stages.truncate(before.stages);
        self.nest.truncate_buffers(before.buffers);
        self.sources.truncate(before.sources);
        self.buffers.retain(|_, b| (b.0 as usize) < before.buffers);
    }

    fn is_input(&self, buffer: BufferId) -> bool {
        self.nest.buf(buffer).role == Role::Input
    }

    /// The buffer that holds a tensor, made an input of the nest if it is not computed in it.
    fn input_buffer(&mut self, tensor: TensorId) -> Result<BufferId, Problem> {
        if let Some(&known) = self.buffers.get(&tensor) {
            return Ok(known);
        }
        let buffer = self.new_buffer(tensor, Role::Input);
        let source = if let Some(value) = self.values.get(&tensor) {
            Source::Constant(self.strings.encode(value)?)
        } else if let Some(k) = self.model.parameters.iter().position(|p| *p == tensor.node) {
            Source::Parameter(k)
        } else {
            Source::Kept(tensor)
        };
        self.sources.push((buffer, source));
        Ok(buffer)
    }

    fn new_buffer(&mut self, tensor: TensorId, role: Role) -> BufferId {
        let layer = &self.model.node(tensor.node).layer;
        let name = match layer.outputs.len() {
            0 | 1 => layer.name.clone(),
            _ => format!("{}.{}", layer.name, tensor.output),
        };
        // Every tensor that gets here has a static type.
        let ty = self.types.get(tensor);
        let (element, shape) = ty.map_or((ElementType::U8, None), |t| {
            (t.element, t.shape.to_static())
        });
        let buffer = self
            .nest
            .buffer(&name, element, &shape.unwrap_or_default(), role);
        self.buffers.insert(tensor, buffer);
        buffer
    }

    pub(super) fn finish(mut self, live: &FxHashSet<NodeIndex>) -> Result<Segment, Error> {
        let result_sources: Vec<TensorId> = self
            .model
            .results
            .iter()
            .flat_map(|r| self.model.inputs(*r))
            .collect();
        let complete = result_sources.iter().all(|t| self.available.contains(t));
        if complete {
            self.wanted.clear();
        } else if self.wanted.is_empty() {
            let stuck: Vec<String> = result_sources
                .iter()
                .filter(|t| !self.available.contains(t))
                .map(|t| self.model.node(t.node).label().to_string())
                .collect();
            return Err(Error::Internal(format!(
                "no shape can be found for the output of {}",
                stuck.join(", ")
            )));
        }
        let waits = |node: NodeIndex| {
            live.contains(&node) && !self.available.contains(&TensorId { node, output: 0 })
        };
        let mut outputs = Vec::new();
        let mut computed: Vec<(TensorId, BufferId)> =
            self.buffers.iter().map(|(t, b)| (*t, *b)).collect();
        computed.sort_unstable();
        for (tensor, buffer) in computed {
            let read_later = || self.model.readers(tensor).any(waits);
            let needed =
                result_sources.contains(&tensor) || self.wanted.contains(&tensor) || read_later();
            if self.nest.buf(buffer).role == Role::Temporary && needed {
                self.nest.buffers[buffer.0 as usize].role = Role::Output;
                outputs.push((buffer, tensor));
            }
        }
        Ok(Segment {
            nest: self.nest,
            sources: self.sources,
            outputs,
            constants: self.values,
            wanted: self.wanted.into_iter().collect(),
            types: self.types,
        })
    }
}

/// Lengths to go back to.
pub(super) struct Mark {
    buffers: usize,
    pub(super) stages: usize,
    sources: usize,
}
