//! Which contractions are convolutions with windows of 3 × 3, step by step of one.

use crate::axes::{Axes, Axis};
use crate::groups::{check_groups, check_overlap};
use crate::winograd_tile::{HALVES, Windows};
use crate::{Contraction, Dim, Element};

/// A convolution.
#[derive(Debug)]
pub(super) struct Convolution {
    /// The pictures: their strides in the image and in `out`.
    pub(super) pictures: Axes<2>,
    /// The extents of `out`, rows and columns, and how far a step is in the image and in `out`.
    pub(super) extents: [usize; 2],
    pub(super) image_steps: [usize; 2],
    pub(super) out_steps: [usize; 2],
    /// How many channels pixels have, and how far a step is in the image.
    pub(super) channels: usize,
    pub(super) channel_step: usize,
    /// How many channels the results have, and how far a step is in `out`.
    pub(super) results: usize,
    pub(super) result_step: usize,
    /// Whether the bytes of the image have signs.
    pub(super) is_signed: bool,
    pub(super) windows: Windows,
    /// How many elements of the image and of `out` there must be.
    pub(super) image_needed: usize,
    pub(super) out_needed: usize,
}

/// The extent of a window, along rows and along columns.
const WINDOW: usize = 3;

/// The most channels. A product is at most 255 · 128, a result has nine for each channel, and four times a result must fit into
/// an `i32`.
const MOST_CHANNELS: usize = (i32::MAX / 4 / (9 * 255 * 128)) as usize;

/// A dim as the image, the windows and `out` see it.
#[derive(Clone, Copy)]
struct Step {
    extent: usize,
    image: usize,
    windows: usize,
    out: usize,
}

/// The dims of a convolution: of pictures and their rows `y` and columns `x`, of results, and of the windows' rows, columns and
/// channels.
struct Dims {
    pictures: Vec<Step>,
    y: Step,
    x: Step,
    results: Step,
    row: Step,
    column: Step,
    channel: Step,
}

impl Dims {
    /// Those of a contraction with windows of 3 × 3 that step by one; `None` if it has others.
    fn of(contraction: &Contraction, windows_are_right: bool) -> Option<Dims> {
        let steps = |dims: &[Dim]| -> Vec<Step> {
            let dims = dims.iter().filter(|dim| dim.extent != 1);
            dims.map(|dim| Step::of(dim, windows_are_right)).collect()
        };
        let (mut pixels, columns) = match windows_are_right {
            true => (steps(&contraction.m), steps(&contraction.n)),
            false => (steps(&contraction.n), steps(&contraction.m)),
        };
        let batch = steps(&contraction.batch);
        if batch.iter().any(|dim| dim.windows != 0) {
            return None;
        }
        pixels.splice(..0, batch);
        let mut sum = steps(&contraction.k);
        sum.sort_by_key(|dim| std::cmp::Reverse(dim.image));
        let channel = sum.iter().position(|dim| dim.extent >= HALVES);
        let channel = sum.remove(channel?);
        let (&[results], &[row, column]) = (columns.as_slice(), sum.as_slice()) else {
            return None;
        };
        let mut along = |step: usize| {
            let at = pixels.iter().rposition(|dim| dim.image == step)?;
            Some(pixels.remove(at))
        };
        let (x, y) = (along(column.image)?, along(row.image)?);
        let is_window = row.extent == WINDOW && column.extent == WINDOW;
        is_window.then_some(Dims {
            pictures: pixels,
            y,
            x,
            results,
            row,
            column,
            channel,
        })
    }
}

impl Step {
    fn of(dim: &Dim, windows_are_right: bool) -> Step {
        let (image, windows) = match windows_are_right {
            true => (dim.left, dim.right),
            false => (dim.right, dim.left),
        };
        Step {
            extent: dim.extent,
            image,
            windows,
            out: dim.out,
        }
    }
}

