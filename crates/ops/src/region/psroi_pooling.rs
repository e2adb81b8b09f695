//! `PSROIPooling`: `out[r, c, p, q]` pools bin `(p, q)` of region `r`, `rois[r] = (batch, x1, y1, x2, y2)`, in
//! a feature map of its own. With `g` = `group_size` and `s` = `spatial_scale`, along each axis:
//!
//! `mode="average"`: the mean of the elements `⌊low + p · b⌋ .. ⌈low + (p + 1) · b⌉` of
//! `data[batch, (c · g + p) · g + q]`, where
//! ```text
//! low = round(x1) · s    b = max((round(x2) + 1) · s - low, 0.1) / g
//! ```
//! `mode="bilinear"`: the corners are fractions of the map, the region is divided into
//! `spatial_bins_y × spatial_bins_x` parts of size `b`, and it is the mean over the parts `(i, j)` of the
//! interpolated values of `data[batch, (i · spatial_bins_x + j) · output_dim + c]` at
//! ```text
//! (W - 1) · (x1 · s + j · b + b · q / (g - 1)),    of b / 2 if g is 1
//! ```
//! Specification: PSROIPooling-1, for the formulas OpenVINO's reference implementation. What lies off the map is
//! not said: here, as on OpenVINO's CPU device and in [`super::roi_pooling`], a bin covers the elements
//! that are on the map and is 0 if there are none, and an interpolated value is 0 before the first
//! element and after the last. The least size, 0.1, is from there too. A negative batch gives 0, one out of range is an error.

use super::regions::{self, Batches, Windows, float, scaled, stage};
use super::sample::{bilinear, within};
use crate::elementwise::round::half_away;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::index_map::{extent, last_float};
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::{Dim, Extent};

pub(crate) static DEF: OpDef = OpDef {
    name: "PSROIPooling",
    versions: &["opset1"],
    signature: Signature::new(&["data", "rois"]),
    family: Family::Region,
    build: Build::Op(|attributes| {
        let op: PsRoiPooling = attributes.parse()?;
        regions::check_positive("output_dim", op.output_dim)?;
        regions::check_positive("group_size", op.group_size)?;
        // Without bins, OpenVINO writes that there are 0.
        if op.mode == Mode::Bilinear {
            regions::check_positive("spatial_bins_x", op.spatial_bins_x)?;
            regions::check_positive("spatial_bins_y", op.spatial_bins_y)?;
        }
        regions::check_scale(op.spatial_scale)?;
        Ok(Box::new(op))
    }),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PsRoiPooling {
    output_dim: usize,
    #[serde(default = "crate::attrs::one")]
    group_size: usize,
    spatial_scale: f64,
    #[serde(default)]
    mode: Mode,
    #[serde(default = "crate::attrs::one")]
    spatial_bins_x: usize,
    #[serde(default = "crate::attrs::one")]
    spatial_bins_y: usize,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Average,
    Bilinear,
}

impl PsRoiPooling {
    /// Parts along the axes.
    fn parts(&self) -> [usize; 2] {
        match self.mode {
            Mode::Average => [self.group_size; 2],
            Mode::Bilinear => [self.spatial_bins_y, self.spatial_bins_x],
        }
    }

    /// The first element of bin `p` along axis `a` of the map, and the end.
    fn edges(&self, cx: &Lower<'_>, a: usize, r: &Scalar, p: &Scalar) -> [Scalar; 2] {
        let corner = |column| half_away(&scaled(cx, r, column, 1.0));
        let column = [2, 1][a];
        let low = corner(column) * self.spatial_scale;
        let ty = low.ty();
        let size = (corner(column + 2) + 1.0) * self.spatial_scale - &low;
        let size = size.max(number(0.1, ty)) / self.group_size as f64;
        let edge = |p: Scalar| &low + float(&p, ty) * &size;
        [edge(p.clone()).floor(), edge(p + 1).ceil()]
    }

    /// Where bin `p` of part `k` is along axis `a` of the map, where it has `n` elements.
    fn place(
        &self,
        cx: &Lower<'_>,
        r: &Scalar,
        a: usize,
        [k, p]: [&Scalar; 2],
        n: Extent,
    ) -> Scalar {
        let column = [2, 1][a];
        let low = scaled(cx, r, column, self.spatial_scale);
        let high = scaled(cx, r, column + 2, self.spatial_scale);
        let ty = low.ty();
        let size = (high - &low) / self.parts()[a] as f64;
        let last = last_float(n, ty);
        let start = low + float(k, ty) * &size;
        match self.group_size {
            1 => (start + size * 0.5) * last,
            bins => float(p, ty) * (size * &last / (bins as f64 - 1.0)) + start * last,
        }
    }
}

impl Op for PsRoiPooling {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let (count, data) = regions::infer(cx, 5)?;
        let [rows, columns] = self.parts().map(Dim::fixed);
        let channels = Dim::fixed(self.output_dim).mul(rows).mul(columns);
        let parts = self.parts();
        ensure!(
            data[1].intersect(channels).is_some(),
            "`data` {} must have `output_dim` {} · {} · {} channels",
            cx.shape("data"),
            self.output_dim,
            parts[0],
            parts[1]
        );
        let channels = Dim::fixed(self.output_dim);
        Ok(vec![regions::output(
            cx,
            count,
            channels,
            [self.group_size; 2],
        )?])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let data = cx.extents("data");
        let dims = [data[2], data[3]];
        let batches = Batches::from_rois(cx);
        if regions::zeros_if_empty(cx) {
            return;
        }
        match self.mode {
            Mode::Average => self.average(cx, &batches, dims),
            Mode::Bilinear => self.bilinear(cx, &batches, dims),
        }
    }
}

