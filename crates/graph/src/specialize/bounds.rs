//! Bounds of values that shapes are computed from, so that dims that are not known are at least bounded.
//!
//! They sharpen what is inferred before a run. In a run every shape is exact, and none is looked at, unless extents
//! have symbols: then the elements of tensors that shapes are computed from are formulas, which are kept here too.

use super::lower::Mark;
use super::shape_values::integers;
use super::walk::Walk;
use crate::model::TensorId;
use rustc_hash::FxHashMap;
use vinelift_nest::{BufferId, Role, Stage, ValueRange, build, row_major, value_ranges};
use vinelift_ops::{Infer, Op, chosen};
use vinelift_tensor::{Formula, Tensor, element_count, numbers, symbols};

/// The most elements of a tensor whose bounds are kept.
const LIMIT: usize = 256;

impl Walk<'_> {
    /// Whether this walk looks at nothing but the types of `outputs`: it is no run, or they are made in a later segment of it, and they
    /// are neither constant nor small enough to have bounds. Most layers of most models are so, and lowering them takes longer than all
    /// else before a run.
    pub(super) fn needs_only_types(&self, inputs: &[TensorId], outputs: &[TensorId]) -> bool {
        let is_constant = |t: &TensorId| self.values.contains_key(t);
        let is_small = |t: &TensorId| {
            let extents = self.types.get(*t).and_then(|ty| ty.shape.to_extents());
            let shape = extents.and_then(|extents| numbers(&extents));
            let count = shape.and_then(|shape| element_count(&shape));
            count.is_some_and(|count| count <= LIMIT)
        };
        let is_made_now = self.mode.is_run() && self.are_available(inputs);
        !is_made_now && !inputs.iter().all(is_constant) && !outputs.iter().any(is_small)
    }

    /// Keeps what the operator knows from the types of its inputs.
    pub(super) fn bounds_of_types(&mut self, op: &dyn Op, cx: &Infer<'_>, outputs: &[TensorId]) {
        if self.mode.is_run() && !self.is_symbolic {
            return;
        }
        if let (Some(bounds), [output]) = (op.bounds(cx), outputs)
            && bounds.len() <= LIMIT
        {
            self.bounds.insert(*output, bounds);
        }
    }

    /// Keeps what follows for `outputs`, which the stages since `before` compute, if there are bounds of
    /// any of `inputs`.
    pub(super) fn bounds_of_stages(
        &mut self,
        before: &Mark,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) {
        let is_run = self.mode.is_run() && !self.is_symbolic;
        if is_run || !inputs.iter().any(|t| self.bounds.contains_key(t)) {
            return;
        }
        let small = |b: &BufferId| {
            let shape = vinelift_tensor::numbers(&self.nest.buf(*b).shape);
            let count = shape.and_then(|shape| element_count(&shape));
            count.is_some_and(|count| count <= LIMIT)
        };
        let targets: Vec<(TensorId, BufferId)> = outputs
            .iter()
            .filter_map(|t| Some((*t, *self.buffers.get(t)?)))
            .collect();
        if targets.is_empty() || !targets.iter().all(|(_, b)| small(b)) {
            return;
        }
        let kernel = self.nest.extract(before.stages..self.nest.stages.len());
        let inner = |buffer: BufferId| {
            let position = kernel.buffers.iter().position(|b| *b == buffer)?;
            Some(BufferId(position as u32))
        };
        let mut given: FxHashMap<BufferId, Vec<ValueRange>> = FxHashMap::default();
        for tensor in inputs {
            let buffer = self.buffers.get(tensor).and_then(|b| inner(*b));
            let known = self.bounds.get(tensor).cloned();
            let known = known.or_else(|| exact(self.values.get(tensor)?));
            given.extend(buffer.zip(known));
        }
        let Some(mut found) = value_ranges(&kernel.nest, given, LIMIT) else {
            return;
        };
        for (tensor, buffer) in targets {
            if let Some(bounds) = inner(buffer).and_then(|b| found.remove(&b))
                && bounds.iter().any(|b| *b != ValueRange::Unknown)
            {
                self.bounds.insert(tensor, bounds);
            }
        }
    }
}

impl Walk<'_> {
    /// Whether the stages since `before` or what they compute for `outputs` has symbols.
    pub(super) fn has_symbols(&self, before: &Mark, outputs: &[TensorId]) -> bool {
        let is_symbolic = |t: &TensorId| self.types.get(*t).is_none_or(|t| t.shape.is_symbolic());
        self.nest.stages[before.stages..]
            .iter()
            .any(Stage::is_symbolic)
            || outputs.iter().any(is_symbolic)
    }

    /// The elements of a tensor, if they are known exactly and some have symbols.
    pub(super) fn formulas(&self, tensor: TensorId) -> Option<Vec<Formula>> {
        self.examples.get(&tensor)?;
        let bounds = self.bounds.get(&tensor)?;
        bounds.iter().map(|b| b.formula()).collect()
    }

    /// Has `outputs` be what is known of their elements, if all are known exactly: constants, or formulas with their
    /// values at the example.
    pub(super) fn keep_formulas(&mut self, outputs: &[TensorId]) -> bool {
        let mut found = Vec::with_capacity(outputs.len());
        for tensor in outputs {
            let bounds = self.bounds.get(tensor);
            let exact = bounds.map(|b| b.iter().map(|b| b.formula()).collect());
            let (Some(Some(formulas)), Some(ty)) = (exact, self.types.get(*tensor)) else {
                return false;
            };
            let formulas: Vec<Formula> = formulas;
            let values = formulas.iter().map(symbols::example);
            let Some(values) = values.collect::<Option<Vec<i64>>>() else {
                return false;
            };
            let Some(shape) = ty.shape.to_extents().and_then(|s| numbers(&s)) else {
                return false;
            };
            let Some(example) = integers(ty.element, &shape, &values) else {
                return false;
            };
            let is_constant = formulas.iter().all(|f| f.as_number().is_some());
            found.push((*tensor, example, is_constant));
        }
        for (tensor, example, is_constant) in found {
            let known = match is_constant {
                true => &mut self.values,
                false => &mut self.examples,
            };
            known.insert(tensor, example);
            self.available.insert(tensor);
        }
        !outputs.is_empty()
    }

    /// A buffer that a stage of its own fills with formulas.
    pub(super) fn formula_buffer(&mut self, tensor: TensorId, formulas: &[Formula]) -> BufferId {
        let label = self.model.node(tensor.node).label();
        let layer = self.nest.layer(&label.name, &label.op);
        let target = self.new_buffer(tensor, Role::Temporary);
        let ty = self.nest.buf(target).ty;
        let shape = vinelift_tensor::example(&self.nest.buf(target).shape);
        let strides = row_major(&shape);
        self.nest.define(vec![layer], target, |_, at| {
            let places = at.iter().zip(&strides);
            let place = places.fold(build::index(0), |sum, (i, k)| sum + i * (*k as i64));
            chosen(&place, formulas).cast(ty)
        });
        target
    }
}

/// The elements of a small tensor.
fn exact(tensor: &Tensor) -> Option<Vec<ValueRange>> {
    if tensor.element_count() > LIMIT {
        return None;
    }
    if let Ok(values) = tensor.to_i64_vec() {
        return Some(values.into_iter().map(ValueRange::exactly).collect());
    }
    let values = tensor.to_f64_vec().ok()?;
    Some(
        values
            .into_iter()
            .map(|x| ValueRange::Float(x, x))
            .collect(),
    )
}
