//! The text of a kernel at each step of its way, traceable to stages and layers.

use cranelift_codegen::CompiledCode;
use cranelift_codegen::ir::{Function, SourceLoc};
use cranelift_codegen::isa::TargetIsa;
use std::fmt::Write;
use vinelift_nest::Nest;

/// What a kernel looked like on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelText {
    /// Cranelift's intermediate code as emitted; `@0001` in its margin marks stage 0.
    pub clif: String,
    /// Cranelift's own listing of the machine instructions.
    pub vcode: String,
    /// The disassembled machine code.
    pub asm: String,
}

/// The source location of a stage's instructions; that of the stage after the last is the return.
pub(crate) fn location(stage: usize) -> SourceLoc {
    SourceLoc::new(stage as u32 + 1)
}

/// What a kernel came from.
pub(crate) struct Origin<'a> {
    /// As it was handed in: what the functions in it become is too long to read.
    pub(crate) nest: &'a Nest,
    /// How many points each stage does at once.
    pub(crate) lanes: &'a [usize],
}

pub(crate) fn clif(origin: &Origin<'_>, func: &Function) -> String {
    let mut text = String::new();
    for stage in 0..origin.nest.stages.len() {
        let _ = writeln!(text, "; {} {}", location(stage), origin.heading(stage));
    }
    let _ = write!(text, "{}", func.display());
    text
}

/// One line for each instruction, under the heading of the stage it comes from. Those that the
/// optimiser made up belong to no stage and stay where they are.
#[cfg(feature = "disassembly")]
pub(crate) fn assembly(
    origin: &Origin<'_>,
    code: &CompiledCode,
    isa: &dyn TargetIsa,
) -> Result<String, String> {
    let ranges = code.buffer.get_srclocs_sorted();
    // Every block ends with an instruction that has a location; constants follow the last.
    let end = ranges.iter().map(|r| r.end as usize).max().unwrap_or(0);
    let bytes = code.code_buffer().get(..end).unwrap_or_default();
    let capstone = isa.to_capstone().map_err(|e| e.to_string())?;
    let instructions = capstone.disasm_all(bytes, 0).map_err(|e| e.to_string())?;
    let mut ranges = ranges.iter().filter(|r| !r.loc.is_default()).peekable();
    let mut text = String::new();
    let mut current = 0;
    for instruction in instructions.iter() {
        let at = instruction.address();
        while ranges.next_if(|r| u64::from(r.end) <= at).is_some() {}
        if let Some(range) = ranges.peek()
            && u64::from(range.start) <= at
            && range.loc.bits() != current
        {
            current = range.loc.bits();
            let stage = current as usize - 1;
            let _ = match stage < origin.nest.stages.len() {
                true => writeln!(text, "; {}", origin.heading(stage)),
                false => writeln!(text, "; return"),
            };
        }
        let mnemonic = instruction.mnemonic().unwrap_or_default();
        let line = format!(
            "{at:6x}  {mnemonic} {}",
            instruction.op_str().unwrap_or_default()
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    Ok(text)
}

/// There is no disassembler to ask.
#[cfg(not(feature = "disassembly"))]
pub(crate) fn assembly(
    _: &Origin<'_>,
    _: &CompiledCode,
    _: &dyn TargetIsa,
) -> Result<String, String> {
    Ok("; built without the feature `disassembly`\n".to_owned())
}

impl Origin<'_> {
    /// A stage, how it runs, and its layers, in one line.
    fn heading(&self, stage: usize) -> String {
        let of = &self.nest.stages[stage];
        let text = self.nest.display_stage(of).to_string();
        let layers = self.nest.layer_names(of);
        let text = text.lines().collect::<Vec<_>>().join(" ");
        let lanes = match self.lanes.get(stage) {
            Some(lanes) if *lanes > 1 => format!(", vectorised ×{lanes}"),
            _ => String::new(),
        };
        format!("stage {stage} of {layers}{lanes}: {}", text.trim())
    }
}
