//! Flat offsets: the indices of all dims as one sum.

use vinelift_nest::{BufferId, Kind, Scalar};

/// `constant + Σ leaf · coefficient`, a flat element offset. Index arithmetic wraps, so it may be
/// taken apart and put together again freely.
pub(crate) struct Linear<'n> {
    pub(super) terms: Vec<(&'n Scalar, i64)>,
    pub(super) constant: i64,
    /// The panel that it is counted from, if that is not where the buffer begins.
    pub(super) panel: Option<usize>,
}

impl<'n> Linear<'n> {
    /// The scalars that must be computed first, in order of evaluation.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &'n Scalar> + use<'_, 'n> {
        self.terms.iter().map(|(leaf, _)| *leaf)
    }

    /// The leaves with their coefficients.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&'n Scalar, i64)> + use<'_, 'n> {
        self.terms.iter().copied()
    }

    pub(crate) fn constant(&self) -> i64 {
        self.constant
    }

    /// The panel that it is counted from.
    pub(crate) fn panel(&self) -> Option<usize> {
        self.panel
    }

    /// The sum without its constant.
    pub(crate) fn at_zero(mut self) -> Linear<'n> {
        self.constant = 0;
        self
    }

    /// The sum without the leaves that are `other`.
    pub(crate) fn without(mut self, other: impl Fn(&Scalar) -> bool) -> Linear<'n> {
        self.terms.retain(|(leaf, _)| !other(leaf));
        self
    }

    pub(super) fn add(&mut self, leaf: &'n Scalar, coefficient: i64) {
        let same = |known: &Scalar| match (known.kind(), leaf.kind()) {
            (Kind::Axis(a), Kind::Axis(b)) => a == b,
            _ => known.address() == leaf.address(),
        };
        match self.terms.iter_mut().find(|(known, _)| same(known)) {
            Some((_, known)) => *known = known.wrapping_add(coefficient),
            None => self.terms.push((leaf, coefficient)),
        }
    }
}

/// The columns that a block of points may lead to, in scratch memory: row after row.
pub(crate) struct PackedColumns<'n> {
    /// Whose elements these are: `buffer[at]`.
    pub(crate) buffer: BufferId,
    pub(crate) at: &'n [Scalar],
    /// Where a row begins in the buffer, but for its number.
    pub(crate) linear: Linear<'n>,
    /// Rows, and how many elements they are apart in the buffer.
    pub(crate) extent: usize,
    pub(crate) step: i64,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Where it begins in scratch memory.
    pub(crate) offset: usize,
    /// The flat offset from where the first column would begin, if all were packed.
    pub(crate) terms: [(&'n Scalar, i64); 2],
}

impl PackedColumns<'_> {
    /// Whether it holds what is loaded from `at`.
    pub(crate) fn holds(&self, at: &[Scalar]) -> bool {
        std::ptr::eq(self.at, at)
    }

    /// Bytes of `columns` columns.
    pub(crate) fn bytes(&self, columns: usize) -> usize {
        self.extent.saturating_mul(columns * self.size)
    }
}
