//! Data-dependent indices, and the rules for those out of range.

use super::{Kind, Scalar};
use crate::ir::SiteId;
use vinelift_tensor::{ElementType, Extent};

/// A data-dependent index and what to do when it is out of range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wrap {
    /// An integer of any type; its mathematical value counts (a `u64` is never negative).
    pub index: Scalar,
    /// The dim's extent.
    pub extent: Extent,
    /// The rule for an index out of range.
    pub policy: Policy,
    /// Whose index this is.
    pub site: SiteId,
    /// Coordinates of the index in the tensor of indices; only evaluated for the message.
    pub position: Vec<Scalar>,
}

impl Wrap {
    /// The index without its conversion from `i32` to `i64`, if that is what it is.
    pub fn narrow(&self) -> &Scalar {
        match self.index.kind() {
            Kind::Cast(x) if self.index.ty() == ElementType::I64 && x.ty() == ElementType::I32 => x,
            _ => &self.index,
        }
    }
}

/// The rule for a data-dependent index over a dim of extent `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Whether `-n..=-1` means counting from the end. Otherwise these are out of range.
    pub negative: bool,
    /// Whether an index out of range reads 0 and writes nothing (`true`) or ends the run with an
    /// error (`false`). A wrap that reads zero may stand only as an index of a load or of a stage's
    /// `at`.
    pub zero: bool,
}

impl Policy {
    /// Negative values count from the end; out of range is an error.
    pub const WRAP: Policy = Policy {
        negative: true,
        zero: false,
    };
    /// Only `0..n` is allowed; the rest is an error.
    pub const CHECK: Policy = Policy {
        negative: false,
        zero: false,
    };
    /// Negative values count from the end; out of range reads zero.
    pub const WRAP_OR_ZERO: Policy = Policy {
        negative: true,
        zero: true,
    };
}
