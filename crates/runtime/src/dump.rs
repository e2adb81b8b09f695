//! Every stage of a model's way to machine code, as text: of the plans that run.

mod segments;

use crate::compile::kernels::Native;
use crate::compile::passes::{Pass, optimize};
use crate::compile::plan::Plan;
use crate::compile::slot::slots;
use crate::compile::step::Engine;
use crate::compiled::CompiledModel;
use crate::stack::with_large_stack;
use crate::stop::never;
use crate::{Error, Level, Shape};
use segments::Piece;
use std::fmt::Write;
use vinelift_codegen::{KernelText, Options};
use vinelift_graph::Segment;
use vinelift_nest::Nest;

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

    fn is_code(self) -> bool {
        matches!(self, Stage::Clif | Stage::Vcode | Stage::Asm)
    }
}

impl CompiledModel {
    /// The text of a stage. `shapes` are those of the inputs, `None` where the model's own is static;
    /// with `layer`, only what that layer is part of.
    ///
    /// From [`Stage::Scheduled`] on, it is that of the plans which run with these shapes, each after the stages that
    /// depend on constants alone, which ran once before it was finished. Where later shapes depend on values that only a
    /// run can give, the text ends with a line that says which. That of code begins with how wide its vectors may be.
    ///
    /// # Errors
    /// If an input's shape is dynamic and not given, if there is no such layer, and those of compiling.
    pub fn dump(
        &self,
        stage: Stage,
        shapes: &[Option<Shape>],
        layer: Option<&str>,
    ) -> Result<String, Error> {
        let model = self.model();
        if let Some(layer) = layer {
            let mut nodes = model.graph.graph.node_weights();
            if !nodes.any(|n| n.layer.name == layer) {
                return Err(Error::Input(format!("the model has no layer '{layer}'")));
            }
        }
        match stage {
            Stage::Graph => return Ok(keep_lines(&model.graph.to_text(&*model.infer()?), layer)),
            Stage::Dot => return Ok(model.graph.to_dot(&*model.infer()?)),
            _ => {}
        }
        let mut text = String::new();
        for piece in self.pieces(shapes)? {
            let (heading, waiting) = (piece.heading.clone(), piece.waiting.clone());
            let body = self.piece_text(piece, stage, layer)?;
            if layer.is_none() || !body.is_empty() {
                text += &heading;
                text += &body;
            }
            text += &waiting;
        }
        if stage.is_code() && !text.is_empty() {
            text = format!("; vectors: {}\n{text}", self.config().vectors.name());
        }
        Ok(text)
    }

    /// What each pass did: stages left, time taken, and what fusion kept with the reason; with the nest
    /// after every pass that changed it.
    ///
    /// # Errors
    /// As [`CompiledModel::dump`].
    pub fn trace(&self, shapes: &[Option<Shape>]) -> Result<String, Error> {
        let mut text = String::new();
        for piece in self.pieces(shapes)? {
            text += &piece.heading;
            trace_segment(piece.segment, &mut text)?;
            text += &piece.waiting;
        }
        Ok(text)
    }

    /// The text of a piece: of the constants that it computes first, and of its plan.
    fn piece_text(
        &self,
        piece: Piece<'_>,
        stage: Stage,
        layer: Option<&str>,
    ) -> Result<String, Error> {
        let options = Options {
            capture_text: stage.is_code(),
            vectors: self.config().vectors,
        };
        let workshop = &self.0.workshop;
        let make = || {
            let level = stage.level();
            piece
                .unit
                .make(piece.segment, workshop, level, &options, never())
        };
        let made = with_large_stack(make)?;
        let text = plan_text(&made.plan, stage, layer);
        let Some(prologue) = &made.prologue else {
            return Ok(text);
        };
        let constants = plan_text(&prologue.plan, stage, layer);
        let lines = constants.lines();
        let lines = lines.filter(|line| stage.is_code() || line.starts_with("for "));
        let constants: String = lines.map(|line| format!("{line}\n")).collect();
        let comment = if stage.is_code() { ';' } else { '#' };
        Ok(match constants.is_empty() {
            true => text,
            false => format!(
                "{comment} once, before the first run\n{constants}{comment} in each run\n{text}"
            ),
        })
    }
}

fn plan_text(plan: &Plan, stage: Stage, layer: Option<&str>) -> String {
    match &plan.native {
        Some(native) if stage.is_code() => code_text(native, stage, layer),
        _ => nest_text(&plan.nest, layer),
    }
}

fn trace_segment(segment: Segment, text: &mut String) -> Result<(), Error> {
    let mut passes: Vec<Pass> = Vec::new();
    let slots = slots(&segment);
    optimize(
        segment.nest,
        &slots,
        Level::Scheduled,
        Some(&mut passes),
        never(),
    )?;
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
        let body = match (&step.engine, native.text(step), stage) {
            (Engine::Code { function, .. }, Some(code), stage) => {
                let name = step.name();
                let (_, number) = function.code();
                let _ = writeln!(text, "; kernel {name} = function {number}, {how}");
                let KernelText { clif, vcode, asm } = code;
                match stage {
                    Stage::Clif => clif,
                    Stage::Vcode => vcode,
                    _ => asm,
                }
            }
            (Engine::Contraction(_), ..) => {
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
