//! Vector loops that have been built, and their arguments.

use crate::analysis::coefficient::Coefficient;
use crate::analysis::linear::Linear;
use crate::analysis::runs::Runs;
use crate::target::Assembled;
use crate::vector_ir::program::Program;
use vinelift_nest::{Axis, AxisId, BufferId, FoldBounds, Scalar};
use vinelift_tensor::Extent;

/// Bytes of a register inside the kernel.
pub(super) const BYTES: usize = 16;

/// A vector loop that has been built for a stage: a function of its own.
pub(crate) struct VectorLoop<'n> {
    pub(crate) code: Assembled,
    pub(crate) arguments: Vec<Argument<'n>>,
    /// Whether it stops where an index is out of range.
    pub(crate) may_fault: bool,
    /// The axis over lanes and how many of its points there must be, if there may be fewer.
    pub(crate) least: Option<(Axis, usize)>,
    /// The innermost axis that is not part of it, if a call does as many points of it as this; the last call may do some
    /// again that the one before did.
    pub(crate) rows: Option<(Axis, usize)>,
    /// The loops for runs with fewer points: in narrower vectors, the widest first, inside as many loops.
    pub(crate) narrower: Vec<VectorLoop<'n>>,
    /// The note of a dump on how elements are gathered, if any are.
    pub(crate) how: String,
    /// How many loops of the stage are around it, and around the one over [`Self::rows`].
    pub(crate) outer: usize,
    pub(crate) lanes: usize,
    pub(crate) bits: usize,
}

impl VectorLoop<'_> {
    /// Axes that may have fewer points than it needs, and how many it needs.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (Axis, usize)> {
        let may_be_few = |(axis, each): &(Axis, usize)| axis.extent.least() < *each;
        self.least.into_iter().chain(self.rows.filter(may_be_few))
    }

    /// Whether there may be too few points for it.
    pub(crate) fn may_be_few(&self) -> bool {
        self.needs().next().is_some()
    }

    pub(crate) fn runs(&self) -> Runs {
        Runs {
            lanes: self.lanes,
            bits: self.bits,
        }
    }
}

/// A vector loop inside the kernel.
pub(crate) struct KernelLoop<'n> {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<Argument<'n>>,
    pub(crate) scalars: Vec<KernelScalar<'n>>,
    /// The bounds of folds: loops over their axes visit the points between them alone.
    pub(crate) bounds: Vec<FoldBounds<'n>>,
    /// Whether an index may be out of range: the points of the axis are then done again, one by one.
    pub(crate) may_fault: bool,
    /// The axis that it goes over, and how many of its points each turn does; there may be fewer if its extent has
    /// symbols.
    pub(crate) axis: Axis,
    pub(crate) lanes: usize,
    /// The note of a dump on how indices are checked, if any are.
    pub(crate) how: String,
}

impl KernelLoop<'_> {
    pub(crate) fn runs(&self) -> Runs {
        Runs {
            lanes: self.lanes,
            bits: 8 * BYTES,
        }
    }
}

/// A scalar that the kernel computes inside a program.
#[derive(Clone)]
pub(crate) struct KernelScalar<'n> {
    pub(crate) scalar: &'n Scalar,
    /// Axes of one point that are no loops, and that point.
    pub(crate) fixed: Vec<(AxisId, i64)>,
}

/// An argument of a vector loop: one word, which the kernel computes.
pub(crate) enum Argument<'n> {
    /// Where the elements begin.
    Address {
        buffer: BufferId,
        linear: Linear<'n>,
        /// How the points of the axis that is cut move on.
        pace: Pace,
    },
    /// The first point of the axis that is cut.
    First,
    /// How many points of the axis that is cut there are to do, less `less`.
    Points { less: i64 },
    /// The points of an extent, less `less`.
    Extent { extent: Extent, less: i64 },
    /// By how many bytes a loop moves pointers, if that is not the same for all values of the symbols.
    Stride(Coefficient),
    /// A scalar that does not change; of a boolean, all bits of it.
    Scalar(&'n Scalar),
    /// Where the kernel puts what it collects, by number.
    Collected(usize),
    /// All bits, if those of these indices that read zero are in range; else none.
    Inside(&'n [Scalar]),
}

/// `points` points of an axis move an address on by `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pace {
    pub(crate) bytes: i64,
    pub(crate) points: i64,
}

impl Pace {
    pub(super) const STILL: Pace = Pace {
        bytes: 0,
        points: 1,
    };
}
