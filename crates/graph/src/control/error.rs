//! Errors of a run of a node that has sub-graphs.

use vinelift_tensor::TensorError;

/// Why a node that runs sub-graphs cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ControlError<E> {
    /// The body's error.
    #[error(transparent)]
    Body(E),
    /// The data's fault: slices or iterations that do not fit.
    #[error("{0}")]
    Data(String),
    /// A tensor that cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
