//! How a model is compiled and run.

use std::num::NonZeroUsize;
use vinelift_codegen::Vectors;
use vinelift_ops::IndexPolicy;

/// How much is done to a nest before it runs. The results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The nest of every layer, interpreted.
    Interpreted,
    /// Fused, then interpreted.
    Fused,
    /// The nest of every layer, as native code.
    Compiled,
    /// Fused and scheduled, as native code.
    #[default]
    Scheduled,
}

impl Level {
    /// All levels, from the plainest on.
    pub const ALL: [Level; 4] = [
        Level::Interpreted,
        Level::Fused,
        Level::Compiled,
        Level::Scheduled,
    ];

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Interpreted => "interpreted",
            Level::Fused => "fused",
            Level::Compiled => "compiled",
            Level::Scheduled => "scheduled",
        }
    }

    pub(crate) fn fuses(self) -> bool {
        matches!(self, Level::Fused | Level::Scheduled)
    }

    pub(crate) fn is_native(self) -> bool {
        matches!(self, Level::Compiled | Level::Scheduled)
    }
}

/// Whether shapes that a model leaves open get code of their own. The results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Specialization {
    /// None do: one code serves all shapes of a class.
    Generic,
    /// The first does, so that a model which meets no others starts soonest, and those that take much of the time: a thread
    /// compiles their code while runs go on with what there is.
    #[default]
    Hot,
    /// All do, before they run for the first time.
    Always,
}

impl Specialization {
    /// All of them, from the least code on.
    pub const ALL: [Specialization; 3] = [
        Specialization::Generic,
        Specialization::Hot,
        Specialization::Always,
    ];

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Specialization::Generic => "generic",
            Specialization::Hot => "hot",
            Specialization::Always => "always",
        }
    }
}

/// How the caches of language models are stored: the variables of `f32` that take over what they hold, reordered at most,
/// and add to it. Runs read what is stored, so all but the first change results. Whoever looks at such a variable or
/// sets it has `f32`.
///
/// A cache keeps `f32` where the model sets it to anything else than what it held with more behind it, and in sub-graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CachePrecision {
    /// As the model says.
    #[default]
    F32,
    /// Half of the memory: each element is rounded to `f16`; beyond 65504 it is infinite.
    F16,
    /// Half of the memory: each element is rounded to `bf16`.
    BF16,
    /// A quarter of the memory, and 8 bytes for each row along the last dim, such as the key of one head for one token. In
    /// steps of a 255th of the distance between its least and largest elements a row's elements are rounded to the nearest
    /// step.
    U8,
}

impl CachePrecision {
    /// All of them, from the most precise on.
    pub const ALL: [CachePrecision; 4] = [
        CachePrecision::F32,
        CachePrecision::F16,
        CachePrecision::BF16,
        CachePrecision::U8,
    ];

    /// The name of the element type.
    pub const fn name(self) -> &'static str {
        match self {
            CachePrecision::F32 => "f32",
            CachePrecision::F16 => "f16",
            CachePrecision::BF16 => "bf16",
            CachePrecision::U8 => "u8",
        }
    }
}

/// How a model is compiled and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How much is optimised.
    pub level: Level,
    /// How wide vectors may be: what a machine without wider ones does can be looked at and timed.
    pub vectors: Vectors,
    /// Whether shapes that the model leaves open get code of their own.
    pub specialization: Specialization,
    /// How data-dependent indices that are out of range are treated.
    pub index_policy: IndexPolicy,
    /// How the caches of language models are stored.
    pub kv_cache_precision: CachePrecision,
    /// How many elements of a row at most share a scale where rows that are multiplied with compressed weights are rounded to 8
    /// bits, which is faster and less precise; `None`: rows stay as they are.
    ///
    /// Weights of `i4`, `u4`, `i8` and `u8` that are constant, with integer zero points, are multiplied with rows, along the last
    /// dim of a tensor, that are divided into groups: as many elements, or as many as share a scale of the weights if these
    /// are fewer, and at most half of a row. Each element is rounded to the nearest of 255 multiples of a 127th of the largest
    /// in its group, so that it is off by at most a 254th of that; products of these with the weights are summed exactly
    /// within a group, and from group to group in `f32`. A group with an infinite element or NaN makes NaN. Products stay as
    /// they are where the group is no multiple of 8, or does not divide those of the weights, and where the model has
    /// quantised the rows itself.
    pub dynamic_quantization_group_size: Option<NonZeroUsize>,
    /// The most images, texts or other items of a batch that a run computes at once; `None`: it computes those at once that the
    /// caches hold. The results are the same. Only where the model's shapes are numbers, and it is known to do the same for each.
    pub micro_batch: Option<NonZeroUsize>,
    /// The most specialisations to shapes, and to values that shapes depend on, that are kept for the
    /// model and for each of its sub-graphs; the least recently used goes first. Fewer are kept if they
    /// would hold more than 256 MiB of packed constants.
    pub cache_size: NonZeroUsize,
    /// The most threads that the runs at a time use together, their callers' among them; `None`: as many as there are
    /// processors. They are divided among the streams.
    pub threads: Option<NonZeroUsize>,
    /// How many runs that were started by [`InferRequest::start_async`](crate::InferRequest::start_async) go on at a
    /// time; others wait for one of these to end. One has all threads for each run, which ends soonest; as many as
    /// there are threads do the most in a given time.
    pub streams: NonZeroUsize,
}

