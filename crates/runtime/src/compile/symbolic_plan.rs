//! A plan for a class of shapes: all but the numbers of its symbols.

use crate::compile::Settings;
use crate::compile::arena::Placement;
use crate::compile::binding::Binding;
use crate::compile::kernels::Kernels;
use crate::compile::micro_batches::MicroBatches;
use crate::compile::native::Native;
use crate::compile::packed_operands::PlanSlots;
use crate::compile::plan::{NodeCall, Plan};
use crate::compile::slot::Slot;
use crate::compile::step::Step;
use crate::compile::symbolic_kernel::Numbers;
use crate::compile::variables::Candidate;
use crate::{Error, Tensor};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use vinelift_graph::{ShapeValue, TensorId};
use vinelift_nest::{BufferId, Nest};
use vinelift_tensor::{Extent, Shape, SymbolSet};

/// A plan for a class of shapes, which is [bound](SymbolicPlan::bound_to) to those of a run. A plan for some shapes alone
/// is one without symbols.
pub(crate) struct SymbolicPlan {
    pub(super) nest: Arc<Nest>,
    /// Its extents that have symbols.
    pub(super) extents: Vec<Extent>,
    /// The buffers whose shapes have symbols, with these.
    pub(super) symbolic_buffers: Vec<(usize, SymbolSet)>,
    /// None if the nest is interpreted.
    pub(super) kernels: Option<Kernels>,
    /// Of the buffers that are no temporaries.
    pub(super) slots: PlanSlots,
    pub(super) candidates: Vec<Candidate>,
    pub(super) outputs: Vec<(BufferId, TensorId, Vec<Extent>)>,
    pub(super) constants: Arc<FxHashMap<TensorId, Tensor>>,
    pub(super) calls: Vec<NodeCall>,
    pub(super) wanted: Vec<TensorId>,
    pub(super) shape_values: Vec<ShapeValue>,
    pub(super) forgotten: Arc<[TensorId]>,
    pub(super) micro_batches: Option<Arc<MicroBatches>>,
    /// The last binding.
    pub(super) last: Mutex<Option<Arc<Binding>>>,
}

impl SymbolicPlan {
    /// The plan where the symbol of number `k` is `values[k]`; `None` if an extent is out of bounds then.
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
        let shape_values = self.shape_values.iter();
        let shape_values = shape_values.map(|value| Some((value.tensor, value.at(values)?)));
        let Some(shape_values) = shape_values.collect() else {
            return Ok(None);
        };
        if !self.extents.iter().all(is_extent) {
            return Ok(None);
        }
        let Some(binding) = self.binding(values, settings)? else {
            return Ok(None);
        };
        let (mut journals, mut updates) = (Vec::new(), Vec::new());
        if binding.native.is_some() {
            for candidate in &self.candidates {
                journals.extend(candidate.journal_buffers().map(|b| {
                    let buffer = self.nest.buf(b);
                    let shape = buffer.shape.iter().map(|n| n.at(values).unwrap_or(0));
                    (buffer.ty, shape.collect::<Shape>())
                }));
                updates.extend(candidate.bound_to(values));
            }
        }
        let outputs = self.outputs.iter().zip(outputs);
        let outputs = outputs.map(|((buffer, tensor, _), shape)| {
            let ty = self.nest.buf(*buffer).ty;
            (*tensor, ty, shape)
        });
        Ok(Some(Plan {
            nest: self.nest.clone(),
            binding,
            outputs: outputs.collect(),
            journals,
            updates,
            constants: self.constants.clone(),
            calls,
            wanted: self.wanted.clone(),
            shape_values,
            forgotten: self.forgotten.clone(),
            micro_batches: self.micro_batches.clone(),
            hotness: None,
        }))
    }

    /// The binding to these values, which the next one starts from; `None` if an extent is out of bounds then.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    fn binding(
        &self,
        values: &[usize],
        settings: &Settings<'_>,
    ) -> Result<Option<Arc<Binding>>, Error> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last().clone();
        let before = before.as_deref();
        let values: Arc<[usize]> = values.into();
        let lengths = self.lengths(&values, before);
        let numbers = Numbers {
            values: &values,
            lengths: &lengths,
        };
        let (slots, native) = match &self.kernels {
            None => (self.slots.all().into(), None),
            Some(kernels) => {
                let steps = kernels.bound_to(&numbers, before, &self.slots, settings)?;
                let Some(steps) = steps else {
                    return Ok(None);
                };
                let (slots, native) = self.placed(steps, &numbers, before)?;
                (slots, Some(native))
            }
        };
        let binding = Arc::new(Binding {
            values,
            lengths,
            slots,
            native,
        });
        *last() = Some(binding.clone());
        Ok(Some(binding))
    }

    /// Gives steps their memory: where it was `before`, if there is room for it.
    ///
    /// # Errors
    /// If it is more than an address space has.
    fn placed(
        &self,
        steps: Vec<Arc<Step>>,
        numbers: &Numbers<'_>,
        before: Option<&Binding>,
    ) -> Result<(Arc<[Slot]>, Native), Error> {
        let after = (&*steps, numbers.lengths);
        let same = before.and_then(|before| {
            let native = before.native.as_ref()?;
            let bindings = [(&*native.steps, &*before.lengths), after];
            let is_kept = native.placement.is_kept(bindings);
            is_kept.then(|| (before.slots.clone(), native.placement.clone()))
        });
        let (slots, placement) = match same {
            Some(same) => same,
            None => {
                let is_of_class = !numbers.values.is_empty();
                let placement = Placement::of(&self.nest, &steps, numbers.lengths, is_of_class)?;
                (
                    placement.slots(&steps, self.slots.all()),
                    Arc::new(placement),
                )
            }
        };
        Ok((slots, Native::new(steps, placement)))
    }

    /// The bytes of all buffers, of which those are counted whose symbols have other values than `before`.
    fn lengths(&self, values: &[usize], before: Option<&Binding>) -> Arc<[Option<usize>]> {
        let buffers = &self.nest.buffers;
        let Some(before) = before else {
            return buffers.iter().map(|b| b.byte_len_at(values)).collect();
        };
        let changes = before.changes(values);
        let mut lengths = before.lengths.to_vec();
        for (buffer, symbols) in &self.symbolic_buffers {
            if symbols.meets(&changes) {
                lengths[*buffer] = buffers[*buffer].byte_len_at(values);
            }
        }
        lengths.into()
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
