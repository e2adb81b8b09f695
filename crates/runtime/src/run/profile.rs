//! The times of a run.

use crate::compile::step::Step;
use std::time::Duration;

/// The time that one kernel took in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// The name of the tensor that it writes last.
    pub name: String,
    /// The layers in it.
    pub layers: Vec<String>,
    /// How long it ran.
    pub time: Duration,
    /// How it runs: which contraction kernel, or what else.
    pub how: String,
    /// The floating-point operations of the contractions in it, two for each multiply-add: also of one that runs with its
    /// tasks, which has none of its own then.
    pub flops: u64,
    /// The bytes of all tensors that it reads or writes, each once; 0 if it runs with the tasks of another alone.
    pub bytes: u64,
}

impl KernelTime {
    /// Of a step of a plan, which runs once for each of its micro-batches: `time` is that of all.
    pub(super) fn of_step(step: &Step, micro_batches: usize, time: Duration) -> KernelTime {
        let times = |each: u64| each.saturating_mul(micro_batches as u64);
        KernelTime {
            name: step.name().to_owned(),
            layers: step.layers().map(str::to_owned).collect(),
            time,
            how: step.how(),
            flops: times(step.flops()),
            bytes: times(step.bytes()),
        }
    }

    /// Of a layer that is called between kernels.
    pub(super) fn of_call(layer: &str, time: Duration) -> KernelTime {
        KernelTime {
            name: layer.to_owned(),
            layers: vec![layer.to_owned()],
            time,
            how: "called".to_owned(),
            flops: 0,
            bytes: 0,
        }
    }
}
