//! The text of a kernel at each step of its way, traceable to stages and layers.

use crate::analysis::runs::Runs;
use crate::disassembly;
use crate::emit::{LoopCode, source_location};
use crate::listing::{self, AsmLine, ClifLine, Stages};
use cranelift_codegen::CompiledCode;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use std::fmt::Write;
use vinelift_nest::Nest;

/// The text of a kernel at each step of its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelText {
    /// Cranelift's intermediate code as emitted; `@0001` in its margin marks stage 0.
    pub clif: String,
    /// Cranelift's own listing of the machine instructions.
    pub vcode: String,
    /// The disassembled machine code.
    pub asm: String,
    /// `clif` line by line.
    pub clif_lines: Vec<ClifLine>,
    /// `asm` line by line.
    pub asm_lines: Vec<AsmLine>,
}

/// The nest that a kernel came from, and how it runs.
pub(crate) struct Origin<'a> {
    /// As it was handed in: what the functions in it become is too long to read.
    pub(crate) nest: &'a Nest,
    /// How each stage runs.
    pub(crate) runs: &'a [Runs],
    /// Notes on that.
    pub(crate) notes: &'a [String],
    /// The vector loops that the kernel calls.
    pub(crate) loop_codes: &'a [LoopCode],
}

pub(crate) fn clif(origin: &Origin<'_>, func: &Function) -> String {
    let mut text = String::new();
    for stage in 0..origin.nest.stages.len() {
        let _ = writeln!(
            text,
            "; {} {}",
            source_location(stage),
            origin.heading(stage)
        );
    }
    let _ = write!(text, "{}", func.display());
    text
}

/// The text of a kernel of which that of Cranelift's intermediate code is known, also line by line.
pub(crate) fn text(
    origin: &Origin<'_>,
    clif: String,
    (clif_lines, stages): (Vec<ClifLine>, Stages),
    code: &CompiledCode,
    isa: &dyn TargetIsa,
) -> KernelText {
    KernelText {
        clif,
        vcode: code.vcode.clone().unwrap_or_default(),
        asm: assembly(origin, code, &stages, isa),
        clif_lines,
        asm_lines: listing::assembly(origin.nest, origin.loop_codes, code, &stages, isa.name()),
    }
}

/// One line for each instruction, under the heading of the stage it comes from. Those that the
/// optimiser made up belong to no stage and stay where they are. Vector loops follow the kernel that calls them.
fn assembly(
    origin: &Origin<'_>,
    code: &CompiledCode,
    stages: &Stages,
    isa: &dyn TargetIsa,
) -> String {
    let ranges = code.buffer.get_srclocs_sorted();
    // Every block ends with an instruction that has a location; constants follow the last.
    let end = ranges.iter().map(|r| r.end as usize).max().unwrap_or(0);
    let bytes = code.code_buffer().get(..end).unwrap_or_default();
    let mut ranges = ranges.iter().filter(|r| !r.loc.is_default()).peekable();
    let mut text = String::new();
    let mut current = None;
    for (at, line) in disassembly::instructions(bytes, isa.name()) {
        while ranges.next_if(|r| r.end as usize <= at).is_some() {}
        if let Some(range) = ranges.peek()
            && range.start as usize <= at
            && let Some(stage) = stages.of(range.loc)
            && current != Some(stage)
        {
            current = Some(stage);
            let _ = match stage < origin.nest.stages.len() {
                true => writeln!(text, "; {}", origin.heading(stage)),
                false => writeln!(text, "; return"),
            };
        }
        let _ = writeln!(text, "{at:6x}  {line}");
    }
    for code in origin.loop_codes {
        let _ = writeln!(text, "; vector loop of {}", origin.heading(code.stage));
        for (at, line) in disassembly::instructions(&code.bytes[..code.code], isa.name()) {
            let _ = writeln!(text, "{at:6x}  {line}");
        }
    }
    text
}

impl Origin<'_> {
    /// A stage, how it runs, and its layers, in one line.
    fn heading(&self, stage: usize) -> String {
        let of = &self.nest.stages[stage];
        let text = self.nest.display_stage(of).to_string();
        let layers = self.nest.layer_names(of);
        let text = text.lines().collect::<Vec<_>>().join(" ");
        let lanes = match self.runs.get(stage) {
            Some(Runs { lanes, bits }) if *lanes > 1 => {
                format!(", vectorised ×{lanes} on {bits} bits")
            }
            _ => String::new(),
        };
        let note = match self.notes.get(stage) {
            Some(note) if !note.is_empty() => format!(", {note}"),
            _ => String::new(),
        };
        format!("stage {stage} of {layers}{lanes}{note}: {}", text.trim())
    }
}
