//! Every stage of a model's way to machine code, as text.

use crate::constants::fold_operands;
use crate::execute::never;
use crate::passes::{Pass, optimize};
use crate::plan::{Slot, slots};
use crate::stack::with_large_stack;
use crate::steps::{Making, Native, Work, compile};
use crate::unit::{Unit, Workshop};
use crate::{CompiledModel, Error, Level, Shape};
use std::fmt::Write;
use vinelift_codegen::{KernelText, Options};
use vinelift_graph::{Known, Segment, TensorId, specialize};
use vinelift_nest::{Aliases, Nest};
use vinelift_ops::TensorType;

/// A stage of a model's way to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The layers, with the types of their tensors.
    Graph,
    /// The layers, in the language of Graphviz.
    Dot,
    /// The loop nest of every layer.
    Nest,
    /// After fusion.
    Fused,
    /// After scheduling.
    Scheduled,
    /// Cranelift's intermediate form.
    Clif,
    /// Cranelift's machine instructions, registers allocated.
    Vcode,
    /// Machine code.
    Asm,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 8] = [
        Stage::Graph,
        Stage::Dot,
        Stage::Nest,
        Stage::Fused,
        Stage::Scheduled,
        Stage::Clif,
        Stage::Vcode,
        Stage::Asm,
    ];

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Graph => "graph",
            Stage::Dot => "dot",
            Stage::Nest => "nest",
            Stage::Fused => "fused",
            Stage::Scheduled => "scheduled",
            Stage::Clif => "clif",
            Stage::Vcode => "vcode",
            Stage::Asm => "asm",
        }
    }

    /// The level at which a nest has this form.
    fn level(self) -> Level {
        match self {
            Stage::Nest => Level::Interpreted,
            Stage::Fused => Level::Fused,
            _ => Level::Scheduled,
        }
    }
}

impl CompiledModel {
    /// The text of a stage. `shapes` are those of the inputs, `None` where the model's own is static;
    /// with `layer`, only what that layer is part of.
    ///
    /// Where later shapes depend on values that only a run can give, the text ends with a line that
    /// says which. That of code begins with how wide its vectors may be.
    pub fn dump(
        &self,
        stage: Stage,
        shapes: &[Option<Shape>],
        layer: Option<&str>,
    ) -> Result<String, Error> {
        let model = self.model();
        if let Some(layer) = layer {
            let known = model
                .graph
                .graph
                .node_weights()
                .any(|n| n.layer.name == layer);
            if !known {
                return Err(Error::Input(format!("the model has no layer '{layer}'")));
            }
        }
        match stage {
            Stage::Graph => Ok(keep_lines(&model.graph.to_text(&*model.infer()?), layer)),
            Stage::Dot => Ok(model.graph.to_dot(&*model.infer()?)),
            _ => {
                let mut text = String::new();
                for piece in self.pieces(shapes)? {
                    let nest = optimize(piece.nest, &piece.slots, stage.level(), None, never())?;
                    let body = if matches!(stage, Stage::Nest | Stage::Fused | Stage::Scheduled) {
                        nest_text(&nest, layer)
                    } else {
                        let options = Options {
                            capture_text: true,
                            vectors: self.config().vectors,
                        };
                        let native = self.compile(nest, piece.slots, &options)?;
                        code_text(&native, stage, layer)
                    };
                    if layer.is_none() || !body.is_empty() {
                        text += &piece.heading;
                        text += &body;
                    }
                    text += &piece.waiting;
                }
                if matches!(stage, Stage::Clif | Stage::Vcode | Stage::Asm) && !text.is_empty() {
                    text = format!("; vectors: {}\n{text}", self.config().vectors.name());
                }
                Ok(text)
            }
        }
    }

    /// What each pass did: stages left, time taken, and what fusion kept with the reason; with the nest
    /// after every pass that changed it.
    pub fn trace(&self, shapes: &[Option<Shape>]) -> Result<String, Error> {
        let mut text = String::new();
        for piece in self.pieces(shapes)? {
            text += &piece.heading;
            trace_piece(piece.nest, &piece.slots, &mut text)?;
            text += &piece.waiting;
        }
        Ok(text)
    }

    /// The code of a scheduled nest, with its text.
    fn compile(
        &self,
        mut nest: Nest,
        mut slots: Vec<Slot>,
        options: &Options,
    ) -> Result<Native, Error> {
        let workshop = &self.0.workshop;
        slots.resize(nest.buffers.len(), Slot::Absent);
        let Workshop { compiler, pool, .. } = workshop;
        fold_operands(&mut nest, &mut slots, compiler, pool, never())?;
        let threads = Some(workshop.pool.threads());
        let making = Making {
            compiler,
            options,
            threads,
            stop: never(),
        };
        with_large_stack(|| compile(&nest, &slots, &|_| false, &Aliases::default(), &making))
    }

    /// The pieces of the model that are lowered at once, sub-graphs among them, as far as shapes do not
    /// depend on what a run finds.
    fn pieces(&self, shapes: &[Option<Shape>]) -> Result<Vec<Piece>, Error> {
        let mut fixed = Vec::with_capacity(self.inputs().len());
        for (k, port) in self.inputs().iter().enumerate() {
            let given = shapes.get(k).cloned().flatten();
            let shape = given.or_else(|| port.shape.to_static());
            let dynamic = || {
                Error::Input(format!(
                    "input '{}' has the dynamic shape {}, and none was given",
                    port.name(),
                    port.shape
                ))
            };
            fixed.push(shape.ok_or_else(dynamic)?);
        }
        let mut pieces = Vec::new();
        self.pieces_of(&self.0.unit, String::new(), &fixed, &mut pieces)?;
        Ok(pieces)
    }

