//! From nests to code: legalise, verify, emit and compile in parallel, then link in one place.

use crate::code::{Code, CodeMemory, Entry};
use crate::dump::{self, KernelText};
use crate::emit;
use crate::error::{CodegenError, refused};
use crate::listing;
use crate::support;
use crate::target::Target;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::print_errors::pretty_error;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CompiledCode, Context, ir};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{
    DataDescription, DataId, FuncId, Linkage, Module, ModuleError, ModuleReloc, ModuleRelocTarget,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vinelift_nest::{Nest, ParallelChunks, Role, compiler_threads};
use vinelift_tensor::Extent;

/// Options of compiling.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep what each kernel looks like on its way ([`Code::text`]).
    pub capture_text: bool,
    /// How wide vectors may be.
    pub vectors: Vectors,
}

/// How wide vectors may be. The results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Vectors {
    /// As wide as the machine has them.
    #[default]
    Widest,
    /// At most 256 bits.
    Bits256,
    /// At most 128 bits, which is what Cranelift knows.
    Bits128,
}

impl Vectors {
    /// All, the widest first.
    pub const ALL: [Vectors; 3] = [Vectors::Widest, Vectors::Bits256, Vectors::Bits128];

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Vectors::Widest => "widest",
            Vectors::Bits256 => "256",
            Vectors::Bits128 => "128",
        }
    }

    fn target(self) -> Option<Target> {
        match self {
            Vectors::Widest => Target::of_host(),
            Vectors::Bits256 => Target::of_host().map(|_| Target::Avx2),
            Vectors::Bits128 => None,
        }
    }
}

/// Compiles for the machine it runs on.
pub struct Compiler {
    isa: OwnedTargetIsa,
}

impl Compiler {
    /// For this machine, with every instruction set extension that it has.
    pub fn new() -> Result<Compiler, CodegenError> {
        Compiler::lacking(&[])
    }

    /// For this machine as if it lacked some instruction set extensions.
    fn lacking(extensions: &[&str]) -> Result<Compiler, CodegenError> {
        let host = |e: &dyn std::fmt::Display| CodegenError::Host(e.to_string());
        let mut builder = cranelift_native::builder().map_err(|e| host(&e))?;
        for extension in extensions {
            builder.set(extension, "false").map_err(|e| host(&e))?;
        }
        let flags = settings::Flags::new(flags().map_err(|e| host(&e))?);
        let isa = builder.finish(flags).map_err(|e| host(&e))?;
        if isa.pointer_type() != ir::types::I64 || isa.endianness() != ir::Endianness::Little {
            return Err(CodegenError::Host(format!(
                "{} is not 64-bit little-endian",
                isa.triple()
            )));
        }
        Ok(Compiler { isa })
    }

    /// Compiles each nest to a kernel; the kernels are numbered as the nests are.
    pub fn compile(&self, kernels: &[&Nest], options: &Options) -> Result<Code, CodegenError> {
        self.compile_until(kernels, options, &AtomicBool::new(false))
    }

    /// As [`Compiler::compile`], to be given up with [`CodegenError::Stopped`] soon after `stop` has become true.
    pub fn compile_until(
        &self,
        kernels: &[&Nest],
        options: &Options,
        stop: &AtomicBool,
    ) -> Result<Code, CodegenError> {
        let nests = compiler_threads::map(kernels.iter().enumerate().collect(), prepare);
        let nests: Vec<Nest> = nests.into_iter().collect::<Result<_, _>>()?;
        let mut builder =
            JITBuilder::with_isa(self.isa.clone(), cranelift_module::default_libcall_names());
        support::define(&mut builder);
        let mut memory = CodeMemory::new(JITModule::new(builder));
        let tables = define_tables(memory.module(), &nests)?;
        let support = support::declare(memory.module())?;
        let functions = declare_functions(memory.module(), &nests, &*self.isa)?;
        let loops = declare_loops(memory.module(), &nests)?;
        let has_vectors = emit::has_vectors(&*self.isa);
        let job = |kernel: usize| Job {
            kernel,
            nest: &nests[kernel],
            original: kernels[kernel],
            around: emit::Around {
                tables: &tables[kernel],
                loop_functions: &loops[kernel],
                support,
                isa: &*self.isa,
                has_vectors,
                target: options.vectors.target(),
            },
            function: functions[kernel],
            options,
        };
        // The largest first, each by itself, so that no thread is left with one in the end.
        let sizes = compiler_threads::map(nests.iter().collect(), Nest::size);
        let mut order: Vec<usize> = (0..nests.len()).collect();
        order.sort_by_key(|&kernel| Reverse(sizes[kernel]));
        let compiled = compiler_threads::map_apart(
            order,
            || (Context::new(), FunctionBuilderContext::new()),
            |(context, shared), kernel| match stop.load(Ordering::Relaxed) {
                true => Err(CodegenError::Stopped),
                false => Ok((kernel, job(kernel).compile(context, shared)?)),
            },
        );
        let mut compiled: Vec<(usize, Compiled)> =
            compiled.into_iter().collect::<Result<_, CodegenError>>()?;
        compiled.sort_unstable_by_key(|(kernel, _)| *kernel);
        let compiled = compiled.into_iter().map(|(_, compiled)| compiled);
        link(memory, &functions, compiled.collect())
    }
}

