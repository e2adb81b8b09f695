//! A step of a plan: one kernel, with how it is called.

use crate::compile::chain::Chain;
use crate::compile::consumer::Consumer;
use crate::compile::contraction::PackedContraction;
use crate::compile::functions::Function;
use crate::compile::kernel::Kernel;
use crate::compile::producer::Producer;
use std::borrow::Cow;
use std::sync::Arc;
use vinelift_codegen::KernelText;
use vinelift_kernels::Packed;
use vinelift_nest::{BufferId, Nest};

/// A kernel, with how it is called.
pub(crate) struct Step {
    /// The stages.
    pub(crate) kernel: Arc<Kernel>,
    /// The values of their symbols.
    pub(crate) values: Arc<[usize]>,
    pub(crate) engine: Engine,
    /// How often it runs, in turns with its neighbours of the same group.
    pub(crate) turns: Option<Turns>,
    /// The number of threads that share it.
    pub(crate) workers: usize,
    /// The number of tasks that they share, if it is code.
    pub(crate) tasks: usize,
    /// Its cost in all turns: nanoseconds on one thread.
    pub(crate) cost: u64,
    /// The number of buffers that the steps before it are called with.
    pub(crate) arguments: usize,
    /// How it runs with the tasks of the contraction before it, if it does.
    pub(crate) consumer: Option<Consumer>,
    /// The one or two steps after it, if these are chained to it, and the rows that its tasks make.
    pub(crate) chain: Option<Chain>,
    /// The step before it that makes its rows, if its tasks run that.
    pub(crate) producer: Option<Producer>,
    /// How many steps after it the contraction is with the tasks of which it runs, as it makes the rows of that.
    pub(crate) makes_rows: Option<usize>,
}

/// Steps of one group run alternately: each its first turn, then each its second, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) group: u32,
    pub(crate) count: usize,
}

/// The end of the steps that run in turns with the one at `start`, or of that one.
pub(crate) fn turns_end(steps: &[Arc<Step>], start: usize) -> usize {
    let turns = steps[start].turns;
    let rest = steps[start + 1..].iter();
    let more = rest.take_while(|s| turns.is_some() && s.turns == turns);
    start + 1 + more.count()
}

/// The code or the contraction kernel that runs a step.
pub(crate) enum Engine {
    /// Code.
    Code {
        /// The function.
        function: Function,
        /// The number of pieces into which each task is cut on its thread.
        pieces: usize,
    },
    /// A contraction kernel.
    Contraction(Arc<PackedContraction>),
}

impl Step {
    /// Its nest, in numbers.
    pub(crate) fn nest(&self) -> Cow<'_, Nest> {
        self.kernel.nest(&self.values)
    }

    /// The name of the tensor that it writes last.
    pub(crate) fn name(&self) -> &str {
        let nest = &self.kernel.stages.nest;
        nest.stages.last().map_or("", |s| &nest.buf(s.target).name)
    }

    /// The names of its layers.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &str> {
        let nest = &self.kernel.stages.nest;
        nest.layers.iter().map(|l| l.name.as_str())
    }

    /// The text of its code, if it was asked for.
    pub(crate) fn text(&self) -> Option<&KernelText> {
        match &self.engine {
            Engine::Code { function, .. } => function.text(),
            Engine::Contraction(_) => None,
        }
    }

    /// The engine, for texts.
    pub(crate) fn how(&self) -> String {
        let how = match &self.engine {
            Engine::Contraction(contraction) => format!("contraction, {}", contraction.name()),
            Engine::Code { .. } => "code".to_owned(),
        };
        match &self.consumer {
            Some(_) => how + ", run with the tasks of the contraction before it",
            None if self.makes_rows.is_some() => {
                how + ", run with the tasks of the contraction after it"
            }
            None => how,
        }
    }

    /// The floating-point operations of contractions while it runs.
    pub(crate) fn flops(&self) -> u64 {
        let chained = self.chain.as_ref().map_or(0, |chain| chain.flops);
        match (&self.engine, &self.consumer) {
            (Engine::Contraction(contraction), None) => contraction.flops().saturating_add(chained),
            _ => 0,
        }
    }

    /// The bytes of all its buffers; 0 if it runs with the tasks of a contraction alone.
    pub(crate) fn bytes(&self) -> u64 {
        if self.makes_rows.is_some() || self.consumer.as_ref().is_some_and(|c| c.rest.is_empty()) {
            return 0;
        }
        let buffers = self.kernel.stages.nest.buffers.iter();
        let bytes = buffers.map(|b| b.byte_len_at(&self.values).unwrap_or(0));
        bytes.fold(0, |sum, n| sum.saturating_add(n as u64))
    }

    /// Packed constants.
    pub(crate) fn packed(&self) -> impl Iterator<Item = &Arc<Packed>> {
        let contraction = match &self.engine {
            Engine::Contraction(contraction) => Some(contraction),
            Engine::Code { .. } => None,
        };
        contraction.into_iter().flat_map(|c| c.packed())
    }

    /// Whether a run needs a buffer of the whole nest that the step uses: not an operand that is packed.
    pub(crate) fn needs(&self, buffer: BufferId) -> bool {
        match &self.engine {
            Engine::Code { .. } => true,
            Engine::Contraction(contraction) => {
                let mut needed = contraction.needs();
                needed.any(|b| self.kernel.buffers()[b] == buffer)
            }
        }
    }
}
