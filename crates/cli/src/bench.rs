//! `vinelift bench`: how long it takes.

mod changing;
mod profile;

use crate::failure::Failure;
use crate::inputs::InputArgs;
use crate::options::{CompileArgs, ModelArgs, ShapeArgs, start_threads};
use crate::progress::Progress;
use profile::{Kernel, Kind, kinds, profile};
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use vinelift::{Core, InferRequest, Peak, Shape, Statistics, peak};

/// Measure reading, compiling and running a model
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift bench model.xml --shape data=1,3,224,224 -t 5 --profile
  vinelift bench encoder.xml --shape ids=1,4..384 --shape mask=1,4..384 -n 400")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    /// How many runs to measure
    #[arg(short = 'n', value_name = "ITERATIONS", conflicts_with = "seconds",
          value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// How long to measure
    #[arg(short = 't', value_name = "SECONDS", default_value_t = 2.0, value_parser = crate::options::seconds)]
    seconds: f64,
    #[command(flatten)]
    compile: CompileArgs,
    /// Keep what variables hold from one run to the next; without it, they are empty before each run
    #[arg(long)]
    state: bool,
    /// Show where the time goes, kernel by kernel
    #[arg(long)]
    profile: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    read_ms: f64,
    compile_ms: f64,
    first_infer_ms: f64,
    median_ms: f64,
    min_ms: f64,
    p90_ms: f64,
    iterations: usize,
    threads: usize,
    /// `None` where the system does not tell.
    peak_rss_mb: Option<f64>,
    #[serde(flatten)]
    made: Made,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<Machine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<Kernel>>,
    /// The time of all kernels of a kind, for each kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<Kind>>,
}

/// Counts of what was compiled while the model ran.
#[derive(Serialize)]
struct Made {
    /// How many plans were compiled, each for a class of shapes or for one.
    plans: usize,
    /// How many of these for shapes that had taken much of the time.
    specialized: usize,
    /// How often one of these was bound to other shapes.
    bound: usize,
    /// How many kernels were compiled to machine code.
    kernels_compiled: usize,
    code_bytes: usize,
    packed_bytes: usize,
}

impl From<Statistics> for Made {
    fn from(all: Statistics) -> Made {
        Made {
            plans: all.plans,
            specialized: all.specialized,
            bound: all.bound,
            kernels_compiled: all.kernels,
            code_bytes: all.code_bytes,
            packed_bytes: all.packed_bytes,
        }
    }
}

/// The peak of one thread of this machine.
#[derive(Serialize)]
struct Machine {
    f32_gflops: f64,
    f64_gflops: f64,
    /// On bytes, with sums of `i32`.
    byte_gops: f64,
    copy_gbytes: f64,
}

/// The seed of random inputs.
const SEED: u64 = 0;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    start_threads(args.compile.config().threads)?;
    if args.shapes.has_ranges() {
        let report = changing::measure(args)?;
        return match args.json {
            true => json(&report, out),
            false => Ok(report.print(out)?),
        };
    }
    let report = measure(args)?;
    match args.json {
        true => json(&report, out),
        false => Ok(report.print(out)?),
    }
}

fn json(report: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, report).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

fn measure(args: &Args) -> Result<Report, Failure> {
    let core = Core::new()?;
    let (model, read) = timed(|| args.model.read(&core));
    let model = model?;
    let (compiled, mut compile) = timed(|| core.compile_model_with(&model, args.compile.config()));
    let compiled = compiled?;
    let mut shapes = args.shapes.by_position(compiled.inputs())?;

    // The first run tells which random values serve as indices; it is not measured.
    let mut trial = compiled.create_request();
    args.inputs.set(&mut trial, &shapes)?;
    for (k, shape) in shapes.iter_mut().enumerate() {
        *shape = trial
            .input(k)
            .map(|tensor| tensor.shape().to_vec())
            .or(shape.take());
    }
    if let Some(shapes) = all_shapes(&compiled, &shapes) {
        let (prepared, more) = timed(|| compiled.prepare(&shapes));
        prepared?;
        compile += more;
    }
    args.shapes.require_set(&trial)?;
    let largest = trial.infer_random(SEED, &shapes)?;
    drop(trial);

    let mut request = compiled.create_request();
    args.inputs.set(&mut request, &shapes)?;
    request.fill_random(SEED, largest, &shapes)?;
    let (first, first_infer) = timed(|| request.infer());
    first?;
    let mut times = repeat(args, &mut request)?;
    times.sort_unstable();
    let kernels = match args.profile {
        true => Some(profile(args, &mut request, times.len())?),
        false => None,
    };
    let at = |part| quantile(&times, part);
    Ok(Report {
        read_ms: milliseconds(read),
        compile_ms: milliseconds(compile),
        first_infer_ms: milliseconds(first_infer),
        median_ms: at(0.5),
        min_ms: at(0.0),
        p90_ms: at(0.9),
        iterations: times.len(),
        threads: vinelift::compiler_threads::count(),
        peak_rss_mb: peak_rss_mb(),
        made: compiled.statistics().into(),
        machine: args.profile.then(|| Machine::from(peak())),
        kinds: kernels.as_deref().map(kinds),
        kernels,
    })
}

