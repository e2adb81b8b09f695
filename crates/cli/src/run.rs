//! `vinelift run`: one inference.

use crate::failure::Failure;
use crate::inputs::InputArgs;
use crate::options::{CompileArgs, ModelArgs, ShapeArgs};
use serde::Serialize;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vinelift::{ElementType, Port, Tensor, TensorError};

/// Compile a model and run it once
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift run model.xml --input data=image.npy --output-dir out
  vinelift run model.xml --random --shape data=1,3,224,224
  vinelift run model.xml --input cat.jpg --mean 123.7,116.3,103.5 --scale 58.4,57.1,57.4 --top 5 --labels classes.txt")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    inputs: InputArgs,
    /// Fill the inputs that have no file with random values
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "0")]
    random: Option<u64>,
    #[command(flatten)]
    shapes: ShapeArgs,
    /// Write the outputs to out_0.npy, out_1.npy, … in this directory
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print one JSON object with all values of the outputs
    #[arg(long, conflicts_with = "top")]
    json: bool,
    /// Print the K largest values of each row of the outputs, with their positions
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// A file with a name on each line, for the positions of `--top`
    #[arg(long, value_name = "FILE", requires = "top")]
    labels: Option<PathBuf>,
    #[command(flatten)]
    compile: CompileArgs,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let compiled = args.model.compile(args.compile.config())?;
    let shapes = args.shapes.by_position(compiled.inputs())?;
    let mut request = compiled.create_request();
    args.inputs.set(&mut request, &shapes)?;
    match args.random {
        Some(seed) => {
            args.shapes.require_set(&request)?;
            request.infer_random(seed, &shapes)?;
        }
        None => {
            let or = ", and `--random` fills all that have none";
            args.inputs.require_all(&request, or)?;
            request.infer()?;
        }
    }
    if let Some(dir) = &args.output_dir {
        write_files(dir, request.outputs())?;
    }
    let outputs = compiled.outputs().iter().zip(request.outputs());
    if args.json {
        let outputs: Vec<Output<'_>> = outputs.map(Output::of).collect();
        serde_json::to_writer(&mut *out, &Outputs { outputs }).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let labels = args.labels.as_deref().map(read_labels).transpose()?;
    for (port, tensor) in outputs {
        writeln!(
            out,
            "{} {}{:?}",
            port.name(),
            tensor.element_type(),
            tensor.shape()
        )?;
        match args.top {
            Some(count) if tensor.strings().is_none() => {
                top(tensor, count as usize, labels.as_deref(), out)?
            }
            _ => values(tensor, out)?,
        }
    }
    Ok(())
}

fn write_files(dir: &Path, outputs: &[Tensor]) -> Result<(), Failure> {
    let message = |e| {
        Failure::Message(format!(
            "cannot make the directory `{}`: {e}",
            dir.display()
        ))
    };
    std::fs::create_dir_all(dir).map_err(message)?;
    for (k, tensor) in outputs.iter().enumerate() {
        let written = tensor.write_file(dir.join(format!("out_{k}")));
        written.map_err(|e| Failure::Message(e.to_string()))?;
    }
    Ok(())
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Outputs<'a> {
    outputs: Vec<Output<'a>>,
}

#[derive(Serialize)]
struct Output<'a> {
    name: &'a str,
    names: &'a [String],
    element_type: String,
    shape: &'a [usize],
    data: Data<'a>,
}

/// The values in the order of the shape, the innermost axis first.
#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Strings(&'a [String]),
    Bools(Vec<bool>),
    Integers(Vec<i64>),
    Unsigned(Vec<u64>),
    Floats(Vec<Float>),
}

/// JSON has no number for what is not finite.
#[derive(Serialize)]
#[serde(untagged)]
enum Float {
    Finite(f64),
    Single(f32),
    Other(&'static str),
}

impl Float {
    /// `f32` keeps its own, shorter text.
    fn of(x: f64, is_single: bool) -> Float {
        match x {
            _ if x.is_nan() => Float::Other("NaN"),
            _ if x.is_infinite() && x > 0.0 => Float::Other("Infinity"),
            _ if x.is_infinite() => Float::Other("-Infinity"),
            _ if is_single => Float::Single(x as f32),
            _ => Float::Finite(x),
        }
    }
}

impl<'a> Output<'a> {
    fn of((port, tensor): (&'a Port, &'a Tensor)) -> Output<'a> {
        let ty = tensor.element_type();
        let floats = || tensor.to_f64_vec().unwrap_or_default();
        let data = match (tensor.strings(), ty) {
            (Some(strings), _) => Data::Strings(strings),
            (None, ElementType::Boolean) => {
                Data::Bools(floats().into_iter().map(|x| x != 0.0).collect())
            }
            (None, ElementType::U64) => {
                let all = tensor.as_slice::<u64>();
                Data::Unsigned(all.map(|all| all.to_vec()).unwrap_or_default())
            }
            _ if ty.is_integer() => Data::Integers(tensor.to_i64_vec().unwrap_or_default()),
            _ => {
                let is_single = ty != ElementType::F64;
                let all = floats().into_iter();
                Data::Floats(all.map(|x| Float::of(x, is_single)).collect())
            }
        };
        Output {
            name: port.name(),
            names: &port.names,
            element_type: ty.to_string(),
            shape: tensor.shape(),
            data,
        }
    }
}

