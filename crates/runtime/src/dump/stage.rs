//! The stages that can be shown.

use crate::Level;

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

    /// A few words on the text of the stage.
    pub const fn summary(self) -> &'static str {
        match self {
            Stage::Graph => "the layers, with the types of their tensors",
            Stage::Dot => "the layers, in the language of Graphviz",
            Stage::Nest => "the loop nest of every layer",
            Stage::Fused => "the nests after fusion: one for what is computed together",
            Stage::Scheduled => "the nests after scheduling, as they run",
            Stage::Clif => "the code for them, in Cranelift's intermediate form",
            Stage::Vcode => "Cranelift's machine instructions, registers allocated",
            Stage::Asm => "the machine code",
        }
    }

    /// The level at which a nest has this form.
    pub(super) fn level(self) -> Level {
        match self {
            Stage::Nest => Level::Interpreted,
            Stage::Fused => Level::Fused,
            _ => Level::Scheduled,
        }
    }

    pub(super) fn is_code(self) -> bool {
        matches!(self, Stage::Clif | Stage::Vcode | Stage::Asm)
    }
}
