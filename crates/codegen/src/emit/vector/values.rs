//! The lanes that have been computed while an axis runs over them.

use crate::target::clif128::Lanes128;
use rustc_hash::FxHashMap;
use vinelift_nest::{Axis, AxisId, Scalar};

/// The lanes that have been computed.
#[derive(Default)]
pub(crate) struct KnownLanes {
    axis: Option<AxisId>,
    lanes: usize,
    known: FxHashMap<usize, Lanes128>,
    order: Vec<usize>,
}

impl KnownLanes {
    pub(super) fn begin(&mut self, axis: Axis, lanes: usize) {
        self.axis = Some(axis.id);
        self.lanes = lanes;
    }

    pub(super) fn end(&mut self) {
        self.axis = None;
        self.known.clear();
        self.order.clear();
    }

    /// The axis that runs over lanes.
    pub(crate) fn axis(&self) -> AxisId {
        self.axis.unwrap_or(AxisId(u32::MAX))
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(crate) fn get(&self, x: &Scalar) -> Option<&Lanes128> {
        self.known.get(&x.address())
    }

    pub(super) fn set(&mut self, x: &Scalar, lanes: Lanes128) {
        if self.known.insert(x.address(), lanes).is_none() {
            self.order.push(x.address());
        }
    }

    /// To go back to with [`KnownLanes::forget`].
    pub(super) fn mark(&self) -> usize {
        self.order.len()
    }

    /// Forgets what came since the mark.
    pub(super) fn forget(&mut self, mark: usize) {
        for address in self.order.drain(mark..) {
            self.known.remove(&address);
        }
    }
}