fn prepare((kernel, nest): (usize, &&Nest)) -> Result<Nest, CodegenError> {
    let nest = vinelift_nest::legalize(nest);
    vinelift_nest::verify(&nest).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        CodegenError::NotVerified {
            kernel,
            errors: errors.join("; "),
        }
    })?;
    Ok(nest)
}

fn flags() -> Result<settings::Builder, settings::SetError> {
    let mut flags = settings::builder();
    // Mid-end for scalar code: common sub-expressions, invariants, division by constants.
    flags.set("opt_level", "speed")?;
    // A kernel that spills more than a page must touch its guard page, not jump over it.
    flags.set("enable_probestack", "true")?;
    flags.set("probestack_strategy", "inline")?;
    // Profilers that follow frame pointers see what called a kernel.
    flags.set("preserve_frame_pointers", "true")?;
    flags.set("use_colocated_libcalls", "false")?;
    flags.set("is_pic", "false")?;
    flags.set(
        "enable_verifier",
        if cfg!(debug_assertions) {
            "true"
        } else {
            "false"
        },
    )?;
    Ok(flags)
}

/// The table behind each buffer of a nest, in the order of its buffers.
type Tables = Vec<Option<DataId>>;

/// Puts the tables of all nests into the module; equal bytes are stored once.
fn define_tables(module: &mut JITModule, nests: &[Nest]) -> Result<Vec<Tables>, CodegenError> {
    let mut known: FxHashMap<&[u8], DataId> = FxHashMap::default();
    let mut all = Vec::with_capacity(nests.len());
    for (kernel, nest) in nests.iter().enumerate() {
        let mut tables = Tables::with_capacity(nest.buffers.len());
        for buffer in &nest.buffers {
            tables.push(match &buffer.role {
                Role::Table(bytes) => Some(match known.get(&**bytes) {
                    Some(&id) => id,
                    None => {
                        let id = define_table(module, kernel, bytes)?;
                        known.insert(bytes, id);
                        id
                    }
                }),
                _ => None,
            });
        }
        all.push(tables);
    }
    Ok(all)
}

fn define_table(
    module: &mut JITModule,
    kernel: usize,
    bytes: &[u8],
) -> Result<DataId, CodegenError> {
    let failed = |e| refused(kernel, bytes.len(), e);
    let id = module
        .declare_anonymous_data(false, false)
        .map_err(failed)?;
    let mut data = DataDescription::new();
    data.set_align(64);
    data.define(bytes.into());
    module.define_data(id, &data).map_err(failed)?;
    Ok(id)
}

fn declare_functions(
    module: &mut JITModule,
    nests: &[Nest],
    isa: &dyn TargetIsa,
) -> Result<Vec<FuncId>, CodegenError> {
    let signature = emit::signature(isa);
    nests
        .iter()
        .enumerate()
        .map(|(kernel, nest)| {
            module
                .declare_function(&profiled_name(kernel, nest), Linkage::Local, &signature)
                .map_err(|e| refused(kernel, 0, e))
        })
        .collect()
}

/// The name by which a profiler shows a kernel: no two are the same.
fn profiled_name(kernel: usize, nest: &Nest) -> String {
    let layer = nest.layers.first().map_or("", |layer| &layer.name);
    let layer: String = layer.chars().filter(|c| !c.is_control()).collect();
    format!("kernel{kernel} {layer}")
}

