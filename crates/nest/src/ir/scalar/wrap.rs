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
    /// The index that it gives, if it is that of a constant in a range of known extent.
    pub(crate) fn known(&self) -> Option<Scalar> {
        let extent = self.extent.number()?;
        let place = self.policy.place(self.index.as_integer()?, extent)?;
        Some(Scalar::constant(place as u64, ElementType::I64))
    }

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
    /// The element that `index` names in a dim of `extent`, if one.
    pub(crate) fn place(self, index: i64, extent: usize) -> Option<usize> {
        let below_zero = self.negative && index < 0;
        let index = match below_zero {
            true => index.checked_add(i64::try_from(extent).ok()?)?,
            false => index,
        };
        usize::try_from(index).ok().filter(|place| *place < extent)
    }

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
