//! A cell or a sequence of cells as an operator.

use super::activation::Activations;
use super::formulas::Cell;
use super::{sequence, shapes, step};
use crate::{Infer, Lower, Op, OpError, TensorType};
use serde::Deserialize;

/// What the attributes of a cell or sequence say.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) cell: Cell,
    pub(super) hidden_size: usize,
    pub(super) activations: Activations,
    /// Of a sequence. A cell has none.
    pub(super) direction: Option<Direction>,
}

/// In which order a sequence takes its steps.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    /// From the first.
    Forward,
    /// From the last.
    Reverse,
    /// Both, next to each other.
    Bidirectional,
}

impl Direction {
    /// The attribute `num_directions` of the specifications.
    pub(super) fn count(self) -> usize {
        match self {
            Direction::Bidirectional => 2,
            _ => 1,
        }
    }
}

impl Op for Network {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        shapes::infer(self, cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        match self.direction {
            None => step::lower(self, cx),
            Some(direction) => sequence::lower(self, direction, cx),
        }
    }
}
