//! Pooling of regularly spaced samples: a region is divided into bins, and a bin of size `b` along an axis
//! has `n` samples, at `(i + 0.5) · b / n` from where it starts. With a `sampling_ratio` of 0, `n` is `⌈b⌉`.
//!
//! Samples are interpolated. One that is more than an element away from the map counts as 0.

use super::counted::counted;
use super::regions::{float, stage};
use super::sample::{bilinear, bounded, within};
use crate::Lower;
use crate::layout::index_map::extent_float;
use serde::Deserialize;
use vinelift_nest::build::{index, lowest, select, zero};
use vinelift_nest::{Binary, BufferId, Scalar};
use vinelift_tensor::{ElementType, Extent};

/// The attribute `mode`: what becomes of the samples of a bin.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    Avg,
    Max,
}

/// A bin along one axis.
pub(super) struct Bin {
    /// Where it starts.
    pub(super) start: Scalar,
    /// How large it is.
    pub(super) size: Scalar,
    /// The middle of the stretch on which samples can meet the map.
    pub(super) centre: Scalar,
}

/// Samples can meet a map on a stretch of `2 · half` along an axis.
#[derive(Clone)]
pub(super) struct Reach {
    pub(super) half: Scalar,
    /// No more samples than this do, even if coordinates are rounded.
    pub(super) most: Scalar,
    /// An extent that is no less.
    pub(super) bound: Extent,
}

/// Indices of samples are cut to this.
const MOST: usize = 1 << 31;

/// The samples of all bins of all regions.
pub(super) struct Grid {
    sampling_ratio: usize,
    axes: [Axis; 2],
}

/// The samples along one axis, in buffers `[region, bin]`.
struct Axis {
    /// Where the first sample is.
    start: BufferId,
    /// How far apart samples are.
    spacing: BufferId,
    /// Which are to be looked at, if they are not a fixed number.
    part: Option<Part>,
}

/// Samples that can meet the map. As two neighbours are more than half an element apart, there are
/// not many, however large the bin.
struct Part {
    /// How many samples there are, as a float.
    total: BufferId,
    first: BufferId,
    count: BufferId,
    /// The largest count there can be.
    most: Extent,
}

