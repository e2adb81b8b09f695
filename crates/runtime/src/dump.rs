//! Every stage of a model's way to machine code, as text: of the plans that run.

mod class_text;
mod listing;
mod plan_text;
mod segments;
mod stage;

use crate::compile::passes::{Choices, trace};
use crate::compiled::CompiledModel;
use crate::plan_key::PlanKey;
use crate::request::InferRequest;
use crate::stack::with_large_stack;
use crate::stop::never;
use crate::unit::Made;
use crate::{Config, Error, Level, Shape, Specialization};
use class_text::{alone_text, class_text};
pub use listing::{
    BufferListing, CodeListing, KernelListing, LayerListing, Listing, PassListing, PlanListing,
    StageListing,
};
use plan_text::{Style, Texts};
use segments::Piece;
pub use stage::Stage;
use std::fmt::Write;
use vinelift_codegen::Options;
use vinelift_graph::{NodeKind, Segment};

/// Which parts of a stage are shown, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpOptions<'a> {
    /// Only what this layer is part of.
    pub layer: Option<&'a str>,
    /// Only the kernel of this number in the index. Of the stages before there are kernels, what its layers are part of.
    pub kernel: Option<usize>,
    /// Leave out constants: the layers that hold some, and the declarations of buffers that do.
    pub hide_constants: bool,
    /// Break long lines of nests, with names for their parts.
    pub wrap: bool,
    /// From [`Stage::Scheduled`] on, begin with a line for each kernel: its number, layers, bytes, and how long it took
    /// to compile.
    pub index: bool,
}

