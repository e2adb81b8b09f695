//! From a segment of a model to something that runs: passes, kernels, code, memory.

use crate::arena::{Lifetime, place};
use crate::{Config, Error, Level, Shape};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};
use vinelift_codegen::{Code, Compiler, KernelText, Options};
use vinelift_graph::{Model, NodeIndex, Segment, Source, TensorId};
use vinelift_nest::{BufferId, Kept, Kernel, Nest, Role, fuse, schedule, split, verify};
use vinelift_ops::TensorType;
use vinelift_tensor::{ElementType, Tensor, element_count};

/// A segment of a model, specialised to shapes and ready to run.
pub(crate) struct Plan {
    /// The nest that runs.
    pub(crate) nest: Nest,
    /// Where each buffer of the nest is found.
    pub(crate) slots: Vec<Slot>,
    /// Native code, unless it is interpreted.
    pub(crate) native: Option<Native>,
    /// The tensors that it computes for others, with their types.
    pub(crate) outputs: Vec<(TensorId, ElementType, Shape)>,
    /// The tensors that turned out constant.
    pub(crate) constants: FxHashMap<TensorId, Tensor>,
    /// The nodes to call after it, in order.
    pub(crate) calls: Vec<Call>,
    /// The values that the next segment waits for.
    pub(crate) wanted: Vec<TensorId>,
    /// Bytes of temporaries.
    pub(crate) arena: usize,
}

/// A node to call between two segments.
pub(crate) struct Call {
    pub(crate) node: NodeIndex,
    /// Its outputs, with what is known of their types.
    pub(crate) outputs: Vec<(TensorId, TensorType)>,
}

impl Plan {
    /// The types of the tensors that it computes for others.
    pub(crate) fn computed(&self) -> impl Iterator<Item = (TensorId, TensorType)> + '_ {
        let ty = |e, shape: &Shape| TensorType::new(e, shape.as_slice().into());
        self.outputs
            .iter()
            .map(move |(t, e, shape)| (*t, ty(*e, shape)))
    }
}

/// The kernels of a plan.
pub(crate) struct Native {
    pub(crate) code: Code,
    pub(crate) steps: Vec<Step>,
}

/// One call of one kernel.
pub(crate) struct Step {
    /// The stages, for messages and texts.
    pub(crate) kernel: Kernel,
    /// Which function of the code.
    pub(crate) function: usize,
    /// How many threads its work is worth.
    shares: usize,
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

/// What a pass did, for the trace.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) stages: usize,
    pub(crate) time: Duration,
    pub(crate) kept: Vec<Kept>,
    /// The nest after it.
    pub(crate) text: String,
}

/// The nest of a segment after the passes of `level`.
pub(crate) fn optimize(mut nest: Nest, level: Level, mut trace: Option<&mut Vec<Pass>>) -> Nest {
    let mut record = |name, start: Instant, kept, nest: &Nest| {
        if let Some(trace) = trace.as_deref_mut() {
            let time = start.elapsed();
            trace.push(Pass {
                name,
                stages: nest.stages.len(),
                time,
                kept,
                text: nest.to_string(),
            });
        }
    };
    record("nest", Instant::now(), Vec::new(), &nest);
    if level.fuses() {
        let start = Instant::now();
        let kept = fuse(&mut nest);
        record("fused", start, kept, &nest);
    }
    if level == Level::Scheduled {
        let start = Instant::now();
        schedule(&mut nest);
        record("scheduled", start, Vec::new(), &nest);
    }
    nest
}

/// Makes a segment ready to run.
pub(crate) fn plan(
    graph: &Model,
    segment: Segment,
    compiler: &Compiler,
    config: &Config,
) -> Result<Plan, Error> {
    let calls = segment.calls.iter();
    let calls = calls
        .map(|&node| {
            let outputs = 0..graph.node(node).layer.outputs.len();
            let tensors = outputs.map(|output| TensorId { node, output });
            let typed = tensors.filter_map(|t| Some((t, segment.types.get(t)?.clone())));
            Call {
                node,
                outputs: typed.collect(),
            }
        })
        .collect();
    let nest = verified(segment.nest, config.level)?;
    let native = if config.level.is_native() {
        Some(compile(&nest, compiler, &Options::default())?)
    } else {
        None
    };
    let outputs: Vec<(TensorId, ElementType, Shape)> = segment
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
    let mut slots = vec![Slot::Absent; nest.buffers.len()];
    for (buffer, source) in segment.sources {
        slots[buffer.0 as usize] = match source {
            Source::Parameter(k) => Slot::Parameter(k),
            Source::Constant(tensor) => Slot::Constant(tensor),
            Source::Kept(tensor) => Slot::Kept(tensor),
        };
    }
    for (k, (buffer, _)) in segment.outputs.iter().enumerate() {
        slots[buffer.0 as usize] = Slot::Output(k);
    }
    let arena = match &native {
        Some(native) => temporaries(&nest, &native.steps, &mut slots)?,
        None => 0,
    };
    Ok(Plan {
        nest,
        slots,
        native,
        outputs,
        constants: segment.constants,
        calls,
        wanted: segment.wanted,
        arena,
    })
}

