//! How a stage runs.

/// How a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Points done at once.
    pub(crate) lanes: usize,
    /// The width of a vector register; 0 if there are none.
    pub(crate) bits: usize,
}

impl Runs {
    pub(crate) const SCALAR: Runs = Runs { lanes: 1, bits: 0 };
}
