//! Contractions as plain data: element type and dims.

/// `out[b, m, n] = Σ_k left[b, m, k] · right[b, k, n]`
///
/// over generalised strided tensors: each of the four groups is a list of dims, outermost first, and
/// every dim says how far it moves in each of the three operands. The sum starts at zero and takes
/// the `k` in row-major order of the `k` dims, each by one fused multiply-add:
/// `acc = fma(left, right, acc)`. A NaN's payload is not specified.
///
/// Sums of products of bytes are exact instead, and wrap around: in any order they are the same.
///
/// A product of matrices has one dim in each of `m`, `n` and `k`. A convolution whose input has been
/// padded before needs no copy either: `m` is the output channel, `n` the position with the strides
/// of the window's step in the input, and `k` is the input channel and the position in the window.
/// A depthwise one has the channel in `batch`, and nothing in `m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// The types of the three operands.
    pub element: Element,
    /// Dims of all three operands.
    pub batch: Vec<Dim>,
    /// Dims of `left` and `out`.
    pub m: Vec<Dim>,
    /// Dims of `right` and `out`.
    pub n: Vec<Dim>,
    /// Dims of `left` and `right`: those summed over.
    pub k: Vec<Dim>,
}

/// One dim: how many steps it has, and how far a step moves in each operand, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// How many steps.
    pub extent: usize,
    /// The stride in `left`; 0 where the dim does not appear.
    pub left: usize,
    /// The stride in `right`.
    pub right: usize,
    /// The stride in `out`.
    pub out: usize,
}

impl Dim {
    /// With its strides in the left operand, the right one and the result.
    pub fn new(extent: usize, left: usize, right: usize, out: usize) -> Dim {
        Dim {
            extent,
            left,
            right,
            out,
        }
    }
}

/// The element types of a contraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `u8` on the left and `i8` on the right, with sums of `i32`.
    U8I8,
    /// `i8` on the left and `u8` on the right, with sums of `i32`.
    I8U8,
}

impl Element {
    /// The size of a sum in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Element::F32 | Element::U8I8 | Element::I8U8 => 4,
            Element::F64 => 8,
        }
    }

    /// Whether operands are bytes, whose sums are exact.
    pub fn is_byte(self) -> bool {
        matches!(self, Element::U8I8 | Element::I8U8)
    }

    /// The size of an element of the operands in bytes.
    pub fn operand_bytes(self) -> usize {
        match self {
            Element::F32 | Element::F64 => self.bytes(),
            Element::U8I8 | Element::I8U8 => 1,
        }
    }
}

/// Why a contraction has no kernel. It has a meaning all the same: a loop nest can run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// An `m` dim that moves in `right`, or the like.
    #[error("a dim of group `{group}` moves in an operand that the group is not part of")]
    WrongGroup {
        /// The group.
        group: &'static str,
    },
    /// Two points of (batch, m, n) may have the same place in `out`.
    #[error("the strides of `out` do not keep its elements apart")]
    Overlap,
    /// An extent or an offset is too large for the offset tables.
    #[error("an extent or an offset is too large for a contraction kernel")]
    TooLarge,
    /// An operand that is stored in 16 bits of which the kernel would take single elements, or of another type than `f32`.
    #[error("elements stored in 16 bits are not those of columns of `f32`")]
    Narrow,
    /// Groups of rows and codes that are not as [`Grouped`](crate::Grouped) says.
    #[error(
        "groups of {group} in groups of {coding_group} of {k} are no eights, or do not divide each other"
    )]
    Groups {
        /// How many `k` there are.
        k: usize,
        /// How many of a row share a scale.
        group: usize,
        /// How many share zero points and scales of codes.
        coding_group: usize,
    },
    /// Blocks of columns that are not as [`Grouped`](crate::Grouped) says.
    #[error("blocks of {block} of {n} columns are no sixteens, or do not divide them")]
    Columns {
        /// How many columns there are.
        n: usize,
        /// How many lie side by side.
        block: usize,
    },
    /// Codes that are no integers of 4 or 8 bits, where sums are of integers.
    #[error("codes of type {code:?} are no integers")]
    NotInteger {
        /// The type of the codes.
        code: crate::Code,
    },
    /// The machine lacks the instructions that were asked for.
    #[error("this machine has no {isa}")]
    NoInstructions {
        /// The instruction set that was asked for.
        isa: crate::Isa,
    },
}