fn read_labels(path: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|e| {
        Failure::Message(format!("cannot read the labels `{}`: {e}", path.display()))
    })?;
    Ok(text.lines().map(|l| l.trim().to_owned()).collect())
}

/// The elements of a tensor, integers exactly.
enum Numbers {
    Integers(Vec<i128>),
    Floats(Vec<f64>),
}

impl Numbers {
    fn of(tensor: &Tensor) -> Result<Numbers, TensorError> {
        Ok(match tensor.element_type().is_integer() {
            true => Numbers::Integers(tensor.to_i128_vec()?),
            false => Numbers::Floats(tensor.to_f64_vec()?),
        })
    }

    /// The larger first; NaN is less than all.
    fn order(&self, a: usize, b: usize) -> Ordering {
        match self {
            Numbers::Integers(all) => all[b].cmp(&all[a]),
            Numbers::Floats(all) => {
                let (a, b) = (all[a], all[b]);
                let by_value = b.partial_cmp(&a).unwrap_or(Ordering::Equal);
                a.is_nan().cmp(&b.is_nan()).then(by_value)
            }
        }
    }

    fn text(&self, k: usize) -> String {
        match self {
            Numbers::Integers(all) => all[k].to_string(),
            Numbers::Floats(all) => format!("{:.6}", all[k]),
        }
    }
}

/// The largest values of each row of the innermost dim, the first of equal ones first.
fn top(
    tensor: &Tensor,
    count: usize,
    labels: Option<&[String]>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let numbers = Numbers::of(tensor);
    let numbers = numbers.map_err(|e| Failure::Message(e.to_string()))?;
    let row = tensor.shape().last().copied().unwrap_or(1).max(1);
    let all = tensor.element_count() / row;
    let shown = all.min(ROWS);
    for number in 0..shown {
        if all > 1 {
            writeln!(out, "  row {number}")?;
        }
        let start = number * row;
        let mut order: Vec<usize> = (start..start + row).collect();
        order.sort_by(|a, b| numbers.order(*a, *b));
        for at in order.into_iter().take(count) {
            let (k, number) = (at - start, numbers.text(at));
            let label = labels.map_or("", |labels| labels.get(k).map_or("?", String::as_str));
            let line = format!("  {number:>12}  {k:>6}  {label}");
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    if shown < all {
        writeln!(out, "  …")?;
    }
    Ok(())
}

/// The most rows and columns that are shown.
const ROWS: usize = 4;
const COLUMNS: usize = 8;
/// Longer rows are shown one at a time.
const LONG: usize = 4096;

/// The first rows of the innermost dim, in columns.
fn values(tensor: &Tensor, out: &mut dyn Write) -> io::Result<()> {
    let count = tensor.element_count();
    let row = tensor.shape().last().copied().unwrap_or(1).max(1);
    let rows = (count / row).min(if row > LONG { 1 } else { ROWS });
    let texts = tensor.first_values(row.min(LONG) * rows);
    let shown: Vec<Vec<&String>> = texts
        .chunks(row)
        .map(|r| r.iter().take(COLUMNS).collect())
        .collect();
    let width = shown
        .iter()
        .flatten()
        .map(|t| t.chars().count())
        .max()
        .unwrap_or(0);
    for texts in &shown {
        let cells: Vec<String> = texts.iter().map(|t| format!("{t:>width$}")).collect();
        writeln!(
            out,
            "  {}{}",
            cells.join("  "),
            if row > COLUMNS { "  …" } else { "" }
        )?;
    }
    if rows < count / row {
        writeln!(out, "  …")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_integers_are_exact() {
        let shown = |tensor: Tensor| {
            let mut out = Vec::new();
            top(&tensor, 2, None, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let lines = text
                .lines()
                .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "));
            lines.collect::<Vec<_>>()
        };
        // As numbers of type f64 they would be equal.
        let tensor = Tensor::from_slice(&[3], &[i64::MIN, i64::MAX - 1, i64::MAX]).unwrap();
        assert_eq!(
            shown(tensor),
            ["9223372036854775807 2", "9223372036854775806 1"]
        );
        let tensor = Tensor::from_slice(&[2], &[u64::MAX - 1, u64::MAX]).unwrap();
        assert_eq!(
            shown(tensor),
            ["18446744073709551615 1", "18446744073709551614 0"]
        );
    }
}
