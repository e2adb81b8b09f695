//! `vinelift explore`: a page that shows all that becomes of a model.
//!
//! [`data`] gathers what is shown, [`page`] puts it into a page that needs nothing else.

mod data;
mod page;
mod times;

use crate::failure::Failure;
use crate::inputs::InputArgs;
use crate::options::{ModelArgs, RunArgs, ShapeArgs};
use data::Data;
use std::io::{self, Write};
use std::path::PathBuf;
use vinelift::{InferRequest, Shape};

/// Write a page that shows all that becomes of a model: graph, kernels, nests, code, times
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift explore model.xml -o model.html --shape data=1,3,224,224 --open

The page needs no network. Inputs without a file are filled with random values.
`--json` writes the data of the page alone; crates/cli/docs/explore.md describes it.")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Where to write [default: the model's name with .html, or .json, in the current folder]
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    run: RunArgs,
    /// How long to measure
    #[arg(short = 't', value_name = "SECONDS", default_value_t = 0.5, value_parser = crate::options::seconds)]
    seconds: f64,
    /// Write the data of the page alone
    #[arg(long, conflicts_with = "open")]
    json: bool,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let compiled = args.model.compile(args.run.config())?;
    let shapes = args.shapes.by_position(compiled.inputs())?;
    let mut request = compiled.create_request();
    args.inputs.set(&mut request, &shapes)?;
    args.shapes.require_set(&request)?;
    fill(&mut request, &shapes, args)?;
    let data = Data::gather(&mut request, &args.model.model, args.seconds)?;
    let json = serde_json::to_string(&data).map_err(io::Error::from)?;
    let text = match args.json {
        true => json,
        false => page::page(compiled.model().name(), &json),
    };
    let path = args.path();
    std::fs::write(&path, text)
        .map_err(|e| Failure::Message(format!("cannot write `{}`: {e}", path.display())))?;
    writeln!(out, "{}", path.display())?;
    if args.open {
        open::that(&path)
            .map_err(|e| Failure::Message(format!("cannot open `{}`: {e}", path.display())))?;
    }
    Ok(())
}

/// Random values for the inputs that have no file. A run of its own tells which of them serve as indices.
fn fill(request: &mut InferRequest, shapes: &[Option<Shape>], args: &Args) -> Result<(), Failure> {
    const SEED: u64 = 0;
    let mut trial = request.compiled_model().create_request();
    args.inputs.set(&mut trial, shapes)?;
    let largest = trial.infer_random(SEED, shapes)?;
    Ok(request.fill_random(SEED, largest, shapes)?)
}

impl Args {
    fn path(&self) -> PathBuf {
        let extension = if self.json { "json" } else { "html" };
        let name = || {
            let stem = self.model.model.file_stem().unwrap_or("model".as_ref());
            PathBuf::from(format!("{}.{extension}", stem.to_string_lossy()))
        };
        self.out.clone().unwrap_or_else(name)
    }
}
