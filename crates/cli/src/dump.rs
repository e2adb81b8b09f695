//! `vinelift dump`: the text of a stage.

use crate::failure::Failure;
use crate::inputs::InputArgs;
use crate::options::{CodeArgs, ModelArgs, ShapeArgs, named};
use crate::suggest::unknown;
use std::io::Write;
use vinelift::{Core, DumpOptions, InferRequest, Model, Stage};

/// Print a stage of a model's way to machine code
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift dump model.xml --stage fused --layer conv_1
  vinelift dump model.xml --stage asm --kernel 3
  vinelift dump model.xml --stage dot | dot -Tsvg > model.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The layers (also as Graphviz), the loop nest of each, after fusion, after scheduling, and the code; without it,
    /// the list of stages
    #[arg(long, value_parser = named(Stage::ALL, Stage::name))]
    stage: Option<Stage>,
    /// Only what this layer is part of
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,
    /// Only the kernel of this number in the index
    #[arg(long, value_name = "N", conflicts_with = "layer")]
    kernel: Option<usize>,
    /// Show constants, too
    #[arg(long)]
    consts: bool,
    /// Print each stage of a nest on one line, however long, without names for its parts
    #[arg(long)]
    one_line: bool,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    code: CodeArgs,
    /// Print what each pass did first: stages, time, what was not fused and why
    #[arg(long)]
    trace: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let core = Core::new()?;
    let model = args.model.read(&core)?;
    args.check_layer(&model)?;
    if args.stage.is_none() && !args.trace {
        return list(out);
    }
    let options = args.options();
    // The graph can be looked at even if it cannot run.
    if let (Some(Stage::Graph), false) = (args.stage, args.trace) {
        return Ok(out.write_all(model.graph_text(&options)?.as_bytes())?);
    }
    if let (Some(Stage::Dot), false) = (args.stage, args.trace) {
        let text = model.graph().to_dot(&*model.infer()?);
        return Ok(out.write_all(text.as_bytes())?);
    }
    let compiled = core.compile_model_with(&model, args.code.config())?;
    let mut request = compiled.create_request();
    let shapes = args.shapes.by_position(compiled.inputs())?;
    args.inputs.set(&mut request, &shapes)?;
    for text in args.texts(&mut request, &shapes, &options)? {
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

impl Args {
    fn options(&self) -> DumpOptions<'_> {
        DumpOptions {
            layer: self.layer.as_deref(),
            kernel: self.kernel,
            hide_constants: !self.consts,
            wrap: !self.one_line,
            index: self.layer.is_none(),
        }
    }

    fn check_layer(&self, model: &Model) -> Result<(), Failure> {
        let layers = model.graph().graph.node_weights();
        let names: Vec<&str> = layers.map(|n| n.layer.name.as_str()).collect();
        match &self.layer {
            Some(layer) if !names.contains(&layer.as_str()) => Err(Failure::Message(format!(
                "the model has no layer {}",
                unknown(layer, names)
            ))),
            _ => Ok(()),
        }
    }

    /// The trace and the stage, as far as they are asked for. With files for inputs, of what a run of these takes.
    fn texts(
        &self,
        request: &mut InferRequest,
        shapes: &[Option<vinelift::Shape>],
        options: &DumpOptions<'_>,
    ) -> Result<Vec<String>, Failure> {
        let compiled = request.compiled_model().clone();
        let runs = self.inputs.is_given();
        match runs {
            true => self.inputs.require_all(request, "")?,
            false => self.shapes.require_all(compiled.inputs())?,
        }
        let mut texts = Vec::new();
        if self.trace {
            texts.push(match runs {
                true => request.trace_with(options)?,
                false => compiled.trace_with(shapes, options)?,
            });
        }
        if let Some(stage) = self.stage {
            texts.push(match runs {
                true => request.dump_with(stage, options)?,
                false => compiled.dump_with(stage, shapes, options)?,
            });
        }
        Ok(texts)
    }
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "--stage NAME prints one of these:")?;
    for stage in Stage::ALL {
        writeln!(out, "  {:10} {}", stage.name(), stage.summary())?;
    }
    Ok(())
}
