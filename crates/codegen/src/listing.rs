//! Machine code line by line, with what each line comes from.

use crate::disassembly::instructions;
use crate::emit::LoopCode;
use cranelift_codegen::CompiledCode;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, SourceLoc, Value};
use cranelift_codegen::write::{FuncWriter, PlainWriter, decorate_function};
use std::fmt;
use vinelift_nest::Nest;

/// A line of Cranelift's intermediate code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClifLine {
    /// The text, without its margin.
    pub text: String,
    /// The number of the instruction, by which [`AsmLine::clif`] names it.
    pub instruction: Option<u32>,
    /// The stage of the nest that it is part of.
    pub stage: Option<usize>,
}

/// A machine instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmLine {
    /// 0 for the kernel, and then one for each vector loop that it calls.
    pub function: usize,
    /// From the start of its function on, in bytes.
    pub offset: usize,
    /// As encoded.
    pub bytes: Vec<u8>,
    /// Disassembled.
    pub text: String,
    /// The stage of the nest that it is part of.
    pub stage: Option<usize>,
    /// The number of the instruction of Cranelift's intermediate code that it comes from.
    pub clif: Option<u32>,
    /// A few words on its purpose; empty if there are none.
    pub note: String,
}

/// The stage of each instruction of Cranelift's, by its number.
pub(crate) struct Stages(SecondaryMap<Inst, Option<usize>>);

impl Stages {
    /// The stage of the code from a source location on, as [`number`] has set it.
    pub(crate) fn of(&self, location: SourceLoc) -> Option<usize> {
        self.0[instruction(location)?]
    }
}

fn instruction(location: SourceLoc) -> Option<Inst> {
    (!location.is_default()).then(|| Inst::from_u32(location.bits()))
}

/// Has the source location of every instruction be its number, in place of its stage, which is returned.
pub(crate) fn number(func: &mut Function) -> Stages {
    let instructions: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    let mut stages = SecondaryMap::new();
    for &i in &instructions {
        let location = func.srcloc(i);
        stages[i] = (!location.is_default()).then(|| location.bits() as usize - 1);
    }
    // Locations are relative to the first that is set.
    for i in instructions {
        func.set_srcloc(i, SourceLoc::new(i.as_u32()));
    }
    Stages(stages)
}

/// The lines of a function whose instructions have been [numbered](number).
pub(crate) fn clif(func: &Function, stages: &Stages) -> Vec<ClifLine> {
    let mut writer = Numbering::default();
    let mut text = String::new();
    // Writing to memory cannot fail.
    let _ = decorate_function(&mut writer, &mut text, func);
    let mut starts = writer.starts.into_iter().peekable();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let instruction = starts
            .next_if(|(_, at)| *at == number)
            .map(|(inst, _)| inst);
        // The location stands in the margin.
        let body = line.strip_prefix('@').and_then(|l| l.split_once(' '));
        let body = body.map_or(line, |(_, rest)| rest);
        let is_top = line.starts_with(['f', '}']);
        let indent = match (is_top, instruction) {
            (true, _) => "",
            (_, None) => "  ",
            (_, Some(_)) => "    ",
        };
        lines.push(ClifLine {
            text: format!("{indent}{}", body.trim()),
            instruction: instruction.map(Inst::as_u32),
            stage: instruction.and_then(|i| stages.0[i]),
        });
    }
    lines
}

/// Writes as [`PlainWriter`] does, and remembers on which line each instruction begins.
#[derive(Default)]
struct Numbering {
    lines: usize,
    starts: Vec<(Inst, usize)>,
    is_begun: bool,
}

impl Numbering {
    /// Passes on what `write` writes, and counts its lines.
    fn counted(
        &mut self,
        w: &mut dyn fmt::Write,
        write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result,
    ) -> fmt::Result {
        let mut text = String::new();
        write(&mut text)?;
        self.lines += text.matches('\n').count();
        w.write_str(&text)
    }
}