    fn pieces_of(
        &self,
        unit: &Unit,
        mut heading: String,
        shapes: &[Shape],
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Error> {
        let workshop = &self.0.workshop;
        let mut known = Known::default();
        loop {
            let mut strings = workshop.strings.clone();
            let given = unit.given(shapes, &known, &workshop.config, never());
            let segment = specialize(&unit.graph, given, &mut strings);
            let segment = segment.map_err(|e| workshop.model.error(e))?;
            let waiting = waiting(unit, &segment);
            pieces.push(Piece {
                heading: std::mem::take(&mut heading),
                slots: slots(&segment),
                nest: segment.nest.clone(),
                waiting,
            });
            for &node in &segment.calls {
                let bodies = unit
                    .graph
                    .body_types(node, &segment.types, &segment.constants);
                for (kind, parameters) in bodies.unwrap_or_default() {
                    let shapes = parameters.iter().map(|t| t.shape.to_static());
                    let Some(shapes) = shapes.collect::<Option<Vec<Shape>>>() else {
                        continue;
                    };
                    let label = unit.graph.node(node).label();
                    let heading = format!("# {} of {label}\n", kind.element());
                    self.pieces_of(unit.body(node, kind)?, heading, &shapes, pieces)?;
                }
            }
            let of_calls = segment.calls.iter().flat_map(|&node| {
                let outputs = 0..unit.graph.node(node).layer.outputs.len();
                outputs.map(move |output| TensorId { node, output })
            });
            let computed = segment.outputs.iter().map(|(_, t)| *t).chain(of_calls);
            let computed = computed.map(|t| Some((t, segment.types.get(t)?.clone())));
            let types: Option<Vec<(TensorId, TensorType)>> = computed.collect();
            let types = types.filter(|all| all.iter().all(|(_, t)| t.shape.is_static()));
            let (Some(types), false, true) =
                (types, segment.calls.is_empty(), segment.wanted.is_empty())
            else {
                return Ok(());
            };
            known.computed.extend(types);
            let called = segment.calls.iter();
            let called: Vec<String> = called
                .map(|n| unit.graph.node(*n).label().to_string())
                .collect();
            heading = format!("# after {}\n", called.join(", "));
        }
    }
}

/// A piece of a model that is lowered at once.
struct Piece {
    /// What it is, if not the beginning of the model.
    heading: String,
    nest: Nest,
    slots: Vec<Slot>,
    /// What has to be known before the rest can be lowered.
    waiting: String,
}

fn trace_piece(nest: Nest, slots: &[Slot], text: &mut String) -> Result<(), Error> {
    let mut passes: Vec<Pass> = Vec::new();
    optimize(nest, slots, Level::Scheduled, Some(&mut passes), never())?;
    let mut before: Option<&Pass> = None;
    for pass in &passes {
        let stages = before.map_or(String::new(), |b| format!("{} stages → ", b.stages));
        let unchanged = before.is_some_and(|b| b.text == pass.text);
        let _ = writeln!(
            text,
            "== {}: {stages}{} ({:.2} ms){}",
            pass.name,
            pass.stages,
            pass.time.as_secs_f64() * 1e3,
            if unchanged { " (unchanged)" } else { "" }
        );
        for kept in &pass.kept {
            let _ = writeln!(text, "   kept {}: {}", kept.buffer, kept.reason);
        }
        if !unchanged {
            *text += &pass.text;
        }
        before = Some(pass);
    }
    Ok(())
}

fn nest_text(nest: &Nest, layer: Option<&str>) -> String {
    let Some(layer) = layer else {
        return nest.to_string();
    };
    let of_layer = |s: &&vinelift_nest::Stage| {
        s.layers
            .iter()
            .any(|l| nest.layers[l.0 as usize].name == layer)
    };
    let stages = nest.stages.iter().filter(of_layer);
    stages
        .map(|s| format!("{}  # {}\n", nest.display_stage(s), nest.layer_names(s)))
        .collect()
}

fn code_text(native: &Native, stage: Stage, layer: Option<&str>) -> String {
    let mut text = String::new();
    for step in &native.steps {
        let of_layer = |name: &str| step.kernel.nest.layers.iter().any(|l| l.name == name);
        if !layer.is_none_or(of_layer) {
            continue;
        }
        let how = step.how();
        let body = match (&step.work, native.text(step), stage) {
            (Work::Code { function, .. }, Some(code), stage) => {
                let name = step.name();
                let _ = writeln!(text, "; kernel {name} = function {function}, {how}");
                let KernelText { clif, vcode, asm } = code;
                match stage {
                    Stage::Clif => clif,
                    Stage::Vcode => vcode,
                    _ => asm,
                }
            }
            (Work::Product(_), ..) => {
                let _ = writeln!(text, "; kernel {} = {how}", step.name());
                ""
            }
            _ => continue,
        };
        for line in nest_text(&step.kernel.nest, None)
            .lines()
            .filter(|l| l.starts_with("for "))
        {
            let _ = writeln!(text, ";   {line}");
        }
        let _ = writeln!(text, "{}", body.trim_end());
    }
    text
}

fn keep_lines(text: &str, layer: Option<&str>) -> String {
    let Some(layer) = layer else {
        return text.to_owned();
    };
    text.lines()
        .filter(|l| {
            l.strip_prefix(layer)
                .is_some_and(|rest| rest.starts_with([':', ' ']))
        })
        .map(|l| format!("{l}\n"))
        .collect()
}

fn waiting(unit: &Unit, segment: &Segment) -> String {
    let wanted = segment.wanted.iter();
    let names: Vec<String> = wanted.map(|t| unit.graph.tensor_name(*t)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("# the rest depends on the values of {}\n", names.join(", "))
}