impl CompiledModel {
    /// The text of a stage. `shapes` are those of the inputs, `None` where the model's own is static;
    /// with `layer`, only what that layer is part of.
    ///
    /// From [`Stage::Scheduled`] on, it is that of the plans which run with these shapes, those of their own unless
    /// [`Specialization::Generic`] says that they get none, each after the stages that
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
        let options = DumpOptions {
            layer,
            ..DumpOptions::default()
        };
        self.dump_with(stage, shapes, &options)
    }

    /// As [`CompiledModel::dump`], with what `options` ask for.
    ///
    /// # Errors
    /// As [`CompiledModel::dump`], and if there is no such kernel.
    pub fn dump_with(
        &self,
        stage: Stage,
        shapes: &[Option<Shape>],
        options: &DumpOptions<'_>,
    ) -> Result<String, Error> {
        match self.graph_text(stage, options)? {
            Some(text) => Ok(text),
            None => self.text_of(self.pieces(shapes)?, stage, options),
        }
    }

    /// The effect of each pass: stages left, time taken, and what fusion kept with the reason; with the nest
    /// after every pass that changed it. Before that, the class of shapes that the plan serves, if it serves several: its
    /// symbols, and the layers that need some of them to be numbers, or to be in some relation.
    ///
    /// # Errors
    /// As [`CompiledModel::dump`].
    pub fn trace(&self, shapes: &[Option<Shape>]) -> Result<String, Error> {
        self.trace_with(shapes, &DumpOptions::default())
    }

    /// As [`CompiledModel::trace`], with what `options` ask for; all layers are shown.
    ///
    /// # Errors
    /// As [`CompiledModel::dump`].
    pub fn trace_with(
        &self,
        shapes: &[Option<Shape>],
        options: &DumpOptions<'_>,
    ) -> Result<String, Error> {
        self.trace_text(self.pieces(shapes)?, options)
    }

    /// The text of a stage of layers.
    fn graph_text(&self, stage: Stage, options: &DumpOptions<'_>) -> Result<Option<String>, Error> {
        let model = &self.0.context.lowered;
        let graph = &model.graph;
        if let Some(layer) = options.layer {
            let mut nodes = graph.graph.node_weights();
            if !nodes.any(|n| n.layer.name == layer) {
                return Err(Error::Input(format!("the model has no layer '{layer}'")));
            }
        }
        Ok(match stage {
            Stage::Graph => Some(model.graph_text(options)?),
            Stage::Dot => Some(graph.to_dot(&*model.infer()?)),
            _ => None,
        })
    }

    fn text_of(
        &self,
        pieces: Vec<Piece<'_>>,
        stage: Stage,
        options: &DumpOptions<'_>,
    ) -> Result<String, Error> {
        let is_numbered = stage.is_code() || stage == Stage::Scheduled;
        let mut layers = Vec::new();
        if let Some(kernel) = options.kernel.filter(|_| !is_numbered) {
            layers = self.layers_of(&pieces, kernel)?;
        }
        let mut texts = Texts::new(stage, options, layers);
        for piece in pieces {
            let (heading, waiting) = (piece.heading.clone(), piece.waiting.clone());
            let made = self.make(piece, stage.level(), stage.is_code())?;
            texts.add(&heading, &made, &waiting);
        }
        if let Some(kernel) = options.kernel.filter(|_| is_numbered)
            && kernel >= texts.kernels()
        {
            return Err(no_kernel(kernel, texts.kernels()));
        }
        Ok(texts.finish(self.config().vectors))
    }

    /// The layers of a kernel of these pieces.
    fn layers_of(&self, pieces: &[Piece<'_>], kernel: usize) -> Result<Vec<String>, Error> {
        let mut count = 0;
        for piece in pieces {
            let made = self.make(piece.clone(), Level::Scheduled, false)?;
            for plan in made.plans() {
                for step in plan.binding.steps() {
                    if count == kernel {
                        return Ok(step.layers().map(str::to_owned).collect());
                    }
                    count += 1;
                }
            }
        }
        Err(no_kernel(kernel, count))
    }

    /// The plans of a piece, with the text of their code if it is wanted.
    fn make(&self, piece: Piece<'_>, level: Level, with_code: bool) -> Result<Made, Error> {
        let options = Options {
            capture_text: with_code,
            vectors: self.config().vectors,
        };
        let context = &self.0.context;
        let Piece {
            unit,
            segment,
            shapes,
            known,
            ..
        } = piece;
        let made = with_large_stack(|| {
            if self.shows_classes()
                && let Some(made) =
                    unit.make_of_class((&shapes, &known), context, level, &options, never())?
            {
                return Ok(made);
            }
            unit.make(segment, context, level, &options, never())
        });
        made.map_err(|e: Error| e.of_model(self.model().file()))
    }

    /// Whether plans are those of classes of shapes, which then run for all of them.
    fn shows_classes(&self) -> bool {
        self.config().specialization == Specialization::Generic
    }

    fn trace_text(
        &self,
        pieces: Vec<Piece<'_>>,
        options: &DumpOptions<'_>,
    ) -> Result<String, Error> {
        let mut text = String::new();
        for piece in pieces {
            let key = PlanKey::new(&piece.shapes, &piece.known);
            text += &piece.heading;
            // Runs make the class once there are other shapes.
            let (unit, known, context) = (piece.unit, &piece.known, &self.0.context);
            if self.config().specialization != Specialization::Always {
                unit.plan_of_any_class(&key, known, context, never())?;
            }
            if let Some(class) = unit.class_of(&key) {
                text += &class_text(unit, &key, &class);
            } else if self.config().specialization != Specialization::Always
                && let Some(alone) = unit.why_alone(&key, known, context)
            {
                text += &alone_text(unit, &key, &alone);
            }
            text += &self.trace_piece(&piece, &key, options)?;
            text += &piece.waiting;
        }
        Ok(text)
    }

    /// The effect of the passes on the segment as its class compiles it, if `options` ask for classes and it has one; else on the
    /// piece for its shapes alone.
    fn trace_piece(
        &self,
        piece: &Piece<'_>,
        key: &PlanKey,
        options: &DumpOptions<'_>,
    ) -> Result<String, Error> {
        let context = &self.0.context;
        let choices = scheduled(self.config());
        with_large_stack(|| {
            if self.shows_classes() {
                let trace = |segment| trace_segment(segment, options, choices);
                let (unit, known) = (piece.unit, &piece.known);
                let class = unit.class_of_segments(key, known, context, never(), trace);
                if let Ok(class) = class {
                    return Ok(class.made);
                }
            }
            trace_segment(piece.segment.clone(), options, choices)
        })
    }
}

