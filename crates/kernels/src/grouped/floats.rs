//! Runs of rows of floats.

use super::GroupedProduct;
use super::operands::{Operands, are_in_strip, place, places};
use crate::axes::Axes;
use crate::geometry::parts;
use crate::grouped_tile::floats::{
    CodeLines, CodeTiles, ElementTile, ElementTileFn, FloatRow, FloatTile, FloatTiles, MADE_PANELS,
    MOST_CODED_ROWS,
};
use crate::grouped_tile::{PANEL, Strip};
use crate::simd;
use crate::{Code, Isa};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The bytes of elements that are made at a time, of a group or more: the first cache takes them while rows are there.
const MADE_BYTES: usize = 16 << 10;

/// How rows of floats are taken.
#[derive(Debug)]
pub(super) struct Tiling {
    pub(super) tiles: &'static FloatTiles,
    /// Whether elements are made of codes before they are multiplied.
    pub(super) makes_elements: bool,
    /// Where each row is then, the sums of its groups, and its result.
    places: Box<[[usize; 3]]>,
    /// The elements of a group, and of how many groups they are made at a time.
    group: usize,
    groups: usize,
}

/// The memory of a task that makes elements, in `f32`: the elements come first.
pub(super) struct Worker {
    elements: usize,
    totals: usize,
}

impl Tiling {
    /// Of rows of which `out` has elements, or none.
    pub(super) fn new(isa: Isa, group: usize, rows: &Axes<3>, has_elements: bool) -> Tiling {
        let tiles = simd::float_tiles(isa);
        let bytes = (MADE_PANELS * PANEL * size_of::<f32>()).saturating_mul(group);
        let makes_elements = has_elements && rows.points() > MOST_CODED_ROWS;
        let count = if makes_elements { rows.points() } else { 0 };
        Tiling {
            tiles,
            makes_elements,
            places: (0..count).map(|row| rows.at(row)).collect(),
            group,
            groups: (MADE_BYTES / bytes.max(1)).max(1),
        }
    }

    /// How many panels are taken at once where there are as many rows.
    pub(super) fn panels_of(&self, code: Code, rows: usize) -> usize {
        match self.makes_elements {
            true => MADE_PANELS,
            false => (self.tiles.of)(code).wide[rows.clamp(1, MOST_CODED_ROWS) - 1].0,
        }
    }

    /// The memory of a task that takes `rows` at a time.
    pub(super) fn worker(&self, rows: usize) -> Worker {
        let width = match self.makes_elements {
            true => MADE_PANELS * PANEL,
            false => 0,
        };
        Worker {
            elements: (self.group * self.groups).saturating_mul(width),
            totals: rows.saturating_mul(width),
        }
    }
}

impl Worker {
    pub(super) fn bytes(&self) -> usize {
        self.elements
            .saturating_add(self.totals)
            .saturating_mul(size_of::<f32>())
    }
}

/// A task.
pub(super) struct Run<'a> {
    pub(super) product: &'a GroupedProduct,
    pub(super) tiling: &'a Tiling,
    pub(super) operands: Operands<'a>,
    /// As many bytes as [`Worker`] says, on a line of the cache.
    pub(super) worker: *mut f32,
    /// How many rows are taken at a time.
    pub(super) row_block: usize,
}

