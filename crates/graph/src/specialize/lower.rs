//! Lowering a node: the stages that its operator appends to the nest, and the buffers that they read and write.

use super::Source;
use super::walk::Walk;
use crate::error::Problem;
use crate::model::TensorId;
use petgraph::graph::NodeIndex;
use std::sync::Arc;
use vinelift_nest::{BufferId, LayerId, Role, ValueRange};
use vinelift_ops::{Lower, Op, OpDef};
use vinelift_tensor::{ElementType, Tensor};

impl Walk<'_> {
    /// Lowers a node, then folds it if what it reads is constant. Its stages are taken out again if they are folded, or if
    /// not all inputs can be had when the nest runs.
    pub(super) fn lower(
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
        let keeps_codes = is_constant && self.keeps_codes(node, def, inputs, outputs);
        let is_of_codes = |t: &TensorId| self.of_codes.contains(t);
        let is_fixed = |t: &TensorId| is_of_codes(t) || self.values.contains_key(t);
        let reads_codes = inputs.iter().any(is_of_codes) && inputs.iter().all(is_fixed);
        if keeps_codes || (reads_codes && !has_symbols) {
            self.of_codes.extend(outputs);
        }
        if is_constant && !keeps_codes && self.fold(node, &before, outputs)? {
            self.undo(&before);
            return Ok(());
        }
        self.bounds_of_stages(&before, inputs, outputs);
        if self.is_symbolic && self.keep_formulas(outputs) {
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

    /// Takes out what was appended to the nest since `before`.
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

/// Lengths of the nest's lists, to go back to.
pub(super) struct Mark {
    pub(super) buffers: usize,
    pub(super) stages: usize,
    sources: usize,
}