impl InferRequest {
    /// As [`CompiledModel::dump_with`], of the plans that a run of the inputs takes: also where they depend on values
    /// that only a run gives. Runs the model.
    ///
    /// # Errors
    /// As [`CompiledModel::dump_with`] and [`InferRequest::infer`].
    pub fn dump_with(&mut self, stage: Stage, options: &DumpOptions<'_>) -> Result<String, Error> {
        let compiled = self.compiled_model().clone();
        if let Some(text) = compiled.graph_text(stage, options)? {
            return Ok(text);
        }
        let taken = self.infer_recorded()?;
        compiled.text_of(compiled.taken_pieces(taken)?, stage, options)
    }

    /// As [`CompiledModel::trace_with`], of the plans that a run of the inputs takes. Runs the model.
    ///
    /// # Errors
    /// As [`CompiledModel::dump_with`] and [`InferRequest::infer`].
    pub fn trace_with(&mut self, options: &DumpOptions<'_>) -> Result<String, Error> {
        let compiled = self.compiled_model().clone();
        let taken = self.infer_recorded()?;
        compiled.trace_text(compiled.taken_pieces(taken)?, options)
    }
}

impl crate::Model {
    /// The text of [`Stage::Graph`], which models that cannot run have, too.
    ///
    /// # Errors
    /// If the types of the layers do not fit.
    pub fn graph_text(&self, options: &DumpOptions<'_>) -> Result<String, Error> {
        let wanted = |node: &vinelift_graph::Node| {
            let is_constant = matches!(node.kind, NodeKind::Constant(_));
            match options.layer {
                Some(layer) => node.layer.name == layer,
                None => !(is_constant && options.hide_constants),
            }
        };
        Ok(self.graph.to_text_of(&*self.infer()?, wanted))
    }
}

fn no_kernel(kernel: usize, count: usize) -> Error {
    Error::Input(format!("there is no kernel {kernel}, there are {count}"))
}

/// The choices on which the passes of the highest level depend.
fn scheduled(config: &Config) -> Choices {
    Choices {
        level: Level::Scheduled,
        vectors: config.vectors,
        group: config.dynamic_quantization_group_size,
        micro_batch: config.micro_batch,
    }
}

fn trace_segment(
    segment: Segment,
    options: &DumpOptions<'_>,
    choices: Choices,
) -> Result<String, Error> {
    let mut text = String::new();
    let (passes, slots) = trace(segment, choices)?;
    let style = Style::new(options, &slots);
    let mut before: Option<(usize, String)> = None;
    for pass in &passes {
        let nest = style.nest(&pass.nest, &|_| true);
        let stages = before
            .as_ref()
            .map_or(String::new(), |(stages, _)| format!("{stages} stages → "));
        let unchanged = before.as_ref().is_some_and(|(_, before)| *before == nest);
        let _ = writeln!(
            text,
            "== {}: {stages}{} ({:.2} ms){}",
            pass.name,
            pass.nest.stages.len(),
            pass.time.as_secs_f64() * 1e3,
            if unchanged { " (unchanged)" } else { "" }
        );
        for kept in &pass.kept {
            let _ = writeln!(text, "   kept {}: {}", kept.buffer, kept.reason);
        }
        if !unchanged {
            text += &nest;
        }
        before = Some((pass.nest.stages.len(), nest));
    }
    Ok(text)
}
