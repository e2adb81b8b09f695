//! One kernel, from its nest to the bytes of its machine code.

use super::Options;
use crate::dump::{self, KernelText};
use crate::emit;
use crate::error::CodegenError;
use crate::listing;
use crate::support;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::print_errors::pretty_error;
use cranelift_codegen::{CompiledCode, Context, ir};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_module::{FuncId, ModuleReloc, ModuleRelocTarget};
use std::time::{Duration, Instant};
use vinelift_nest::{Nest, ParallelChunks};
use vinelift_tensor::Extent;

/// A kernel to be compiled.
pub(super) struct Job<'a> {
    /// Its number.
    pub(super) kernel: usize,
    /// The legal nest.
    pub(super) nest: &'a Nest,
    /// The nest before it was legalised.
    pub(super) original: &'a Nest,
    pub(super) around: emit::Around<'a>,
    /// The function that it becomes.
    pub(super) function: FuncId,
    pub(super) options: &'a Options,
}

/// A kernel that has been compiled and not linked.
pub(super) struct Compiled {
    /// The vector loops that it calls.
    pub(super) loop_codes: Vec<emit::LoopCode>,
    /// Its machine code, in which references to other functions and data are open.
    pub(super) bytes: Vec<u8>,
    pub(super) align: u64,
    pub(super) relocations: Vec<ModuleReloc>,
    /// Into which chunks it can be cut.
    pub(super) chunks: ParallelChunks,
    /// Bytes of scratch memory that a call needs.
    pub(super) scratch: usize,
    /// The extents that a call needs the numbers of.
    pub(super) extents: Vec<Extent>,
    /// How long it took on its thread.
    pub(super) time: Duration,
    pub(super) text: Option<KernelText>,
}

impl Compiled {
    /// Bytes of machine code, those of its vector loops included.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.loop_codes.iter().map(|s| s.bytes.len()).sum::<usize>()
    }
}

impl Job<'_> {
    /// The nest for machines that convert `f16`, if it has any.
    fn with_halves(&self) -> Option<Nest> {
        let nest = vinelift_nest::legalize_with_halves(self.original)?;
        let fits = nest.buffers == self.nest.buffers && vinelift_nest::verify(&nest).is_ok();
        fits.then_some(nest)
    }

    /// Compiles it; `context` and `shared` are memory that jobs of a thread use again.
    pub(super) fn compile(
        &self,
        context: &mut Context,
        shared: &mut FunctionBuilderContext,
    ) -> Result<Compiled, CodegenError> {
        let (kernel, capture) = (self.kernel, self.options.capture_text);
        let start = Instant::now();
        context.clear();
        context.set_disasm(capture);
        let halves = self.around.target.and_then(|_| self.with_halves());
        let nests = emit::Nests {
            legal: self.nest,
            halves: halves.as_ref(),
        };
        let emitted = emit::kernel(nests, &self.around, &mut context.func, shared);
        let emitted = emitted.map_err(|e| not_emitted(kernel, e))?;
        // Compiling rewrites the function.
        let origin = dump::Origin {
            nest: self.original,
            runs: &emitted.runs,
            notes: &emitted.notes,
            loop_codes: &emitted.loop_codes,
        };
        let clif = capture.then(|| dump::clif(&origin, &context.func));
        let numbered = capture.then(|| {
            let stages = listing::number(&mut context.func);
            (listing::clif(&context.func, &stages), stages)
        });
        if let Err(e) = context.compile(self.around.isa, &mut ControlPlane::default()) {
            let message = pretty_error(e.func, e.inner);
            return Err(CodegenError::Cranelift { kernel, message });
        }
        let failed = |message| CodegenError::Cranelift { kernel, message };
        let code = context
            .compiled_code()
            .ok_or_else(|| failed("no code".to_owned()))?;
        let isa = self.around.isa;
        let text = clif.zip(numbered);
        let text = text.map(|(clif, numbered)| dump::text(&origin, clif, numbered, code, isa));
        let (bytes, align) = (code.code_buffer().to_vec(), code.buffer.alignment.into());
        Ok(Compiled {
            loop_codes: emitted.loop_codes,
            bytes,
            align,
            relocations: self.relocations(code, &context.func)?,
            chunks: emitted.chunks,
            scratch: emitted.scratch,
            extents: emitted.extents,
            time: start.elapsed(),
            text,
        })
    }

    fn relocations(
        &self,
        code: &CompiledCode,
        function: &ir::Function,
    ) -> Result<Vec<ModuleReloc>, CodegenError> {
        let of = |r| ModuleReloc::from_mach_reloc(r, function, self.function);
        let relocations: Vec<ModuleReloc> = code.buffer.relocs().iter().map(of).collect();
        match relocations.iter().find_map(call_out) {
            Some(call) => Err(CodegenError::Host(format!(
                "it lacks the instructions for {call}"
            ))),
            None => Ok(relocations),
        }
    }
}

fn not_emitted(kernel: usize, refusal: emit::Refusal) -> CodegenError {
    match refusal {
        emit::Refusal::NoPrimitive(what) => CodegenError::NoPrimitive { kernel, what },
        emit::Refusal::TooLarge => CodegenError::TooLarge {
            kernel,
            limit: emit::MOST_INSTRUCTIONS,
        },
    }
}

/// The function that a relocation asks for, where the machine has no instruction and there is none here.
fn call_out(relocation: &ModuleReloc) -> Option<ir::LibCall> {
    match relocation.name {
        ModuleRelocTarget::LibCall(call) if !support::has(call) => Some(call),
        _ => None,
    }
}
