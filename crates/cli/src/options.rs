//! Arguments that several subcommands take.

use crate::failure::Failure;
use crate::formats::unread;
use crate::suggest::unknown;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use vinelift::{
    CachePrecision, CompiledModel, Config, Core, IndexPolicy, InferRequest, Level, Model,
    PartialShape, Port, Shape, Specialization, Vectors,
};

#[derive(Args)]
pub(crate) struct ModelArgs {
    /// The model's .xml file
    #[arg(value_name = "MODEL.xml")]
    pub(crate) model: PathBuf,
    /// The model's constants [default: MODEL.bin beside the .xml]
    #[arg(long, value_name = "FILE.bin")]
    pub(crate) weights: Option<PathBuf>,
}

impl ModelArgs {
    pub(crate) fn read(&self, core: &Core) -> Result<Model, Failure> {
        let model = match &self.weights {
            Some(weights) => core.read_model_with_weights(&self.model, weights),
            None => core.read_model(&self.model),
        };
        model.map_err(|e| unread(&self.model, e))
    }

    /// Starts the threads, and reads and compiles the model. May be called once.
    pub(crate) fn compile(&self, config: Config) -> Result<CompiledModel, Failure> {
        start_threads(config.threads)?;
        let core = Core::new()?;
        Ok(core.compile_model_with(&self.read(&core)?, config)?)
    }
}

#[derive(Args)]
pub(crate) struct CompileArgs {
    /// How much is done to the loops before they run; the results are the same
    #[arg(long, value_parser = level_parser(), default_value = "scheduled")]
    level: Level,
    #[command(flatten)]
    run: RunArgs,
}

impl CompileArgs {
    pub(crate) fn config(&self) -> Config {
        Config {
            level: self.level,
            ..self.run.config()
        }
    }
}

/// Options of running a model.
#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    code: CodeArgs,
    /// How indices in tensors that are out of range are treated: as the operator's specification
    /// says, an error, or zero
    #[arg(long, value_name = "POLICY", value_parser = policy_parser(), default_value = "spec")]
    index_policy: IndexPolicy,
    /// How many threads compile and run [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl RunArgs {
    pub(crate) fn config(&self) -> Config {
        Config {
            index_policy: self.index_policy,
            threads: self.threads.and_then(|n| NonZeroUsize::new(n.into())),
            ..self.code.config()
        }
    }
}

/// Options of compiling a model.
#[derive(Args)]
pub(crate) struct CodeArgs {
    /// The most bits of the vectors in the code; the results are the same
    #[arg(long, value_name = "BITS", value_parser = vectors_parser(), default_value = "widest")]
    vectors: Vectors,
    /// Which shapes of inputs whose shape is dynamic get code of their own: none (`generic`), the
    /// first and those that take much of the time (`hot`), or all (`always`); the results are the same
    #[arg(long, value_name = "WHICH", value_parser = specialization_parser(), default_value = "hot")]
    specialize: Specialization,
    /// How the caches of a language model are stored, the variables that a run adds to: `f32`, as the model says, or in
    /// less memory with elements that are rounded
    #[arg(long, value_name = "TYPE", value_parser = cache_parser(), default_value = "f32")]
    kv_cache_precision: CachePrecision,
    /// Round the rows that are multiplied with weights of 4 and 8 bits to 8 bits, with a scale for each SIZE elements of a
    /// row: faster and less precise; 0 leaves them as they are
    #[arg(long, value_name = "SIZE", default_value_t = 0)]
    dynamic_quantization_group_size: usize,
    /// The most images, texts or other items of a batch to compute at once; 0 lets the caches decide
    #[arg(long, value_name = "IMAGES", default_value_t = 0)]
    micro_batch: usize,
}

impl CodeArgs {
    pub(crate) fn config(&self) -> Config {
        Config {
            vectors: self.vectors,
            specialization: self.specialize,
            kv_cache_precision: self.kv_cache_precision,
            ..Config::default()
        }
        .dynamic_quantization_group_size(self.dynamic_quantization_group_size)
        .micro_batch(self.micro_batch)
    }
}

