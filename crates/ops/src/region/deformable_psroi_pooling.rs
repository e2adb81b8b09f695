//! `DeformablePSROIPooling`: `out[r, c, p, q]` is the mean of interpolated samples of bin `(p, q)` of region
//! `r`, `rois[r] = (batch, x1, y1, x2, y2)`, in `data[batch, (c · group_size + p) · group_size + q]`. Along
//! each axis
//! ```text
//! low = round(x1) · spatial_scale - 0.5
//! size = max((round(x2) + 1) · spatial_scale - 0.5 - low, 0.1)    b = size / group_size
//! start = low + q · b + offset · trans_std · size
//! ```
//! and the samples are at `start + j · b / spatial_bins_x` for `j` in `0 .. spatial_bins_x`. Those more than
//! half an element off the map are left out; without any, the value is 0.
//!
//! `offset` is 0 without `offsets`, which has an x and a y for each class. Channel `c` is of class
//! `c / (output_dim / classes)`, and the offset of its bin stands at
//! `(p · part_size / group_size, q · part_size / group_size)`.
//!
//! Specification: DeformablePSROIPooling-1, for the formulas OpenVINO's reference implementation. The
//! specification gives `offsets` the extents `group_size` in one place and `part_size` in another: it
//! is `part_size`. A negative batch gives 0, one out of range is an error.

use super::regions::{self, Batches, float, scaled, stage};
use super::sample::{bilinear, within};
use crate::elementwise::round::half_away;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::index_map::{extent, extent_float};
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "DeformablePSROIPooling",
    versions: &["opset1"],
    signature: Signature::new(&["data", "rois", "offsets"]).optional(1),
    family: Family::Region,
    build: Build::Op(|attributes| {
        let op: DeformablePsRoiPooling = attributes.parse()?;
        for (name, value) in [
            ("output_dim", op.output_dim),
            ("group_size", op.group_size),
            ("spatial_bins_x", op.spatial_bins_x),
            ("spatial_bins_y", op.spatial_bins_y),
            ("part_size", op.part_size),
        ] {
            regions::check_positive(name, value)?;
        }
        regions::check_scale(op.spatial_scale)?;
        Ok(Box::new(op))
    }),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeformablePsRoiPooling {
    output_dim: usize,
    spatial_scale: f64,
    #[serde(default = "crate::attrs::one")]
    group_size: usize,
    #[serde(default, rename = "mode")]
    _mode: Mode,
    #[serde(default = "crate::attrs::one")]
    spatial_bins_x: usize,
    #[serde(default = "crate::attrs::one")]
    spatial_bins_y: usize,
    #[serde(default = "unit")]
    trans_std: f64,
    #[serde(default = "crate::attrs::one")]
    part_size: usize,
}

const fn unit() -> f64 {
    1.0
}

/// The only one there is.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    BilinearDeformable,
}

impl DeformablePsRoiPooling {
    /// How many classes `offsets` has, by its shape.
    fn classes(&self, channels: usize) -> Option<usize> {
        let classes = channels / 2;
        let fits = channels.is_multiple_of(2) && classes > 0;
        (fits && self.output_dim.is_multiple_of(classes)).then_some(classes)
    }

    /// The offset of a bin of channel `c` along axis `a`, if there are offsets.
    fn offset(&self, cx: &Lower<'_>, [r, c, p, q]: [&Scalar; 4], a: usize) -> Option<Scalar> {
        if !cx.has("offsets") {
            return None;
        }
        let classes = self.classes(cx.extents("offsets")[1].pin())?;
        let class = c / extent(self.output_dim / classes);
        let channel = class * 2 + [1, 0][a];
        let place = |p: &Scalar| match self.part_size == self.group_size {
            true => p.clone(),
            false => p * extent(self.part_size) / extent(self.group_size),
        };
        let at = [r.clone(), channel, place(p), place(q)];
        Some(widened(cx.load("offsets", &at)))
    }

