//! From a segment of a model to a [`Plan`](plan::Plan): the nest that runs, the kernels that run it, and where each of its
//! buffers lies.
//!
//! ```text
//! segment ─ passes ─ in-place variables ─┬─ constant stages ─ kernels ─ arena ─→ prologue, a plan
//!                                        └─ (with what that computed) kernels ─ arena ─→ plan
//! ```
//!
//! Invariants:
//! * a plan is data: nothing in this folder runs one. Stages that depend on constants alone become a plan of their own,
//!   the prologue, which the caller runs once ([`Draft`](draft::Draft));
//! * what is printed and what runs is the same plan;
//! * the nest of every plan has passed the verifier.

pub(crate) mod arena;
pub(crate) mod binding;
mod borders;
pub(crate) mod chain;
mod coding_source;
mod constant_operand;
pub(crate) mod constants;
pub(crate) mod consumer;
pub(crate) mod contraction;
mod coupled;
mod couplings;
pub(crate) mod draft;
pub(crate) mod forms;
mod functions;
pub(crate) mod interface;
mod kernel;
pub(crate) mod kernels;
pub(crate) mod link;
mod made_rows;
pub(crate) mod micro_batches;
pub(crate) mod native;
pub(crate) mod packed_operands;
mod parallelism;
pub(crate) mod passes;
pub(crate) mod plan;
pub(crate) mod producer;
pub(crate) mod slot;
pub(crate) mod step;
mod symbolic_kernel;
pub(crate) mod symbolic_plan;
pub(crate) mod variables;

use crate::Level;
use crate::compile::functions::Functions;
use crate::compile::packed_operands::PackedOperands;
use passes::Choices;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use vinelift_codegen::{Compiler, Options};

/// The kernels and packed weights that plans of a compiled model share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) functions: Functions,
    pub(crate) operands: PackedOperands,
    /// How many nests could not be proven safe after the passes.
    pub(crate) unproven: AtomicUsize,
}

/// The compiler, the level and the number of threads for which a plan is made.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub(crate) compiler: &'a Compiler,
    /// Kernels that were made for other plans, and may be used again.
    pub(crate) shared: &'a Shared,
    /// How wide vectors may be, and whether the text of the code is kept.
    pub(crate) options: &'a Options,
    pub(crate) level: Level,
    /// [`Choices::group`].
    pub(crate) group: Option<NonZeroUsize>,
    /// [`Choices::micro_batch`].
    pub(crate) micro_batch: Option<NonZeroUsize>,
    /// The most threads that share a kernel.
    pub(crate) threads: usize,
    /// Once true, compiling ends soon with [`Error::Cancelled`](crate::Error::Cancelled).
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl Settings<'_> {
    pub(crate) fn choices(&self) -> Choices {
        Choices {
            level: self.level,
            vectors: self.options.vectors,
            group: self.group,
            micro_batch: self.micro_batch,
        }
    }
}