fn specialization_parser() -> impl TypedValueParser<Value = Specialization> {
    named(Specialization::ALL, Specialization::name)
}

fn cache_parser() -> impl TypedValueParser<Value = CachePrecision> {
    named(CachePrecision::ALL, CachePrecision::name)
}

fn vectors_parser() -> impl TypedValueParser<Value = Vectors> {
    named(Vectors::ALL, Vectors::name)
}

/// Starts `count` threads for compiling. May be called once.
pub(crate) fn start_threads(count: Option<NonZeroUsize>) -> Result<(), Failure> {
    vinelift::compiler_threads::start(count)
        .map_err(|e| Failure::Message(format!("cannot start threads: {e}")))
}

#[derive(Args)]
pub(crate) struct ShapeArgs {
    /// The shape of an input whose shape is dynamic; `bench` takes ranges of extents, too, as in NAME=1,4..384
    #[arg(long = "shape", value_name = "NAME=1,3,224,224", value_parser = shape)]
    shapes: Vec<(String, Vec<RangeInclusive<usize>>)>,
}

impl ShapeArgs {
    /// The given shapes by the position of their inputs.
    pub(crate) fn by_position(&self, inputs: &[Port]) -> Result<Vec<Option<Shape>>, Failure> {
        if let Some((name, _)) = self.shapes.iter().find(|(_, shape)| has_range(shape)) {
            let text = format!("`--shape {name}=…` must give numbers: only `bench` takes ranges");
            return Err(Failure::Message(text));
        }
        self.choose(inputs, |range| *range.start())
    }

    /// Whether there are ranges among the extents.
    pub(crate) fn has_ranges(&self) -> bool {
        self.shapes.iter().any(|(_, shape)| has_range(shape))
    }

    /// The given shapes by the position of their inputs, an extent chosen from each range.
    ///
    /// # Errors
    /// If there is no such input, or its shape does not allow a chosen one.
    pub(crate) fn choose(
        &self,
        inputs: &[Port],
        mut extent: impl FnMut(&RangeInclusive<usize>) -> usize,
    ) -> Result<Vec<Option<Shape>>, Failure> {
        let mut shapes = vec![None; inputs.len()];
        for (name, ranges) in &self.shapes {
            let shape: &Shape = &ranges.iter().map(&mut extent).collect();
            let position = inputs.iter().position(|port| port.names.contains(name));
            let position = position.ok_or_else(|| Failure::Message(unknown_input(name, inputs)))?;
            if !inputs[position].shape.contains(shape) {
                let declared = &inputs[position].shape;
                return Err(Failure::Message(format!(
                    "input '{name}' has shape {declared}, and cannot have {shape:?}"
                )));
            }
            shapes[position] = Some(shape.clone());
        }
        Ok(shapes)
    }

    /// Refuses `inputs` of which one has no shape, neither given here nor its own.
    pub(crate) fn require_all(&self, inputs: &[Port]) -> Result<(), Failure> {
        self.require(inputs, |_| false)
    }

    /// As [`ShapeArgs::require_all`], or that of the tensor that it has in `request`.
    pub(crate) fn require_set(&self, request: &InferRequest) -> Result<(), Failure> {
        let inputs = request.compiled_model().inputs();
        self.require(inputs, |k| request.has_input(k))
    }

    fn require(&self, inputs: &[Port], is_set: impl Fn(usize) -> bool) -> Result<(), Failure> {
        let shapes = self.by_position(inputs)?;
        let ports = inputs.iter().zip(shapes).enumerate();
        let lacking: Vec<&Port> = ports
            .filter(|(k, (port, shape))| shape.is_none() && !port.shape.is_static() && !is_set(*k))
            .map(|(_, (port, _))| port)
            .collect();
        match lacking.is_empty() {
            true => Ok(()),
            false => Err(Failure::Message(dynamic_shapes(&lacking))),
        }
    }
}

