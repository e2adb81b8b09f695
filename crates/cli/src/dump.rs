//! `vinelift dump`: the text of a stage.

use crate::failure::Failure;
use crate::options::{ModelArgs, ShapeArgs, VectorArgs, named};
use std::io::Write;
use vinelift::{Config, Core, Stage};

/// Print a stage of a model's way to machine code
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift dump model.xml --stage fused --layer conv_1
  vinelift dump model.xml --stage dot | dot -Tsvg > model.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The layers (also as Graphviz), the loop nest of each, after fusion, after scheduling, and the code
    #[arg(long, value_parser = named(Stage::ALL, Stage::name), required_unless_present = "trace")]
    stage: Option<Stage>,
    /// Only what this layer is part of
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    vectors: VectorArgs,
    /// Print what each pass did first: stages, time, what was not fused and why
    #[arg(long)]
    trace: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let core = Core::new()?;
    let model = args.model.read(&core)?;
    // The graph can be looked at even if it cannot run.
    if let (Some(stage @ (Stage::Graph | Stage::Dot)), None, false) =
        (args.stage, &args.layer, args.trace)
    {
        let types = model.infer()?;
        let graph = model.graph();
        let text = if stage == Stage::Dot {
            graph.to_dot(&types)
        } else {
            graph.to_text(&types)
        };
        return Ok(out.write_all(text.as_bytes())?);
    }
    let config = Config {
        vectors: args.vectors.vectors,
        ..Config::default()
    };
    let compiled = core.compile_model_with(&model, config)?;
    let shapes = args.shapes.by_position(compiled.inputs())?;
    if args.trace {
        out.write_all(compiled.trace(&shapes)?.as_bytes())?;
    }
    if let Some(stage) = args.stage {
        out.write_all(
            compiled
                .dump(stage, &shapes, args.layer.as_deref())?
                .as_bytes(),
        )?;
    }
    Ok(())
}
