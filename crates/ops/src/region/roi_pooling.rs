//! `ROIPooling`: `out[r, c, p, q]` is a value of bin `(p, q)` of region `r`,
//! `rois[r] = (batch, x1, y1, x2, y2)`, in feature map `data[batch, c]`.
//!
//! With `method="max"` it is the maximum of the bin's elements, or 0 if there are none. Along each axis
//! ```text
//! low = round(x1 · spatial_scale)    size = max(round(x2 · spatial_scale) - low + 1, 1)
//! elements ⌊low + p · size / pooled⌋ .. ⌈low + (p + 1) · size / pooled⌉
//! ```
//! With `method="bilinear"` the corners are fractions of the map, and it is the interpolated value at
//! `(W - 1) · (x1 + (x2 - x1) · p / (pooled - 1))`, or in the middle of the region if `pooled` is 1; 0 if
//! that is not on the map.
//!
//! Specification: ROIPooling-1, which the IR calls opset1 or opset2. It does not say how corners are rounded:
//! as in OpenVINO's reference implementation. A negative batch, as in the row that ends a list of
//! proposals, gives 0; one out of range is an error. `output_size` and `output_roi`, which OpenVINO
//! writes beside `pooled_h` and `pooled_w`, must say the same.

use super::regions::{self, Batches, Windows, float, scaled, stage};
use super::sample::{bilinear, within};
use crate::elementwise::round::half_away;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::index_map::{extent, last_float};
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, lowest, number, select, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::Extent;

