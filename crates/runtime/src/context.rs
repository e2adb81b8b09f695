//! The parts of a compiled model that all its units share.

use crate::compile::{Settings, Shared};
use crate::execute::pool::Pool;
use crate::{Config, Level, Model};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::{Compiler, Options};
use vinelift_graph::Strings;

/// The parts of a compiled model that all its units share.
pub(crate) struct Context {
    /// For its name in messages.
    pub(crate) model: Model,
    /// The model that is compiled: its caches may be stored otherwise.
    pub(crate) lowered: Model,
    pub(crate) compiler: Arc<Compiler>,
    /// The parts that all plans share.
    pub(crate) shared: Shared,
    pub(crate) config: Config,
    /// The threads of runs.
    pub(crate) pool: Pool,
    /// The texts of all string constants. Runs add their own to a copy.
    pub(crate) strings: Strings,
}

impl Context {
    /// How code is compiled.
    pub(crate) fn options(&self) -> Options {
        Options {
            vectors: self.config.vectors,
            ..Options::default()
        }
    }

    pub(crate) fn settings<'a>(
        &'a self,
        shared: &'a Shared,
        level: Level,
        options: &'a Options,
        stop: &'a Arc<AtomicBool>,
    ) -> Settings<'a> {
        Settings {
            compiler: &self.compiler,
            shared,
            options,
            level,
            group: self.config.dynamic_quantization_group_size,
            micro_batch: self.config.micro_batch,
            threads: self.pool.threads(),
            stop,
        }
    }
}
