//! Constant folding.

use super::lower::Mark;
use super::walk::Walk;
use crate::error::Problem;
use crate::model::TensorId;
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use vinelift_nest::{BufferBytes, BufferId, Role, Scalar, interpret, partial_folds};
use vinelift_tensor::{ElementType, Tensor};

impl Walk<'_> {
    /// Interprets the stages since `before` if that is little work, and keeps the values of `outputs`.
    pub(super) fn fold(
        &mut self,
        node: NodeIndex,
        before: &Mark,
        outputs: &[TensorId],
    ) -> Result<bool, Problem> {
        let stages = before.stages..self.nest.stages.len();
        let strings = outputs.iter().any(|t| {
            self.types
                .get(*t)
                .is_none_or(|ty| ty.element == ElementType::String)
        });
        let points = self.nest.points_in(stages.clone());
        if strings || !self.is_folding(node, self.budget.of_nest(points)) {
            return Ok(false);
        }
        let mut kernel = self.nest.extract(stages);
        self.budget.spend_on_nest(points, kernel.nest.size());
        // As the plan would round long sums if it computed them.
        partial_folds(&mut kernel.nest, &|_| true, &AtomicBool::new(false));
        let mut results = Vec::new();
        for tensor in outputs {
            let Some((ty, shape)) = self
                .types
                .get(*tensor)
                .and_then(|t| Some((t.element, t.shape.to_static()?)))
            else {
                return Ok(false);
            };
            results.push((
                self.buffers.get(tensor).copied(),
                Tensor::zeros(ty, &shape)?,
            ));
        }
        let mut targets: FxHashMap<BufferId, &mut Tensor> = results
            .iter_mut()
            .filter_map(|(b, t)| b.map(|b| (b, t)))
            .collect();
        let mut bytes: Vec<BufferBytes<'_>> = Vec::new();
        for (position, inner) in kernel.nest.buffers.iter().enumerate() {
            let outer = kernel.buffers.get(position);
            let constant = outer.and_then(|buffer| self.constant_behind(*buffer));
            let target = outer.and_then(|buffer| targets.remove(buffer));
            bytes.push(match (constant, target) {
                (Some(tensor), _) => BufferBytes::Read(tensor.bytes()),
                (None, Some(tensor)) => BufferBytes::Write(tensor.make_mut()?),
                (None, None) if matches!(inner.role, Role::Table(_)) => BufferBytes::Read(&[]),
                (None, None) => BufferBytes::Temporary,
            });
        }
        // An index that is out of range is reported when the model runs, as for any other index.
        let done = interpret(&kernel.nest, &mut bytes).is_ok();
        drop(bytes);
        if done {
            for (tensor, (_, value)) in outputs.iter().zip(results) {
                self.values.insert(*tensor, value);
                self.available.insert(*tensor);
            }
        }
        Ok(done)
    }

    /// Puts constants of one element in place of their loads, of those in `read`.
    pub(super) fn inline_scalars(&mut self, before: &Mark, read: &[BufferId]) {
        let scalar = |b: &BufferId| {
            let t = self.constant_behind(*b)?;
            let bits = t.bytes();
            let ty = self.nest.buf(*b).ty;
            if t.element_count() != 1 || bits.len() > 8 || ty.is_packed() {
                return None;
            }
            let mut word = [0; 8];
            word[..bits.len()].copy_from_slice(bits);
            let word = u64::from_le_bytes(word);
            let word = if ty == ElementType::Boolean {
                u64::from(word != 0)
            } else {
                word
            };
            Some((*b, Scalar::constant(word, ty)))
        };
        let scalars: FxHashMap<BufferId, Scalar> = read.iter().filter_map(scalar).collect();
        if !scalars.is_empty() {
            self.nest.replace_loads(before.stages.., &scalars);
        }
    }
}
