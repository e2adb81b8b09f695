//! Where the time goes, kernel by kernel.

use super::Args;
use crate::failure::Failure;
use serde::Serialize;
use std::time::Duration;
use vinelift::{InferRequest, KernelTime};

#[derive(Serialize)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) layers: Vec<String>,
    pub(super) median_us: f64,
    /// Of all kernels' medians, from 0 to 1.
    pub(super) share: f64,
    pub(super) how: String,
    /// Billions of floating-point operations in a second, of a contraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gflops: Option<f64>,
    /// Billions of bytes in a second that it reads and writes, each tensor once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gbytes: Option<f64>,
}

/// The kernels of a kind: contractions, code, layers that are called.
#[derive(Serialize)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) kernels: usize,
    pub(super) median_us: f64,
    /// Of all kernels' medians, from 0 to 1.
    pub(super) share: f64,
}

/// The kernels by the first word of how they run, those that take longest first.
pub(super) fn kinds(kernels: &[Kernel]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for kernel in kernels {
        let name = kernel.how.split(',').next().unwrap_or_default();
        let known = kinds.iter().position(|kind| kind.name == name);
        let k = known.unwrap_or_else(|| {
            kinds.push(Kind {
                name: name.to_owned(),
                kernels: 0,
                median_us: 0.0,
                share: 0.0,
            });
            kinds.len() - 1
        });
        kinds[k].kernels += 1;
        kinds[k].median_us += kernel.median_us;
        kinds[k].share += kernel.share;
    }
    kinds.sort_by(|a, b| b.median_us.total_cmp(&a.median_us));
    kinds
}

pub(super) fn profile(
    args: &Args,
    request: &mut InferRequest,
    iterations: usize,
) -> Result<Vec<Kernel>, Failure> {
    const MOST: usize = 200;
    let mut runs: Vec<Vec<KernelTime>> = Vec::new();
    for _ in 0..iterations.min(MOST) {
        args.begin(request);
        runs.push(request.infer_profiled()?);
    }
    let first = runs.first().cloned().unwrap_or_default();
    let median = |k: usize| {
        let mut times: Vec<Duration> = runs
            .iter()
            .filter_map(|run| Some(run.get(k)?.time))
            .collect();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e6
    };
    let medians: Vec<f64> = (0..first.len()).map(median).collect();
    let total = medians.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let kernel = |(kernel, median_us): (KernelTime, f64)| {
        let rate =
            |count: u64| (count > 0 && median_us > 0.0).then(|| count as f64 / median_us / 1e3);
        Kernel {
            median_us,
            share: median_us / total,
            gflops: rate(kernel.flops),
            gbytes: rate(kernel.bytes),
            name: kernel.name,
            layers: kernel.layers,
            how: kernel.how,
        }
    };
    Ok(first.into_iter().zip(medians).map(kernel).collect())
}
