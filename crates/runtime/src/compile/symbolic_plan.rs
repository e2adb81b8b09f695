//! A plan for a class of shapes: all but the numbers of its symbols.

use crate::compile::Settings;
use crate::compile::arena::LastPlacement;
use crate::compile::kernels::{Kernels, Numbers};
use crate::compile::plan::{NodeCall, Plan};
use crate::compile::slot::Slot;
use crate::compile::variables::Candidate;
use crate::{Error, Tensor};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vinelift_graph::TensorId;
use vinelift_nest::{BufferId, Nest};
use vinelift_tensor::{Extent, Shape};

/// A plan for a class of shapes, which is [bound](SymbolicPlan::bound_to) to those of a run. A plan for some shapes alone
/// is one without symbols.
pub(crate) struct SymbolicPlan {
    pub(super) nest: Arc<Nest>,
    /// Its extents that have symbols.
    pub(super) extents: Vec<Extent>,
    /// None if the nest is interpreted.
    pub(super) kernels: Option<Kernels>,
    /// Of the buffers that are no temporaries.
    pub(super) slots: Vec<Slot>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) placement: LastPlacement,
    pub(super) outputs: Vec<(BufferId, TensorId, Vec<Extent>)>,
    pub(super) constants: Arc<FxHashMap<TensorId, Tensor>>,
    pub(super) calls: Vec<NodeCall>,
    pub(super) wanted: Vec<TensorId>,
    pub(super) forgotten: Arc<[TensorId]>,
}

impl SymbolicPlan {
    /// The plan where the symbol of number `k` is `values[k]`; `None` if an extent then is none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn bound_to(
        &self,
        values: &[usize],
        settings: &Settings<'_>,
    ) -> Result<Option<Plan>, Error> {
        let is_extent = |extent: &Extent| extent.at(values).is_some_and(Extent::may_be);
        let (Some(outputs), Some(calls)) = (self.shapes(values), self.calls(values)) else {
            return Ok(None);
        };
        if !self.extents.iter().all(is_extent) {
            return Ok(None);
        }
        let values: Arc<[usize]> = values.into();
        let buffers = self.nest.buffers.iter();
        let lengths: Vec<Option<usize>> = buffers.map(|b| b.byte_len_at(&values)).collect();
        let mut slots = self.slots.clone();
        let mut native = None;
        let (mut arena, mut journals, mut updates) = (0, Vec::new(), Vec::new());
        if let Some(kernels) = &self.kernels {
            let numbers = Numbers {
                values: &values,
                lengths: &lengths,
            };
            let Some(mut code) = kernels.bound_to(&numbers, &slots, settings)? else {
                return Ok(None);
            };
            let last = (!values.is_empty()).then_some(&self.placement);
            arena = code.place(&self.nest, &lengths, &mut slots, last)?;
            for candidate in &self.candidates {
                journals.extend(candidate.journal_buffers().map(|b| {
                    let buffer = self.nest.buf(b);
                    let shape = buffer.shape.iter().map(|n| n.at(&values).unwrap_or(0));
                    (buffer.ty, shape.collect::<Shape>())
                }));
                updates.extend(candidate.bound_to(&values));
            }
            native = Some(code);
        }
        let outputs = self.outputs.iter().zip(outputs);
        let outputs = outputs.map(|((buffer, tensor, _), shape)| {
            let ty = self.nest.buf(*buffer).ty;
            (*tensor, ty, shape)
        });
        Ok(Some(Plan {
            nest: self.nest.clone(),
            values,
            lengths,
            slots,
            native,
            outputs: outputs.collect(),
            journals,
            updates,
            constants: self.constants.clone(),
            calls,
            wanted: self.wanted.clone(),
            forgotten: self.forgotten.clone(),
            arena,
            heat: None,
        }))
    }

    /// How many stages it has.
    pub(crate) fn stages(&self) -> usize {
        self.nest.stages.len()
    }

    /// The shapes of the outputs.
    fn shapes(&self, values: &[usize]) -> Option<Vec<Shape>> {
        let shape = |shape: &Vec<Extent>| shape.iter().map(|n| n.at(values)).collect();
        self.outputs
            .iter()
            .map(|(.., extents)| shape(extents))
            .collect()
    }

    /// The calls, with the types of their outputs in numbers.
    fn calls(&self, values: &[usize]) -> Option<Vec<NodeCall>> {
        let mut calls = self.calls.clone();
        for (_, ty) in calls.iter_mut().flat_map(|call| &mut call.outputs) {
            ty.shape = ty.shape.bound_to(values)?;
        }
        Some(calls)
    }
}
