//! Runs.

use super::operands::{Operands, are_in_strip, places};
use super::{GroupedPartition, GroupedProduct, RowTiles, floats};
use crate::grouped_tile::{MOST_ROWS, PANEL, Points, Steps, Strip, Tile, TileRow, Tiles, Zero};
use crate::memory::elements;
use crate::packed::Packed;
use crate::run::aligned;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct GroupedBuffers<'a> {
    /// The rows: `i8` or `f32`, where the strides say. They need no alignment.
    pub rows: &'a [u8],
    /// The scales or the sums of their groups: `f32`, where the strides say. They need no alignment. Sums need not be there
    /// where there are no zero points.
    pub points: &'a [u8],
    /// The codes, as a product of the same [layout](GroupedProduct::layout) packed them.
    pub packed: &'a Packed,
    /// Where the result goes. It needs no alignment.
    pub out: *mut u8,
    /// How many bytes of it there are.
    pub out_bytes: usize,
    /// Once this is true, tasks end soon, whatever is done by then.
    pub stop: &'a AtomicBool,
}

impl GroupedProduct {
    /// Runs a task. No two tasks write the same elements of `out`.
    ///
    /// # Panics
    /// if an operand or `out` is too small, the codes are packed for another product, or the plan is another product's.
    ///
    /// # Safety
    /// `buffers.out` points to `out_bytes` bytes that may be read and written, outside of the operands, and nothing else uses
    /// the elements that the task writes meanwhile; `worker` points to [`GroupedPartition::worker_bytes`] bytes that may be
    /// written and which nothing else uses meanwhile.
    pub unsafe fn run_task(
        &self,
        plan: &GroupedPartition,
        task: usize,
        buffers: &GroupedBuffers,
        worker: *mut u8,
    ) {
        assert!(plan.kernel == self.number, "the plan is another kernel's");
        let share = plan.shares[task].clone();
        let codes = buffers.packed.grouped_codes(&self.shape);
        let [rows, points, out] = self.needed;
        let out_bytes = out * size_of::<f32>();
        assert!(
            buffers.out_bytes >= out_bytes,
            "`out` has {} bytes of {out_bytes}",
            buffers.out_bytes
        );
        let steps = Steps::new(codes, self.group);
        let (row_bytes, points) = match codes.points {
            Points::OfBytes { .. } => (size_of::<i8>(), points),
            Points::OfFloats { has_zeros, .. } => {
                (size_of::<f32>(), if has_zeros { points } else { 0 })
            }
        };
        let operands = Operands {
            steps,
            rows: elements(buffers.rows, rows, row_bytes),
            points: elements(buffers.points, points, size_of::<f32>()).cast(),
            packed: buffers.packed.as_ptr(),
            out: buffers.out.cast(),
            stop: buffers.stop,
        };
        let all = self.rows.points();
        let blocks = (0..all).step_by(plan.row_block);
        let blocks = blocks.map(|start| start..all.min(start + plan.row_block));
        match (&self.tiles, codes.points) {
            (RowTiles::Bytes(tiles), Points::OfBytes { zero, .. }) => {
                let run = Run {
                    product: self,
                    tiles,
                    factor: match zero {
                        Zero::Same(zero) => -(zero + i32::from(tiles.shift)),
                        Zero::Each => -1,
                    },
                    operands,
                    sums: aligned(worker).cast(),
                };
                for block in blocks {
                    // SAFETY: the operands were checked to have all elements, and `out` too; the caller promises the rest.
                    unsafe { run.block(block, share.clone()) }
                }
            }
            (RowTiles::Floats(tiling), Points::OfFloats { .. }) => {
                let run = floats::Run {
                    product: self,
                    tiling,
                    operands,
                    worker: aligned(worker).cast(),
                    row_block: plan.row_block,
                };
                for block in blocks {
                    // SAFETY: as above.
                    unsafe { run.block(block, share.clone()) }
                }
            }
            _ => unreachable!("codes of this shape are packed for these rows"),
        }
    }

