//! How codes are packed.

use crate::Code;

/// The columns of a panel.
pub(crate) const PANEL: usize = 16;

/// The panels of a strip.
pub(crate) const STRIP: usize = 4;

/// The bytes of a line.
pub(crate) const LINE_BYTES: usize = 64;

/// The rows of a [`Grouped`](crate::Grouped) product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupedRows {
    /// `i8` from -127 to 127, with a scale for each group.
    Bytes,
    /// `f32`, with the sum of each group, which is only read where there are zero points.
    Floats,
}

/// How many `k` of each column a line has: 4 bytes. Of codes that are integers.
pub(crate) fn depth(code: Code) -> Option<usize> {
    match code {
        Code::I4 | Code::U4 => Some(8),
        Code::I8 | Code::U8 => Some(4),
        _ => None,
    }
}

/// How many codes are packed, of which size, and how many `k` share zero points and scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// The type of the rows that they are multiplied with: packed codes have another order for each.
    pub(crate) rows: GroupedRows,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// How many `k` a line has.
    pub(crate) depth: usize,
    pub(crate) group: usize,
}

/// Zero points, as codes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zero {
    /// All are this one.
    Same(i32),
    /// Each group of each column has one.
    Each,
}

/// Which zero points and scales each group of a panel has, and of which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Points {
    /// For rows of bytes: zero points as `i16`, unless they are all the same, and scales as `f32`, if there are any.
    OfBytes { zero: Zero, has_scales: bool },
    /// For rows of floats: zero points, if there are any, and scales, both as `f16` or as `f32`.
    OfFloats { has_zeros: bool, are_half: bool },
}

/// The layout of packed codes. A *strip* is [`STRIP`] panels; the last one has those that are left. Strips follow each other,
/// and in a strip its groups, each of which has
/// * for each panel the zero points of its columns, and their scales,
/// * the lines of codes: the first of each panel, the second of each, and so on. A line has 4 bytes for each column, in the
///   order that the rows are multiplied in.
///
/// So a tile of all panels of a strip reads one stream of memory, from end to end.
///
/// For rows of bytes the 4 bytes of a column lie together. Codes of 4 bits are from 0 to 15, byte `j` having that of number
/// `j` in its low half and that of number `4 + j` in its high half. Codes of 8 bits are `i8`.
///
/// For rows of floats the first bytes of all columns come first, then the second ones, and so on. Of codes of 4 bits, byte
/// `j` has that of number `2·j` in its low half and that of number `2·j + 1` in its high half. Codes are as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupedCodes {
    pub(crate) shape: Shape,
    pub(crate) points: Points,
}

impl Shape {
    pub(crate) fn panels(&self) -> usize {
        self.n.div_ceil(PANEL)
    }

    /// How many groups share zero points and scales.
    pub(crate) fn groups(&self) -> usize {
        self.k.checked_div(self.group).unwrap_or(0)
    }

    /// How many lines a group has.
    pub(crate) fn lines(&self) -> usize {
        self.group / self.depth
    }

    /// Whether packed codes have a number of bytes, with all zero points and scales.
    pub(crate) fn is_addressable(self) -> bool {
        // None take more bytes.
        let points = Points::OfFloats {
            has_zeros: true,
            are_half: false,
        };
        let codes = GroupedCodes {
            shape: self,
            points,
        };
        let group = (self.lines().checked_mul(LINE_BYTES))
            .and_then(|lines| lines.checked_add(codes.points_bytes()));
        let bytes = group
            .and_then(|bytes| bytes.checked_mul(self.groups()))
            .and_then(|bytes| bytes.checked_mul(self.panels()));
        bytes.is_some_and(|bytes| bytes <= isize::MAX as usize)
    }
}

impl GroupedCodes {
    /// The bytes of the zero points that a group of a panel has.
    pub(crate) fn zero_bytes(&self) -> usize {
        match self.points {
            Points::OfBytes {
                zero: Zero::Each, ..
            } => PANEL * size_of::<i16>(),
            Points::OfFloats {
                has_zeros: true,
                are_half,
            } => PANEL * float_bytes(are_half),
            Points::OfBytes { .. } | Points::OfFloats { .. } => 0,
        }
    }

    /// The bytes of zero points and scales that a group of a panel has: those before its lines.
    pub(crate) fn points_bytes(&self) -> usize {
        let scale_bytes = match self.points {
            Points::OfBytes { has_scales, .. } => usize::from(has_scales) * size_of::<f32>(),
            Points::OfFloats { are_half, .. } => float_bytes(are_half),
        };
        self.zero_bytes() + PANEL * scale_bytes
    }

    /// The bytes of a group of a panel, wherever they are in its strip.
    pub(crate) fn group_bytes(&self) -> usize {
        self.points_bytes() + self.shape.lines() * LINE_BYTES
    }

    /// The bytes of a panel.
    pub(crate) fn panel_bytes(&self) -> usize {
        self.group_bytes() * self.shape.groups()
    }

    /// The bytes of all panels.
    pub(crate) fn bytes(&self) -> usize {
        self.panel_bytes() * self.shape.panels()
    }
}

fn float_bytes(are_half: bool) -> usize {
    match are_half {
        true => size_of::<u16>(),
        false => size_of::<f32>(),
    }
}
