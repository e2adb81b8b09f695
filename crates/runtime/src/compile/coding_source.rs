//! Where the coding of a constant comes from: what tells packed constants of different codings apart.

use vinelift_kernels::Code;

/// Where the coding of a constant comes from. Equal ones give equal zero points and scales as long as the constants live.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodingSource {
    pub(crate) code: Code,
    /// How many points of the axes summed over share zero points and scales.
    pub(crate) group: usize,
    /// Of the axes that belong to the factor alone, and of those summed over.
    pub(super) extents: Vec<usize>,
    pub(super) zero: Option<PointsSource>,
    pub(super) scale: Option<PointsSource>,
}

/// Where zero points or scales come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PointsSource {
    /// The bits of an `f32`.
    Value(u32),
    /// Where the bytes of a constant begin, the first element, and how far each of the axes steps.
    Tensor {
        constant: usize,
        base: usize,
        steps: Vec<usize>,
    },
}

impl CodingSource {
    /// Where the constants begin that zero points and scales are in.
    pub(crate) fn constants(&self) -> impl Iterator<Item = usize> {
        let points = self.zero.iter().chain(&self.scale);
        points.filter_map(|points| match points {
            PointsSource::Value(_) => None,
            PointsSource::Tensor { constant, .. } => Some(*constant),
        })
    }
}