/// The shapes of all inputs, if all are given or static.
fn all_shapes(compiled: &vinelift::CompiledModel, given: &[Option<Shape>]) -> Option<Vec<Shape>> {
    let shape = |(port, given): (&vinelift::Port, &Option<Shape>)| {
        given.clone().or_else(|| port.shape.to_static())
    };
    compiled.inputs().iter().zip(given).map(shape).collect()
}

/// The times of as many runs as asked for, at least one.
fn repeat(args: &Args, request: &mut InferRequest) -> Result<Vec<Duration>, Failure> {
    let start = Instant::now();
    let mut times = Vec::new();
    let mut progress = Progress::new();
    loop {
        args.begin(request);
        let (run, time) = timed(|| request.infer());
        run?;
        times.push(time);
        let part = args.part(times.len(), start.elapsed());
        progress.show(start.elapsed(), || part);
        if part >= 1.0 {
            return Ok(times);
        }
    }
}

impl Args {
    /// Has a run begin as it is asked to.
    fn begin(&self, request: &mut InferRequest) {
        if !self.state {
            request.reset();
        }
    }

    /// How much of the measuring is done after `runs` runs: all, from 1 on.
    fn part(&self, runs: usize, elapsed: Duration) -> f64 {
        match self.iterations {
            Some(count) => runs as f64 / f64::from(count),
            None => elapsed.as_secs_f64() / self.seconds,
        }
    }
}

/// The time in milliseconds that a `part` of the times, which are sorted, does not exceed.
fn quantile(times: &[Duration], part: f64) -> f64 {
    milliseconds(times[((times.len() - 1) as f64 * part).round() as usize])
}

impl From<Peak> for Machine {
    fn from(peak: Peak) -> Machine {
        Machine {
            f32_gflops: peak.f32_flops / 1e9,
            f64_gflops: peak.f64_flops / 1e9,
            byte_gops: peak.byte_ops / 1e9,
            copy_gbytes: peak.bytes / 1e9,
        }
    }
}

impl Report {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "read        {:10.3} ms", self.read_ms)?;
        writeln!(out, "compile     {:10.3} ms", self.compile_ms)?;
        writeln!(out, "first infer {:10.3} ms", self.first_infer_ms)?;
        writeln!(
            out,
            "median      {:10.3} ms  of {} runs",
            self.median_ms, self.iterations
        )?;
        writeln!(out, "min         {:10.3} ms", self.min_ms)?;
        writeln!(out, "p90         {:10.3} ms", self.p90_ms)?;
        writeln!(out, "threads     {:6}", self.threads)?;
        if let Some(peak) = self.peak_rss_mb {
            writeln!(out, "peak memory {peak:10.3} MB")?;
        }
        let mut kernels: Vec<&Kernel> = self.kernels.iter().flatten().collect();
        kernels.sort_by(|a, b| b.median_us.total_cmp(&a.median_us));
        if let Some(machine) = &self.machine {
            writeln!(
                out,
                "one thread of this machine: {:.0} GFLOP/s f32, {:.0} f64, {:.0} on bytes, copies {:.1} GB/s",
                machine.f32_gflops, machine.f64_gflops, machine.byte_gops, machine.copy_gbytes
            )?;
        }
        for kind in self.kinds.iter().flatten() {
            writeln!(
                out,
                "{:5.1} %  {:10.1} µs  in {} kernels: {}",
                kind.share * 100.0,
                kind.median_us,
                kind.kernels,
                kind.name
            )?;
        }
        for kernel in kernels {
            let Kernel {
                name,
                median_us,
                how,
                ..
            } = kernel;
            let rate = match (kernel.gflops, kernel.gbytes) {
                (Some(gflops), _) => format!("{gflops:7.1} GFLOP/s"),
                (None, Some(gbytes)) => format!("{gbytes:7.1} GB/s   "),
                (None, None) => format!("{:15}", ""),
            };
            writeln!(
                out,
                "{:5.1} %  {median_us:10.1} µs  {rate}  {name}: {} ({how})",
                kernel.share * 100.0,
                kernel.layers.join(", ")
            )?;
        }
        Ok(())
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The most memory that this process has had at a time.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