    /// Where a region starts along axis `a`, and its size.
    fn region(&self, cx: &Lower<'_>, r: &Scalar, a: usize) -> [Scalar; 2] {
        let corner = |column, more| {
            let x = half_away(&scaled(cx, r, column, 1.0));
            (x + more) * self.spatial_scale - 0.5
        };
        let column = [2, 1][a];
        let low: Scalar = corner(column, 0.0);
        let size = corner(column + 2, 1.0) - &low;
        let size = size.max(number(0.1, low.ty()));
        [low, size]
    }
}

impl Op for DeformablePsRoiPooling {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let (mut count, data) = regions::infer(cx, 5)?;
        let group = Dim::fixed(self.group_size);
        let needed = Dim::fixed(self.output_dim).mul(group).mul(group);
        ensure!(
            data[1].max().is_none_or(|most| most >= needed.min()),
            "`data` {} must have at least `output_dim` {} · {}² channels",
            cx.shape("data"),
            self.output_dim,
            self.group_size
        );
        if cx.has("offsets") {
            cx.expect_same("data", "offsets")?;
            let part = Dim::fixed(self.part_size);
            let want = PartialShape::ranked(vec![count, Dim::ANY, part, part]);
            let found = cx.shape("offsets");
            let both = found.intersect(&want);
            let Some(&[regions, channels, _, _]) = both.as_ref().and_then(|s| s.dims()) else {
                return Err(OpError::Shape(format!(
                    "`offsets` must have shape {want}, found {found}"
                )));
            };
            ensure!(
                channels.get().is_none_or(|n| self.classes(n).is_some()),
                "`offsets` {found} must have two channels for each class, and `output_dim` {} \
                 equally many channels for each",
                self.output_dim
            );
            count = regions;
        }
        let channels = Dim::fixed(self.output_dim);
        Ok(vec![regions::output(
            cx,
            count,
            channels,
            [self.group_size; 2],
        )?])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("data");
        let wide = ty.compute();
        let data = cx.extents("data");
        let dims = [data[2], data[3]];
        let batches = Batches::from_rois(cx);
        if regions::zeros_if_empty(cx) {
            return;
        }
        let samples = [self.spatial_bins_y, self.spatial_bins_x];
        let regions = cx.extents("rois")[0];
        let starts = [0, 1].map(|a| {
            [("low", 0), ("size", 1)].map(|(name, k)| {
                stage(cx, name, wide, &[regions], |cx, at| {
                    self.region(cx, &at[0], a)[k].clone()
                })
            })
        });
        cx.define(cx.output(0), |cx, at| {
            let [r, c, p, q] = at else { return zero(ty) };
            let (batch, any) = batches.of(cx, r);
            let group = extent(self.group_size);
            let channel = (c * group + p) * group + q;
            // Where sample 0 of the bin is along each axis, and how far apart samples are.
            let bins = [0, 1].map(|a| {
                let [low, size] = starts[a].map(|b| cx.load_from(b, std::slice::from_ref(r)));
                let bin = &size / self.group_size as f64;
                let mut start = low + float([p, q][a], wide) * &bin;
                if let Some(offset) = self.offset(cx, [r, c, p, q], a) {
                    start = start + offset * self.trans_std * size;
                }
                [start, bin / samples[a] as f64]
            });
            // Where sample `k` is along axis `a`, and whether it counts.
            let place = |a: usize, k: &Scalar| {
                let [start, step] = &bins[a];
                let x = start + float(k, wide) * step;
                let on = within(&x, -0.5, end(dims[a], wide));
                (x, on)
            };
            let sum = cx.reduce(Binary::Add, &samples, zero(wide), |cx, k| {
                let ((y, on_y), (x, on_x)) = (place(0, &k[0]), place(1, &k[1]));
                let value = bilinear(cx, [&y, &x], dims, |cx, y, x| {
                    let at = [&batch, &channel, y, x].map(Clone::clone);
                    widened(cx.load("data", &at))
                });
                select(on_y & on_x, value, zero(wide))
            });
            let [rows, columns] = [0, 1].map(|a| {
                cx.reduce(Binary::Add, &samples[a..=a], index(0), |_, k| {
                    select(place(a, &k[0]).1, index(1), index(0))
                })
            });
            let count = rows * columns;
            let mean = sum / float(&count, wide);
            select(any & count.gt(index(0)), mean, zero(wide)).cast(ty)
        });
    }
}

