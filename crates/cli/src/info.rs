//! `vinelift info`: what a model consists of.

use crate::failure::Failure;
use crate::options::ModelArgs;
use serde::Serialize;
use std::io::{self, Write};
use vinelift::{Core, Model, Port};

/// Show what a model consists of, and what of it is unsupported
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift info model.xml --json

Ends with status 1 if something is unsupported.")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Info {
    name: String,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    layers: Vec<Layers>,
    /// The dims of inputs that are not fixed.
    dynamic_dims: Vec<DynamicDim>,
    /// The variables that are kept from one run to the next.
    state: Vec<String>,
    sub_graphs: Vec<SubGraph>,
    weight_bytes: u64,
    unsupported: Vec<String>,
}

#[derive(Serialize)]
struct Tensor {
    names: Vec<String>,
    element_type: String,
    shape: String,
}

#[derive(Serialize)]
struct Layers {
    #[serde(rename = "type")]
    type_: String,
    version: String,
    count: usize,
}

#[derive(Serialize)]
struct DynamicDim {
    input: String,
    /// `None` if not even the rank is fixed.
    dim: Option<usize>,
    extent: String,
}

#[derive(Serialize)]
struct SubGraph {
    layer: String,
    kind: &'static str,
    layers: usize,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let info = Info::of(&args.model.read(&Core::new()?)?);
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &info).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        info.print(out)?;
    }
    match info.unsupported.len() {
        0 => Ok(()),
        count => {
            let (file, s) = (
                args.model.model.display(),
                if count == 1 { "" } else { "s" },
            );
            Err(Failure::Message(format!(
                "{file}: does not run: {count} problem{s}, listed as unsupported"
            )))
        }
    }
}

impl Info {
    fn of(model: &Model) -> Info {
        let summary = model.summary();
        let inputs = model.inputs();
        let layers = summary
            .layers
            .into_iter()
            .map(|((type_, version), count)| Layers {
                type_,
                version,
                count,
            });
        let sub_graphs = summary.sub_graphs.into_iter();
        Info {
            name: model.name().to_owned(),
            dynamic_dims: inputs.iter().flat_map(dynamic_dims).collect(),
            inputs: inputs.iter().map(tensor).collect(),
            outputs: summary.outputs.iter().map(tensor).collect(),
            layers: layers.collect(),
            state: summary.variables,
            sub_graphs: sub_graphs
                .map(|s| SubGraph {
                    layer: s.layer,
                    kind: s.kind,
                    layers: s.layers,
                })
                .collect(),
            weight_bytes: summary.weight_bytes,
            unsupported: summary.problems,
        }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "model    {}", self.name)?;
        for (title, tensors) in [("input", &self.inputs), ("output", &self.outputs)] {
            for Tensor {
                names,
                element_type,
                shape,
            } in tensors
            {
                writeln!(out, "{title:8} {} {element_type}{shape}", names.join(" = "))?;
            }
        }
        for DynamicDim { input, dim, extent } in &self.dynamic_dims {
            match dim {
                Some(dim) => writeln!(out, "dynamic  dim {dim} of {input}: {extent}")?,
                None => writeln!(out, "dynamic  the rank of {input}")?,
            }
        }
        for variable in &self.state {
            writeln!(out, "state    {variable}")?;
        }
        for SubGraph {
            layer,
            kind,
            layers,
        } in &self.sub_graphs
        {
            writeln!(out, "subgraph {kind} of {layer}: {layers} layers")?;
        }
        writeln!(out, "weights  {} bytes", self.weight_bytes)?;
        writeln!(
            out,
            "layers   {}",
            self.layers.iter().map(|l| l.count).sum::<usize>()
        )?;
        for Layers {
            type_,
            version,
            count,
        } in &self.layers
        {
            writeln!(out, "{count:8} {type_} {version}")?;
        }
        for problem in &self.unsupported {
            writeln!(out, "unsupported {problem}")?;
        }
        Ok(())
    }
}

fn tensor(port: &Port) -> Tensor {
    let Port {
        names,
        element_type,
        shape,
    } = port;
    let mut names = names.clone();
    names.dedup();
    Tensor {
        names,
        element_type: element_type.to_string(),
        shape: shape.to_string(),
    }
}

fn dynamic_dims(port: &Port) -> Vec<DynamicDim> {
    let input = port.name();
    let Some(dims) = port.shape.dims() else {
        return vec![DynamicDim {
            input: input.to_owned(),
            dim: None,
            extent: port.shape.to_string(),
        }];
    };
    let dynamic = dims
        .iter()
        .enumerate()
        .filter(|(_, dim)| dim.get().is_none());
    dynamic
        .map(|(k, dim)| DynamicDim {
            input: input.to_owned(),
            dim: Some(k),
            extent: dim.to_string(),
        })
        .collect()
}
