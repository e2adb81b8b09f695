//! From nests to code: legalise, verify, emit and compile in parallel, then link in one place.

mod kernel;
mod link;

use crate::code::{Code, CodeMemory};
use crate::emit;
use crate::error::CodegenError;
use crate::support;
use crate::target::Target;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, ir};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use kernel::{Compiled, Job};
use link::{declare_functions, declare_loops, define_tables, link};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use vinelift_nest::{Nest, compiler_threads};

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

/// The nest in primitive operations, once it has passed the verifier.
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

/// Cranelift's settings.
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::code::Pointer;
    use vinelift_nest::{Binary, Role, Scalar, build::zero};
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
