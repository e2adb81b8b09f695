//! The operands of a task.

use super::GroupedProduct;
use crate::grouped_tile::{PANEL, STRIP, Steps};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// The operands of a task, which all of its tiles share.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) steps: Steps,
    pub(super) rows: *const u8,
    /// The scales or the sums of the groups of the rows.
    pub(super) points: *const f32,
    pub(super) packed: *const u8,
    pub(super) out: *mut f32,
    pub(super) stop: &'a AtomicBool,
}

/// Whether a tile of `count` panels from number `panel` on takes only some that there are, of one strip.
pub(super) fn are_in_strip(panel: usize, count: usize, panels: &Range<usize>) -> bool {
    panel + count <= panels.end && panel % STRIP + count <= STRIP
}

/// Where in a row of `out` the columns of panel number `panel` begin, and of those that follow.
pub(super) fn places(product: &GroupedProduct, panel: usize) -> [usize; STRIP] {
    std::array::from_fn(|number| place(product, panel + number))
}

/// Where in a row of `out` the columns of a panel begin.
pub(super) fn place(product: &GroupedProduct, panel: usize) -> usize {
    let column = panel * PANEL;
    // Mostly there is one block: tiles have no time to divide.
    match column < product.block {
        true => column,
        false => column / product.block * product.block_out + column % product.block,
    }
}
