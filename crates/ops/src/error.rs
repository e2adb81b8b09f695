//! Why an operator does not fit its inputs.

use crate::AttrError;
use vinelift_tensor::TensorError;

/// Why an operator does not fit its inputs. The graph adds which layer it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// The model's fault: an attribute is missing, unknown or out of range.
    #[error("attribute {0}")]
    Attribute(#[from] AttrError),
    /// The model's fault: the layer has too few or too many inputs.
    #[error("{found} inputs, expected {expected}")]
    Inputs {
        /// Number of inputs.
        found: usize,
        /// The operator's signature.
        expected: String,
    },
    /// The model's fault: an input's element type is none that the operator takes.
    #[error("`{input}` must be {expected}, found {found}")]
    Type {
        /// Name of the input.
        input: &'static str,
        /// Element types that it takes.
        expected: String,
        /// Element type that it has.
        found: String,
    },
    /// The model's or its inputs' fault: ranks, dims or values that do not fit.
    #[error("{0}")]
    Shape(String),
    /// A tensor that cannot be made or read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Nobody's fault: whoever asked no longer wants the result, or gave too little time for it.
    #[error("cancelled")]
    Cancelled,
    /// Nobody's fault: right by the specification, and not built.
    #[error("unsupported: {0}")]
    Unsupported(String),
}

/// Returns [`OpError::Shape`] with a formatted message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err($crate::OpError::Shape(format!($($message)*)));
        }
    };
}
pub(crate) use ensure;
