//! Pooling of regularly spaced samples: a region is divided into bins, and a bin of size `b` along an axis
//! has `n` samples, at `(i + 0.5) · b / n` from where it starts. With a `sampling_ratio` of 0, `n` is `⌈b⌉`.
//!
//! Samples are interpolated. One that is more than an element away from the map counts as 0.

use super::counted::counted;
use super::regions::float;
use super::sample::{bilinear, bounded, within};
use crate::Lower;
use crate::layout::index_map::extent;
use serde::Deserialize;
use vinelift_nest::build::{index, lowest, number, select, zero};
use vinelift_nest::{Binary, Scalar};

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
    /// Half the length of that stretch.
    pub(super) reach: f64,
}

/// Indices of samples that stay exact in the conversions.
const MOST: i64 = 1 << 31;

/// The samples of a bin along one axis.
struct Samples {
    start: Scalar,
    /// How many there are, as a float.
    total: Scalar,
    spacing: Scalar,
    /// Those to look at, if not all of a fixed number.
    part: Option<Part>,
}

/// Samples that can meet the map. As two neighbours are more than half an element apart, there are
/// not many, however large the bin.
struct Part {
    first: Scalar,
    count: Scalar,
    /// At most so many.
    most: usize,
    /// Whether these are all, and there is one.
    is_all: Scalar,
}

impl Samples {
    fn new(bin: Bin, sampling_ratio: usize) -> Samples {
        let ty = bin.size.ty();
        if sampling_ratio > 0 {
            let total = number(sampling_ratio as f64, ty);
            return Samples {
                spacing: &bin.size / &total,
                start: bin.start,
                total,
                part: None,
            };
        }
        let total = bin.size.ceil();
        let spacing = &bin.size / &total;
        let near = (bin.centre - &bin.start - bin.reach) / &spacing;
        let first = bounded(&(near.floor() - 2.0), 0, MOST);
        let all = bounded(&total, 0, MOST);
        let most = (4.0 * bin.reach).ceil() as usize + 6;
        let left = (&all - &first).max(index(0));
        let count = left.min(index(extent(most)));
        Samples {
            start: bin.start,
            total,
            spacing,
            part: Some(Part {
                is_all: all.eq(count.clone()) & all.gt(index(0)),
                first,
                count,
                most,
            }),
        }
    }

    /// Where sample `i` of those to look at is.
    fn place(&self, i: &Scalar) -> Scalar {
        let i = match &self.part {
            Some(part) => &part.first + i,
            None => i.clone(),
        };
        let i = float(&i, self.spacing.ty());
        &self.start + (i + 0.5) * &self.spacing
    }
}

/// The value of the bin along both axes, in a map of extents `dims`. `place` says where on the map a
/// sample at these distances along the axes lies, and `load` gives an element of the map.
pub(super) fn pool(
    cx: &mut Lower<'_>,
    mode: Mode,
    sampling_ratio: usize,
    bins: [Bin; 2],
    dims: [usize; 2],
    place: impl Fn(Scalar, Scalar) -> [Scalar; 2],
    load: impl Fn(&Lower<'_>, &Scalar, &Scalar) -> Scalar,
) -> Scalar {
    let ty = bins[0].size.ty();
    let [down, across] = bins.map(|bin| Samples::new(bin, sampling_ratio));
    let sample = |cx: &mut Lower<'_>, i: &Scalar, j: &Scalar| {
        let [y, x] = place(down.place(i), across.place(j));
        let near = within(&y, -1.0, dims[0] as f64) & within(&x, -1.0, dims[1] as f64);
        select(near, bilinear(cx, [&y, &x], dims, &load), zero(ty))
    };
    let (op, init) = match mode {
        Mode::Avg => (Binary::Add, zero(ty)),
        Mode::Max => (Binary::Max, lowest(ty)),
    };
    let (Some(rows), Some(columns)) = (&down.part, &across.part) else {
        let pooled = cx.reduce(op, &[sampling_ratio; 2], init, |cx, k| {
            sample(cx, &k[0], &k[1])
        });
        return match mode {
            Mode::Avg => pooled / (down.total * across.total),
            Mode::Max => pooled,
        };
    };
    let pooled = counted(cx, op, &rows.count, rows.most, &init, |cx, i| {
        counted(cx, op, &columns.count, columns.most, &init, |cx, j| {
            sample(cx, i, j)
        })
    });
    match mode {
        Mode::Avg => {
            let any = down.total.gt(zero(ty)) & across.total.gt(zero(ty));
            select(any, pooled / (down.total * across.total), zero(ty))
        }
        // The samples that were left out count as 0, and so does a bin without any.
        Mode::Max => {
            let all = rows.is_all.clone() & columns.is_all.clone();
            select(all, pooled.clone(), zero(ty).max(pooled))
        }
    }
}
