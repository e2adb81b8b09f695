//! Runs at shapes that change from call to call.

use super::{Args, Made, SEED, milliseconds, peak_rss_mb, timed};
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

/// The same numbers on every machine: a linear congruential generator.
struct Random(u64);

impl Random {
    /// A number in `range`.
    fn within(&mut self, range: &RangeInclusive<usize>) -> usize {
        let Random(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let count = (range.end() - range.start()) as u64 + 1;
        range.start() + ((*state >> 33) % count) as usize
    }
}

pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let core = Core::new()?;
    let (model, read) = timed(|| args.model.read(&core));
    let model = model?;
    let (compiled, compile) = timed(|| core.compile_model_with(&model, args.compile.config()));
    let compiled = compiled?;
    let mut random = Random(SEED);
    let mut request = compiled.create_request();
    let (mut all, mut new) = (Vec::new(), Vec::new());
    let mut met: HashMap<Vec<Option<Shape>>, Vec<Tensor>> = HashMap::new();
    let start = Instant::now();
    let mut progress = Progress::new();
    loop {
        // Equal ranges have equal extents, as those of a text and of its mask.
        let mut drawn: Vec<(RangeInclusive<usize>, usize)> = Vec::new();
        let shapes = args.shapes.choose(compiled.inputs(), |range| {
            let known = drawn.iter().find(|(other, _)| other == range);
            let extent = known.map(|(_, extent)| *extent);
            extent.unwrap_or_else(|| {
                let extent = random.within(range);
                drawn.push((range.clone(), extent));
                extent
            })
        })?;
        let is_new = !met.contains_key(&shapes);
        if is_new {
            let inputs = inputs(args, &compiled, &shapes)?;
            met.insert(shapes.clone(), inputs);
        }
        for (k, tensor) in met[&shapes].iter().enumerate() {
            request.set_input_at(k, tensor.clone())?;
        }
        let (run, time) = timed(|| request.infer());
        run?;
        all.push(time);
        if is_new {
            new.push(time);
        }
        let part = match args.iterations {
            Some(count) => all.len() as f64 / f64::from(count),
            None => start.elapsed().as_secs_f64() / args.seconds,
        };
        progress.show(start.elapsed(), || part);
        if part >= 1.0 {
            break;
        }
    }
    let total: Duration = all.iter().sum();
    let calls = all.len();
    let at = |times: &mut Vec<Duration>, part: f64| {
        times.sort_unstable();
        milliseconds(times[((times.len() - 1) as f64 * part).round() as usize])
    };
    Ok(Report {
        read_ms: milliseconds(read),
        compile_ms: milliseconds(compile),
        calls,
        shapes: met.len(),
        calls_per_s: calls as f64 / total.as_secs_f64(),
        median_ms: at(&mut all, 0.5),
        p90_ms: at(&mut all, 0.9),
        new_shape_median_ms: at(&mut new, 0.5),
        threads: vinelift::compiler_threads::count(),
        peak_rss_mb: peak_rss_mb(),
        made: compiled.statistics().into(),
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
            "compiled    lowered {} times, {} plans, {} kernels of {} bytes, {} bytes of packed constants",
            made.lowered, made.plans, made.kernels_compiled, made.code_bytes, made.packed_bytes
        )
    }
}
