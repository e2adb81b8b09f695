//! An axis that is resized, in numbers or with symbols.

use super::coordinates::Axis;
use vinelift_tensor::Extent;

/// An axis that is resized.
#[derive(Clone, Copy)]
pub(super) struct Resized {
    /// Which dim it is.
    pub(super) dim: usize,
    /// The extent of the input, pads included; at least 1.
    pub(super) from: Extent,
    /// The extent of the output.
    pub(super) to: Extent,
    /// How much larger the output is, if the model says so.
    pub(super) scale: Option<f64>,
}

impl Resized {
    /// The same in numbers.
    pub(super) fn pinned(&self) -> Axis {
        let (from, to) = (self.from.pin(), self.to.pin());
        Axis {
            dim: self.dim,
            from,
            to,
            scale: self.scale.unwrap_or(to as f64 / from as f64),
        }
    }

    /// How much larger the output is, if that is the same for all numbers of the symbols.
    pub(super) fn known_scale(&self) -> Option<f64> {
        let ratio = |a: Extent, b: Extent| a.over(b)?.number();
        let grown = || ratio(self.to, self.from).map(|by| by as f64);
        let shrunk = || ratio(self.from, self.to).map(|by| 1.0 / by as f64);
        self.scale.or_else(grown).or_else(shrunk)
    }

    /// Whether the output is smaller.
    pub(super) fn shrinks(&self) -> bool {
        match self.scale {
            Some(scale) => (scale as f32) < 1.0,
            None => !self.from.at_most(self.to),
        }
    }
}
