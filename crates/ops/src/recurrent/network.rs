//! The attributes of a cell or a sequence of cells.

use super::activation::Activations;
use super::formulas::Cell;
use serde::Deserialize;

/// The attributes of a cell or sequence.
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
