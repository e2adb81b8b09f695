//! `ROIAlignRotated`: `out[r, c, p, q]` is the mean of interpolated samples of bin `(p, q)` of region `r`,
//! `rois[r] = (x, y, width, height, angle)`, in feature map `data[batch_indices[r], c]`; see [`super::align`].
//!
//! A sample at `(u, v)` from the centre of the region, along its width and height, is at
//! ```text
//! x · scale - 0.5 + u · cos angle + v · sin angle
//! y · scale - 0.5 - u · sin angle + v · cos angle
//! ```
//! with the angle's sign changed in `clockwise_mode`; width and height are scaled too.
//!
//! Specification: ROIAlignRotated-15. A region of no width or height has no samples with a
//! `sampling_ratio` of 0, and gives 0. A batch index out of range is an error.

use super::align::{Bin, Grid, Mode, Reach};
use super::regions::{self, Batches, float, scaled, stage};
use crate::elementwise::widened;
use crate::layout::index_map::{extent, extent_float, last_float};
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, number};
use vinelift_nest::{Scalar, Unary};
use vinelift_tensor::{ElementType, Extent};

pub(crate) static DEF: OpDef = OpDef {
    name: "ROIAlignRotated",
    versions: &["opset15"],
    signature: Signature::new(&["data", "rois", "batch_indices"]),
    family: Family::Region,
    build: Build::Op(|attributes| {
        let op: RoiAlignRotated = attributes.parse()?;
        regions::check_positive("pooled_h", op.pooled_h)?;
        regions::check_positive("pooled_w", op.pooled_w)?;
        regions::check_scale(op.spatial_scale)?;
        Ok(Box::new(op))
    }),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoiAlignRotated {
    pooled_h: usize,
    pooled_w: usize,
    sampling_ratio: usize,
    spatial_scale: f64,
    #[serde(default)]
    clockwise_mode: bool,
}

impl Op for RoiAlignRotated {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let (count, data) = regions::infer(cx, 5)?;
        let count = regions::batch_indices(cx, count)?;
        let pooled = [self.pooled_h, self.pooled_w];
        Ok(vec![regions::output(cx, count, data[1], pooled)?])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("data");
        let data = cx.extents("data");
        let dims = [data[2], data[3]];
        let batches = Batches::from_indices(cx);
        if regions::zeros_if_empty(cx) {
            return;
        }
        let wide = ty.compute();
        let regions = cx.extents("rois")[0];
        let turn = |cx: &mut Lower<'_>, name: &str, function: Unary, sign: f64| {
            stage(cx, name, wide, &[regions], |cx, at| {
                Scalar::unary(function, scaled(cx, &at[0], 4, sign))
            })
        };
        let sign = if self.clockwise_mode { -1.0 } else { 1.0 };
        let cos = turn(cx, "cos", Unary::Cos, sign);
        let sin = turn(cx, "sin", Unary::Sin, sign);
        let at_region =
            |cx: &Lower<'_>, buffer, r: &Scalar| cx.load_from(buffer, std::slice::from_ref(r));
        // The centre along an axis of the map.
        let centre = |cx: &Lower<'_>, a: usize, r: &Scalar| {
            scaled(cx, r, [1, 0][a], self.spatial_scale) - 0.5
        };

        let pooled = [self.pooled_h, self.pooled_w];
        let reach = [reach(dims, wide), reach(dims, wide)];
        let grid = Grid::new(cx, self.sampling_ratio, pooled, reach, |cx, a, r, p| {
            let size = scaled(cx, r, [3, 2][a], self.spatial_scale);
            let start = &size * -0.5;
            let size = size / pooled[a] as f64;
            // Where the middle of the map is, seen from the centre of the region.
            let [down, across] = [0, 1].map(|a| middle(dims[a], wide) - centre(cx, a, r));
            let (cos, sin) = (at_region(cx, cos, r), at_region(cx, sin, r));
            Bin {
                start: start + float(p, wide) * &size,
                size,
                centre: match a {
                    0 => across * sin + down * cos,
                    _ => across * cos - down * sin,
                },
            }
        });
        cx.define(cx.output(0), |cx, at| {
            let [r, c, p, q] = at else { return index(0) };
            let (batch, _) = batches.of(cx, r);
            let (cos, sin) = (at_region(cx, cos, r), at_region(cx, sin, r));
            let [y, x] = [0, 1].map(|a| centre(cx, a, r));
            let place =
                |v: Scalar, u: Scalar| [&v * &cos - &u * &sin + &y, &v * &sin + &u * &cos + &x];
            let load = |cx: &Lower<'_>, y: &Scalar, x: &Scalar| {
                widened(cx.load("data", &[&batch, c, y, x].map(Clone::clone)))
            };
            grid.pool(cx, Mode::Avg, [r, p, q], dims, place, load)
                .cast(ty)
        });
    }
}

/// The middle of the places from 0 to `n - 1`.
fn middle(n: Extent, ty: ElementType) -> Scalar {
    match n.number() {
        Some(n) => number((n as f64 - 1.0) / 2.0, ty),
        None => (last_float(n, ElementType::F64) * 0.5).cast(ty),
    }
}