/// The nest after the passes of `level`. Should what they made not be proven to be safe, the nest as it
/// was before them runs instead; where mistakes are looked for, that is an error.
fn verified(nest: Nest, level: Level) -> Result<Nest, Error> {
    let plain = level.fuses().then(|| nest.clone());
    let nest = optimize(nest, level, None);
    match (verify(&nest), plain) {
        (Ok(()), _) => Ok(nest),
        (Err(_), Some(plain)) if !cfg!(debug_assertions) => {
            verify(&plain).map_err(|errors| Error::internal(&errors[0]))?;
            Ok(plain)
        }
        (Err(errors), _) => Err(Error::internal(&errors[0])),
    }
}

/// Compiles the kernels of a nest, equal ones once.
pub(crate) fn compile(
    nest: &Nest,
    compiler: &Compiler,
    options: &Options,
) -> Result<Native, Error> {
    let mut functions: FxHashMap<Nest, usize> = FxHashMap::default();
    let mut unique: Vec<usize> = Vec::new();
    let kernels = split(nest);
    let mut indices = Vec::with_capacity(kernels.len());
    for (k, kernel) in kernels.iter().enumerate() {
        let next = unique.len();
        let function = *functions.entry(kernel.nest.canonical()).or_insert(next);
        if function == next {
            unique.push(k);
        }
        indices.push(function);
    }
    let nests: Vec<&Nest> = unique.iter().map(|k| &kernels[*k].nest).collect();
    let code = compiler.compile(&nests, options)?;
    let steps = kernels
        .into_iter()
        .zip(indices)
        .map(|(kernel, function)| Step {
            shares: (kernel.nest.work() / WORTH_A_THREAD).max(1),
            kernel,
            function,
        })
        .collect();
    Ok(Native { code, steps })
}

/// The work, in the unit of [`Nest::work`], that is worth the waking of a thread: some ten microseconds.
const WORTH_A_THREAD: usize = 100_000;

impl Step {
    /// How many of `threads` share it.
    pub(crate) fn shares(&self, threads: usize) -> usize {
        self.shares.min(threads)
    }

    /// The name of the tensor that it writes last.
    pub(crate) fn name(&self) -> &str {
        let nest = &self.kernel.nest;
        nest.stages.last().map_or("", |s| &nest.buf(s.target).name)
    }
}

impl Native {
    /// The text of the code of a step, if it was asked for.
    pub(crate) fn text(&self, step: &Step) -> Option<&KernelText> {
        self.code.text(step.function)
    }
}

/// Gives every temporary that a step uses a place in the arena, whose size it returns.
fn temporaries(nest: &Nest, steps: &[Step], slots: &mut [Slot]) -> Result<usize, Error> {
    let mut lifetimes: FxHashMap<BufferId, Lifetime> = FxHashMap::default();
    for (number, step) in steps.iter().enumerate() {
        for &buffer in &step.kernel.buffers {
            let b = nest.buf(buffer);
            if b.role == Role::Temporary {
                let bytes = element_count(&b.shape)
                    .and_then(|n| b.ty.byte_len(n))
                    .unwrap_or(usize::MAX);
                lifetimes
                    .entry(buffer)
                    .or_insert(Lifetime {
                        bytes,
                        first: number,
                        last: number,
                    })
                    .last = number;
            }
        }
    }
    let mut buffers: Vec<(BufferId, Lifetime)> = lifetimes.into_iter().collect();
    buffers.sort_unstable_by_key(|(b, _)| *b);
    let only: Vec<Lifetime> = buffers.iter().map(|(_, l)| *l).collect();
    let too_large = || {
        Error::Input("the model's temporaries do not fit into memory at these shapes".to_owned())
    };
    let (offsets, total) = place(&only).ok_or_else(too_large)?;
    for ((buffer, _), offset) in buffers.iter().zip(offsets) {
        slots[buffer.0 as usize] = Slot::Arena(offset);
    }
    Ok(total)
}