impl Convolution {
    /// The convolution that a contraction is, if it is one whose windows are the right operand, or the left one.
    pub(super) fn of(contraction: &Contraction, windows_are_right: bool) -> Option<Convolution> {
        check_groups(contraction).ok()?;
        check_overlap(contraction).ok()?;
        let is_left_signed = match contraction.element {
            Element::U8I8 => false,
            Element::I8U8 => true,
            Element::F32 | Element::F64 => return None,
        };
        let Dims {
            pictures,
            y,
            x,
            results,
            row,
            column,
            channel,
        } = Dims::of(contraction, windows_are_right)?;
        if !channel.extent.is_multiple_of(2) || channel.extent > MOST_CHANNELS {
            return None;
        }
        let window = [results, row, column, channel];
        let windows = Windows {
            channels: channel.extent,
            results: results.extent,
            steps: [channel, results, row, column].map(|dim| dim.windows),
            is_signed: windows_are_right != is_left_signed,
            needed: needed(window.iter(), |dim| dim.windows)?,
        };
        let image = [y, x, row, column, channel];
        let out = [y, x, results];
        Some(Convolution {
            image_needed: needed(pictures.iter().chain(&image), |dim| dim.image)?,
            out_needed: needed(pictures.iter().chain(&out), |dim| dim.out)?,
            pictures: Axes::new(pictures.iter().map(|dim| Axis {
                extent: dim.extent,
                strides: [dim.image, dim.out],
            }))
            .ok()?,
            extents: [y.extent, x.extent],
            image_steps: [y.image, x.image],
            out_steps: [y.out, x.out],
            channels: channel.extent,
            channel_step: channel.image,
            results: results.extent,
            result_step: results.out,
            is_signed: windows_are_right == is_left_signed,
            windows,
        })
    }

    /// How many tiles there are along rows, and along columns.
    pub(super) fn tiles(&self) -> [usize; 2] {
        self.extents.map(|extent| extent.div_ceil(2))
    }

    /// Whether the products that are saved are worth the transforms, both counted in multiply-adds of vectors of 16 products, for
    /// each tile.
    pub(super) fn pays(&self) -> bool {
        /// The transforms of a channel of a tile, whose pixels have their channels together or apart, and of a result of one.
        const CHANNEL: usize = 2;
        const CHANNEL_APART: usize = 20;
        const RESULT: usize = 3;
        const RESULT_APART: usize = 6;
        /// Calling a micro-kernel and storing its sums takes as long as the products of this many channels.
        const CALL: usize = 10;
        let points = |extents: [usize; 2]| extents[0].saturating_mul(extents[1]);
        let (tiles, pixels) = (points(self.tiles()), points(self.extents));
        let products = self.channels * self.results;
        let plain = pixels.saturating_mul(9 * products / 16);
        let result = match self.result_step {
            1 => RESULT,
            _ => RESULT_APART,
        };
        let channel = match self.channel_step {
            1 => CHANNEL,
            _ => CHANNEL_APART,
        };
        let of_tile = products + channel * self.channels + (CALL + result) * self.results;
        tiles.saturating_mul(of_tile) < plain
    }

    /// How many bytes a pixel that is all zeros has: none if every tile has all its pixels.
    pub(super) fn zeros(&self) -> usize {
        match self.extents.iter().any(|extent| extent % 2 == 1) {
            true => (self.channels - 1) * self.channel_step + 1,
            false => 0,
        }
    }

    /// Operations without transforms.
    pub(super) fn flops(&self) -> u64 {
        let [rows, columns] = self.extents;
        [
            self.pictures.points(),
            rows,
            columns,
            self.results,
            9 * self.channels,
        ]
        .iter()
        .fold(2, |flops: u64, &extent| flops.saturating_mul(extent as u64))
    }

    /// How many elements of `out` each picture has, if pictures, rows, pixels and their channels follow each other there without
    /// gaps.
    pub(super) fn dense_picture(&self) -> Option<usize> {
        let ([rows, columns], [row, column]) = (self.extents, self.out_steps);
        let size = rows.checked_mul(row)?;
        let is_dense = self.result_step == 1 && column == self.results && row == columns * column;
        let follow = match self.pictures.points() {
            0 | 1 => true,
            _ => self.pictures.line(1) == Some(size),
        };
        (is_dense && follow).then_some(size)
    }
}

/// How many elements there are to the last of these dims, if their offsets fit into 32 bits.
fn needed<'s>(
    dims: impl Iterator<Item = &'s Step>,
    stride: impl Fn(&Step) -> usize,
) -> Option<usize> {
    let axes = dims.map(|dim| Axis {
        extent: dim.extent,
        strides: [stride(dim)],
    });
    let axes = Axes::new(axes).ok()?;
    (axes.points() > 0).then(|| axes.last(0) + 1)
}
