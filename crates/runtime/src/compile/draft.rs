//! A plan in the making, with a stop where the caller runs what depends on constants alone.

use crate::compile::Settings;
use crate::compile::constants::{Prologue, constant_stages};
use crate::compile::interface::Interface;
use crate::compile::kernels::{Native, SymbolicKernels, compile};
use crate::compile::passes::optimize;
use crate::compile::plan::{NodeCall, Output, Plan};
use crate::compile::slot::{Slot, slots};
use crate::compile::variables::{Candidate, InPlaceUpdate, update_in_place};
use crate::{Error, Level, Tensor};
use rustc_hash::FxHashMap;
use vinelift_graph::{NodeIndex, Segment, TensorId, Types};
use vinelift_nest::{Aliases, BufferId, Nest, Stage};
use vinelift_tensor::{Extent, example};

/// A segment whose nest has been through the passes, for shapes or for a class of them.
#[derive(Clone)]
pub(crate) struct Draft {
    nest: Nest,
    slots: Vec<Slot>,
    candidates: Vec<Candidate>,
    /// The tensors that it computes for others, where, and of which shapes.
    outputs: Vec<(BufferId, TensorId, Vec<Extent>)>,
    constants: FxHashMap<TensorId, Tensor>,
    calls: Vec<NodeCall>,
    wanted: Vec<TensorId>,
    level: Level,
}

impl Draft {
    /// The segment's nest after the passes of the level, with the variables that it updates in place.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and internal ones.
    pub(crate) fn new(
        interface: &Interface,
        segment: Segment,
        settings: &Settings<'_>,
    ) -> Result<Draft, Error> {
        let calls = segment.calls.iter();
        let calls: Vec<NodeCall> = calls
            .map(|node| node_call(interface, *node, &segment.types))
            .collect();
        let mut slots = slots(&segment);
        let level = settings.level;
        let mut nest = optimize(segment.nest, &slots, level, None, settings.stop)?;
        slots.resize(nest.buffers.len(), Slot::Absent);
        // A later segment may read what the variable held.
        let is_last = calls.is_empty() && segment.wanted.is_empty();
        let candidates = match level == Level::Scheduled && is_last {
            true => update_in_place(&mut nest, &mut slots, &segment.outputs, interface),
            false => Vec::new(),
        };
        let outputs = segment.outputs.iter();
        let outputs = outputs.map(|(buffer, tensor)| {
            // Scheduling may have flattened the buffer: the tensor's shape is the one inferred.
            let inferred = segment.types.shape(*tensor);
            let shape = inferred.unwrap_or_else(|| nest.buf(*buffer).shape.clone());
            (*buffer, *tensor, shape)
        });
        Ok(Draft {
            outputs: outputs.collect(),
            nest,
            slots,
            candidates,
            constants: segment.constants,
            calls,
            wanted: segment.wanted,
            level,
        })
    }

    /// The stages that depend on constants alone and are worth to be run once, as a plan. They leave the draft, whose
    /// caller passes what they compute to [`Draft::set_constants`].
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn prologue(&mut self, settings: &Settings<'_>) -> Result<Option<Prologue>, Error> {
        match self.level {
            Level::Scheduled => constant_stages(&mut self.nest, &self.slots, settings),
            _ => Ok(None),
        }
    }

    /// Has the buffers that the prologue computed be constants.
    pub(crate) fn set_constants(&mut self, values: Vec<(BufferId, Tensor)>) {
        for (buffer, value) in values {
            self.slots[buffer.0 as usize] = Slot::Constant(value);
        }
    }

