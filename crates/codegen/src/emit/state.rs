//! The state of what is being emitted: open loops, computed scalars, open tasks, the numbers that are needed.

use cranelift_codegen::ir::{Block, Value};
use rustc_hash::FxHashMap;
use vinelift_nest::{Axis, AxisId, Binary, FoldBounds, Scalar, Wrap};
use vinelift_tensor::Extent;

/// A loop that is open: code is being emitted into its body.
pub(super) struct Loop {
    pub(super) axis: Axis,
    /// Points that one turn does.
    pub(super) step: i64,
    pub(super) head: Block,
    pub(super) exit: Block,
    pub(super) counter: Value,
    /// The accumulators as they are at the top, if the loop is part of a reduction.
    pub(super) carried: Vec<Value>,
}

/// The turns of a loop: from `from` on, as long as they are below `to`.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) from: Value,
    pub(crate) to: Value,
    /// Whether there may be fewer than the axis has points.
    pub(super) is_part: bool,
}

impl Bounds {
    pub(super) fn between(from: Value, to: Value) -> Bounds {
        Bounds {
            from,
            to,
            is_part: true,
        }
    }

    /// Where they begin and end, if the axis does not say so.
    pub(super) fn part(self) -> Option<(Value, Value)> {
        self.is_part.then_some((self.from, self.to))
    }
}

/// A scalar that has been computed.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) value: Value,
    /// For a wrap that reads zero, whether the index is in range; `value` is 0 if not.
    pub(super) inside: Option<Value>,
}

impl From<Value> for Slot {
    fn from(value: Value) -> Slot {
        Slot {
            value,
            inside: None,
        }
    }
}

/// Something to do; the last of the list is done first.
#[derive(Clone, Copy)]
pub(super) enum Task<'n> {
    /// Computes a scalar, unless that has been done.
    Need(&'n Scalar),
    /// Computes a scalar whose operands have been computed.
    Finish(&'n Scalar),
    /// Emits a select whose condition has been computed.
    Choose(Select<'n>),
    /// Ends the side `yes` of a select, whose value has been computed, and begins the side `no`.
    Otherwise {
        select: Select<'n>,
        no: Block,
        join: Block,
    },
    /// Ends a select.
    Join { select: Select<'n>, join: Block },
    /// Begins a reduction whose start value has been computed.
    Start(Reduce<'n>),
    /// Computes what does not depend on the axes of a reduction that are still to be opened.
    Hoist(Reduce<'n>),
    /// Opens the loop over an axis of a reduction, over some of its points if it says over which.
    Open(Axis, Option<Bounds>),
    /// Folds the body, which has been computed, and closes the loops.
    Fold(Reduce<'n>),
    /// Reports a fault whose position has been computed.
    Report {
        whole: &'n Scalar,
        wrap: &'n Wrap,
        index: Value,
        resume: Block,
    },
}

#[derive(Clone, Copy)]
pub(super) struct Select<'n> {
    pub(super) whole: &'n Scalar,
    pub(super) condition: &'n Scalar,
    pub(super) yes: &'n Scalar,
    pub(super) no: &'n Scalar,
}

#[derive(Clone, Copy)]
pub(super) struct Reduce<'n> {
    pub(super) whole: &'n Scalar,
    pub(super) op: Binary,
    pub(super) axes: &'n [Axis],
    pub(super) init: &'n Scalar,
    /// The value that is folded at each point that the loops visit.
    pub(super) body: &'n Scalar,
    pub(super) bounds: Option<FoldBounds<'n>>,
}

/// How much work the loops of a stage are.
#[derive(Default)]
pub(super) struct Looks {
    /// For each axis, that of one point of it; nothing if no loop is to look.
    pub(super) points: FxHashMap<AxisId, usize>,
    /// The axis that is cut into chunks.
    pub(super) cut: Option<AxisId>,
}

/// An axis in scope.
#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub(super) value: Value,
    /// A constant that is added to `value`.
    pub(super) plus: i64,
    /// How many loops are open around its values.
    pub(super) depth: usize,
}

/// The formulas that a kernel needs the numbers of.
pub(crate) struct Numbers {
    /// Where the table begins.
    table: Value,
    /// The extents whose numbers are in it, in order.
    extents: Vec<Extent>,
}

impl Numbers {
    pub(super) fn new(table: Value) -> Numbers {
        Numbers {
            table,
            extents: Vec::new(),
        }
    }

    pub(super) fn table(&self) -> Value {
        self.table
    }

    /// The place of an extent in the table.
    pub(super) fn of(&mut self, extent: Extent) -> usize {
        let known = self.extents.iter().position(|known| *known == extent);
        known.unwrap_or_else(|| {
            self.extents.push(extent);
            self.extents.len() - 1
        })
    }

    /// The extents whose numbers the table has, in order.
    pub(super) fn into_extents(self) -> Vec<Extent> {
        self.extents
    }
}
