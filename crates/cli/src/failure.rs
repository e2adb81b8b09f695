//! Errors of commands, and their exit status.

use std::io;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// An error of the library.
    #[error(transparent)]
    Vinelift(#[from] vinelift::Error),
    /// Stdout cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// Anything else that is wrong with a model, a file or an input.
    #[error("{0}")]
    Message(String),
    /// The caller's fault: arguments that do not go together.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// The status that the process ends with.
    pub(crate) fn status(&self) -> u8 {
        if matches!(self, Failure::Usage(_)) {
            2
        } else {
            1
        }
    }

    /// Whether the reader of stdout has gone.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
