//! `vinelift test`: case directories with expected outputs.

use crate::compare::{Tolerance, difference};
use crate::failure::Failure;
use crate::options::{named, start_threads};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, panic, thread};
use vinelift::{Config, Core, ElementType, InferRequest, Level, PartialShape, Tensor};

/// Run case directories and compare the outputs with the expected ones
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift test cases --level all

A case directory holds model.xml, model.bin, in_K.npy, out_K.npy and meta.json.")]
pub(crate) struct Args {
    /// Case directories, or directories that contain some
    #[arg(value_name = "CASE_DIR", required = true)]
    directories: Vec<PathBuf>,
    /// How much is done to the loops before they run, or `all` levels one after the other
    #[arg(long, value_parser = named(CHOICES, choice_name), default_value = "scheduled")]
    level: Choice,
    /// How many cases run at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// A level, or all of them.
type Choice = Option<Level>;

const CHOICES: [Choice; 5] = {
    let [a, b, c, d] = Level::ALL;
    [Some(a), Some(b), Some(c), Some(d), None]
};

fn choice_name(choice: Choice) -> &'static str {
    choice.map_or("all", Level::name)
}

/// `meta.json`, as far as it matters here.
#[derive(Deserialize)]
struct Meta {
    expect: Expect,
    #[serde(default)]
    rtol: f64,
    #[serde(default)]
    atol: f64,
    nan_equal: Option<bool>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(flatten)]
    only: Step,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Ok,
    Error,
}

/// One inference.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Step {
    inputs: Vec<Entry>,
    outputs: Vec<Entry>,
}

/// A tensor in a file.
#[derive(Clone, Deserialize)]
struct Entry {
    element_type: String,
    shape: Vec<usize>,
    file: PathBuf,
    rtol: Option<f64>,
    atol: Option<f64>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let asked = args.jobs.and_then(|n| NonZeroUsize::new(n.into()));
    let jobs = asked.or_else(|| thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, usize::from);
    start_threads(asked)?;
    let mut cases = Vec::new();
    for directory in &args.directories {
        let before = cases.len();
        find(directory, &mut cases)?;
        if cases.len() == before {
            return Err(Failure::Message(format!(
                "`{}` contains no case directory",
                directory.display()
            )));
        }
    }
    let core = Core::new()?;
    let levels = args.level.map_or(Level::ALL.to_vec(), |level| vec![level]);
    let results = in_parallel(&cases, jobs, |case| {
        let failed = |level: &Level| {
            check_safely(&core, case, *level)
                .err()
                .map(|message| (*level, message))
        };
        levels.iter().find_map(failed)
    });
    let mut failed = 0;
    for (case, result) in cases.iter().zip(results) {
        if let Some((level, message)) = result {
            failed += 1;
            writeln!(
                out,
                "FAILED {} ({}): {message}",
                case.display(),
                level.name()
            )?;
        }
    }
    writeln!(out, "{} passed, {failed} failed", cases.len() - failed)?;
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Message("1 case failed".to_owned())),
        more => Err(Failure::Message(format!("{more} cases failed"))),
    }
}

/// Adds the case directories in and below `directory`, by name.
fn find(directory: &Path, cases: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if directory.join("meta.json").is_file() {
        cases.push(directory.to_owned());
        return Ok(());
    }
    let fail =
        |e: io::Error| Failure::Message(format!("cannot read `{}`: {e}", directory.display()));
    let mut inner = Vec::new();
    for entry in fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // Links are not followed, since they may lead back.
        if entry.file_type().map_err(fail)?.is_dir() {
            inner.push(entry.path());
        }
    }
    inner.sort_unstable();
    inner.iter().try_for_each(|path| find(path, cases))
}

