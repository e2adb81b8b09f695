//! Everything that can go wrong.

use std::path::PathBuf;
use vinelift_codegen::CodegenError;
use vinelift_graph as graph;
use vinelift_tensor::TensorError;

/// Why a model could not be read, compiled or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment's fault: a file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file's fault: the text is no IR. Says where.
    #[error(transparent)]
    Xml(vinelift_xml::Error),
    /// The file's fault, or something that is not built: the layers do not make a model that runs.
    #[error("{file}: {source}")]
    Model {
        /// The file, or what it was read from.
        file: String,
        /// Which layers and why.
        source: graph::Error,
    },
    /// The caller's fault: an input is missing, unknown, or does not fit. Names the model's file where it is a run's.
    #[error("{0}")]
    Input(String),
    /// Something that Vinelift lacks: code for this machine, a kernel, a step or a conversion.
    #[error("{0}")]
    Unsupported(String),
    /// The data's fault, or that of a machine that has no memory: an index in a tensor is out of range. Names the file
    /// of the model, and the layer.
    #[error("{0}")]
    Fault(String),
    /// Nobody's fault: whoever started the run has stopped it.
    #[error("the inference was cancelled")]
    Cancelled,
    /// A tensor that cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A bug of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<CodegenError> for Error {
    fn from(error: CodegenError) -> Error {
        match error {
            CodegenError::Stopped => Error::Cancelled,
            CodegenError::Memory { .. } => Error::Fault(error.to_string()),
            CodegenError::Host(_) | CodegenError::TooLarge { .. } => {
                Error::Unsupported(error.to_string())
            }
            CodegenError::NotVerified { .. }
            | CodegenError::NoPrimitive { .. }
            | CodegenError::Cranelift { .. } => Error::internal(error),
        }
    }
}

impl From<vinelift_xml::Error> for Error {
    fn from(error: vinelift_xml::Error) -> Error {
        match error {
            vinelift_xml::Error::Io { path, source } => Error::Io { path, source },
            other => Error::Xml(other),
        }
    }
}

impl Error {
    /// A condition that should not be possible.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Error {
        Error::Internal(message.to_string())
    }

    /// This error of compiling or running the model of `file`, which kernels and tensors do not know, with its name.
    pub(crate) fn of_model(self, file: &str) -> Error {
        let named = |text| format!("{file}: {text}");
        match self {
            Error::Input(text) => Error::Input(named(text)),
            Error::Unsupported(text) => Error::Unsupported(named(text)),
            Error::Fault(text) => Error::Fault(named(text)),
            Error::Tensor(error @ TensorError::OutOfMemory { .. }) => {
                Error::Fault(named(error.to_string()))
            }
            other => other,
        }
    }
}