/// The message that the shapes of these inputs are needed, with the arguments that give some.
fn dynamic_shapes(ports: &[&Port]) -> String {
    let arguments = ports
        .iter()
        .map(|port| format!("--shape {}={}", port.name(), likely_extents(&port.shape)));
    let arguments = arguments.collect::<Vec<_>>().join(" ");
    match ports {
        [port] => format!(
            "input '{}' has the dynamic shape {}, and none was given: `{arguments}` gives it one, for example",
            port.name(),
            port.shape
        ),
        _ => {
            let named = ports
                .iter()
                .map(|port| format!("'{}' {}", port.name(), port.shape));
            let named = named.collect::<Vec<_>>().join(", ");
            format!(
                "inputs have dynamic shapes, and none were given: {named}: `{arguments}` gives them some, for example"
            )
        }
    }
}

/// Extents that a model with this input is likely to take: those of a picture where it looks like one, else the smallest.
fn likely_extents(shape: &PartialShape) -> String {
    let Some(dims) = shape.dims() else {
        return "1,3,224,224".to_owned();
    };
    let is_channels = |k: usize| matches!(dims[k].get(), Some(1 | 3 | 4));
    let picture = match dims.len() {
        4 if is_channels(1) => 2..4,
        4 if is_channels(3) => 1..3,
        _ => 0..0,
    };
    let extents = dims.iter().enumerate().map(|(k, dim)| {
        let likely = if picture.contains(&k) { 224 } else { 1 };
        let most = dim.max().unwrap_or(likely);
        likely.min(most).max(dim.min()).to_string()
    });
    extents.collect::<Vec<_>>().join(",")
}

/// The message that there is no such input.
pub(crate) fn unknown_input(name: &str, inputs: &[Port]) -> String {
    let names: Vec<String> = inputs
        .iter()
        .map(|port| format!("'{}'", port.name()))
        .collect();
    let all = inputs.iter().flat_map(|port| &port.names);
    format!(
        "the model has no input {}, its inputs are {}",
        unknown(name, all.map(String::as_str)),
        names.join(", ")
    )
}

fn has_range(shape: &[RangeInclusive<usize>]) -> bool {
    shape.iter().any(|range| range.start() < range.end())
}

fn shape(text: &str) -> Result<(String, Vec<RangeInclusive<usize>>), String> {
    let (name, dims) = text
        .rsplit_once('=')
        .ok_or("expected NAME=EXTENT,EXTENT,…")?;
    let dims = dims.trim_matches(['[', ']']);
    if dims.is_empty() {
        return Ok((name.to_owned(), Vec::new()));
    }
    let number = |d: &str| {
        d.trim()
            .parse::<usize>()
            .map_err(|_| format!("`{d}` is no extent"))
    };
    let extent = |d: &str| match d.split_once("..") {
        None => number(d).map(|n| n..=n),
        Some((from, to)) => match (number(from)?, number(to)?) {
            (from, to) if from <= to => Ok(from..=to),
            _ => Err(format!("`{d}` is an empty range of extents")),
        },
    };
    Ok((
        name.to_owned(),
        dims.split(',').map(extent).collect::<Result<_, _>>()?,
    ))
}

pub(crate) fn level_parser() -> impl TypedValueParser<Value = Level> {
    named(Level::ALL, Level::name)
}

fn policy_parser() -> impl TypedValueParser<Value = IndexPolicy> {
    named(IndexPolicy::ALL, IndexPolicy::name)
}

/// Accepts the names of `all`.
pub(crate) fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).try_map(move |text| {
        let known = all.into_iter().find(|value| name(*value) == text);
        known.ok_or_else(|| format!("unknown value `{text}`"))
    })
}

/// Accepts a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.0..1e9).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected a number of seconds from 0".to_owned())
    }
}
