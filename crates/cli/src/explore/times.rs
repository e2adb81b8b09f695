//! How long each kernel takes in a run.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use vinelift::{InferRequest, KernelListing, KernelTime};

/// The times of kernels, by their name, their layers and how they run: what runs several times is one.
pub(super) struct Times {
    pub(super) median_us: f64,
    kernels: BTreeMap<Key, (f64, usize)>,
    /// The kernels that have got their times.
    given: BTreeMap<Key, usize>,
}

type Key = (String, Vec<String>, String);

impl Times {
    /// The most runs that are measured; there is at least one.
    const MOST: usize = 200;

    /// Measures runs that start from the initial values of variables, as the first one did.
    pub(super) fn measure(request: &mut InferRequest, seconds: f64) -> Result<Times, Failure> {
        let limit = Duration::from_secs_f64(seconds / 2.0);
        let mut runs = Vec::new();
        let start = Instant::now();
        while runs.is_empty() || (runs.len() < Times::MOST && start.elapsed() < limit) {
            request.reset();
            let start = Instant::now();
            request.infer()?;
            runs.push(start.elapsed().as_secs_f64() * 1e6);
        }
        let mut profiles: Vec<Vec<KernelTime>> = Vec::new();
        let start = Instant::now();
        while profiles.is_empty() || (profiles.len() < Times::MOST && start.elapsed() < limit) {
            request.reset();
            profiles.push(request.infer_profiled()?);
        }
        let mut sums: BTreeMap<_, Vec<(f64, usize)>> = BTreeMap::new();
        for profile in profiles {
            let mut run: BTreeMap<_, (f64, usize)> = BTreeMap::new();
            for kernel in profile {
                let sum = run.entry((kernel.name, kernel.layers, kernel.how));
                let sum = sum.or_default();
                sum.0 += kernel.time.as_secs_f64() * 1e6;
                sum.1 += 1;
            }
            for (key, sum) in run {
                sums.entry(key).or_default().push(sum);
            }
        }
        let kernels = sums.into_iter().map(|(key, mut all)| {
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            (key, all[all.len() / 2])
        });
        runs.sort_by(f64::total_cmp);
        Ok(Times {
            median_us: runs[runs.len() / 2],
            kernels: kernels.collect(),
            given: BTreeMap::new(),
        })
    }

    /// The time and the calls of a kernel, or the kernel that has got them.
    pub(super) fn give(&mut self, kernel: &KernelListing) -> Result<(f64, usize), Option<usize>> {
        let key = (
            kernel.name.clone(),
            kernel.layers.clone(),
            kernel.how.clone(),
        );
        if let Some(other) = self.given.get(&key) {
            return Err(Some(*other));
        }
        let time = *self.kernels.get(&key).ok_or(None)?;
        self.given.insert(key, kernel.number);
        Ok(time)
    }

    /// Each layer that is called, with the time of all its calls and their number.
    pub(super) fn of_calls(&self) -> impl Iterator<Item = (&str, f64, usize)> {
        let called = self.kernels.iter().filter(|((.., how), _)| how == "called");
        called.map(|((name, ..), (median_us, calls))| (name.as_str(), *median_us, *calls))
    }
}
