//! Everything that can go wrong.

use std::path::PathBuf;
use vinelift_codegen::CodegenError;
use vinelift_tensor::TensorError;

/// Why a model could not be read, compiled or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment's fault: a file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file's fault: the text is no IR, or cannot be read. Says where.
    #[error(transparent)]
    Xml(#[from] vinelift_xml::Error),
    /// The file's fault, or something that is not built: the layers do not make a model that runs.
    #[error("{file}: {source}")]
    Model {
        /// The file, or what it was read from.
        file: String,
        /// Which layers and why.
        source: vinelift_graph::Error,
    },
    /// The caller's fault: an input is missing, unknown, or does not fit.
    #[error("{0}")]
    Input(String),
    /// The data's fault: an index in a tensor is out of range.
    #[error("{0}")]
    Fault(String),
    /// Nobody's fault: whoever started the run has stopped it.
    #[error("the inference was cancelled")]
    Cancelled,
    /// A tensor that cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A bug of ours, or a host for which no code can be made.
    #[error(transparent)]
    Codegen(CodegenError),
}

impl From<CodegenError> for Error {
    fn from(error: CodegenError) -> Error {
        match error {
            CodegenError::Stopped => Error::Cancelled,
            other => Error::Codegen(other),
        }
    }
}

impl Error {
    /// A condition that should not be possible.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Error {
        Error::Fault(format!("internal error: {message}"))
    }
}