    /// The plan: kernels, and an arena for its temporaries.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn finish(self, settings: &Settings<'_>) -> Result<Plan, Error> {
        let native = match self.level.is_native() {
            true => Some(self.compile(settings)?),
            false => None,
        };
        self.with_kernels(native)
    }

    fn compile(&self, settings: &Settings<'_>) -> Result<Native, Error> {
        let (contracts, aliases) = (self.level == Level::Scheduled, self.aliases());
        let alone = |stage: &Stage| self.sets_apart(stage);
        compile(
            &self.nest,
            &self.slots,
            contracts,
            &alone,
            &aliases,
            settings,
        )
    }

    /// Whether a stage is a kernel of its own.
    fn sets_apart(&self, stage: &Stage) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|c| c.sets_apart(&self.nest, stage))
    }

    /// The buffers that may be the same memory.
    fn aliases(&self) -> Aliases {
        let mut aliases = Aliases::default();
        self.candidates.iter().for_each(|c| c.join(&mut aliases));
        aliases
    }

    /// The plan with these kernels, if it is native.
    fn with_kernels(self, mut native: Option<Native>) -> Result<Plan, Error> {
        let Draft {
            nest,
            mut slots,
            candidates,
            ..
        } = self;
        let (mut arena, mut journals) = (0, Vec::new());
        let mut updates: Vec<InPlaceUpdate> = Vec::new();
        if let Some(native) = &mut native {
            arena = native.place(&nest, &mut slots)?;
            for candidate in candidates {
                journals.extend(candidate.journal_buffers().map(|b| {
                    let buffer = nest.buf(b);
                    (buffer.ty, buffer.example())
                }));
                updates.extend(candidate.without_copy(&native.steps));
            }
        }
        let outputs = self.outputs.iter();
        let outputs: Vec<Output> = outputs
            .map(|(buffer, tensor, shape)| (*tensor, nest.buf(*buffer).ty, example(shape)))
            .collect();
        Ok(Plan {
            nest,
            slots,
            native,
            outputs,
            journals,
            updates,
            constants: self.constants,
            calls: self.calls,
            wanted: self.wanted,
            arena,
        })
    }
}

/// A plan for a class of shapes, but for the numbers.
pub(crate) struct SymbolicPlan {
    draft: Draft,
    /// None if the nest is interpreted.
    kernels: Option<SymbolicKernels>,
}

impl SymbolicPlan {
    /// Of a draft whose extents have symbols.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn of(draft: Draft, settings: &Settings<'_>) -> Result<SymbolicPlan, Error> {
        let contracts = draft.level == Level::Scheduled;
        let alone = |stage: &Stage| draft.sets_apart(stage);
        let kernels = || SymbolicKernels::of(&draft.nest, contracts, &alone, settings);
        let kernels = draft.level.is_native().then(kernels).transpose()?;
        Ok(SymbolicPlan { draft, kernels })
    }

    /// The plan where the symbol of number `k` is `values[k]`; `None` if an extent then is none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn bound_to(
        &self,
        values: &[usize],
        settings: &Settings<'_>,
    ) -> Result<Option<Plan>, Error> {
        let Some(draft) = self.draft.bound_to(values) else {
            return Ok(None);
        };
        let native = match &self.kernels {
            None => None,
            Some(kernels) => {
                let aliases = draft.aliases();
                match kernels.bound_to(values, &draft.slots, &aliases, settings)? {
                    None => return Ok(None),
                    native => native,
                }
            }
        };
        draft.with_kernels(native).map(Some)
    }
}

impl Draft {
    /// The draft where the symbol of number `k` is `values[k]`; `None` if an extent then is none.
    fn bound_to(&self, values: &[usize]) -> Option<Draft> {
        let mut outputs = self.outputs.clone();
        for extent in outputs.iter_mut().flat_map(|(.., shape)| shape) {
            *extent = extent.at(values)?.into();
        }
        let mut calls = self.calls.clone();
        for (_, ty) in calls.iter_mut().flat_map(|call| &mut call.outputs) {
            ty.shape = ty.shape.bound_to(values)?;
        }
        Some(Draft {
            nest: self.nest.bound_to(values)?,
            slots: self.slots.clone(),
            candidates: self.candidates.clone(),
            outputs,
            constants: self.constants.clone(),
            calls,
            wanted: self.wanted.clone(),
            level: self.level,
        })
    }
}

fn node_call(interface: &Interface, node: NodeIndex, types: &Types) -> NodeCall {
    let outputs = 0..interface.graph.node(node).layer.outputs.len();
    let tensors = outputs.map(|output| TensorId { node, output });
    let typed = tensors.filter_map(|t| Some((t, types.get(t)?.clone())));
    NodeCall {
        node,
        outputs: typed.collect(),
    }
}
