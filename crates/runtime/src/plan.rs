//! From a segment of a model to something that runs: passes, kernels, code, memory.

use crate::carry::{Carry, carries};
use crate::constants::fold_operands;
use crate::passes::optimize;
use crate::steps::{Making, Native, compile};
use crate::unit::{Unit, Workshop};
use crate::{Error, Level, Shape};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::Options;
use vinelift_graph::{NodeIndex, Segment, Source, TensorId};
use vinelift_nest::{Aliases, Nest, Stage};
use vinelift_ops::TensorType;
use vinelift_tensor::{ElementType, Tensor};

/// A segment of a model, specialised to shapes and ready to run.
pub(crate) struct Plan {
    /// The nest that runs.
    pub(crate) nest: Nest,
    /// Where each buffer of the nest is found.
    pub(crate) slots: Vec<Slot>,
    /// Native code, unless it is interpreted.
    pub(crate) native: Option<Native>,
    /// The tensors that it computes for others, with their types.
    pub(crate) outputs: Vec<Output>,
    /// What it writes after these, for runs that fail.
    pub(crate) journals: Vec<(ElementType, Shape)>,
    /// The variables that it updates where they are, with the steps to leave out then.
    pub(crate) carries: Vec<(Carry, usize)>,
    /// The tensors that turned out constant.
    pub(crate) constants: FxHashMap<TensorId, Tensor>,
    /// The nodes to call after it, in order.
    pub(crate) calls: Vec<Call>,
    /// The values that the next segment waits for.
    pub(crate) wanted: Vec<TensorId>,
    /// Bytes of temporaries.
    pub(crate) arena: usize,
}

/// A tensor that is computed for others, with its type.
pub(crate) type Output = (TensorId, ElementType, Shape);

/// A node to call between two segments.
pub(crate) struct Call {
    pub(crate) node: NodeIndex,
    /// Its outputs, with what is known of their types.
    pub(crate) outputs: Vec<(TensorId, TensorType)>,
}

impl Plan {
    /// Whether there is more to do for the unit after it.
    pub(crate) fn is_followed(&self) -> bool {
        !self.calls.is_empty() || !self.wanted.is_empty()
    }

    /// The types of the tensors that it computes for others.
    pub(crate) fn computed(&self) -> impl Iterator<Item = (TensorId, TensorType)> + '_ {
        let ty = |e, shape: &Shape| TensorType::new(e, shape.as_slice().into());
        self.outputs
            .iter()
            .map(move |(t, e, shape)| (*t, ty(*e, shape)))
    }
}

/// Where a buffer of a nest is found when it runs.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// The input of this position.
    Parameter(usize),
    /// A constant.
    Constant(Tensor),
    /// A tensor that an earlier segment kept.
    Kept(TensorId),
    /// The output of this position in [`Plan::outputs`].
    Output(usize),
    /// In the arena, from this offset on.
    Arena(usize),
    /// Nothing uses it, or the code holds it.
    Absent,
}

/// Makes a segment of a unit ready to run.
pub(crate) fn plan(
    unit: &Unit,
    segment: Segment,
    workshop: &Workshop,
    stop: &Arc<AtomicBool>,
) -> Result<Plan, Error> {
    let Workshop {
        compiler,
        config,
        pool,
        ..
    } = workshop;
    let calls = segment.calls.iter();
    let calls: Vec<Call> = calls
        .map(|&node| {
            let outputs = 0..unit.graph.node(node).layer.outputs.len();
            let tensors = outputs.map(|output| TensorId { node, output });
            let typed = tensors.filter_map(|t| Some((t, segment.types.get(t)?.clone())));
            Call {
                node,
                outputs: typed.collect(),
            }
        })
        .collect();
    let mut slots = slots(&segment);
    let mut nest = optimize(segment.nest, &slots, config.level, None, stop)?;
    slots.resize(nest.buffers.len(), Slot::Absent);
    let is_last = calls.is_empty() && segment.wanted.is_empty();
    let found = match config.level == Level::Scheduled && is_last {
        true => carries(&mut nest, &mut slots, &segment.outputs, unit),
        false => Vec::new(),
    };
    let (mut native, mut arena, mut journals, mut carries) = (None, 0, Vec::new(), Vec::new());
    if config.level.is_native() {
        let threads = (config.level == Level::Scheduled).then(|| pool.threads());
        if threads.is_some() {
            fold_operands(&mut nest, &mut slots, compiler, pool, stop)?;
        }
        let options = Options {
            vectors: config.vectors,
            ..Options::default()
        };
        let is_apart = |stage: &Stage| found.iter().any(|carry| carry.sets_apart(&nest, stage));
        let mut aliases = Aliases::default();
        found.iter().for_each(|carry| carry.join(&mut aliases));
        let making = Making {
            compiler,
            options: &options,
            threads,
            stop,
        };
        let mut code = compile(&nest, &slots, &is_apart, &aliases, &making)?;
        arena = code.place(&nest, &mut slots)?;
        for carry in found {
            journals.extend(carry.kept().map(|b| {
                let buffer = nest.buf(b);
                (buffer.ty, buffer.shape.clone())
            }));
            let step = code.steps.iter().position(|step| carry.leaves_out(step));
            carries.extend(step.map(|step| (carry, step)));
        }
        native = Some(code);
    }
    let outputs: Vec<Output> = segment
        .outputs
        .iter()
        .map(|(buffer, tensor)| {
            // Scheduling may have flattened the buffer: the tensor's shape is the one inferred.
            let shape = segment
                .types
                .shape(*tensor)
                .unwrap_or_else(|| nest.buf(*buffer).shape.clone());
            (*tensor, nest.buf(*buffer).ty, shape)
        })
        .collect();
    Ok(Plan {
        nest,
        slots,
        native,
        outputs,
        journals,
        carries,
        constants: segment.constants,
        calls,
        wanted: segment.wanted,
        arena,
    })
}

/// Where the buffers of a segment are found, but for temporaries.
pub(crate) fn slots(segment: &Segment) -> Vec<Slot> {
    let mut slots = vec![Slot::Absent; segment.nest.buffers.len()];
    for (buffer, source) in &segment.sources {
        slots[buffer.0 as usize] = match source {
            Source::Parameter(k) => Slot::Parameter(*k),
            Source::Constant(tensor) => Slot::Constant(tensor.clone()),
            Source::Kept(tensor) => Slot::Kept(*tensor),
        };
    }
    for (k, (buffer, _)) in segment.outputs.iter().enumerate() {
        slots[buffer.0 as usize] = Slot::Output(k);
    }
    slots
}