impl Run<'_> {
    /// Computes some panels of columns of a block of rows.
    ///
    /// # Safety
    /// The operands have all elements, and `out` those of the panels; there is memory as [`Worker`] says.
    pub(super) unsafe fn block(&self, block: Range<usize>, panels: Range<usize>) {
        let tiles = (self.tiling.tiles.of)(self.product.code);
        // SAFETY: the caller's.
        unsafe {
            match self.tiling.makes_elements {
                true => self.by_elements(&tiles, block, panels),
                false => self.by_codes(&tiles, block, panels),
            }
        }
    }

    /// Computes them by tiles of codes.
    ///
    /// # Safety
    /// as [`block`](Run::block); there are no more rows than [`MOST_CODED_ROWS`].
    unsafe fn by_codes(&self, tiles: &CodeTiles, rows: Range<usize>, panels: Range<usize>) {
        let (width, wide) = tiles.wide[rows.len() - 1];
        let mut panel = panels.start;
        while panel < panels.end && !self.operands.stop.load(Ordering::Relaxed) {
            let (count, tile) = match are_in_strip(panel, width, &panels) {
                true => (width, wide),
                false => (1, tiles.narrow[rows.len() - 1]),
            };
            // SAFETY: the caller's; tiles take as many rows and panels as they are given.
            unsafe { tile(&self.tile(rows.clone(), panel, count)) }
            panel += count;
        }
    }

    /// The tile of these rows and panels.
    fn tile(&self, rows: Range<usize>, panel: usize, count: usize) -> FloatTile {
        let Operands { steps, packed, .. } = self.operands;
        let row = |number: usize| {
            // Tiles of one row do not look at the other.
            let [elements, sums, out] = self.row((rows.start + number).min(rows.end - 1));
            FloatRow {
                elements,
                sums,
                out: out.cast_mut(),
            }
        };
        FloatTile {
            steps,
            strip: Strip::of(&steps, packed, panel),
            rows: std::array::from_fn(row),
            places: places(self.product, panel),
            columns: (self.product.shape.n - panel * PANEL).min(count * PANEL),
        }
    }

    /// Where a row starts, the sums of its groups, and its result.
    fn row(&self, row: usize) -> [*const f32; 3] {
        let [elements, sums, out] = match self.tiling.places.get(row) {
            Some(places) => *places,
            None => self.product.rows.at(row),
        };
        let Operands {
            rows,
            points,
            out: to,
            ..
        } = self.operands;
        [
            rows.cast::<f32>().wrapping_add(elements),
            points.wrapping_add(sums),
            to.cast_const().wrapping_add(out),
        ]
    }

    /// Computes them by tiles of elements, which are made for all rows of the block, some groups at a time.
    ///
    /// # Safety
    /// as [`block`](Run::block).
    unsafe fn by_elements(&self, tiles: &CodeTiles, block: Range<usize>, panels: Range<usize>) {
        let Operands {
            steps,
            packed,
            stop,
            ..
        } = self.operands;
        let groups = steps.groups * steps.row_groups;
        // Tasks begin with a multiple of `MADE_PANELS`, which divides a strip.
        for first in panels.clone().step_by(MADE_PANELS) {
            let panels = MADE_PANELS.min(panels.end - first);
            let strip = Strip::of(&steps, packed, first);
            let mut number = 0;
            while number < groups {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let some = number..groups.min(number + self.tiling.groups);
                number = some.end;
                // SAFETY: the caller's: there is memory for the elements of as many groups.
                unsafe {
                    self.make(tiles, some.clone(), strip, panels);
                    self.add(block.clone(), some, strip, panels);
                }
            }
            for panel in first..first + panels {
                let columns = (self.product.shape.n - panel * PANEL).min(PANEL);
                for row in block.clone() {
                    let [.., out] = self.row(row);
                    let to = out.wrapping_add(place(self.product, panel)).cast_mut();
                    let from = self.totals(row - block.start, panels);
                    let from = from.wrapping_add((panel - first) * PANEL);
                    let bytes = columns * size_of::<f32>();
                    // SAFETY: the caller's; the totals are all there unless there are no groups.
                    unsafe {
                        match groups {
                            0 => to.cast::<u8>().write_bytes(0, bytes),
                            _ => from.cast::<u8>().copy_to_nonoverlapping(to.cast(), bytes),
                        }
                    }
                }
            }
        }
    }

    /// Makes the elements of some groups of `panels` panels of a strip.
    ///
    /// # Safety
    /// as [`block`](Run::block).
    unsafe fn make(&self, tiles: &CodeTiles, groups: Range<usize>, strip: Strip, panels: usize) {
        let steps = self.operands.steps;
        for (at, number) in groups.enumerate() {
            let (coding, part) = (number / steps.row_groups, number % steps.row_groups);
            let before = part * steps.lines * strip.line_step();
            let lines = CodeLines {
                codes: strip.lines(&steps, coding).wrapping_add(before),
                line_step: strip.line_step(),
                panels,
                lines: steps.lines,
                to: (self.worker).wrapping_add(at * steps.row_group * panels * PANEL),
            };
            // SAFETY: the caller's.
            unsafe { (tiles.make)(&lines) }
        }
    }

    /// Adds the products of some groups, whose elements are made, to the totals of a block of rows.
    ///
    /// # Safety
    /// as [`block`](Run::block).
    unsafe fn add(&self, block: Range<usize>, groups: Range<usize>, strip: Strip, panels: usize) {
        let at_once = self.tiling.tiles.elements.len();
        for first in (0..panels).step_by(at_once) {
            let tiles: &[ElementTileFn] =
                self.tiling.tiles.elements[at_once.min(panels - first) - 1];
            let column = first * PANEL;
            for part in parts(block.len(), block.len().div_ceil(tiles.len())) {
                let row = |number: usize| {
                    // Tiles of fewer rows do not look at the others.
                    let number = (part.start + number).min(part.end - 1);
                    let [elements, sums, _] = self.row(block.start + number);
                    FloatRow {
                        elements,
                        sums,
                        out: self.totals(number, panels).wrapping_add(column),
                    }
                };
                let tile = ElementTile {
                    steps: self.operands.steps,
                    first: groups.start,
                    groups: groups.len(),
                    strip: strip.skip(first),
                    elements: self.worker.wrapping_add(column),
                    width: panels * PANEL,
                    rows: std::array::from_fn(row),
                };
                // SAFETY: the caller's; the tile is for as many rows and panels.
                unsafe { tiles[part.len() - 1](&tile) }
            }
        }
    }

    /// The totals of row number `row` of the block, one for each column of `panels` panels.
    fn totals(&self, row: usize, panels: usize) -> *mut f32 {
        let memory = self.tiling.worker(self.row_block);
        self.worker
            .wrapping_add(memory.elements + row * panels * PANEL)
    }
}
