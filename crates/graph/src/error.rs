//! Errors of a model.

use std::fmt::{self, Display, Formatter};
use vinelift_nest::Layer;
use vinelift_ops::OpError;
use vinelift_tensor::TensorError;
use vinelift_xml::BodyKind;

/// The errors of a model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file's fault: the version of the format is none that is read.
    #[error("IR version {0} is unsupported, expected 10 or 11")]
    Version(u64),
    /// The file's fault: an edge refers to a layer that there is not, or there are two with one id.
    #[error("{0}")]
    Structure(String),
    /// The file's fault: layers feed themselves.
    #[error("the graph has a cycle through {0}")]
    Cycle(Layer),
    /// The file's fault, or something that is not built: all layers that are wrong.
    #[error("{}", list(.0))]
    Layers(Vec<LayerError>),
    /// The caller's fault: an input that does not fit its parameter.
    #[error("{0}")]
    Input(String),
    /// Nobody's fault: whoever asked no longer wants the result.
    #[error("cancelled")]
    Cancelled,
    /// A bug of ours: a nest that does not pass the verifier.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The error of one layer.
#[derive(Debug, thiserror::Error)]
#[error("{layer}: {problem}")]
pub struct LayerError {
    /// The layer.
    pub layer: Layer,
    /// The error.
    pub problem: Problem,
}

/// Why a layer is refused.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Its type and version are none that are known.
    #[error("unsupported operator{0}")]
    Unsupported(String),
    /// The operator does not fit its inputs or attributes.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A constant's bytes do not make its tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A constant lies outside the weights.
    #[error(transparent)]
    Weights(#[from] vinelift_xml::Error),
    /// Its ports, edges or shapes are wrong.
    #[error("{0}")]
    Graph(String),
    /// An error in one of its sub-graphs.
    #[error("in its {}: {error}", .kind.element())]
    Body {
        /// Which.
        kind: BodyKind,
        /// The error.
        error: Box<Error>,
    },
}

impl Problem {
    pub(crate) fn body(kind: BodyKind, error: Error) -> Problem {
        Problem::Body {
            kind,
            error: Box::new(error),
        }
    }

    /// Whether nothing is wrong with the layer, but nobody wants its outputs any more.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Problem::Op(error) => *error == OpError::Cancelled,
            Problem::Body { error, .. } => matches!(**error, Error::Cancelled),
            _ => false,
        }
    }

    /// Whether the layer is right by its specification, and not built.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Problem::Unsupported(_) | Problem::Op(OpError::Unsupported(_)) => true,
            Problem::Body { error, .. } => match &**error {
                Error::Layers(errors) => errors.iter().any(|e| e.problem.is_unsupported()),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The most layers that a message lists.
const LISTED: usize = 50;

fn list(errors: &[LayerError]) -> impl Display + '_ {
    struct List<'a>(&'a [LayerError]);
    impl Display for List<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            if let [one] = self.0 {
                return write!(f, "{one}");
            }
            write!(f, "{} layers are wrong:", self.0.len())?;
            for error in self.0.iter().take(LISTED) {
                write!(f, "\n  {error}")?;
            }
            match self.0.len().saturating_sub(LISTED) {
                0 => Ok(()),
                more => write!(f, "\n  and {more} more"),
            }
        }
    }
    List(errors)
}
