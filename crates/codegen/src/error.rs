//! Why nests do not become code.

use cranelift_module::ModuleError;

/// Why nests did not become code. `kernel` counts the nests handed to
/// [`Compiler::compile`](crate::Compiler::compile).
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// The machine's fault: there is no code generator for it.
    #[error("no code can be generated for this machine: {0}")]
    Host(String),
    /// Our fault: whoever made the nest made one that is not sound.
    #[error("kernel {kernel}: the nest does not verify: {errors}")]
    NotVerified {
        /// Which nest.
        kernel: usize,
        /// The verifier's errors.
        errors: String,
    },
    /// Our fault: a scalar that should have been replaced by primitives reached the emitter.
    #[error("kernel {kernel}: no code for {what}")]
    NoPrimitive {
        /// Which nest.
        kernel: usize,
        /// The operation and the type.
        what: String,
    },
    /// The model's fault, or that of whoever fused so much into one nest.
    #[error("kernel {kernel}: more than {limit} instructions")]
    TooLarge {
        /// Which nest.
        kernel: usize,
        /// How many are compiled at most.
        limit: usize,
    },
    /// Our fault, or Cranelift's: it refused the code emitted for a nest.
    #[error("kernel {kernel}: {message}")]
    Cranelift {
        /// Which nest.
        kernel: usize,
        /// Cranelift's error.
        message: String,
    },
    /// Nobody's fault: whoever asked no longer wants the code.
    #[error("stopped")]
    Stopped,
    /// The machine's fault: the system gave no memory for code, or did not let it be executed.
    #[error("no memory for {bytes} bytes of code: {message}")]
    Memory {
        /// How much was asked for.
        bytes: usize,
        /// The system's error.
        message: String,
    },
}

/// The error for a definition of `bytes` bytes for a kernel that the module refuses.
pub(crate) fn refused(kernel: usize, bytes: usize, e: ModuleError) -> CodegenError {
    match e {
        ModuleError::Allocation { err } => CodegenError::Memory {
            bytes,
            message: err.to_string(),
        },
        e => CodegenError::Cranelift {
            kernel,
            message: e.to_string(),
        },
    }
}