/// Samples meet a map of extents `dims` between -1 and its end, so along its diagonal at most.
///
/// Which samples are looked at says how their sum is taken apart: what stands for extents with symbols has the same bits as
/// the numbers, as both are of operations that are rounded once.
fn reach(dims: [Extent; 2], ty: ElementType) -> Reach {
    // A few more than there are between the ends of the stretch, against rounding.
    const MORE: usize = 6;
    let known = dims[0].number().zip(dims[1].number());
    if let Some((height, width)) = known {
        let [h, w] = [height, width].map(|n| n as f64 + 1.0);
        let half = (h * h + w * w).sqrt() / 2.0;
        let bound = Extent::from((4.0 * half).ceil() as usize + MORE);
        return Reach {
            half: number(half, ty),
            most: Scalar::extent(bound),
            bound,
        };
    }
    let [h, w] = dims.map(|n| extent_float(n, ElementType::F64) + 1.0);
    let half = (&h * &h + &w * &w).sqrt() * 0.5;
    // The diagonal is shorter than both sides.
    let sides = dims[0].sum(dims[1]).sum(2.into());
    Reach {
        half: half.clone().cast(ty),
        most: (&half * 4.0).ceil().cast(ElementType::I64) + extent(MORE),
        bound: sides.product(2.into()).sum(MORE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, f32s, i32s, run};
    use std::f32::consts::PI;
    use vinelift_tensor::Tensor;

    fn bins(roi: [f32; 5], more: &[(&str, &str)]) -> Vec<f64> {
        let mut attributes = vec![("pooled_h", "1"), ("pooled_w", "2"), ("spatial_scale", "1")];
        attributes.extend(more);
        let map: Vec<f32> = (0..9).map(|i| i as f32).collect();
        let inputs = [
            f32s(&[1, 1, 3, 3], &map),
            f32s(&[1, 5], &roi),
            i32s(&[1], &[0]),
        ];
        run(&DEF, &attributes, &inputs).to_f64_vec().unwrap()
    }

    /// By hand: two bins in the row through the centre of the map, then in its column, upwards and
    /// downwards.
    #[test]
    fn turns_around_the_centre() {
        let of = |angle: f32, more: &[(&str, &str)]| {
            let more = [&[("sampling_ratio", "1")], more].concat();
            let found = bins([1.5, 1.5, 2.0, 1.0, angle], &more);
            found
                .iter()
                .map(|x| (x * 1e4).round() / 1e4)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0.0, &[]), [3.5, 4.5]);
        assert_eq!(of(PI, &[]), [4.5, 3.5]);
        assert_eq!(of(PI / 2.0, &[]), [5.5, 2.5]);
        assert_eq!(of(PI / 2.0, &[("clockwise_mode", "true")]), [2.5, 5.5]);
    }

    /// As few samples as meet the map are looked at, from whichever side the region comes.
    #[test]
    fn a_large_region_has_many_samples() {
        let size = 4000.0;
        for angle in [0.0, 1.0, 2.5, -0.5] {
            let found = bins([1.5, 1.5, size, size, angle], &[("sampling_ratio", "0")]);
            // A sample for every unit of area: the sum over the map with a border of one element.
            let sum: f64 = found.iter().sum::<f64>() * f64::from(size * size / 2.0);
            assert!((48.0..=80.0).contains(&sum), "{angle}: {sum}");
        }
        for bad in [f32::NAN, f32::INFINITY, 1e30] {
            for k in 0..5 {
                let mut roi = [1.0; 5];
                roi[k] = bad;
                bins(roi, &[("sampling_ratio", "0")]);
                bins(roi, &[("sampling_ratio", "2")]);
            }
        }
    }

    /// The class gives the bits that each map gives alone, however the sums of samples are taken apart.
    #[test]
    fn a_class_of_maps() {
        for ratio in ["0", "2"] {
            let attributes = [
                ("pooled_h", "2"),
                ("pooled_w", "1"),
                ("spatial_scale", "0.5"),
                ("sampling_ratio", ratio),
            ];
            let class = Class::new(&DEF, &attributes, &[7, 5], |s| {
                vec![
                    (ElementType::F32, vec![1.into(), 2.into(), s[0], s[1]], None),
                    (ElementType::F32, vec![3.into(), 5.into()], None),
                    (ElementType::I32, vec![3.into()], None),
                ]
            });
            #[rustfmt::skip]
            let rois = [
                9.0, 7.0, 11.5, 8.0, 0.4, 3.0, 5.0, 400.0, 300.0, -1.1, -1e9, 2.0, 1e9, 1e9, 2.0,
            ];
            for [h, w] in [[7, 5], [3, 4], [11, 6]] {
                let map: Vec<f32> = (0..2 * h * w).map(|k| ((k * k) as f32).sin()).collect();
                let inputs = [
                    f32s(&[1, 2, h, w], &map),
                    f32s(&[3, 5], &rois),
                    i32s(&[3], &[0; 3]),
                ];
                let bits = |t: &Tensor| t.bytes().to_vec();
                let found = class.run(&[h, w], &inputs).unwrap();
                let want = run(&DEF, &attributes, &inputs);
                assert_eq!(bits(&found[0]), bits(&want), "{h} by {w}");
            }
        }
    }
}
