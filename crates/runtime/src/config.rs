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
    /// Those that take much of the time do: a thread compiles their code while runs go on with what there is.
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

/// How a model is compiled and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How much is optimised.
    pub level: Level,
    /// How wide vectors may be: what a machine without wider ones does can be looked at and timed.
    pub vectors: Vectors,
    /// Whether shapes that the model leaves open get code of their own.
    pub specialization: Specialization,
    /// What happens to data-dependent indices that are out of range.
    pub index_policy: IndexPolicy,
    /// The most specialisations to shapes, and to values that shapes depend on, that are kept for the
    /// model and for each of its sub-graphs; the least recently used goes first. Fewer are kept if they
    /// would hold more than 256 MiB of packed constants.
    pub cache_size: NonZeroUsize,
    /// The most threads that one run uses, its caller's among them; `None`: as many as there are processors.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Config {
    fn default() -> Config {
        const CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(256).unwrap();
        Config {
            level: Level::default(),
            vectors: Vectors::default(),
            specialization: Specialization::default(),
            index_policy: IndexPolicy::default(),
            cache_size: CACHE_SIZE,
            threads: None,
        }
    }
}
