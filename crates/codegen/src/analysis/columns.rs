//! Blocks of columns: a gather runs block by block of its columns, as the rows that a block reads stay in the cache.
//!
//! > `y[i, j] = x[wrap(p[i, j]), j]`
//!
//! Each point of a row may read another row of `x`. If the whole of `x` does not fit into the cache, the columns `j` are cut
//! into blocks so that what a block reads does. Where that pays, the columns of a block are first packed into a panel of
//! scratch memory: rows of `x` that lie far apart take a page each, more than the processor translates addresses for, and
//! often fall into the same few sets of the cache. Packing reads memory in its own order, which is several times as fast as
//! in the order of the indices.

use super::linear::PackedColumns;
use super::state::Analysis;
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, BufferId, Effects, Kind, Scalar, Stage};

/// The most bytes of data that a block of columns may read.
const CACHED: usize = 1 << 19;
/// Bytes that the cache takes from each row at least.
pub(crate) const LINE: usize = 64;
/// Data of more bytes is packed in any case: no cache is sure to hold it until it is used again.
const LARGE: usize = 6 << 20;
/// As [`CACHED`], for elements of fewer than 4 bytes, where it decides whether packing pays.
const NEAR: usize = 1 << 16;
/// The most columns of a panel. With few, runs of indices and results would be short.
const MOST_COLUMNS: usize = 64;
/// Where there are fewer columns, so that there are several blocks, a block has at least this many lines of each row.
const LEAST_LINES: usize = 2;
/// Bytes of panels: what is larger stays in no cache.
const MOST_SCRATCH: usize = 16 << 20;

/// Points that are done in blocks of columns.
pub(crate) struct Columns<'n> {
    pub(crate) count: usize,
    /// The data that is packed for each block.
    pub(crate) panels: Vec<PackedColumns<'n>>,
}

impl std::fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let packed = match self.panels.is_empty() {
            true => "",
            false => ", packed",
        };
        write!(f, "{} columns at a time{packed}", self.count)
    }
}

/// Gives the panels for `count` columns their offsets in scratch memory; drops them if they are too large.
pub(crate) fn place_panels(panels: &mut Vec<PackedColumns<'_>>, count: usize) {
    let mut offset = 0usize;
    for panel in &mut *panels {
        panel.offset = offset;
        panel.terms[0].1 = count as i64;
        offset = offset.saturating_add(panel.bytes(count).next_multiple_of(LINE));
    }
    if offset > MOST_SCRATCH {
        panels.clear();
    }
}

