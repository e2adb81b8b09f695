//! A whole kernel: its function, and what has been emitted besides.

use super::abi::DONE;
use super::emitter::{Around, Emitter, LoopCode, Nests, Result, analysis};
use crate::analysis::runs::Runs;
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, Signature, SourceLoc, types};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use vinelift_nest::ParallelChunks;
use vinelift_tensor::Extent;

/// The signature of every kernel.
pub(crate) fn signature(isa: &dyn TargetIsa) -> Signature {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 6]);
    signature.returns.push(AbiParam::new(types::I32));
    signature
}

/// The signature of every vector loop.
pub(crate) fn loop_signature() -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.push(AbiParam::new(types::I64));
    signature.returns.push(AbiParam::new(types::I32));
    signature
}

/// The results of emitting a kernel besides the function.
pub(crate) struct Emitted {
    /// How each stage runs.
    pub(crate) runs: Vec<Runs>,
    /// Notes on that.
    pub(crate) notes: Vec<String>,
    /// The vector loops that the function calls.
    pub(crate) loop_codes: Vec<LoopCode>,
    /// Into which chunks it can be cut.
    pub(crate) chunks: ParallelChunks,
    /// Bytes of scratch memory that a call needs.
    pub(crate) scratch: usize,
    /// The extents that a call needs the numbers of.
    pub(crate) extents: Vec<Extent>,
}

/// Fills `func`, which is empty.
pub(crate) fn kernel(
    nests: Nests<'_>,
    around: &Around<'_>,
    func: &mut Function,
    shared: &mut FunctionBuilderContext,
) -> Result<Emitted> {
    let isa = around.isa;
    func.signature = signature(isa);
    let analysis = analysis(nests.legal, around)?;
    let mut emitter = Emitter::new(analysis, nests, around, FunctionBuilder::new(func, shared));
    if let Err(refusal) = emitter.stages() {
        // It still holds a part of the function that is given up.
        *shared = FunctionBuilderContext::new();
        return Err(refusal);
    }
    // The caller needs its number to cut the kernel into chunks.
    if emitter.analysis.chunks.extent.is_symbolic() {
        emitter.numbers.of(emitter.analysis.chunks.extent);
    }
    let emitted = Emitted {
        runs: std::mem::take(&mut emitter.runs),
        notes: std::mem::take(&mut emitter.notes),
        loop_codes: std::mem::take(&mut emitter.loop_codes),
        chunks: emitter.analysis.chunks,
        scratch: emitter.scratch_bytes,
        extents: emitter.numbers.into_extents(),
    };
    emitter.builder.finalize(isa.frontend_config());
    Ok(emitted)
}

impl Emitter<'_, '_> {
    fn stages(&mut self) -> Result {
        for (number, stage) in self.analysis.nest.stages.iter().enumerate() {
            self.builder.set_srcloc(source_location(number));
            self.stage(number, stage)?;
        }
        self.builder
            .set_srcloc(source_location(self.analysis.nest.stages.len()));
        self.leave_kernel(DONE);
        self.builder.switch_to_block(self.end);
        let status = self.builder.block_params(self.end)[0];
        self.builder.ins().return_(&[status]);
        self.builder.seal_all_blocks();
        Ok(())
    }

    /// Ends the kernel. It returns in one place, as registers are given back to the caller there.
    pub(super) fn leave_kernel(&mut self, status: u32) {
        let status = self.builder.ins().iconst(types::I32, i64::from(status));
        self.builder.ins().jump(self.end, &[status.into()]);
    }
}

/// The source location of a stage's instructions; that of the stage after the last is the return.
pub(crate) fn source_location(stage: usize) -> SourceLoc {
    SourceLoc::new(stage as u32 + 1)
}
