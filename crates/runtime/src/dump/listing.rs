//! All that becomes of a model as data, for programs that show it.

use super::plan_text::function;
use super::scheduled;
use super::segments::Piece;
use crate::compile::arena::lifetimes;
use crate::compile::passes::{Choices, Pass, trace};
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step};
use crate::request::InferRequest;
use crate::{Error, Level};
use rustc_hash::FxHashMap;
use std::time::Duration;
use vinelift_codegen::{AsmLine, ClifLine};
use vinelift_graph::{self as graph, Segment};
use vinelift_nest::Nest;

/// All that becomes of a model in one run.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The layers of the model, and then those of its sub-graphs.
    pub layers: Vec<LayerListing>,
    /// The plans in the order in which they are first run, each once; of those of one place in the model that differ by
    /// the values that a run has found there, the first few.
    pub plans: Vec<PlanListing>,
    /// How many more plans there are.
    pub left_out: usize,
}

/// Plans of one place in the model that are listed.
const MOST_ALIKE: usize = 3;

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerListing {
    /// The sub-graph that it is part of; empty for the model itself.
    pub graph: String,
    /// Its name.
    pub name: String,
    /// The type of its operator.
    pub type_: String,
    /// The operator set.
    pub version: String,
    /// Its attributes, as in the file.
    pub attributes: Vec<(String, String)>,
    /// The layers that it reads, by their positions in [`Listing::layers`].
    pub inputs: Vec<usize>,
    /// The types of its outputs, as far as the declared shapes of the inputs determine them.
    pub outputs: Vec<String>,
}

/// A plan: a part of the model, or of one of its sub-graphs, for the shapes of a run.
#[derive(Clone, Debug)]
pub struct PlanListing {
    /// Which sub-graph it is part of, and what runs before it; empty for the start of the model.
    pub heading: String,
    /// Whether it depends on constants alone and runs once, before the first run.
    pub is_once: bool,
    /// In the order in which they run.
    pub kernels: Vec<KernelListing>,
    /// The effect of each pass on its nest; empty if it runs once, as it is then part of the next plan.
    pub passes: Vec<PassListing>,
    /// How often it runs, each time for another part of a batch.
    pub micro_batches: usize,
    /// Bytes of temporaries and scratch memory.
    pub arena: usize,
    /// The temporaries.
    pub buffers: Vec<BufferListing>,
    /// Layers whose outputs depend on constants alone and have been computed while it was compiled.
    pub folded: Vec<String>,
    /// Layers that are called after it, as a whole.
    pub called: Vec<String>,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct KernelListing {
    /// Its number in the listing.
    pub number: usize,
    /// The name of the tensor that it writes last.
    pub name: String,
    /// How it runs: which contraction kernel, or what else.
    pub how: String,
    /// Its layers.
    pub layers: Vec<String>,
    /// Its nest.
    pub stages: Vec<StageListing>,
    /// The names of the tensors that it reads and writes, and their bytes.
    pub buffers: Vec<(String, usize)>,
    /// Its code, unless it is a contraction.
    pub code: Option<CodeListing>,
    /// The kernel before it that has the same code.
    pub same_code_as: Option<usize>,
    /// The operations on floats of one run of its plan, in all micro-batches.
    pub flops: u64,
    /// The bytes of all tensors, or parts of them, that it reads or writes in a run of its plan, each once for a micro-batch.
    pub bytes: u64,
    /// Bytes of constants that are packed for it.
    pub packed_bytes: usize,
    /// The number of threads that share it.
    pub threads: usize,
}

/// A stage of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageListing {
    /// Its text, by short lines.
    pub text: String,
    /// Its layers.
    pub layers: Vec<String>,
    /// The name of the tensor that it writes.
    pub target: String,
}

/// The code of a kernel.
#[derive(Clone, Debug)]
pub struct CodeListing {
    /// Bytes of machine code.
    pub bytes: usize,
    /// How long it took to compile on one thread.
    pub compile_time: Duration,
    /// Cranelift's intermediate code.
    pub clif: Vec<ClifLine>,
    /// The machine code.
    pub asm: Vec<AsmLine>,
}

