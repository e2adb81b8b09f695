//! Why an operator does not fit its inputs.

use crate::AttrError;
use std::borrow::Cow;
use vinelift_tensor::TensorError;

/// Bytes of a message of which none are left out.
const LONGEST_MESSAGE: usize = 2000;

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
    #[error("{}", shortened(.0))]
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

/// A message without the middle of what it lists at length: a file may hold lists of any number of elements.
pub(crate) fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST_MESSAGE {
        return message.into();
    }
    let start = message.floor_char_boundary(LONGEST_MESSAGE * 3 / 4);
    let end = message.ceil_char_boundary(message.len() - LONGEST_MESSAGE / 4);
    format!("{} … {}", &message[..start], &message[end..]).into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_long_messages_is_left_out() {
        let whole = "é".repeat(LONGEST_MESSAGE / 2);
        assert_eq!(OpError::Shape(whole.clone()).to_string(), whole);
        let long = format!("`strides` [{}] must have 2 elements", "é, ".repeat(100_000));
        let found = OpError::Shape(long).to_string();
        assert!(found.len() < LONGEST_MESSAGE + 10);
        assert!(found.starts_with("`strides` [é, é") && found.ends_with("] must have 2 elements"));
        let found = AttrError::new("axis", "an i64", &"7".repeat(3000)).to_string();
        assert!(found.starts_with("`axis` must be an i64, found `777") && found.ends_with("777`"));
        assert!(found.len() < LONGEST_MESSAGE + 10);
    }
}