impl Grid {
    /// `bin` gives a bin of a region along an axis, of which there are `pooled`.
    pub(super) fn new(
        cx: &mut Lower<'_>,
        sampling_ratio: usize,
        pooled: [usize; 2],
        reach: [Reach; 2],
        bin: impl Fn(&Lower<'_>, usize, &Scalar, &Scalar) -> Bin,
    ) -> Grid {
        let axes = [0, 1].map(|a| {
            let bin = |cx: &Lower<'_>, at: &[Scalar]| bin(cx, a, &at[0], &at[1]);
            Axis::new(cx, sampling_ratio, pooled[a], &reach[a], bin)
        });
        Grid {
            sampling_ratio,
            axes,
        }
    }

    /// The value of bin `(p, q)` of region `r`, on a map of extents `dims`. `place` says where on the map a
    /// sample at these distances along the axes lies, and `load` gives an element of the map.
    pub(super) fn pool(
        &self,
        cx: &mut Lower<'_>,
        mode: Mode,
        [r, p, q]: [&Scalar; 3],
        dims: [Extent; 2],
        place: impl Fn(Scalar, Scalar) -> [Scalar; 2],
        load: impl Fn(&Lower<'_>, &Scalar, &Scalar) -> Scalar,
    ) -> Scalar {
        let [down, across] = &self.axes;
        let ty = cx.type_of(down.start);
        let sample = |cx: &mut Lower<'_>, i: &Scalar, j: &Scalar| {
            let [y, x] = place(down.place(cx, r, p, i), across.place(cx, r, q, j));
            let [bottom, right] = dims.map(|n| extent_float(n, ty));
            let near = within(&y, -1.0, bottom) & within(&x, -1.0, right);
            select(near, bilinear(cx, [&y, &x], dims, &load), zero(ty))
        };
        let (op, init) = match mode {
            Mode::Avg => (Binary::Add, zero(ty)),
            Mode::Max => (Binary::Max, lowest(ty)),
        };
        let (Some(rows), Some(columns)) = (&down.part, &across.part) else {
            let extents = [self.sampling_ratio; 2];
            let pooled = cx.reduce(op, &extents, init, |cx, k| sample(cx, &k[0], &k[1]));
            return match mode {
                Mode::Avg => pooled / (self.sampling_ratio as f64).powi(2),
                Mode::Max => pooled,
            };
        };
        let [of_rows, of_columns] = [[r, p], [r, q]].map(|at| at.map(Clone::clone));
        let row_count = cx.load_from(rows.count, &of_rows);
        let column_count = cx.load_from(columns.count, &of_columns);
        let pooled = counted(cx, op, &row_count, rows.most, &init, |cx, i| {
            counted(cx, op, &column_count, columns.most, &init, |cx, j| {
                sample(cx, i, j)
            })
        });
        let row_total = cx.load_from(rows.total, &of_rows);
        let column_total = cx.load_from(columns.total, &of_columns);
        let any = row_total.gt(zero(ty)) & column_total.gt(zero(ty));
        match mode {
            Mode::Avg => select(any, pooled / (row_total * column_total), zero(ty)),
            // The samples that were left out count as 0, and so does a bin without any.
            Mode::Max => {
                let all =
                    float(&row_count, ty).eq(row_total) & float(&column_count, ty).eq(column_total);
                select(any & all, pooled.clone(), zero(ty).max(pooled))
            }
        }
    }
}

impl Axis {
    fn new(
        cx: &mut Lower<'_>,
        sampling_ratio: usize,
        pooled: usize,
        reach: &Reach,
        bin: impl Fn(&Lower<'_>, &[Scalar]) -> Bin,
    ) -> Axis {
        let ty = cx.element("rois").compute();
        let shape = [cx.extents("rois")[0], pooled.into()];
        if sampling_ratio > 0 {
            let spacing = stage(cx, "spacing", ty, &shape, |cx, at| {
                bin(cx, at).size / sampling_ratio as f64
            });
            let start = stage(cx, "start", ty, &shape, |cx, at| {
                bin(cx, at).start + cx.load_from(spacing, at) * 0.5
            });
            return Axis {
                start,
                spacing,
                part: None,
            };
        }
        let total = stage(cx, "total", ty, &shape, |cx, at| bin(cx, at).size.ceil());
        let spacing = stage(cx, "spacing", ty, &shape, |cx, at| {
            bin(cx, at).size / cx.load_from(total, at)
        });
        let start = stage(cx, "start", ty, &shape, |cx, at| {
            bin(cx, at).start + cx.load_from(spacing, at) * 0.5
        });
        let first = stage(cx, "first", ElementType::I64, &shape, |cx, at| {
            let before = bin(cx, at).centre - cx.load_from(start, at) - &reach.half;
            let skipped = before / cx.load_from(spacing, at);
            bounded(&(skipped.floor() - 1.0), MOST.into())
        });
        let count = stage(cx, "count", ElementType::I64, &shape, |cx, at| {
            let all = bounded(&cx.load_from(total, at), MOST.into());
            let left = all - cx.load_from(first, at);
            left.max(index(0)).min(reach.most.clone())
        });
        Axis {
            start,
            spacing,
            part: Some(Part {
                total,
                first,
                count,
                most: reach.bound,
            }),
        }
    }

    /// Where sample `i` is, of those to look at in bin `p` of region `r`.
    fn place(&self, cx: &Lower<'_>, r: &Scalar, p: &Scalar, i: &Scalar) -> Scalar {
        let at = [r.clone(), p.clone()];
        let i = match &self.part {
            Some(part) => cx.load_from(part.first, &at) + i,
            None => i.clone(),
        };
        let spacing = cx.load_from(self.spacing, &at);
        cx.load_from(self.start, &at) + float(&i, spacing.ty()) * spacing
    }
}