/// Each function gives the same configuration with one thing changed.
///
/// ```
/// use vinelift::{Config, IndexPolicy, Level};
///
/// let config = Config::new()
///     .level(Level::Fused)
///     .index_policy(IndexPolicy::Error)
///     .threads(4)
///     .streams(2);
/// assert_eq!(config.threads_of_a_run().unwrap().get(), 2);
/// ```
impl Config {
    /// As [`Config::default`].
    pub fn new() -> Config {
        Config::default()
    }

    /// With this much optimised.
    #[must_use]
    pub fn level(self, level: Level) -> Config {
        Config { level, ..self }
    }

    /// With vectors of up to this width.
    #[must_use]
    pub fn vectors(self, vectors: Vectors) -> Config {
        Config { vectors, ..self }
    }

    /// With code of their own for these of the shapes that the model leaves open.
    #[must_use]
    pub fn specialization(self, specialization: Specialization) -> Config {
        Config {
            specialization,
            ..self
        }
    }

    /// With this done about indices that are out of range.
    #[must_use]
    pub fn index_policy(self, index_policy: IndexPolicy) -> Config {
        Config {
            index_policy,
            ..self
        }
    }

    /// With caches of language models stored like this.
    #[must_use]
    pub fn kv_cache_precision(self, kv_cache_precision: CachePrecision) -> Config {
        Config {
            kv_cache_precision,
            ..self
        }
    }

    /// With rows that are multiplied with compressed weights rounded to 8 bits, `size` elements of a row sharing a scale; 0: with
    /// rows as they are.
    #[must_use]
    pub fn dynamic_quantization_group_size(self, size: usize) -> Config {
        Config {
            dynamic_quantization_group_size: NonZeroUsize::new(size),
            ..self
        }
    }

    /// With up to this many images of a batch computed at once; 0: as many as the caches hold.
    #[must_use]
    pub fn micro_batch(self, images: usize) -> Config {
        Config {
            micro_batch: NonZeroUsize::new(images),
            ..self
        }
    }

    /// With up to this many specialisations kept, one at least.
    #[must_use]
    pub fn cache_size(self, cache_size: usize) -> Config {
        Config {
            cache_size: NonZeroUsize::new(cache_size).unwrap_or(NonZeroUsize::MIN),
            ..self
        }
    }

    /// With this many threads; 0: as many as there are processors.
    #[must_use]
    pub fn threads(self, threads: usize) -> Config {
        Config {
            threads: NonZeroUsize::new(threads),
            ..self
        }
    }

    /// With this many streams, one at least.
    #[must_use]
    pub fn streams(self, streams: usize) -> Config {
        Config {
            streams: NonZeroUsize::new(streams).unwrap_or(NonZeroUsize::MIN),
            ..self
        }
    }

    /// The most threads that one run uses; `None`: as many as there are processors.
    pub fn threads_of_a_run(&self) -> Option<NonZeroUsize> {
        let streams = self.streams.get();
        if streams == 1 {
            return self.threads;
        }
        let of_machine = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.unwrap_or_else(of_machine);
        NonZeroUsize::new((threads.get() / streams).max(1))
    }
}

impl Default for Config {
    fn default() -> Config {
        const CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(256).unwrap();
        Config {
            level: Level::default(),
            vectors: Vectors::default(),
            specialization: Specialization::default(),
            index_policy: IndexPolicy::default(),
            kv_cache_precision: CachePrecision::default(),
            dynamic_quantization_group_size: None,
            micro_batch: None,
            cache_size: CACHE_SIZE,
            threads: None,
            streams: NonZeroUsize::MIN,
        }
    }
}
