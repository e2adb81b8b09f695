//! Plans as text: nests, code, and the index of kernels.

use super::{DumpOptions, Stage};
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::compile::step::{Engine, Step};
use crate::unit::Made;
use std::fmt::Write;
use std::sync::Arc;
use vinelift_codegen::Vectors;
use vinelift_nest::{Nest, Role};

/// The text of a stage of several plans.
pub(super) struct Texts<'a> {
    stage: Stage,
    options: &'a DumpOptions<'a>,
    /// If there are some, only the parts that they belong to are shown.
    layers: Vec<String>,
    kernels: usize,
    index: String,
    text: String,
}

impl<'a> Texts<'a> {
    pub(super) fn new(
        stage: Stage,
        options: &'a DumpOptions<'a>,
        mut layers: Vec<String>,
    ) -> Texts<'a> {
        layers.extend(options.layer.map(str::to_owned));
        Texts {
            stage,
            options,
            layers,
            kernels: 0,
            index: String::new(),
            text: String::new(),
        }
    }

    /// How many kernels there are so far.
    pub(super) fn kernels(&self) -> usize {
        self.kernels
    }

    /// Adds the plans of a segment, with the lines before and after their text.
    pub(super) fn add(&mut self, heading: &str, made: &Made, waiting: &str) {
        let comment = self.comment();
        let mut body = String::new();
        for (k, plan) in made.plans().enumerate() {
            let is_prologue = k == 0 && made.prologue.is_some();
            let mut text = self.plan(plan, is_prologue);
            if plan.micro_batches() > 1 && !text.is_empty() {
                let count = plan.micro_batches();
                text = format!("{comment} once for each of {count} micro-batches\n{text}");
            }
            if is_prologue && !text.is_empty() {
                let _ = write!(
                    body,
                    "{comment} once, before the first run\n{text}{comment} in each run\n"
                );
            } else {
                body += &text;
            }
        }
        let all = self.layers.is_empty() && self.options.kernel.is_none();
        if all || !body.is_empty() {
            self.text += heading;
            self.text += &body;
        }
        self.text += waiting;
    }

    /// The whole text.
    pub(super) fn finish(self, vectors: Vectors) -> String {
        let comment = self.comment();
        let mut text = String::new();
        if self.stage.is_code() && !self.text.is_empty() {
            let _ = writeln!(text, "{comment} vectors: {}", vectors.name());
        }
        if !self.index.is_empty() {
            let _ = writeln!(
                text,
                "{comment} kernel    bytes   compiled  layers\n{}",
                self.index
            );
        }
        text + &self.text
    }

    fn comment(&self) -> char {
        if self.stage.is_code() { ';' } else { '#' }
    }

    fn plan(&mut self, plan: &Plan, is_prologue: bool) -> String {
        let style = Style::new(self.options, &plan.binding.slots);
        let first = self.kernels;
        if let Some(native) = &plan.binding.native {
            self.kernels += native.steps.len();
            if self.options.index && self.options.kernel.is_none() {
                self.index += &index(&native.steps, first, self.comment());
            }
        }
        match &plan.binding.native {
            Some(native) if self.stage.is_code() => self.code(&native.steps, first, &style),
            Some(native) if self.options.kernel.is_some() && self.stage == Stage::Scheduled => {
                let steps = native.steps.iter().zip(first..);
                let step = steps.filter(|(_, number)| self.options.kernel == Some(*number));
                step.map(|(step, _)| style.nest(&step.kernel.stages.nest, &|_| true))
                    .collect()
            }
            _ if self.layers.is_empty() && !is_prologue => style.nest(&plan.nest, &|_| true),
            _ => {
                let wanted = |layer: &str| self.wants(layer);
                style.stages(&plan.nest, &wanted, "")
            }
        }
    }

    fn wants(&self, layer: &str) -> bool {
        self.layers.is_empty() || self.layers.iter().any(|l| l == layer)
    }

    fn code(&self, steps: &[Arc<Step>], first: usize, style: &Style<'_>) -> String {
        let mut text = String::new();
        let mut shown: Vec<((usize, usize), usize)> = Vec::new();
        for (step, number) in steps.iter().zip(first..) {
            let is_other = self.options.kernel.is_some_and(|k| k != number);
            if is_other || !step.layers().any(|l| self.wants(l)) {
                continue;
            }
            let name = step.name();
            let how = step.how();
            let _ = match &step.engine {
                Engine::Code { function, .. } => {
                    let (_, function) = function.code();
                    writeln!(
                        text,
                        "; kernel {number} {name} = function {function}, {how}"
                    )
                }
                Engine::Contraction(_) => writeln!(text, "; kernel {number} {name} = {how}"),
            };
            text += &style.stages(&step.kernel.stages.nest, &|_| true, ";   ");
            let body = step.text().map_or("", |code| match self.stage {
                Stage::Clif => &code.clif,
                Stage::Vcode => &code.vcode,
                _ => &code.asm,
            });
            let function = function(step);
            match shown.iter().find(|(f, _)| Some(*f) == function) {
                Some((_, same)) => text += &format!("; the code of kernel {same}\n"),
                None => {
                    shown.extend(function.map(|f| (f, number)));
                    let _ = writeln!(text, "{}", body.trim_end());
                }
            }
        }
        text
    }
}

