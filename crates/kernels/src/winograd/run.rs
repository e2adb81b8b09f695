//! Runs.

use super::{MOST_TILES, WinogradConvolution, WinogradPartition};
use crate::memory::elements;
use crate::packed::Packed;
use crate::points::PointsAt;
use crate::run::{aligned, check_out};
use crate::tile::{Next, Tile};
use crate::winograd_tile::{ImageTile, POSITIONS, ResultTile};
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// The memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct WinogradBuffers<'a> {
    /// The pixels, where the strides of the contraction say.
    pub image: &'a [u8],
    /// The windows, as a convolution of the same [layout](WinogradConvolution::layout) packed them.
    pub windows: &'a Packed,
    /// Where the results go. They need no alignment.
    pub out: *mut u8,
    /// How many bytes of them there are.
    pub out_bytes: usize,
    /// The number of the first element that is there; other than 0 only if those that the task writes
    /// [lie together](WinogradPartition::region).
    pub out_start: usize,
    /// Once this is true, tasks end soon, whatever is done by then.
    pub stop: &'a AtomicBool,
}

impl WinogradConvolution {
    /// Runs a task. No two tasks write the same elements of `out`.
    ///
    /// # Panics
    /// if the image or `out` is too small, the windows are packed for another kernel, or the plan is another kernel's.
    ///
    /// # Safety
    /// `buffers.out` points to `out_bytes` bytes that may be written, outside of the operands, and nothing else uses the elements
    /// that the task writes meanwhile; `worker` points to [`WinogradPartition::worker_bytes`] bytes that may be written and which
    /// nothing else uses meanwhile.
    pub unsafe fn run_task(
        &self,
        plan: &WinogradPartition,
        task: usize,
        buffers: &WinogradBuffers,
        worker: *mut u8,
    ) {
        assert!(plan.kernel == self.number, "the plan is another kernel's");
        let rows = plan.shares[task].clone();
        let (region, needed) = (plan.region(task), self.convolution.out_needed);
        let out = (buffers.out_start, buffers.out_bytes);
        check_out(region.as_ref(), needed, size_of::<i32>(), out);
        let words = self.panels() * POSITIONS * self.position_words();
        let windows = buffers.windows.transformed_words(words);
        let worker = aligned(worker);
        let places = self.worker();
        let run = Run {
            kernel: self,
            image: elements(buffers.image, self.convolution.image_needed, 1),
            windows,
            out: buffers.out.cast::<i32>().wrapping_sub(buffers.out_start),
            pixels: worker.cast(),
            sums: worker.wrapping_add(places.sums_at).cast(),
            zeros: worker.wrapping_add(places.zeros_at),
        };
        let [_, columns] = self.convolution.tiles();
        let tiles = rows.start * columns..rows.end * columns;
        // SAFETY: the caller's: there is room for the zeros of a pixel, and the rest was checked above.
        unsafe {
            run.zeros.write_bytes(0, self.convolution.zeros());
            for start in tiles.clone().step_by(self.block) {
                if buffers.stop.load(Ordering::Relaxed) {
                    return;
                }
                run.block(start..tiles.end.min(start + self.block));
            }
        }
    }

    /// Runs all tasks, one after another.
    ///
    /// # Panics
    /// as [`run_task`](WinogradConvolution::run_task), or if `worker` is too small.
    pub fn run(
        &self,
        plan: &WinogradPartition,
        image: &[u8],
        windows: &Packed,
        out: &mut [u8],
        worker: &mut [u8],
    ) {
        assert!(
            worker.len() >= plan.worker_bytes(),
            "too little scratch memory"
        );
        let buffers = WinogradBuffers {
            image,
            windows,
            out: out.as_mut_ptr(),
            out_bytes: out.len(),
            out_start: 0,
            stop: &AtomicBool::new(false),
        };
        for task in 0..plan.tasks() {
            // SAFETY: `out` and the scratch memory are exclusively ours, outside of the operands.
            unsafe { self.run_task(plan, task, &buffers, worker.as_mut_ptr()) }
        }
    }
}

/// A task. Tiles are numbered picture by picture and row by row.
struct Run<'a> {
    kernel: &'a WinogradConvolution,
    image: *const u8,
    windows: *const i32,
    out: *mut i32,
    /// The transformed pixels of a block of tiles, position by position, and the sums of a panel of columns.
    pixels: *mut i16,
    sums: *mut i32,
    /// A pixel of zeros.
    zeros: *mut u8,
}

/// Where a tile is: the offsets of its picture, in the image and in `out`, and the row and the column of its first pixel.
#[derive(Clone, Copy)]
struct Place {
    picture: [usize; 2],
    at: [usize; 2],
}