impl PsRoiPooling {
    fn average(&self, cx: &mut Lower<'_>, batches: &Batches, dims: [Extent; 2]) {
        let ty = cx.element("data");
        let wide = ty.compute();
        let [rows, columns] = [0, 1].map(|a| {
            Windows::new(cx, self.group_size, dims[a], |cx, r, p| {
                self.edges(cx, a, r, p)
            })
        });
        cx.define(cx.output(0), |cx, at| {
            let [r, c, p, q] = at else { return zero(ty) };
            let (batch, any) = batches.of(cx, r);
            let group = extent(self.group_size);
            let channel = (c * group + p) * group + q;
            let (add, init) = (Binary::Add, zero(wide));
            let [height, width] = [rows.count(cx, r, p), columns.count(cx, r, q)];
            let sum = rows.fold(cx, add, &init, [r, p], |cx, y| {
                columns.fold(cx, add, &init, [r, q], |cx, x| {
                    widened(cx.load("data", &[&batch, &channel, y, x].map(Clone::clone)))
                })
            });
            let filled = any & height.gt(index(0)) & width.gt(index(0));
            let count = float(&(height * width), wide);
            select(filled, sum / count, zero(wide)).cast(ty)
        });
    }

    fn bilinear(&self, cx: &mut Lower<'_>, batches: &Batches, dims: [Extent; 2]) {
        let ty = cx.element("data");
        let wide = ty.compute();
        let parts = self.parts();
        let regions = cx.extents("rois")[0];
        let places = [0, 1].map(|a| {
            let shape = [regions, parts[a].into(), self.group_size.into()];
            stage(cx, "place", wide, &shape, |cx, at| {
                self.place(cx, &at[0], a, [&at[1], &at[2]], dims[a])
            })
        });
        cx.define(cx.output(0), |cx, at| {
            let [r, c, p, q] = at else { return zero(ty) };
            let (batch, any) = batches.of(cx, r);
            let sum = cx.reduce(Binary::Add, &parts, zero(wide), |cx, k| {
                let part = &k[0] * extent(parts[1]) + &k[1];
                let channel = part * extent(self.output_dim) + c;
                let y = cx.load_from(places[0], &[r, &k[0], p].map(Clone::clone));
                let x = cx.load_from(places[1], &[r, &k[1], q].map(Clone::clone));
                let [last_y, last_x] = dims.map(|n| last_float(n, wide));
                let inside = within(&y, 0.0, last_y) & within(&x, 0.0, last_x);
                let value = bilinear(cx, [&y, &x], dims, |cx, y, x| {
                    let at = [&batch, &channel, y, x].map(Clone::clone);
                    widened(cx.load("data", &at))
                });
                select(inside, value, zero(wide))
            });
            let mean = sum / (parts[0] as f64 * parts[1] as f64);
            select(any, mean, zero(wide)).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    /// Four maps of 2 × 2 elements: `10 k + 0, 1, 2, 3`.
    fn maps() -> vinelift_tensor::Tensor {
        let of = |k: i32| [0, 1, 2, 3].map(|i| (10 * k + i) as f32);
        f32s(&[1, 4, 2, 2], &[0, 1, 2, 3].map(of).concat())
    }

    fn pool(roi: [f32; 5], more: &[(&str, &str)]) -> Vec<f64> {
        let mut attributes = vec![("output_dim", "1"), ("spatial_scale", "1")];
        attributes.extend(more);
        let inputs = [maps(), f32s(&[1, 5], &roi)];
        run(&DEF, &attributes, &inputs).to_f64_vec().unwrap()
    }

    /// By hand: each bin has a map of its own.
    #[test]
    fn means_of_bins() {
        let group = [("group_size", "2")];
        let whole = [0.0, 0.0, 0.0, 1.0, 1.0];
        assert_eq!(pool(whole, &group), [0.0, 11.0, 22.0, 33.0]);
        // From -1 to 1 along both axes: only the last bin has an element.
        assert_eq!(
            pool([0.0, -1.0, -1.0, 0.0, 0.0], &group),
            [0.0, 0.0, 0.0, 30.0]
        );
        assert_eq!(pool([-1.0, 0.0, 0.0, 1.0, 1.0], &group), [0.0; 4]);
    }

    /// By hand: each part of the region has a map of its own, and every bin takes one sample of each.
    #[test]
    fn interpolated_samples_of_parts() {
        let parts = [
            ("mode", "bilinear"),
            ("spatial_bins_x", "2"),
            ("spatial_bins_y", "2"),
        ];
        let whole = [0.0, 0.0, 0.0, 1.0, 1.0];
        // One bin: samples at 0.25 and 0.75.
        assert_eq!(pool(whole, &parts), [16.5]);
        // Two bins: at 0 and 0.5, and at 0.5 and 1.
        let bins = [&parts[..], &[("group_size", "2")]].concat();
        assert_eq!(pool(whole, &bins), [15.75, 16.25, 16.75, 17.25]);
    }

    #[test]
    fn channels_must_fit() {
        let attributes = [
            ("output_dim", "2"),
            ("group_size", "2"),
            ("spatial_scale", "1"),
        ];
        let found = error(&DEF, &attributes, &[maps(), f32s(&[0, 5], &[])]);
        let message = "`data` [1, 4, 2, 2] must have `output_dim` 2 · 2 · 2 channels";
        assert_eq!(found, message);
    }
}
