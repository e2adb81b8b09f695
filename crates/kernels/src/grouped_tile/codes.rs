//! How codes are packed.

use crate::Code;

/// The columns of a panel.
pub(crate) const PANEL: usize = 16;

/// The bytes of a line.
pub(crate) const LINE_BYTES: usize = 64;

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

/// The layout of packed codes. Panels follow each other, and in a panel its groups, each of which has
/// * the zero points of its columns, as `i16`, unless they are all the same,
/// * their scales, as `f32`, if there are any,
/// * the lines of codes: in each, 4 bytes for each column. Codes of 4 bits are from 0 to 15, byte `j` having that of number
///   `j` in its low half and that of number `4 + j` in its high half. Codes of 8 bits are `i8`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupedCodes {
    pub(crate) shape: Shape,
    pub(crate) zero: Zero,
    pub(crate) has_scales: bool,
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
        let codes = GroupedCodes {
            shape: self,
            zero: Zero::Each,
            has_scales: true,
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
        match self.zero {
            Zero::Same(_) => 0,
            Zero::Each => PANEL * size_of::<i16>(),
        }
    }

    /// The bytes of zero points and scales that a group of a panel has: those before its lines.
    pub(crate) fn points_bytes(&self) -> usize {
        let scales = if self.has_scales {
            PANEL * size_of::<f32>()
        } else {
            0
        };
        self.zero_bytes() + scales
    }

    /// The bytes of a group of a panel.
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