/// Half a step past the last element of a dim: samples up to there count.
fn end(n: Extent, ty: ElementType) -> Scalar {
    match n.number() {
        Some(n) => number(n as f64 - 0.5, ty),
        None => extent_float(n, ty) - 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    /// A map of `0 .. 16` in rows of 4.
    fn pool(roi: [f32; 5], offsets: Option<[f32; 2]>, more: &[(&str, &str)]) -> f64 {
        let mut attributes = vec![("output_dim", "1"), ("spatial_scale", "1")];
        attributes.extend(more);
        let map: Vec<f32> = (0..16).map(|i| i as f32).collect();
        let mut inputs = vec![f32s(&[1, 1, 4, 4], &map), f32s(&[1, 5], &roi)];
        inputs.extend(offsets.map(|o| f32s(&[1, 2, 1, 1], &o)));
        run(&DEF, &attributes, &inputs).to_f64_vec().unwrap()[0]
    }

    /// By hand: a region of size 2 from 0.5 on, sampled at its corner, then at its corner and 1 on.
    #[test]
    fn samples_start_at_the_corner() {
        let roi = [0.0, 1.0, 1.0, 2.0, 2.0];
        assert_eq!(pool(roi, None, &[]), 2.5);
        let bins = [("spatial_bins_x", "2"), ("spatial_bins_y", "2")];
        assert_eq!(pool(roi, None, &bins), 5.0);
        // Half of the size to the right, a quarter up.
        assert_eq!(pool(roi, Some([0.5, -0.25]), &[]), 1.5);
        assert_eq!(pool(roi, Some([1.0, -0.5]), &[("trans_std", "0.5")]), 1.5);
    }

    /// By hand: from -0.5 on; samples that are further off are left out of the mean.
    #[test]
    fn only_samples_on_the_map_count() {
        assert_eq!(pool([0.0; 5], None, &[]), 0.0);
        let bins = [("spatial_bins_x", "2"), ("spatial_bins_y", "1")];
        assert_eq!(
            pool([0.0, 3.0, 0.0, 4.0, 0.0], None, &bins),
            (2.5 + 3.0) / 2.0
        );
        assert_eq!(pool([0.0, 4.0, 0.0, 5.0, 0.0], None, &bins), 3.0);
        assert_eq!(pool([0.0, 9.0, 0.0, 9.0, 0.0], None, &bins), 0.0);
        assert_eq!(pool([-1.0, 1.0, 1.0, 2.0, 2.0], None, &[]), 0.0);
        for bad in [f32::NAN, f32::INFINITY, -1e30] {
            for k in 1..5 {
                let mut roi = [0.0; 5];
                roi[k] = bad;
                pool(roi, Some([bad, 1.0]), &bins);
            }
        }
    }

    #[test]
    fn offsets_must_fit() {
        let attributes = [("output_dim", "3"), ("spatial_scale", "1")];
        let of = |shape: &[usize]| {
            let offsets = f32s(shape, &vec![0.0; shape.iter().product()]);
            let inputs = [
                f32s(&[1, 3, 1, 1], &[0.0; 3]),
                f32s(&[1, 5], &[0.0; 5]),
                offsets,
            ];
            error(&DEF, &attributes, &inputs)
        };
        let message = "`offsets` must have shape [1, ?, 1, 1], found [1, 2, 2, 2]";
        assert_eq!(of(&[1, 2, 2, 2]), message);
        let message = "`offsets` [1, 4, 1, 1] must have two channels for each class, and \
                       `output_dim` 3 equally many channels for each";
        assert_eq!(of(&[1, 4, 1, 1]), message);
    }
}