    /// Runs all tasks, one after another.
    ///
    /// # Panics
    /// as [`run_task`](GroupedProduct::run_task), or if `worker` is too small.
    pub fn run(
        &self,
        plan: &GroupedPartition,
        [rows, points]: [&[u8]; 2],
        packed: &Packed,
        out: &mut [u8],
        worker: &mut [u8],
    ) {
        assert!(
            worker.len() >= plan.worker_bytes(),
            "too little scratch memory"
        );
        let buffers = GroupedBuffers {
            rows,
            points,
            packed,
            out: out.as_mut_ptr(),
            out_bytes: out.len(),
            stop: &AtomicBool::new(false),
        };
        for task in 0..plan.tasks() {
            // SAFETY: `out` and the scratch memory are exclusively ours, outside of the operands.
            unsafe { self.run_task(plan, task, &buffers, worker.as_mut_ptr()) }
        }
    }
}

/// A task of rows of bytes.
struct Run<'a> {
    product: &'a GroupedProduct,
    tiles: &'static Tiles,
    /// Each sum of a group of a row is multiplied by this before tiles use it: by minus the zero point if that is the same for
    /// all, else by -1.
    factor: i32,
    operands: Operands<'a>,
    /// For the sums of the groups of a block of rows.
    sums: *mut i32,
}

impl Run<'_> {
    /// Computes some panels of columns of a block of rows.
    ///
    /// # Safety
    /// The operands have all elements, and `out` those of the panels; there is memory for the sums.
    unsafe fn block(&self, block: Range<usize>, panels: Range<usize>) {
        // SAFETY: the caller's.
        unsafe { self.sum_rows(block.clone()) }
        let tiles = self.tiles;
        let at_once = tiles.panels_of(block.len());
        let mut panel = panels.start;
        while panel < panels.end && !self.operands.stop.load(Ordering::Relaxed) {
            let is_wide = are_in_strip(panel, at_once, &panels);
            let count = if is_wide { at_once } else { 1 };
            for start in block.clone().step_by(MOST_ROWS) {
                let rows = start..block.end.min(start + MOST_ROWS);
                let (width, wide) = tiles.wide[rows.len() - 1];
                // SAFETY: the caller's; tiles take as many rows and panels as they are given.
                unsafe {
                    if count == width {
                        wide(&self.tile(block.start, rows, panel, count));
                        continue;
                    }
                    for panel in panel..panel + count {
                        let narrow = tiles.narrow[rows.len() - 1];
                        narrow(&self.tile(block.start, rows.clone(), panel, 1));
                    }
                }
            }
            panel += count;
        }
    }

    /// Sums the groups of a block of rows.
    ///
    /// # Safety
    /// as [`block`](Run::block).
    unsafe fn sum_rows(&self, block: Range<usize>) {
        let (product, groups) = (self.product, self.product.groups());
        if groups == 0 {
            // Nor is there memory for sums.
            return;
        }
        for (number, row) in block.enumerate() {
            let [offset, ..] = product.rows.at(row);
            let from = self.operands.rows.cast::<i8>().wrapping_add(offset);
            let to = self.sums.wrapping_add(number * groups);
            // SAFETY: the caller's: all rows of a block have room for as many sums, of any content before.
            unsafe {
                let to = std::slice::from_raw_parts_mut(to, groups);
                (self.tiles.group_sums)(from, product.group, self.factor, to);
            }
        }
    }

    /// The tile of these rows of the block that starts with `first`, and of these panels.
    fn tile(&self, first: usize, rows: Range<usize>, panel: usize, count: usize) -> Tile {
        let (groups, n) = (self.product.groups(), self.product.shape.n);
        let Operands {
            steps,
            rows: elements,
            points,
            packed,
            out: to,
            ..
        } = self.operands;
        let row = |number: usize| {
            // Tiles of fewer rows do not look at the others.
            let row = (rows.start + number).min(rows.end - 1);
            let [row_offset, scale, out] = self.product.rows.at(row);
            TileRow {
                elements: elements.cast::<i8>().wrapping_add(row_offset),
                scales: points.wrapping_add(scale),
                sums: self.sums.wrapping_add((row - first) * groups),
                out: to.wrapping_add(out),
            }
        };
        Tile {
            steps,
            strip: Strip::of(&steps, packed, panel),
            rows: std::array::from_fn(row),
            places: places(self.product, panel),
            columns: (n - panel * PANEL).min(count * PANEL),
        }
    }
}
