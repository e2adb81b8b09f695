//! Chunks of loops whose extents are known.

use std::ops::Range;

/// [`ParallelChunks`](crate::ParallelChunks) where all extents are numbers: ranges of `0..extent` that may run in any
/// order, or at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundChunks {
    /// Turns that are shared out.
    pub extent: usize,
    /// A chunk is at least as long, unless it is the whole.
    pub grain: usize,
    /// A chunk begins at a multiple of this, of which `grain` is a multiple.
    pub unit: usize,
    /// The dim of the target that is divided, if that is not the outermost loop.
    pub dim: Option<usize>,
}

impl BoundChunks {
    /// Into how many parts it can be cut, `count` at most.
    pub fn count(self, count: usize) -> usize {
        count.min(self.extent / self.grain).max(1)
    }

    /// The `k`-th of `count` parts that cover `0..extent`, of about the same length; `count` is one that
    /// [`BoundChunks::count`] gave.
    pub fn range(self, k: usize, count: usize) -> Range<usize> {
        let BoundChunks { extent, grain, .. } = self;
        let bound = |k: usize| match k == count {
            true => extent,
            // Divided first: `extent * k` may overflow.
            false => (extent / grain * k / count) * grain,
        };
        bound(k)..bound(k + 1)
    }

    /// At most `count` ranges that cover `0..extent`, of about the same length.
    pub fn ranges(self, count: usize) -> Vec<Range<usize>> {
        let count = self.count(count);
        (0..count).map(|k| self.range(k, count)).collect()
    }

    /// Cuts a part into consecutive pieces, each of about `extent / count` turns. A part of a dim stays whole: pieces of it would be
    /// short runs of many rows.
    pub fn pieces(self, part: Range<usize>, count: usize) -> impl Iterator<Item = Range<usize>> {
        let count = if self.dim.is_some() { 1 } else { count };
        let length = (self.extent / count.max(1)).next_multiple_of(self.grain);
        let length = length.max(self.grain);
        let mut start = part.start;
        std::iter::from_fn(move || {
            let left = part.end.checked_sub(start).filter(|left| *left > 0)?;
            // The rest may not be shorter than `grain`.
            let length = if left < length + self.grain {
                left
            } else {
                length
            };
            start += length;
            Some(start - length..start)
        })
    }

    /// Whether `part` is one that may be run.
    pub fn allow(self, part: &Range<usize>) -> bool {
        let whole = *part == (0..self.extent);
        let starts = part.start.is_multiple_of(self.unit);
        let ends = part.end == self.extent || part.end.is_multiple_of(self.unit);
        whole || (starts && ends && part.end <= self.extent && part.len() >= self.grain)
    }
}
