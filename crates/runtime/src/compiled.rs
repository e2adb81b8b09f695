//! A model that can run.

use crate::background::Background;
use crate::caches::Caches;
use crate::compile::Shared;
use crate::compile::packed_operands::PackedOperands;
use crate::context::Context;
use crate::deferred::Deferred;
use crate::depth::Depth;
use crate::execute::pool::Pool;
use crate::statistics::Statistics;
use crate::streams::Streams;
use crate::taken_plans::TakenPlan;
use crate::unit::Unit;
use crate::{Config, Error, Model, Port, text_shapes};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vinelift_codegen::Compiler;
use vinelift_graph::Strings;
use vinelift_tensor::Shape;

/// A model that can run, shared by any number of requests and threads. Cheap to clone.
///
/// ```
/// use vinelift::{Core, Stage};
///
/// let core = Core::new()?;
/// let model = core.read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())?;
/// let compiled = core.compile_model(&model)?;
/// let shapes = [None, Some(vec![3, 2])];
/// let nest = compiled.dump(Stage::Fused, &shapes, Some("gathered"))?;
/// assert_eq!(
///     nest,
///     "for i<3, j<2: gathered[i, j] = data[wrap(indices[i, j], 2), j]  # gathered\n"
/// );
/// # Ok::<(), vinelift::Error>(())
/// ```
#[derive(Clone)]
pub struct CompiledModel(pub(crate) Arc<Inner>, Arc<Background>);

pub(crate) struct Inner {
    pub(crate) context: Context,
    /// The model itself.
    pub(crate) unit: Unit,
    /// How many units there are, sub-graphs included.
    pub(crate) units: usize,
    /// The variables that sub-graphs set.
    pub(crate) set_by_bodies: Vec<String>,
    /// The runs that are started and not waited for at once.
    pub(crate) streams: Streams,
    depth: Depth,
    pub(crate) caches: Caches,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// For each output, whether none before it is the same tensor.
    pub(crate) is_first_of_its_tensor: Vec<bool>,
}

impl std::fmt::Debug for CompiledModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledModel")
            .field("model", &self.model().name())
            .field("inputs", &self.inputs())
            .field("outputs", &self.outputs())
            .field("config", self.config())
            .finish_non_exhaustive()
    }
}

impl CompiledModel {
    pub(crate) fn new(
        model: Model,
        compiler: Arc<Compiler>,
        config: Config,
    ) -> Result<CompiledModel, Error> {
        model.check()?;
        let types = model.infer()?;
        let (inputs, outputs) = (model.inputs(), model.ports_of_results(&types));
        let (lowered, caches) = Caches::store(&model, config.kv_cache_precision)?;
        let (mut strings, mut units) = (Strings::default(), 0);
        let unit = Unit::new(
            &lowered.graph,
            Some(lowered.infer()?),
            None,
            &config,
            &mut strings,
            &mut units,
        )?;
        let set_by_bodies = unit.set_by_bodies();
        let mut known = FxHashSet::default();
        let is_first = unit
            .interface
            .results
            .iter()
            .map(|tensor| known.insert(*tensor));
        let is_first_of_its_tensor = is_first.collect();
        let mut constants = FxHashSet::default();
        unit.constants(&mut constants);
        let shared = Shared {
            operands: PackedOperands::of(constants, model.mapped.clone()),
            ..Shared::default()
        };
        let streams = Streams::new(config.streams);
        let depth = Depth::at(config.level, &model)?;
        let context = Context {
            model,
            lowered,
            compiler,
            shared,
            pool: Pool::new(config.threads_of_a_run()),
            config,
            strings,
        };
        let inner = Inner {
            context,
            unit,
            units,
            set_by_bodies,
            streams,
            depth,
            caches,
            inputs,
            outputs,
            is_first_of_its_tensor,
        };
        let compiled = CompiledModel(Arc::new(inner), Arc::default());
        let shapes = compiled.inputs().iter().map(|p| p.shape.to_static());
        if let Some(shapes) = shapes.collect::<Option<Vec<Shape>>>() {
            compiled.prepare(&shapes)?;
        } else if let Some(prefill) = text_shapes::prefill(compiled.inputs())
            && compiled.0.unit.may_grow()
        {
            // Large weights are packed now, and not while somebody waits for the first token. Should there be no plan for
            // such shapes, a run makes the one for its own.
            drop(compiled.prepare(&prefill));
            if let Some(step) = text_shapes::decoding_step(compiled.inputs()) {
                let Inner { unit, context, .. } = &*compiled.0;
                drop(unit.prepare_next(&prefill, &step, context));
            }
        }
        Ok(compiled)
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[Port] {
        &self.0.inputs
    }

    /// The outputs, in order.
    pub fn outputs(&self) -> &[Port] {
        &self.0.outputs
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.0.context.model
    }

    /// How it was compiled.
    pub fn config(&self) -> &Config {
        &self.0.context.config
    }

    /// Makes the code for inputs of these shapes, which [`InferRequest::infer`](crate::InferRequest::infer) would make when it first
    /// sees them.
    pub fn prepare(&self, shapes: &[Shape]) -> Result<(), Error> {
        if shapes.len() != self.inputs().len() {
            let (found, expected) = (shapes.len(), self.inputs().len());
            let text = format!("{found} shapes, the model has {expected} inputs");
            return Err(self.misuse(text));
        }
        let prepared = self.0.unit.prepare(shapes, &self.0.context);
        prepared.map_err(|e| e.of_model(self.model().file()))
    }

    /// The error of a caller, whose fault this is.
    pub(crate) fn misuse(&self, text: String) -> Error {
        Error::Input(text).of_model(self.model().file())
    }

    /// Has something be compiled in the background.
    pub(crate) fn compile(&self, deferred: Deferred) {
        let inner = self.0.clone();
        self.1.submit(move |stop| {
            let (Deferred::Plan(TakenPlan { unit, .. }) | Deferred::Class { unit, .. }) = deferred;
            if let Some((unit, _)) = inner.unit.find(unit) {
                // Without it, runs go on with what there is.
                drop(unit.compile(&deferred, &inner.context, stop));
            }
        });
    }

    /// Counts of the plans, code and packed weights made so far for the shapes that were met.
    pub fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        self.0.unit.statistics(&mut all);
        let shared = &self.0.context.shared;
        (all.kernels, all.code_bytes) = shared.functions.compiled();
        all.unproven = shared.unproven.load(Ordering::Relaxed);
        all
    }

    /// How much stack its runs need.
    #[doc(hidden)]
    pub fn depth(&self) -> Depth {
        self.0.depth
    }

    /// The number of specialisations that are kept.
    pub fn cached_plans(&self) -> usize {
        self.0.unit.cached_plans()
    }

    /// The position of the input called `name`.
    pub fn input_index(&self, name: &str) -> Result<usize, Error> {
        find(self.inputs(), "input", name).map_err(|e| e.of_model(self.model().file()))
    }

    /// The position of the output called `name`.
    pub fn output_index(&self, name: &str) -> Result<usize, Error> {
        find(self.outputs(), "output", name).map_err(|e| e.of_model(self.model().file()))
    }
}

pub(crate) fn find(ports: &[Port], kind: &str, name: &str) -> Result<usize, Error> {
    ports
        .iter()
        .position(|p| p.answers_to(name))
        .ok_or_else(|| {
            let known: Vec<String> = ports.iter().map(|p| format!("'{}'", p.name())).collect();
            Error::Input(format!(
                "the model has no {kind} '{name}', its {kind}s are {}",
                known.join(", ")
            ))
        })
}