/// A function for each stage, which is defined if the stage has a vector loop; of nests with symbols then others for
/// each, for narrower loops.
fn declare_loops(module: &mut JITModule, nests: &[Nest]) -> Result<Vec<Vec<FuncId>>, CodegenError> {
    let signature = emit::loop_signature();
    let of = |(kernel, nest): (usize, &Nest)| {
        let name = profiled_name(kernel, nest);
        let mut declare = |number: usize| {
            let name = format!("{name}, vector loop {number}");
            module
                .declare_function(&name, Linkage::Local, &signature)
                .map_err(|e| refused(kernel, 0, e))
        };
        let rounds = if nest.is_symbolic() { 3 } else { 1 };
        (0..rounds * nest.stages.len()).map(&mut declare).collect()
    };
    nests.iter().enumerate().map(of).collect()
}

struct Job<'a> {
    kernel: usize,
    nest: &'a Nest,
    /// The nest before it was legalised.
    original: &'a Nest,
    around: emit::Around<'a>,
    function: FuncId,
    options: &'a Options,
}

struct Compiled {
    loop_codes: Vec<emit::LoopCode>,
    bytes: Vec<u8>,
    align: u64,
    relocations: Vec<ModuleReloc>,
    /// Into which chunks it can be cut.
    chunks: ParallelChunks,
    scratch: usize,
    extents: Vec<Extent>,
    /// How long it took on its thread.
    time: Duration,
    text: Option<KernelText>,
}

impl Compiled {
    fn size(&self) -> usize {
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

    fn compile(
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

fn link(
    mut memory: CodeMemory,
    functions: &[FuncId],
    compiled: Vec<Compiled>,
) -> Result<Code, CodegenError> {
    let bytes = compiled.iter().map(Compiled::size).sum();
    let no_memory = |e: ModuleError| CodegenError::Memory {
        bytes,
        message: e.to_string(),
    };
    let module = memory.module();
    for (&function, c) in functions.iter().zip(&compiled) {
        module
            .define_function_bytes(function, c.align, &c.bytes, &c.relocations)
            .map_err(no_memory)?;
        for code in &c.loop_codes {
            module
                .define_function_bytes(code.function, 64, &code.bytes, &[])
                .map_err(no_memory)?;
        }
    }
    module.finalize_definitions().map_err(no_memory)?;
    let entries = functions
        .iter()
        .zip(compiled)
        .map(|(&function, c)| Entry {
            address: module.get_finalized_function(function),
            size: c.size(),
            chunks: c.chunks,
            scratch: c.scratch,
            extents: c.extents,
            time: c.time,
            text: c.text,
        })
        .collect();
    Ok(Code::new(memory, entries))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::code::Pointer;
    use vinelift_nest::{Binary, Scalar, build::zero};
    use vinelift_tensor::ElementType::F32;

    /// `y[j] = Σ_k x[k, j]²` is one sum of fused multiply-adds, with the instruction and without.
    #[test]
    fn a_machine_without_fused_multiply_add_gives_the_same() {
        const DEPTH: usize = 9;
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[DEPTH, 6], Role::Input);
        let y = nest.buffer("y", F32, &[6], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let k = nest.axis(DEPTH);
            let x = nest.load(x, vec![Scalar::axis(k.id), at[0].clone()]);
            let term = Scalar::binary(Binary::Term, x.clone(), x);
            Scalar::reduce(Binary::Add, vec![k], zero(F32), term)
        });
        let compiler = Compiler::lacking(&["has_fma"]).unwrap();
        for vectors in [Vectors::Widest, Vectors::Bits128] {
            let options = Options {
                vectors,
                ..Options::default()
            };
            let code = compiler.compile(&[&nest], &options).unwrap();
            let mut x: Vec<f32> = (0..DEPTH * 6).map(|i| (i as f32 * 0.7).sin()).collect();
            let mut y = [0f32; 6];
            let pointers = [x.as_mut_ptr(), y.as_mut_ptr()].map(|p| Pointer(p.cast()));
            // SAFETY: one pointer for each buffer, to as many bytes as it takes.
            unsafe { code.run(0, &pointers, &[]) }.unwrap();
            for (j, found) in y.iter().enumerate() {
                let column = (0..DEPTH).map(|k| x[k * 6 + j]);
                let want = column.fold(0f32, |sum, x| x.mul_add(x, sum));
                assert_eq!(found.to_bits(), want.to_bits());
            }
        }
    }
}