impl Run<'_> {
    /// Computes a block of tiles.
    ///
    /// # Safety
    /// as [`WinogradConvolution::run_task`].
    unsafe fn block(&self, tiles: Range<usize>) {
        let width = self.kernel.engine.width();
        let results = self.kernel.convolution.results;
        let mut places = [Place {
            picture: [0; 2],
            at: [0; 2],
        }; MOST_TILES];
        let places = &mut places[..tiles.len()];
        self.find(tiles.start, places);
        // SAFETY: the caller's; there is room for the pixels and for the sums of as many tiles.
        unsafe {
            for (number, place) in places.iter().enumerate() {
                self.transform_pixels(number, place);
            }
            for panel in 0..self.kernel.panels() {
                for position in 0..POSITIONS {
                    self.sum(panel, position, places.len());
                }
                let columns = panel * width..results.min((panel + 1) * width);
                for (number, place) in places.iter().enumerate() {
                    self.transform_sums(number, place, columns.clone());
                }
            }
        }
    }

    /// Finds the places of tiles, from number `first` on.
    fn find(&self, first: usize, places: &mut [Place]) {
        let convolution = &self.kernel.convolution;
        let [rows, columns] = convolution.tiles();
        let (mut row, mut column) = (first / columns, first % columns);
        let (mut picture, mut row_of_picture) = (row / rows, row % rows);
        for place in places {
            *place = Place {
                picture: convolution.pictures.at(picture),
                at: [2 * row_of_picture, 2 * column],
            };
            column += 1;
            if column == columns {
                (row, column) = (row + 1, 0);
                (picture, row_of_picture) = (row / rows, row % rows);
            }
        }
    }

    /// Transforms the pixels of the tile of this number in the block. Those that the picture does not have count as zeros: no
    /// result that it has is made of them.
    ///
    /// # Safety
    /// as [`Run::block`].
    unsafe fn transform_pixels(&self, number: usize, place: &Place) {
        let convolution = &self.kernel.convolution;
        let [row_step, column_step] = convolution.image_steps;
        let [rows, columns] = convolution.extents;
        let mut from = [self.zeros.cast_const(); POSITIONS];
        for (position, from) in from.iter_mut().enumerate() {
            let (row, column) = (place.at[0] + position / 4, place.at[1] + position % 4);
            if row < rows + 2 && column < columns + 2 {
                let offset = place.picture[0] + row * row_step + column * column_step;
                *from = self.image.wrapping_add(offset);
            }
        }
        let tile = ImageTile {
            from,
            channels: convolution.channels,
            channel_step: convolution.channel_step,
            is_signed: convolution.is_signed,
            to: self.pixels.wrapping_add(number * convolution.channels),
            step: self.kernel.block * convolution.channels,
        };
        // SAFETY: the caller's; all pixels of the picture are in the image.
        unsafe { (self.kernel.engine.transforms.image)(&tile) }
    }

    /// Sums the products of the first `tiles` of the block at a position with the windows of a panel.
    ///
    /// # Safety
    /// as [`Run::block`].
    unsafe fn sum(&self, panel: usize, position: usize, tiles: usize) {
        let WinogradConvolution {
            convolution,
            engine,
            block,
            ..
        } = self.kernel;
        let (width, channels) = (engine.width(), convolution.channels);
        let words = self.kernel.position_words();
        let windows = (self.windows).wrapping_add((panel * POSITIONS + position) * words);
        let pixels = self.pixels.wrapping_add(position * block * channels);
        let sums = self.sums.wrapping_add(position * block * width);
        for first in (0..tiles).step_by(engine.height) {
            let height = engine.height.min(tiles - first);
            let tile = Tile {
                k: channels / 2,
                rows: pixels.wrapping_add(first * channels).cast_const().cast(),
                rows_step: 0,
                row_points: self.kernel.row_points.as_ptr(),
                row_steps: self.kernel.row_steps.as_ptr(),
                live: std::ptr::null(),
                row_line: 0,
                columns: windows,
                rows_ahead: 0,
                // The first of them has the windows fetched that come next.
                next: Next {
                    from: windows.wrapping_add(words),
                    step: if first == 0 { width } else { 0 },
                },
                panel_step: 0,
                points: PointsAt::NONE,
                points_step: 0,
                points_panel_step: 0,
                group: 0,
                offsets: null(),
                column_points: null(),
                column_count: 0,
                vectors: self.kernel.vectors.as_ptr(),
                out: sums.wrapping_add(first * width),
                row_offsets: self.kernel.row_sums.as_ptr(),
                scatter: null(),
                last: engine.engine.lanes,
                fresh: true,
            };
            // SAFETY: the caller's; the micro-kernel is for as many rows and vectors, all of them whole.
            unsafe { engine.engine.strided[engine.vectors - 1][height - 1](&tile) }
        }
    }

    /// Makes the results of some columns of the tile of this number in the block.
    ///
    /// # Safety
    /// as [`Run::block`].
    unsafe fn transform_sums(&self, number: usize, place: &Place, columns: Range<usize>) {
        let convolution = &self.kernel.convolution;
        let width = self.kernel.engine.width();
        let [row_step, column_step] = convolution.out_steps;
        let [rows, of_row] = convolution.extents;
        let first = place.picture[1] + columns.start * convolution.result_step;
        let mut to = [null_mut(); 4];
        for (result, to) in to.iter_mut().enumerate() {
            let (row, column) = (place.at[0] + result / 2, place.at[1] + result % 2);
            if row < rows && column < of_row {
                *to = (self.out).wrapping_add(first + row * row_step + column * column_step);
            }
        }
        let tile = ResultTile {
            from: self.sums.wrapping_add(number * width),
            step: self.kernel.block * width,
            columns: columns.len(),
            to,
            to_step: convolution.result_step,
        };
        // SAFETY: the caller's; all results of the picture are in `out`, and a panel has whole vectors.
        unsafe { (self.kernel.engine.transforms.results)(&tile) }
    }
}