/// The effect of a pass.
#[derive(Clone, Debug)]
pub struct PassListing {
    /// Its name.
    pub name: &'static str,
    /// How long it took.
    pub time: Duration,
    /// The nest after it.
    pub stages: Vec<StageListing>,
    /// The tensors that fusion kept in memory, and why.
    pub kept: Vec<(String, String)>,
}

/// A temporary in the arena of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferListing {
    /// The name of the tensor.
    pub name: String,
    /// Its length in bytes.
    pub bytes: usize,
    /// Where it lies in the arena.
    pub offset: usize,
    /// The first kernel of the plan by which it holds something, counted from the plan's first.
    pub first: usize,
    /// The last kernel that needs it.
    pub last: usize,
}

impl InferRequest {
    /// All that becomes of the model in a run of the inputs, at [`Level::Scheduled`]. Runs the model.
    ///
    /// # Errors
    /// As [`InferRequest::infer`], and those of compiling.
    pub fn listing(&mut self) -> Result<Listing, Error> {
        let compiled = self.compiled_model().clone();
        let taken = self.infer_recorded()?;
        let mut plans = Vec::new();
        let (mut kernels, mut left_out) = (0, 0);
        let mut alike: FxHashMap<String, usize> = FxHashMap::default();
        for piece in compiled.taken_pieces(taken)? {
            let heading = piece.heading.trim().trim_start_matches("# ");
            let heading = heading.replace("\n# ", ", ");
            let count = alike.entry(heading.clone()).or_default();
            *count += 1;
            if *count > MOST_ALIKE {
                left_out += 1;
                continue;
            }
            let passes = passes(piece.segment.clone(), scheduled(compiled.config()))?;
            let (folded, called) = folded_and_called(&piece);
            let made = compiled.make(piece, Level::Scheduled, true)?;
            let mut once = made.prologue.is_some();
            for plan in made.plans() {
                let mut listing = PlanListing::of(plan, kernels);
                kernels += listing.kernels.len();
                listing.heading.clone_from(&heading);
                listing.is_once = once;
                if !once {
                    listing.passes.clone_from(&passes);
                    listing.folded.clone_from(&folded);
                    listing.called.clone_from(&called);
                }
                once = false;
                plans.push(listing);
            }
        }
        let model = &compiled.0.context.lowered;
        let mut layers = Vec::new();
        add_layers(&model.graph, Some(&*model.infer()?), "", &mut layers);
        Ok(Listing {
            layers,
            plans,
            left_out,
        })
    }
}

/// Adds the layers of a graph, and those of its sub-graphs.
fn add_layers(
    graph: &graph::Model,
    types: Option<&graph::Types>,
    path: &str,
    layers: &mut Vec<LayerListing>,
) {
    let first = layers.len();
    let positions: FxHashMap<graph::NodeIndex, usize> =
        graph.order.iter().copied().zip(first..).collect();
    for &index in &graph.order {
        let layer = &graph.node(index).layer;
        let inputs = graph.inputs(index).into_iter();
        let outputs = (0..layer.outputs.len()).map(|output| {
            let tensor = graph::TensorId {
                node: index,
                output,
            };
            let ty = types.and_then(|types| types.get(tensor));
            ty.map_or("?".to_owned(), ToString::to_string)
        });
        layers.push(LayerListing {
            graph: path.to_owned(),
            name: layer.name.clone(),
            type_: layer.type_.clone(),
            version: layer.version.clone(),
            attributes: graph
                .attributes(index)
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            inputs: inputs
                .filter_map(|t| positions.get(&t.node).copied())
                .collect(),
            outputs: outputs.collect(),
        });
    }
    for &index in &graph.order {
        let node = graph.node(index);
        for (kind, body) in &node.bodies {
            let name = format!("{} of {}", kind.element(), node.layer.name);
            let path = match path.is_empty() {
                true => name,
                false => format!("{name} in {path}"),
            };
            add_layers(body, None, &path, layers);
        }
    }
}