/// Which function runs a step: the same for steps that share one.
pub(super) fn function(step: &Step) -> Option<(usize, usize)> {
    match &step.engine {
        Engine::Code { function, .. } => {
            let (code, number) = function.code();
            Some((std::ptr::from_ref(code).addr(), number))
        }
        Engine::Contraction(_) => None,
    }
}

/// A line for each kernel.
fn index(steps: &[Arc<Step>], first: usize, comment: char) -> String {
    let mut text = String::new();
    let mut known: Vec<Option<(usize, usize)>> = Vec::new();
    for (step, number) in steps.iter().zip(first..) {
        let function = function(step);
        let same = known.iter().position(|f| f.is_some() && *f == function);
        let (bytes, time) = match (&step.engine, same) {
            (_, Some(same)) => (format!("as {}", first + same), String::new()),
            (Engine::Code { function, .. }, None) => {
                let (code, number) = function.code();
                let time = code.compile_time(number).as_secs_f64() * 1e3;
                (code.code_size(number).to_string(), format!("{time:.2} ms"))
            }
            (Engine::Contraction(_), None) => (String::new(), "contraction".to_owned()),
        };
        known.push(function);
        let layers: Vec<&str> = step.layers().collect();
        let layers = layers.join(", ");
        let _ = writeln!(text, "{comment} {number:>6} {bytes:>8} {time:>11} {layers}");
    }
    text
}

/// How nests are written.
pub(super) struct Style<'a> {
    options: &'a DumpOptions<'a>,
    slots: &'a [Slot],
}

impl<'a> Style<'a> {
    /// `slots` are those of the nest's buffers, as far as they have some.
    pub(super) fn new(options: &'a DumpOptions<'a>, slots: &'a [Slot]) -> Style<'a> {
        Style { options, slots }
    }

    /// Declarations and stages.
    pub(super) fn nest(&self, nest: &Nest, wanted: &dyn Fn(&str) -> bool) -> String {
        let mut text = String::new();
        for buffer in nest.used_buffers() {
            let slot = self.slots.get(buffer.0 as usize);
            let is_constant = match nest.buf(buffer).role {
                Role::Table(_) => true,
                Role::Input => matches!(slot, Some(Slot::Constant(_) | Slot::Absent)),
                Role::Output | Role::Temporary => false,
            };
            if !(self.options.hide_constants && is_constant) {
                let _ = writeln!(text, "{}", nest.display_buffer(buffer));
            }
        }
        text + &self.stages(nest, wanted, "")
    }

    /// The stages of layers that are wanted; `start` begins every line.
    pub(super) fn stages(&self, nest: &Nest, wanted: &dyn Fn(&str) -> bool, start: &str) -> String {
        let mut text = String::new();
        for stage in &nest.stages {
            let mut layers = stage.layers.iter().map(|l| &nest.layers[l.0 as usize].name);
            // A stage without layers has nothing to be looked for by, and belongs to all.
            if !(stage.layers.is_empty() && wanted("") || layers.any(|l| wanted(l))) {
                continue;
            }
            let body = match self.options.wrap {
                true => nest.wrapped_stage(stage),
                false => nest.display_stage(stage).to_string(),
            };
            let layers = match stage.layers.is_empty() {
                true => String::new(),
                false => format!("  # {}", nest.layer_names(stage)),
            };
            // The layers stand beside the loops, where they are read first.
            let mut lines = body.lines();
            let first = lines.next().unwrap_or_default();
            let _ = writeln!(text, "{start}{first}{layers}");
            for line in lines {
                let _ = writeln!(text, "{start}{line}");
            }
        }
        text
    }
}
