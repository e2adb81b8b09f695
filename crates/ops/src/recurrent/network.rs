//! The attributes of a cell or a sequence of cells.

use super::activation::Activations;
use super::formulas::Cell;
use crate::layout::index_map::extent;
use serde::Deserialize;
use std::ops::Range;
use vinelift_nest::Scalar;

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

/// The row of the weights that is row `row` of those for `gates`, each of which has `size` rows.
pub(super) fn row_of(gates: &Range<usize>, size: usize, row: &Scalar) -> Scalar {
    match gates.start * size {
        0 => row.clone(),
        first => row + extent(first),
    }
}

/// Defines `Attrs`: the attributes that all cells and sequences have, with others after the first and at the end.
macro_rules! attributes {
    ([$($(#[$early_meta:meta])* $early:ident: $early_ty:ty),*] [$($(#[$late_meta:meta])* $late:ident: $late_ty:ty),*]) => {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            hidden_size: usize,
            $($(#[$early_meta])* $early: $early_ty,)*
            activations: Option<Vec<$crate::recurrent::activation::Function>>,
            #[serde(default)]
            activations_alpha: Vec<f64>,
            #[serde(default)]
            activations_beta: Vec<f64>,
            clip: Option<f64>,
            $($(#[$late_meta])* $late: $late_ty,)*
        }

        impl Attrs {
            /// The operator with this cell, whose activations are `defaults` if none are given.
            fn network(
                &self,
                cell: $crate::recurrent::formulas::Cell,
                defaults: &[$crate::recurrent::activation::Function],
                direction: Option<$crate::recurrent::network::Direction>,
            ) -> Result<Box<dyn $crate::Op>, $crate::OpError> {
                Ok(Box::new($crate::recurrent::network::Network {
                    cell,
                    hidden_size: self.hidden_size,
                    activations: $crate::recurrent::activation::Activations::new(
                        self.activations.clone(),
                        defaults,
                        direction.map_or(1, $crate::recurrent::network::Direction::count),
                        self.activations_alpha.clone(),
                        self.activations_beta.clone(),
                        self.clip,
                    )?,
                    direction,
                }))
            }
        }
    };
}

pub(super) use attributes;
