//! The common part of operators on regions: feature maps `data` `[N, C, H, W]`, and `rois`, a row of
//! numbers for each region.

use super::counted::between;
use super::sample::bounded;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::layout::index_map::last;
use crate::{Infer, Lower, OpError, TensorType};
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{Binary, BufferId, Policy, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

/// Checks `data` and `rois`, which has `columns`; the number of regions, and the dims of `data`.
pub(super) fn infer(cx: &Infer<'_>, columns: usize) -> Result<(Dim, [Dim; 4]), OpError> {
    cx.expect("data", "a float type", |t| t.is_float())?;
    cx.expect_same("data", "rois")?;
    cx.expect_rank("data", 4)?;
    let count = rows(cx, columns)?;
    let data = match cx.dims("data") {
        Some(&[n, c, h, w]) => [n, c, h, w],
        _ => [Dim::ANY; 4],
    };
    Ok((count, data))
}

/// Checks the shape of `rois`; the number of regions.
pub(super) fn rows(cx: &Infer<'_>, columns: usize) -> Result<Dim, OpError> {
    let want = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(columns)]);
    let found = cx.shape("rois");
    let both = found.intersect(&want);
    let rows = both.as_ref().and_then(|s| s.dims()).map(|d| d[0]);
    rows.ok_or_else(|| OpError::Shape(format!("`rois` must have shape {want}, found {found}")))
}

/// Checks `batch_indices`, one for each of `count` regions; their number.
pub(super) fn batch_indices(cx: &Infer<'_>, count: Dim) -> Result<Dim, OpError> {
    cx.expect_integer("batch_indices")?;
    cx.expect_rank("batch_indices", 1)?;
    let indices = cx.dims("batch_indices").map_or(Dim::ANY, |d| d[0]);
    count.intersect(indices).ok_or_else(|| {
        OpError::Shape(format!(
            "`rois` {} and `batch_indices` {} must have the same first dim",
            cx.shape("rois"),
            cx.shape("batch_indices")
        ))
    })
}

/// The output: `channels` maps of `pooled` extents for each of `count` regions.
pub(super) fn output(
    cx: &Infer<'_>,
    count: Dim,
    channels: Dim,
    pooled: [usize; 2],
) -> Result<TensorType, OpError> {
    let [h, w] = pooled.map(Dim::fixed);
    let shape = countable(PartialShape::ranked(vec![count, channels, h, w]))?;
    Ok(TensorType::new(cx.element("rois"), shape))
}

/// Checks the attribute `spatial_scale`.
pub(super) fn check_scale(scale: f64) -> Result<(), OpError> {
    let positive = scale > 0.0 && scale.is_finite();
    ensure!(positive, "`spatial_scale` must be positive, found {scale}");
    Ok(())
}

/// Checks that attribute `name` is at least 1.
pub(super) fn check_positive(name: &str, value: usize) -> Result<(), OpError> {
    ensure!(value > 0, "`{name}` must be at least 1, found 0");
    Ok(())
}

/// Which of the `N` feature maps each region looks at, or -1 for none.
pub(super) struct Batches {
    buffer: BufferId,
    last: Scalar,
}

impl Batches {
    /// From the input `batch_indices`; one out of range is an error.
    pub(super) fn from_indices(cx: &mut Lower<'_>) -> Batches {
        Batches::new(cx, |cx, region, maps| {
            let found = cx.load("batch_indices", region);
            cx.wrap(found, maps, Policy::CHECK, "batch_indices", region)
        })
    }

    /// From the first column of `rois`; a negative one is no feature map, one too large an error.
    pub(super) fn from_rois(cx: &mut Lower<'_>) -> Batches {
        Batches::new(cx, |cx, region, maps| {
            let at = [region[0].clone(), index(0)];
            let found = widened(cx.load("rois", &at));
            let negative = found.lt(zero(found.ty()));
            let found = found.cast(ElementType::I64);
            let checked = cx.wrap(found, maps, Policy::CHECK, "rois", &at);
            select(negative, index(-1), checked)
        })
    }