/// The results of `work` in order, with a progress bar if it takes long.
fn in_parallel<T: Send>(
    cases: &[PathBuf],
    jobs: usize,
    work: impl Fn(&Path) -> T + Sync,
) -> Vec<T> {
    const STACK: usize = 64 << 20;
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    let (results, bar) = (Mutex::new(Vec::new()), Mutex::new(None));
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else {
                return;
            };
            let result = work(case);
            let done = results.lock().map_or(0, |mut results| {
                results.push((number, result));
                results.len()
            });
            let long = start.elapsed() > Duration::from_secs(1);
            if long
                && io::stderr().is_terminal()
                && let Ok(mut bar) = bar.lock()
            {
                bar.get_or_insert_with(|| progress(cases.len()))
                    .set_position(done as u64);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(cases.len()) {
            // If there are no more threads, those that there are do the work.
            let _ = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, worker);
        }
        worker();
    });
    if let Ok(Some(bar)) = bar.into_inner() {
        bar.finish_and_clear();
    }
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn progress(cases: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} cases, {eta} left");
    ProgressBar::new(cases as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// As [`check`], where a panic is a failure of this case alone.
fn check_safely(core: &Core, case: &Path, level: Level) -> Result<(), String> {
    let checked = panic::catch_unwind(panic::AssertUnwindSafe(|| check(core, case, level)));
    checked.unwrap_or_else(|_| Err("internal error: a panic".to_owned()))
}

fn check(core: &Core, case: &Path, level: Level) -> Result<(), String> {
    let path = case.join("meta.json");
    let json =
        fs::read_to_string(&path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
    let meta: Meta =
        serde_json::from_str(&json).map_err(|e| format!("`{}`: {e}", path.display()))?;
    let steps = if meta.steps.is_empty() {
        vec![meta.only.clone()]
    } else {
        meta.steps.clone()
    };
    let config = Config {
        level,
        ..Config::default()
    };
    let ran = core
        .read_model(case.join("model.xml"))
        .and_then(|model| core.compile_model_with(&model, config));
    let ran = ran.map_err(text).and_then(|compiled| {
        let mut request = compiled.create_request();
        steps
            .iter()
            .map(|step| infer(case, step, &mut request))
            .collect::<Result<Vec<_>, _>>()
    });
    match (meta.expect, ran) {
        (Expect::Error, Ok(_)) => Err("ran, expected an error".to_owned()),
        (Expect::Error, Err(e)) if e.contains("unsupported") || e.contains("internal error") => {
            Err(e)
        }
        (Expect::Error, Err(_)) => Ok(()),
        (Expect::Ok, Err(e)) => Err(e),
        (Expect::Ok, Ok(outputs)) => {
            let mut steps = steps.iter().zip(outputs).enumerate();
            steps.try_for_each(|(number, (step, outputs))| {
                let place = if meta.steps.is_empty() {
                    String::new()
                } else {
                    format!("step {number}: ")
                };
                compare(case, &meta, step, &outputs).map_err(|e| place + &e)
            })
        }
    }
}

fn infer(case: &Path, step: &Step, request: &mut InferRequest) -> Result<Vec<Tensor>, String> {
    for (k, entry) in step.inputs.iter().enumerate() {
        let tensor = entry.read(case).map_err(|e| format!("input {k}: {e}"))?;
        request.set_input_at(k, tensor).map_err(text)?;
    }
    request.infer().map_err(text)?;
    Ok(request.outputs().to_vec())
}

impl Entry {
    /// The tensor, of the type and shape that the case gives it.
    fn read(&self, case: &Path) -> Result<Tensor, String> {
        let ty: ElementType = self.element_type.parse().map_err(text)?;
        let shape = PartialShape::from(self.shape.as_slice());
        Tensor::read_file(case.join(&self.file), ty, &shape).map_err(text)
    }
}

fn compare(case: &Path, meta: &Meta, step: &Step, outputs: &[Tensor]) -> Result<(), String> {
    if outputs.len() != step.outputs.len() {
        return Err(format!(
            "{} outputs, expected {}",
            outputs.len(),
            step.outputs.len()
        ));
    }
    for (k, (entry, got)) in step.outputs.iter().zip(outputs).enumerate() {
        let want = entry.read(case).map_err(|e| format!("output {k}: {e}"))?;
        let tolerance = Tolerance {
            relative: entry.rtol.unwrap_or(meta.rtol),
            absolute: entry.atol.unwrap_or(meta.atol),
            nan_equal: meta.nan_equal.unwrap_or(true),
        };
        if let Some(difference) = difference(got, &want, tolerance) {
            return Err(format!("output {k}: {difference}"));
        }
    }
    Ok(())
}