impl<'n> Analysis<'n> {
    /// The blocks of columns, which are points of the innermost axis `lane`, that should run for all points of `rows`, the
    /// axis around it, one block after the other; a block has at least `lanes` columns, which are done at once. `None` if the
    /// stage is to run in its order.
    pub(crate) fn columns(
        &self,
        stage: &'n Stage,
        [rows, lane]: [Axis; 2],
        lanes: usize,
    ) -> Option<Columns<'n>> {
        let mut count = usize::MAX;
        let mut panels = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![(&stage.value, false)];
        while let Some((x, guarded)) = open.pop() {
            if !self.facts.free(x).contains(&lane.id) || !seen.insert((x.address(), guarded)) {
                continue;
            }
            if let Kind::Load { buffer, at } = x.kind()
                && let Some((columns, panel)) = self.lead_apart(stage, *buffer, at, [rows, lane])
            {
                count = count.min(columns);
                // Elements behind a guard need not exist.
                panels.extend(panel.filter(|_| !guarded));
            }
            let guards = guarded || matches!(x.kind(), Kind::Select(..) | Kind::Reduce { .. });
            open.extend(x.children().map(|child| (child, guards)));
        }
        // The last block overlaps the one before, by as little as can be.
        let points = lane.extent.number()?;
        let count = even(points, count, lanes).max(lanes);
        let fewer = count < points / 2 && rows.extent >= 8;
        // Blocks change the order of points, and all points run again if an index is wrong.
        let ordered = stage.group.is_none() && Effects::of_stage(stage).may_repeat();
        let may = fewer && ordered && self.is_injective(stage);
        may.then_some(Columns { count, panels })
    }

    /// If each point of `buffer[at]` leads to a row of its own: how many columns should be done at once, and
    /// what may be packed before.
    fn lead_apart(
        &self,
        stage: &Stage,
        buffer: BufferId,
        at: &'n [Scalar],
        [rows, lane]: [Axis; 2],
    ) -> Option<(usize, Option<PackedColumns<'n>>)> {
        let ty = self.nest.buf(buffer).ty;
        let size = (ty.bits() / 8).max(1);
        let linear = self.linear(buffer, at);
        let along = |(leaf, k): &(&Scalar, i64)| *k == 1 && leaf.is_axis(lane.id);
        let terms = linear.numbers()?;
        let column = terms.iter().copied().find(along)?;
        // Panels are as large as the extents, and so must be known.
        let (row, extent, step) = terms.iter().find_map(|&(leaf, k)| match leaf.kind() {
            Kind::Wrap(wrap) if self.varies_with(leaf, [rows.id, lane.id]) => {
                let far = (k.unsigned_abs() as usize).saturating_mul(size) >= LINE;
                Some((leaf, wrap.extent.number().filter(|_| far)?, k))
            }
            _ => None,
        })?;
        let row_count = rows.extent.number()?;
        // Few points do not come back to what a block has brought into the cache.
        if row_count < extent / 4 {
            return None;
        }
        let linear = linear.without(|leaf| leaf.address() == row.address());
        let is_known = linear.leaves().all(|leaf| match leaf.kind() {
            Kind::Axis(id) => *id != rows.id && stage.domain.iter().any(|axis| axis.id == *id),
            _ => false,
        });
        let shape = &self.nest.buf(buffer).shape;
        // At the example: whether it pays to pack.
        let bytes = shape
            .iter()
            .fold(size, |all, n| all.saturating_mul(n.example()));
        let fitting = (CACHED / extent.max(1).saturating_mul(LINE)).max(1);
        let pitch = (step.unsigned_abs() as usize).saturating_mul(size);
        let pays = bytes > LARGE || saves_time(extent, pitch, row_count, size);
        if !(pays && is_known) || bytes == 0 || ty.is_packed() {
            return Some((fitting * LINE / size, None));
        }
        let panel = PackedColumns {
            buffer,
            at,
            linear,
            extent,
            step,
            size,
            offset: 0,
            terms: [(row, 0), column],
        };
        let mut columns = (fitting * LINE / size).min(MOST_COLUMNS);
        while columns * 2 >= lane.extent.number()? && columns * size > LEAST_LINES * LINE {
            columns /= 2;
        }
        Some((columns, Some(panel)))
    }

    fn varies_with(&self, x: &Scalar, axes: [AxisId; 2]) -> bool {
        axes.iter().all(|axis| self.facts.free(x).contains(axis))
    }
}

/// The length of blocks of at most `most` points that cover `extent`, all but a few of them once: a multiple
/// of `unit`, unless there are fewer points.
pub(crate) fn even(extent: usize, most: usize, unit: usize) -> usize {
    let blocks = extent.div_ceil(most).max(1);
    let length = extent.div_ceil(blocks).next_multiple_of(unit);
    length.min(extent).min(most)
}

/// Whether gathering `found` elements of `size` bytes from `extent` rows, `pitch` bytes apart, is faster if the rows are packed
/// first.
fn saves_time(extent: usize, pitch: usize, found: usize, size: usize) -> bool {
    // To pack a word takes about as long as packing saves for an element that is found.
    let word = size.min(4);
    let near = if word < 4 { NEAR } else { CACHED };
    let is_far = extent.saturating_mul(pitch) > near;
    is_far && found.saturating_mul(4) >= extent.saturating_mul(word)
}
