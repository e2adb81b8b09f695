//! The data of a page, as JSON; `crates/cli/docs/explore.md` documents each part.

use super::times::Times;
use crate::failure::Failure;
use serde::Serialize;
use std::path::Path;
use vinelift::{
    AsmLine, BufferListing, ClifLine, InferRequest, KernelListing, LayerListing, Listing,
    PlanListing, StageListing, peak,
};

/// The version of the format: another one may mean something else.
const FORMAT: u32 = 1;

#[derive(Serialize)]
pub(super) struct Data {
    format: u32,
    vinelift: &'static str,
    model: Model,
    machine: Machine,
    median_us: f64,
    layers: Vec<Layer>,
    plans: Vec<Plan>,
    plans_left_out: usize,
    kernels: Vec<Kernel>,
    calls: Vec<Call>,
}

#[derive(Serialize)]
struct Model {
    name: String,
    file: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

#[derive(Serialize)]
struct Machine {
    threads: usize,
    vectors: &'static str,
    f32_gflops: f64,
    copy_gbytes: f64,
}

#[derive(Serialize)]
struct Layer {
    graph: String,
    name: String,
    #[serde(rename = "type")]
    type_: String,
    version: String,
    attributes: Vec<(String, String)>,
    inputs: Vec<usize>,
    outputs: Vec<String>,
}

#[derive(Serialize)]
struct Plan {
    heading: String,
    once: bool,
    kernels: Vec<usize>,
    passes: Vec<Pass>,
    micro_batches: usize,
    arena: usize,
    buffers: Vec<Buffer>,
    folded: Vec<String>,
    called: Vec<String>,
}

#[derive(Serialize)]
struct Pass {
    name: &'static str,
    ms: f64,
    /// `None` if they are as before.
    stages: Option<Vec<Stage>>,
    kept: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Stage {
    text: String,
    layers: Vec<String>,
    target: String,
}

#[derive(Serialize)]
struct Buffer {
    name: String,
    bytes: usize,
    offset: usize,
    first: usize,
    last: usize,
}

#[derive(Serialize)]
struct Kernel {
    number: usize,
    plan: usize,
    name: String,
    kind: String,
    how: String,
    layers: Vec<String>,
    stages: Vec<Stage>,
    buffers: Vec<(String, usize)>,
    flops: u64,
    bytes: u64,
    packed_bytes: usize,
    threads: usize,
    same_code_as: Option<usize>,
    /// Of all its calls in a run together; `None` if it runs once, before the first, or is timed with another.
    median_us: Option<f64>,
    calls: usize,
    /// The kernel of another plan that stands for the same layers.
    timed_with: Option<usize>,
    code: Option<Code>,
}

#[derive(Serialize)]
struct Code {
    bytes: usize,
    compile_ms: f64,
    clif: Vec<Clif>,
    asm: Vec<Asm>,
}

/// Text, number, stage.
#[derive(Serialize)]
struct Clif(String, Option<u32>, Option<usize>);

/// Function, offset, bytes as hexadecimal digits, text, stage, number of the intermediate code, note.
#[derive(Serialize)]
struct Asm(
    usize,
    usize,
    String,
    String,
    Option<usize>,
    Option<u32>,
    String,
);

/// A layer that is called between kernels.
#[derive(Serialize)]
struct Call {
    layer: String,
    median_us: f64,
    calls: usize,
}

impl Data {
    /// Runs the model, for its plans and to measure for some seconds.
    pub(super) fn gather(
        request: &mut InferRequest,
        file: &Path,
        seconds: f64,
    ) -> Result<Data, Failure> {
        let Listing {
            layers,
            plans,
            left_out,
        } = request.listing()?;
        let mut times = Times::measure(request, seconds)?;
        let compiled = request.compiled_model();
        let port =
            |port: &vinelift::Port| format!("{} {}{}", port.name(), port.element_type, port.shape);
        let mut kernels: Vec<Kernel> = Vec::new();
        let mut all = Vec::new();
        for (number, mut plan) in plans.into_iter().enumerate() {
            let own = std::mem::take(&mut plan.kernels);
            let first = kernels.len();
            kernels.extend(
                own.into_iter()
                    .map(|k| Kernel::of(k, number, &plan, &mut times)),
            );
            all.push(Plan::of(plan, (first..kernels.len()).collect()));
        }
        let peak = peak();
        Ok(Data {
            format: FORMAT,
            vinelift: env!("CARGO_PKG_VERSION"),
            model: Model {
                name: compiled.model().name().to_owned(),
                file: file
                    .file_name()
                    .map_or_else(String::new, |f| f.to_string_lossy().into()),
                inputs: compiled.inputs().iter().map(port).collect(),
                outputs: compiled.outputs().iter().map(port).collect(),
            },
            machine: Machine {
                threads: vinelift::compiler_threads::count(),
                vectors: compiled.config().vectors.name(),
                f32_gflops: peak.f32_flops / 1e9,
                copy_gbytes: peak.bytes / 1e9,
            },
            median_us: times.median_us,
            layers: layers.into_iter().map(Layer::of).collect(),
            plans: all,
            plans_left_out: left_out,
            kernels,
            calls: times.of_calls().map(Call::of).collect(),
        })
    }
}

impl Call {
    fn of((layer, median_us, calls): (&str, f64, usize)) -> Call {
        Call {
            layer: layer.to_owned(),
            median_us,
            calls,
        }
    }
}

impl Layer {
    fn of(layer: LayerListing) -> Layer {
        let LayerListing {
            graph,
            name,
            type_,
            version,
            attributes,
            inputs,
            outputs,
        } = layer;
        Layer {
            graph,
            name,
            type_,
            version,
            attributes,
            inputs,
            outputs,
        }
    }
}

impl Plan {
    fn of(plan: PlanListing, kernels: Vec<usize>) -> Plan {
        let mut before: Option<Vec<StageListing>> = None;
        let mut passes = Vec::new();
        for pass in plan.passes {
            let is_same = before.as_ref() == Some(&pass.stages);
            passes.push(Pass {
                name: pass.name,
                ms: pass.time.as_secs_f64() * 1e3,
                stages: (!is_same).then(|| pass.stages.iter().cloned().map(Stage::of).collect()),
                kept: pass.kept,
            });
            before = Some(pass.stages);
        }
        Plan {
            heading: plan.heading,
            once: plan.is_once,
            kernels,
            passes,
            micro_batches: plan.micro_batches,
            arena: plan.arena,
            buffers: plan.buffers.into_iter().map(Buffer::of).collect(),
            folded: plan.folded,
            called: plan.called,
        }
    }
}

impl Stage {
    fn of(stage: StageListing) -> Stage {
        let StageListing {
            text,
            layers,
            target,
        } = stage;
        Stage {
            text,
            layers,
            target,
        }
    }
}

impl Buffer {
    fn of(buffer: BufferListing) -> Buffer {
        let BufferListing {
            name,
            bytes,
            offset,
            first,
            last,
        } = buffer;
        Buffer {
            name,
            bytes,
            offset,
            first,
            last,
        }
    }
}

impl Kernel {
    fn of(kernel: KernelListing, plan: usize, of: &PlanListing, times: &mut Times) -> Kernel {
        let time = match of.is_once {
            true => Err(None),
            false => times.give(&kernel),
        };
        let timed_with = time.err().flatten();
        let time = time.ok();
        let is_shown = kernel.same_code_as.is_none();
        let code = kernel.code.map(|code| Code {
            bytes: code.bytes,
            compile_ms: code.compile_time.as_secs_f64() * 1e3,
            // Equal code is written once.
            clif: code
                .clif
                .into_iter()
                .filter(|_| is_shown)
                .map(Clif::of)
                .collect(),
            asm: code
                .asm
                .into_iter()
                .filter(|_| is_shown)
                .map(Asm::of)
                .collect(),
        });
        let kind = kernel.how.split(',').next().unwrap_or_default().to_owned();
        Kernel {
            number: kernel.number,
            plan,
            name: kernel.name,
            kind,
            how: kernel.how,
            layers: kernel.layers,
            stages: kernel.stages.into_iter().map(Stage::of).collect(),
            buffers: kernel.buffers,
            flops: kernel.flops,
            bytes: kernel.bytes,
            packed_bytes: kernel.packed_bytes,
            threads: kernel.threads,
            same_code_as: kernel.same_code_as,
            median_us: time.map(|(us, _)| us),
            calls: time.map_or(0, |(_, calls)| calls),
            timed_with,
            code,
        }
    }
}

impl Clif {
    fn of(line: ClifLine) -> Clif {
        Clif(line.text, line.instruction, line.stage)
    }
}

impl Asm {
    fn of(line: AsmLine) -> Asm {
        let hex = line.bytes.iter().map(|b| format!("{b:02x}")).collect();
        Asm(
            line.function,
            line.offset,
            hex,
            line.text,
            line.stage,
            line.clif,
            line.note,
        )
    }
}