pub(crate) static DEF: OpDef = OpDef {
    name: "ROIPooling",
    versions: &["opset1", "opset2"],
    signature: Signature::new(&["data", "rois"]),
    family: Family::Region,
    build: Build::Op(|attributes| {
        let op: RoiPooling = attributes.parse()?;
        regions::check_scale(op.spatial_scale)?;
        for (name, sizes) in [
            ("output_size", &op.output_size),
            ("output_roi", &op.output_roi),
        ] {
            let pooled = op.pooled();
            let sizes = sizes.as_deref().unwrap_or(&pooled);
            ensure!(
                sizes == pooled,
                "`{name}` {sizes:?} must be `pooled_h` and `pooled_w`, {pooled:?}"
            );
        }
        Ok(Box::new(op))
    }),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoiPooling {
    pooled_h: usize,
    pooled_w: usize,
    spatial_scale: f64,
    #[serde(default)]
    method: Method,
    output_size: Option<Vec<usize>>,
    output_roi: Option<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Method {
    #[default]
    Max,
    Bilinear,
}

impl RoiPooling {
    fn pooled(&self) -> [usize; 2] {
        [self.pooled_h, self.pooled_w]
    }

    /// The first element of bin `p` along axis `a` of the map, and the end.
    fn edges(&self, cx: &Lower<'_>, a: usize, r: &Scalar, p: &Scalar) -> [Scalar; 2] {
        let corner = |column| half_away(&scaled(cx, r, column, self.spatial_scale));
        let column = [2, 1][a];
        let low = corner(column);
        let ty = low.ty();
        let size = (corner(column + 2) - &low + 1.0).max(number(1.0, ty));
        let size = size / self.pooled()[a] as f64;
        let edge = |p: Scalar| float(&p, ty) * &size;
        let (begin, end) = (edge(p.clone()).floor(), edge(p + 1).ceil());
        [begin + &low, end + &low]
    }

    /// The place of bin `p` along axis `a` of the map, where it has `n` elements.
    fn place(&self, cx: &Lower<'_>, r: &Scalar, a: usize, p: &Scalar, n: Extent) -> Scalar {
        let column = [2, 1][a];
        let low = scaled(cx, r, column, 1.0);
        let high = scaled(cx, r, column + 2, 1.0);
        let ty = low.ty();
        let last = last_float(n, ty);
        match self.pooled()[a] {
            0 | 1 => (low + high) * 0.5 * last,
            pooled => {
                let step = (&high - &low) * &last / (pooled as f64 - 1.0);
                let inner = float(p, ty) * step + low * &last;
                // Computed so that rounding cannot move the last bin off the map.
                select(p.eq(index(extent(pooled) - 1)), high * last, inner)
            }
        }
    }
}

impl Op for RoiPooling {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let (count, data) = regions::infer(cx, 5)?;
        Ok(vec![regions::output(cx, count, data[1], self.pooled())?])
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
        let load = |cx: &Lower<'_>, batch: &Scalar, c: &Scalar, y: &Scalar, x: &Scalar| {
            widened(cx.load("data", &[batch, c, y, x].map(Clone::clone)))
        };
        let pooled = self.pooled();
        match self.method {
            Method::Max => {
                let [rows, columns] = [0, 1].map(|a| {
                    Windows::new(cx, pooled[a], dims[a], |cx, r, p| self.edges(cx, a, r, p))
                });
                cx.define(cx.output(0), |cx, at| {
                    let [r, c, p, q] = at else { return zero(ty) };
                    let (batch, any) = batches.of(cx, r);
                    let (max, init) = (Binary::Max, lowest(wide));
                    let [height, width] = [rows.count(cx, r, p), columns.count(cx, r, q)];
                    let most = rows.fold(cx, max, &init, [r, p], |cx, y| {
                        columns.fold(cx, max, &init, [r, q], |cx, x| load(cx, &batch, c, y, x))
                    });
                    let filled = any & height.gt(index(0)) & width.gt(index(0));
                    select(filled, most, zero(wide)).cast(ty)
                });
            }
            Method::Bilinear => {
                let regions = cx.extents("rois")[0];
                let places = [0, 1].map(|a| {
                    stage(cx, "place", wide, &[regions, pooled[a].into()], |cx, at| {
                        self.place(cx, &at[0], a, &at[1], dims[a])
                    })
                });
                cx.define(cx.output(0), |cx, at| {
                    let [r, c, p, q] = at else { return zero(ty) };
                    let (batch, any) = batches.of(cx, r);
                    let y = cx.load_from(places[0], &[r.clone(), p.clone()]);
                    let x = cx.load_from(places[1], &[r.clone(), q.clone()]);
                    let [last_y, last_x] = dims.map(|n| last_float(n, wide));
                    let inside = any & within(&y, 0.0, last_y) & within(&x, 0.0, last_x);
                    let value = bilinear(cx, [&y, &x], dims, |cx, y, x| load(cx, &batch, c, y, x));
                    select(inside, value, zero(wide)).cast(ty)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape};

    fn pool(method: &str, pooled: &str, roi: [f32; 5]) -> Vec<f64> {
        let map: Vec<f32> = (0..16).map(|i| i as f32 - 20.0).collect();
        let attributes = [
            ("pooled_h", pooled),
            ("pooled_w", pooled),
            ("spatial_scale", "0.5"),
            ("method", method),
        ];
        let inputs = [f32s(&[1, 1, 4, 4], &map), f32s(&[1, 5], &roi)];
        run(&DEF, &attributes, &inputs).to_f64_vec().unwrap()
    }

    /// By hand: the corners 0.5 and 2.5 are rounded away from zero, to 1 and 3.
    #[test]
    fn maximum_of_bins_that_overlap() {
        assert_eq!(
            pool("max", "2", [0.0, 1.0, 1.0, 5.0, 5.0]),
            [-10.0, -9.0, -6.0, -5.0]
        );
        // Turned around, it is one element; off the map, none.
        assert_eq!(pool("max", "1", [0.0, 4.0, 4.0, 1.0, 1.0]), [-10.0]);
        assert_eq!(pool("max", "1", [0.0, 40.0, 0.0, 50.0, 9.0]), [0.0]);
        assert_eq!(pool("max", "1", [-1.0, 1.0, 1.0, 5.0, 5.0]), [0.0]);
    }

    /// By hand, over the whole map and off it.
    #[test]
    fn interpolated_at_the_corners_or_in_the_middle() {
        let whole = [0.0, 0.0, 0.0, 1.0, 1.0];
        assert_eq!(pool("bilinear", "2", whole), [-20.0, -17.0, -8.0, -5.0]);
        assert_eq!(pool("bilinear", "1", whole), [-12.5]);
        assert_eq!(pool("bilinear", "1", [0.0, 1.0, 1.0, 1.5, 1.0]), [0.0]);
        for bad in [f32::NAN, f32::INFINITY, -1e30] {
            for k in 1..5 {
                let mut roi = whole;
                roi[k] = bad;
                pool("bilinear", "2", roi);
                pool("max", "2", roi);
            }
        }
    }

    #[test]
    fn inputs_and_attributes_must_fit() {
        let attributes = [("pooled_h", "1"), ("pooled_w", "2"), ("spatial_scale", "1")];
        let map = f32s(&[1, 1, 1, 1], &[1.0]);
        let rois = f32s(&[1, 5], &[2.0, 0.0, 0.0, 0.0, 0.0]);
        let message = "layer 'op' (ROIPooling, opset1): `rois`[0, 0] is 2, expected 0..=0";
        assert_eq!(
            error(&DEF, &attributes, &[map.clone(), rois.clone()]),
            message
        );
        let more = [&attributes[..], &[("output_size", "2, 1")]].concat();
        let message = "`output_size` [2, 1] must be `pooled_h` and `pooled_w`, [1, 2]";
        assert_eq!(error(&DEF, &more, &[map, rois]), message);
        let any = |rank| (ElementType::F32, PartialShape::any_of_rank(rank), None);
        let found = infer(&DEF, &attributes, &[any(4), any(2)]);
        assert_eq!(found, ("f32[?, ?, 1, 2]".to_owned(), vec![]));
    }
}
