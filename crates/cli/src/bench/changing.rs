//! Runs at shapes that change from call to call.

use super::{Args, Made, SEED, milliseconds, peak_rss_mb, quantile, timed};
use crate::failure::Failure;
use crate::progress::Progress;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use vinelift::{CompiledModel, Core, Shape, Tensor};

/// Runs at shapes drawn from ranges of extents.
#[derive(Serialize)]
pub(super) struct Report {
    read_ms: f64,
    compile_ms: f64,
    calls: usize,
    /// How many different shapes these had.
    shapes: usize,
    calls_per_s: f64,
    median_ms: f64,
    p90_ms: f64,
    /// The median of the calls at shapes that had not been met before.
    new_shape_median_ms: f64,
    threads: usize,
    peak_rss_mb: Option<f64>,
    #[serde(flatten)]
    made: Made,
}

pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let core = Core::new()?;
    let (model, read) = timed(|| args.model.read(&core));
    let model = model?;
    let (compiled, compile) = timed(|| core.compile_model_with(&model, args.compile.config()));
    let compiled = compiled?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut request = compiled.create_request();
    let (mut all, mut new) = (Vec::new(), Vec::new());
    let mut met: HashMap<Vec<Option<Shape>>, Vec<Tensor>> = HashMap::new();
    let start = Instant::now();
    let mut progress = Progress::new();
    loop {
        let shapes = draw(args, &compiled, &mut random)?;
        let is_new = !met.contains_key(&shapes);
        if is_new {
            let inputs = inputs(args, &compiled, &shapes)?;
            met.insert(shapes.clone(), inputs);
        }
        for (k, tensor) in met[&shapes].iter().enumerate() {
            request.set_input_at(k, tensor.clone())?;
        }
        args.begin(&mut request);
        let (run, time) = timed(|| request.infer());
        run?;
        all.push(time);
        if is_new {
            new.push(time);
        }
        let part = args.part(all.len(), start.elapsed());
        progress.show(start.elapsed(), || part);
        if part >= 1.0 {
            break;
        }
    }
    let total: Duration = all.iter().sum();
    let calls = all.len();
    all.sort_unstable();
    new.sort_unstable();
    Ok(Report {
        read_ms: milliseconds(read),
        compile_ms: milliseconds(compile),
        calls,
        shapes: met.len(),
        calls_per_s: calls as f64 / total.as_secs_f64(),
        median_ms: quantile(&all, 0.5),
        p90_ms: quantile(&all, 0.9),
        new_shape_median_ms: quantile(&new, 0.5),
        threads: vinelift::compiler_threads::count(),
        peak_rss_mb: peak_rss_mb(),
        made: compiled.statistics().into(),
    })
}

/// Random shapes of the inputs, `None` for those that have one shape only. Equal ranges have equal extents, as those of a
/// text and of its mask.
fn draw(
    args: &Args,
    compiled: &CompiledModel,
    random: &mut fastrand::Rng,
) -> Result<Vec<Option<Shape>>, Failure> {
    let mut drawn: Vec<(RangeInclusive<usize>, usize)> = Vec::new();
    args.shapes.choose(compiled.inputs(), |range| {
        let known = drawn.iter().find(|(other, _)| other == range);
        let extent = known.map(|(_, extent)| *extent);
        extent.unwrap_or_else(|| {
            let extent = random.usize(range.clone());
            drawn.push((range.clone(), extent));
            extent
        })
    })
}

/// Inputs of these shapes: from files, or random.
fn inputs(
    args: &Args,
    compiled: &CompiledModel,
    shapes: &[Option<Shape>],
) -> Result<Vec<Tensor>, Failure> {
    let mut request = compiled.create_request();
    args.inputs.set(&mut request, shapes)?;
    // No index is random: what is out of range for one shape may be in range for another.
    request.fill_random(SEED, 0, shapes)?;
    let inputs = 0..compiled.inputs().len();
    let missing = |k: usize| Failure::Message(format!("input {k} has no tensor"));
    inputs
        .map(|k| request.input(k).cloned().ok_or_else(|| missing(k)))
        .collect()
}

impl Report {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "read        {:10.3} ms", self.read_ms)?;
        writeln!(out, "compile     {:10.3} ms", self.compile_ms)?;
        writeln!(
            out,
            "calls/s     {:10.1}     of {} calls at {} shapes",
            self.calls_per_s, self.calls, self.shapes
        )?;
        writeln!(out, "median      {:10.3} ms", self.median_ms)?;
        writeln!(out, "p90         {:10.3} ms", self.p90_ms)?;
        writeln!(
            out,
            "new shape   {:10.3} ms  median of the first call at each",
            self.new_shape_median_ms
        )?;
        writeln!(out, "threads     {:6}", self.threads)?;
        if let Some(peak) = self.peak_rss_mb {
            writeln!(out, "peak memory {peak:10.3} MB")?;
        }
        let made = &self.made;
        writeln!(
            out,
            "compiled    {} plans, {} of them for single shapes, bound {} times to other shapes, {} kernels of {} bytes, {} bytes of packed constants",
            made.plans,
            made.specialized,
            made.bound,
            made.kernels_compiled,
            made.code_bytes,
            made.packed_bytes
        )
    }
}
