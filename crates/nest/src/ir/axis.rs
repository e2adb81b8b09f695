//! Loop variables.

use vinelift_tensor::Extent;

/// Identity of an axis, unique in a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AxisId(pub u32);

/// A loop variable: runs over `0..extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Unique in the nest.
    pub id: AxisId,
    /// Number of points; may be 0.
    pub extent: Extent,
}