    fn new<'a>(
        cx: &mut Lower<'a>,
        of: impl FnOnce(&mut Lower<'a>, &[Scalar], Extent) -> Scalar,
    ) -> Batches {
        let regions = cx.extents("rois")[0];
        let maps = cx.extents("data")[0];
        let buffer = cx.temporary("batches", ElementType::I64, &[regions]);
        cx.define(buffer, |cx, region| of(cx, region, maps));
        Batches {
            buffer,
            last: last(maps),
        }
    }

    /// The index of the feature map of a region, and whether it has one.
    pub(super) fn of(&self, cx: &Lower<'_>, region: &Scalar) -> (Scalar, Scalar) {
        let batch = cx.load_from(self.buffer, std::slice::from_ref(region));
        let any = batch.ge(index(0));
        (batch.max(index(0)).min(self.last.clone()), any)
    }
}

/// Fills the output with zeros if `data` has no element to read. Returns whether it did.
pub(super) fn zeros_if_empty(cx: &mut Lower<'_>) -> bool {
    let empty = cx.extents("data").iter().any(|n| *n == 0);
    if empty {
        let ty = cx.element("data");
        cx.define(cx.output(0), |_, _| zero(ty));
    }
    empty
}

/// Number `column` of a region, times `scale`.
pub(super) fn scaled(cx: &Lower<'_>, region: &Scalar, column: i64, scale: f64) -> Scalar {
    let x = widened(cx.load("rois", &[region.clone(), index(column)]));
    match scale == 1.0 {
        true => x,
        false => &x * number(scale, x.ty()),
    }
}

/// An index as a float.
pub(super) fn float(i: &Scalar, ty: ElementType) -> Scalar {
    i.clone().cast(ty)
}

/// A buffer of `shape` whose elements `value` gives: what is the same for many elements of the output.
pub(super) fn stage<'a>(
    cx: &mut Lower<'a>,
    name: &str,
    ty: ElementType,
    shape: &[Extent],
    value: impl FnOnce(&mut Lower<'a>, &[Scalar]) -> Scalar,
) -> BufferId {
    let buffer = cx.temporary(name, ty, shape);
    cx.define(buffer, value);
    buffer
}

/// The elements of a dim of `n` that each bin of each region covers.
pub(super) struct Windows {
    first: BufferId,
    end: BufferId,
    /// Extent of the dim.
    n: Extent,
}

impl Windows {
    /// `edges` gives the first element of a bin of a region and the end, as floats without fractions.
    pub(super) fn new(
        cx: &mut Lower<'_>,
        bins: usize,
        n: Extent,
        edges: impl Fn(&Lower<'_>, &Scalar, &Scalar) -> [Scalar; 2],
    ) -> Windows {
        let shape = [cx.extents("rois")[0], bins.into()];
        let edge =
            |cx: &Lower<'_>, at: &[Scalar], k: usize| bounded(&edges(cx, &at[0], &at[1])[k], n);
        let [first, end] = ["first", "end"];
        let [first, end] = [(first, 0), (end, 1)]
            .map(|(name, k)| stage(cx, name, ElementType::I64, &shape, |cx, at| edge(cx, at, k)));
        Windows { first, end, n }
    }

    fn ends(&self, cx: &Lower<'_>, r: &Scalar, p: &Scalar) -> [Scalar; 2] {
        [self.first, self.end].map(|end| cx.load_from(end, &[r.clone(), p.clone()]))
    }

    /// How many elements bin `p` of region `r` covers; not above 0 if none.
    pub(super) fn count(&self, cx: &Lower<'_>, r: &Scalar, p: &Scalar) -> Scalar {
        let [first, end] = self.ends(cx, r, p);
        end - first
    }

    /// The fold of what `body` gives for each of them, in their order, from `init` on, which is neutral.
    pub(super) fn fold<'a>(
        &self,
        cx: &mut Lower<'a>,
        op: Binary,
        init: &Scalar,
        [r, p]: [&Scalar; 2],
        body: impl FnOnce(&mut Lower<'a>, &Scalar) -> Scalar,
    ) -> Scalar {
        let ends = self.ends(cx, r, p);
        between(cx, op, ends, self.n, init, body)
    }
}
