//! `vinelift run`: one inference.

use crate::failure::Failure;
use crate::inputs::InputArgs;
use crate::options::{CompileArgs, ModelArgs, ShapeArgs};
use std::io::{self, Write};
use std::path::PathBuf;
use vinelift::{Core, Tensor};

/// Compile a model and run it once
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift run model.xml --input data=image.npy --output-dir out
  vinelift run model.xml --random --shape data=1,3,224,224")]
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
    #[command(flatten)]
    compile: CompileArgs,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    args.compile.start_threads()?;
    let core = Core::new()?;
    let model = args.model.read(&core)?;
    let compiled = core.compile_model_with(&model, args.compile.config())?;
    let shapes = args.shapes.by_position(compiled.inputs())?;
    let mut request = compiled.create_request();
    args.inputs.set(&mut request, &shapes)?;
    match args.random {
        Some(seed) => {
            request.infer_random(seed, &shapes)?;
        }
        None => request.infer()?,
    }
    if let Some(dir) = &args.output_dir {
        let message = |e| {
            Failure::Message(format!(
                "cannot make the directory `{}`: {e}",
                dir.display()
            ))
        };
        std::fs::create_dir_all(dir).map_err(message)?;
        for (k, tensor) in request.outputs().iter().enumerate() {
            let written = tensor.write_file(dir.join(format!("out_{k}")));
            written.map_err(|e| Failure::Message(e.to_string()))?;
        }
    }
    for (port, tensor) in compiled.outputs().iter().zip(request.outputs()) {
        writeln!(
            out,
            "{} {}{:?}",
            port.name(),
            tensor.element_type(),
            tensor.shape()
        )?;
        values(tensor, out)?;
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