fn passes(segment: Segment, choices: Choices) -> Result<Vec<PassListing>, Error> {
    let (passes, _) = trace(segment, choices)?;
    let listing = |pass: Pass| PassListing {
        name: pass.name,
        time: pass.time,
        stages: stages(&pass.nest),
        kept: pass
            .kept
            .iter()
            .map(|k| (k.buffer.to_string(), k.reason.to_string()))
            .collect(),
    };
    Ok(passes.into_iter().map(listing).collect())
}

fn folded_and_called(piece: &Piece<'_>) -> (Vec<String>, Vec<String>) {
    let model = &piece.unit.interface.graph;
    let name = |node: graph::NodeIndex| model.node(node).layer.name.clone();
    let constants = piece.segment.constants.keys();
    let operators = constants.filter(|t| {
        let kind = &model.node(t.node).kind;
        matches!(kind, graph::NodeKind::Operator { .. })
    });
    let mut folded: Vec<String> = operators.map(|t| name(t.node)).collect();
    folded.sort_unstable();
    folded.dedup();
    (
        folded,
        piece.segment.calls.iter().map(|n| name(*n)).collect(),
    )
}

fn stages(nest: &Nest) -> Vec<StageListing> {
    let stages = nest.stages.iter().map(|stage| StageListing {
        text: nest.wrapped_stage(stage),
        layers: stage
            .layers
            .iter()
            .map(|l| nest.layers[l.0 as usize].name.clone())
            .collect(),
        target: nest.buf(stage.target).name.to_string(),
    });
    stages.collect()
}

impl PlanListing {
    /// `first` is the number of its first kernel.
    fn of(plan: &Plan, first: usize) -> PlanListing {
        let mut kernels: Vec<KernelListing> = Vec::new();
        let mut buffers = Vec::new();
        let steps = plan.binding.steps();
        let mut functions: Vec<((usize, usize), usize)> = Vec::new();
        for (step, number) in steps.iter().zip(first..) {
            let function = function(step);
            let same = functions.iter().find(|(f, _)| Some(*f) == function);
            let same_code_as = same.map(|(_, number)| *number);
            functions.extend(function.map(|f| (f, number)));
            kernels.push(KernelListing {
                same_code_as,
                ..KernelListing::of(step, plan.micro_batches(), number)
            });
        }
        for (buffer, lifetime) in lifetimes(&plan.nest, steps, &plan.binding.lengths) {
            if let Some(Slot::Arena(offset)) = plan.binding.slots.get(buffer.0 as usize) {
                buffers.push(BufferListing {
                    name: plan.nest.buf(buffer).name.to_string(),
                    bytes: lifetime.bytes,
                    offset: *offset,
                    first: lifetime.first,
                    last: lifetime.last,
                });
            }
        }
        PlanListing {
            heading: String::new(),
            is_once: false,
            kernels,
            passes: Vec::new(),
            micro_batches: plan.micro_batches(),
            arena: plan.binding.arena(),
            buffers,
            folded: Vec::new(),
            called: Vec::new(),
        }
    }
}

impl KernelListing {
    /// Of a step that runs this many times in a run of the model.
    fn of(step: &Step, times: usize, number: usize) -> KernelListing {
        let nest = &*step.nest();
        let in_all = |each: u64| each.saturating_mul(times as u64);
        let code = match (&step.engine, step.text()) {
            (Engine::Code { function, .. }, Some(text)) => {
                let (code, number) = function.code();
                Some(CodeListing {
                    bytes: code.code_size(number),
                    compile_time: code.compile_time(number),
                    clif: text.clif_lines.clone(),
                    asm: text.asm_lines.clone(),
                })
            }
            _ => None,
        };
        let buffers = nest.buffers.iter();
        let buffers = buffers.map(|b| (b.name.to_string(), b.byte_len().unwrap_or(usize::MAX)));
        KernelListing {
            number,
            name: step.name().to_owned(),
            how: step.how(),
            layers: step.layers().map(str::to_owned).collect(),
            stages: stages(nest),
            buffers: buffers.collect(),
            code,
            same_code_as: None,
            flops: in_all(match step.flops() {
                0 => nest.float_operations(),
                flops => flops,
            }),
            bytes: in_all(step.bytes()),
            packed_bytes: step.packed().map(|p| p.bytes()).sum(),
            threads: step.workers,
        }
    }
}
