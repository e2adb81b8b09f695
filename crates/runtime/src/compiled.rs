//! A model that can run.

use crate::plan::{Plan, plan};
use crate::{Config, Error, InferRequest, Model, Port};
use lru::LruCache;
use std::sync::{Arc, Mutex, PoisonError};
use vinelift_codegen::Compiler;
use vinelift_graph::{Known, NodeKind, Strings, TensorId, Types, specialize};
use vinelift_tensor::{ElementType, Shape, Tensor};

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
pub struct CompiledModel(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) model: Model,
    pub(crate) compiler: Arc<Compiler>,
    pub(crate) config: Config,
    pub(crate) inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// The texts of all string constants. Requests add their own to a copy.
    pub(crate) strings: Strings,
    /// Of all tensors, as far as the declared shapes of the inputs determine them.
    types: Types,
    plans: Mutex<LruCache<Key, Arc<Plan>>>,
}

/// What a plan is specialised to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Of the inputs.
    shapes: Vec<Shape>,
    /// Of the tensors that earlier segments have computed.
    computed: Vec<(TensorId, Shape)>,
    /// Values that were waited for.
    values: Vec<(TensorId, Shape, Vec<u8>)>,
}

impl CompiledModel {
    pub(crate) fn new(
        model: Model,
        compiler: Arc<Compiler>,
        config: Config,
    ) -> Result<CompiledModel, Error> {
        model.check()?;
        let types = model.infer()?;
        let mut strings = Strings::default();
        for node in model.graph.graph.node_weights() {
            if let NodeKind::Constant(tensor) = &node.kind {
                strings.encode(tensor)?;
            }
        }
        let (inputs, outputs) = (model.inputs(), model.ports_of_results(&types));
        let plans = Mutex::new(LruCache::new(config.cache_size));
        let compiled = CompiledModel(Arc::new(Inner {
            model,
            compiler,
            config,
            inputs,
            outputs,
            strings,
            types,
            plans,
        }));
        let shapes: Option<Vec<Shape>> = compiled
            .inputs()
            .iter()
            .map(|p| p.shape.to_static())
            .collect();
        if let Some(shapes) = shapes {
            compiled.0.plan(&shapes, &Known::default())?;
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
        &self.0.model
    }

    /// How it was compiled.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Makes the code for inputs of these shapes, which [`InferRequest::infer`] would make when it first
    /// sees them.
    pub fn prepare(&self, shapes: &[Shape]) -> Result<(), Error> {
        if shapes.len() != self.inputs().len() {
            return Err(Error::Input(format!(
                "{} shapes, the model has {} inputs",
                shapes.len(),
                self.inputs().len()
            )));
        }
        self.0.plan(shapes, &Known::default()).map(drop)
    }

    /// The number of specialisations that are kept.
    pub fn cached_plans(&self) -> usize {
        self.0
            .plans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// A request of its own inputs and outputs.
    pub fn create_request(&self) -> InferRequest {
        InferRequest::new(self.clone())
    }

    /// The position of the input called `name`.
    pub fn input_index(&self, name: &str) -> Result<usize, Error> {
        find(self.inputs(), "input", name)
    }

    /// The position of the output called `name`.
    pub fn output_index(&self, name: &str) -> Result<usize, Error> {
        find(self.outputs(), "output", name)
    }
}

fn find(ports: &[Port], kind: &str, name: &str) -> Result<usize, Error> {
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

impl Inner {
    /// Whether a tensor holds strings.
    pub(crate) fn is_string(&self, tensor: TensorId) -> bool {
        self.types
            .get(tensor)
            .is_some_and(|t| t.element == ElementType::String)
    }

    /// The plan for these shapes and what is known, made if it is not in the cache.
    pub(crate) fn plan(&self, shapes: &[Shape], known: &Known) -> Result<Arc<Plan>, Error> {
        let key = Key::new(shapes, known);
        if let Some(plan) = self
            .plans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
        {
            return Ok(plan.clone());
        }
        // Not under the lock: other requests go on with the plans they have.
        let mut strings = self.strings.clone();
        let segment = specialize(
            &self.model.graph,
            shapes,
            known,
            self.config.index_policy,
            &mut strings,
        );
        let plan = Arc::new(plan(
            segment.map_err(|e| self.model.error(e))?,
            &self.compiler,
            &self.config,
        )?);
        self.plans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .put(key, plan.clone());
        Ok(plan)
    }
}

impl Key {
    fn new(shapes: &[Shape], known: &Known) -> Key {
        let mut computed: Vec<(TensorId, Shape)> = known
            .computed
            .iter()
            .filter_map(|(t, ty)| Some((*t, ty.shape.to_static()?)))
            .collect();
        computed.sort_unstable();
        let bytes = |t: &Tensor| match t.strings() {
            Some(strings) => strings.join("\0").into_bytes(),
            None => t.bytes().to_vec(),
        };
        let mut values: Vec<(TensorId, Shape, Vec<u8>)> = known
            .values
            .iter()
            .map(|(t, v)| (*t, v.shape().to_vec(), bytes(v)))
            .collect();
        values.sort_unstable();
        Key {
            shapes: shapes.to_vec(),
            computed,
            values,
        }
    }
}
