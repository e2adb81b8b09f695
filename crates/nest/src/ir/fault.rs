//! Faults: the report of a data-dependent index that is out of range.

use crate::ir::{Nest, SiteId};

/// The most dims a tensor may have.
pub const MAX_RANK: usize = 32;

/// A data-dependent index was out of range; what had been written by then stays written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose index it was.
    pub site: SiteId,
    /// Coordinates in the tensor of indices.
    pub position: Vec<i64>,
    /// The value found.
    pub index: i128,
    /// The extent of the dim it indexes.
    pub extent: usize,
    /// Whether negative values count from the end.
    pub negative: bool,
}

impl Fault {
    /// ``layer 'g' (GatherND, opset8): `indices`[1, 0] is 9, expected -3..=2``
    pub fn message(&self, nest: &Nest) -> String {
        let site = &nest.sites[self.site.0 as usize];
        let layer = &nest.layers[site.layer.0 as usize];
        let low = if self.negative {
            -(self.extent as i128)
        } else {
            0
        };
        let expected = match self.extent {
            0 => "but the dim it indexes is empty".to_owned(),
            n => format!("expected {low}..={}", n - 1),
        };
        format!(
            "{layer}: `{}`{:?} is {}, {expected}",
            site.input, self.position, self.index
        )
    }
}