impl FuncWriter for Numbering {
    fn write_preamble(
        &mut self,
        w: &mut dyn fmt::Write,
        func: &Function,
    ) -> Result<bool, fmt::Error> {
        // After the line with the signature.
        self.lines += 1;
        let mut any = false;
        self.counted(w, |w| {
            any = PlainWriter.write_preamble(w, func)?;
            Ok(())
        })?;
        self.is_begun = any;
        Ok(any)
    }

    fn write_block_header(
        &mut self,
        w: &mut dyn fmt::Write,
        func: &Function,
        block: Block,
        indent: usize,
    ) -> fmt::Result {
        // An empty line stands between blocks.
        self.lines += usize::from(self.is_begun);
        self.is_begun = true;
        self.counted(w, |w| {
            PlainWriter.write_block_header(w, func, block, indent)
        })
    }

    fn write_instruction(
        &mut self,
        w: &mut dyn fmt::Write,
        func: &Function,
        aliases: &SecondaryMap<Value, Vec<Value>>,
        inst: Inst,
        indent: usize,
    ) -> fmt::Result {
        self.starts.push((inst, self.lines));
        self.counted(w, |w| {
            PlainWriter.write_instruction(w, func, aliases, inst, indent)
        })
    }
}

/// The instructions of a kernel, and of the vector loops that it calls.
pub(crate) fn assembly(
    nest: &Nest,
    loops: &[LoopCode],
    code: &CompiledCode,
    stages: &Stages,
    isa: &str,
) -> Vec<AsmLine> {
    let ranges = code.buffer.get_srclocs_sorted();
    let end = ranges.iter().map(|r| r.end as usize).max().unwrap_or(0);
    let bytes = code.code_buffer().get(..end).unwrap_or_default();
    let mut lines = Vec::new();
    let mut ranges = ranges.iter().peekable();
    for (offset, text, bytes) in with_bytes(bytes, isa) {
        while ranges.next_if(|r| r.end as usize <= offset).is_some() {}
        let range = ranges.peek().filter(|r| r.start as usize <= offset);
        let location = range.map_or_else(SourceLoc::default, |r| r.loc);
        lines.push(AsmLine {
            function: 0,
            offset,
            bytes,
            text,
            stage: stages.of(location).filter(|s| *s < nest.stages.len()),
            clif: instruction(location).map(Inst::as_u32),
            note: String::new(),
        });
    }
    for (function, code) in (1..).zip(loops) {
        let mut marks = code.marks.iter().peekable();
        let mut note = String::new();
        for (offset, text, bytes) in with_bytes(&code.bytes[..code.code], isa) {
            while let Some(mark) = marks.next_if(|m| m.offset <= offset) {
                let buffer = mark.memory.and_then(|(argument, offset)| {
                    let buffer = (*code.buffers.get(argument as usize)?)?;
                    Some((&nest.buffers.get(buffer.0 as usize)?.name, offset))
                });
                note = match buffer {
                    Some((name, 0)) => format!("{} {name}", mark.what),
                    Some((name, offset)) => format!("{} {name} {offset:+} bytes", mark.what),
                    None => mark.what.to_owned(),
                };
            }
            lines.push(AsmLine {
                function,
                offset,
                bytes,
                text,
                stage: Some(code.stage),
                clif: None,
                note: note.clone(),
            });
        }
    }
    lines
}

/// Each instruction with its offset and its bytes.
fn with_bytes<'a>(
    bytes: &'a [u8],
    isa: &str,
) -> impl Iterator<Item = (usize, String, Vec<u8>)> + 'a {
    let all = instructions(bytes, isa);
    let mut ends: Vec<usize> = all.iter().skip(1).map(|(offset, _)| *offset).collect();
    ends.push(bytes.len());
    let all = all.into_iter().zip(ends);
    all.map(|((offset, text), end)| {
        let own = bytes.get(offset..end).unwrap_or_default().to_vec();
        (offset, text, own)
    })
}
