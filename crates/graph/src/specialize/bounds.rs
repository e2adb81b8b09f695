//! Bounds of values that shapes are computed from, so that dims that are not known are at least bounded.
//!
//! They sharpen what is inferred before a run. In a run every shape is exact, and none is looked at.

use super::walk::{Mark, Mode, Walk};
use crate::model::TensorId;
use rustc_hash::FxHashMap;
use vinelift_nest::{BufferId, ValueRange, value_ranges};
use vinelift_ops::{Infer, Op};
use vinelift_tensor::{Tensor, element_count};

/// The most elements of a tensor whose bounds are kept.
const LIMIT: usize = 256;

impl Walk<'_> {
    /// Keeps what the operator knows from the types of its inputs.
    pub(super) fn bounds_of_types(&mut self, op: &dyn Op, cx: &Infer<'_>, outputs: &[TensorId]) {
        if matches!(self.mode, Mode::Run { .. }) {
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
        let is_run = matches!(self.mode, Mode::Run { .. });
        if is_run || !inputs.iter().any(|t| self.bounds.contains_key(t)) {
            return;
        }
        let small = |b: &BufferId| {
            element_count(&self.nest.buf(*b).shape).is_some_and(|count| count <= LIMIT)
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
