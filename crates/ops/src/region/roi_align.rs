//! `ROIAlign`: `out[r, c, p, q]` pools interpolated samples of bin `(p, q)` of region `r`, whose corners are
//! `rois[r] = (x1, y1, x2, y2)`, in feature map `data[batch_indices[r], c]`; see [`super::align`].
//!
//! | `aligned_mode` | a coordinate becomes | least size |
//! |---|---|---|
//! | asymmetric | `x · scale` | 1 |
//! | half_pixel_for_nn | `x · scale - 0.5` | none |
//! | half_pixel | `(x + 0.5) · scale - 0.5` | none |
//!
//! Specifications: ROIAlign-3, which is asymmetric, and ROIAlign-9. The maximum may be negative. A region
//! that is not larger than 0 has no samples with a `sampling_ratio` of 0, and gives 0. A batch index out
//! of range is an error.

use super::align::{Bin, Grid, Mode, Reach};
use super::regions::{self, Batches, float};
use crate::elementwise::widened;
use crate::layout::index_map::last_float;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, number};
use vinelift_tensor::{ElementType, Extent};

pub(crate) static V3: OpDef = version(
    &["opset3"],
    Build::Op(|attributes| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            pooled_h: usize,
            pooled_w: usize,
            sampling_ratio: usize,
            spatial_scale: f64,
            mode: Mode,
        }
        let a: Attrs = attributes.parse()?;
        RoiAlign {
            pooled_h: a.pooled_h,
            pooled_w: a.pooled_w,
            sampling_ratio: a.sampling_ratio,
            spatial_scale: a.spatial_scale,
            mode: a.mode,
            aligned_mode: Aligned::Asymmetric,
        }
        .checked()
    }),
);

pub(crate) static V9: OpDef = version(
    &["opset9"],
    Build::Op(|attributes: &Attributes<'_>| attributes.parse::<RoiAlign>()?.checked()),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "ROIAlign",
        versions,
        signature: Signature::new(&["data", "rois", "batch_indices"]),
        family: Family::Region,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoiAlign {
    pooled_h: usize,
    pooled_w: usize,
    sampling_ratio: usize,
    spatial_scale: f64,
    mode: Mode,
    #[serde(default)]
    aligned_mode: Aligned,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Aligned {
    #[default]
    Asymmetric,
    HalfPixelForNn,
    HalfPixel,
}

impl RoiAlign {
    fn checked(self) -> Result<Box<dyn Op>, OpError> {
        regions::check_positive("pooled_h", self.pooled_h)?;
        regions::check_positive("pooled_w", self.pooled_w)?;
        regions::check_scale(self.spatial_scale)?;
        Ok(Box::new(self))
    }

    /// Bin `p` of `pooled` of region `r`, along the axis whose coordinates stand in columns `low` and
    /// `low + 2`, in a map of extent `n`.
    fn bin(
        &self,
        cx: &Lower<'_>,
        r: &Scalar,
        low: i64,
        p: &Scalar,
        pooled: usize,
        n: Extent,
    ) -> Bin {
        let coordinate = |column: i64| {
            let x = widened(cx.load("rois", &[r.clone(), index(column)]));
            let scale = number(self.spatial_scale, x.ty());
            match self.aligned_mode {
                Aligned::Asymmetric => x * scale,
                Aligned::HalfPixelForNn => x * scale - 0.5,
                Aligned::HalfPixel => (x + 0.5) * scale - 0.5,
            }
        };
        let least = match self.aligned_mode {
            Aligned::Asymmetric => Some(1.0),
            _ => None,
        };
        bin(coordinate(low), coordinate(low + 2), least, p, pooled, n)
    }
}

/// Bin `p` of `pooled` between two coordinates, which are taken as at least `least` apart, on a map of
/// extent `n`.
pub(super) fn bin(
    low: Scalar,
    high: Scalar,
    least: Option<f64>,
    p: &Scalar,
    pooled: usize,
    n: Extent,
) -> Bin {
    let ty = low.ty();
    let mut size = high - &low;
    if let Some(least) = least {
        size = size.max(number(least, ty));
    }
    let size = size / pooled as f64;
    Bin {
        start: low + float(p, ty) * &size,
        size,
        centre: match n.number() {
            Some(n) => number((n as f64 - 1.0) / 2.0, ty),
            None => last_float(n, ty) * 0.5,
        },
    }
}

/// Samples meet a map of extents `dims` between -1 and its end.
pub(super) fn reach(dims: [Extent; 2], ty: ElementType) -> [Reach; 2] {
    dims.map(|n| {
        // A few more than there are between the ends of the stretch, against rounding.
        let bound = n.product(2.into()).sum(8.into());
        Reach {
            half: match n.number() {
                Some(n) => number((n as f64 + 1.0) / 2.0, ty),
                None => (Scalar::extent(n) + 1).cast(ty) * 0.5,
            },
            most: Scalar::extent(bound),
            bound,
        }
    })
}

impl Op for RoiAlign {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let (count, data) = regions::infer(cx, 4)?;
        let count = regions::batch_indices(cx, count)?;
        let pooled = [self.pooled_h, self.pooled_w];
        Ok(vec![regions::output(cx, count, data[1], pooled)?])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("data");
        let data = cx.extents("data");
        let batches = Batches::from_indices(cx);
        if regions::zeros_if_empty(cx) {
            return;
        }
        let dims = [data[2], data[3]];
        let pooled = [self.pooled_h, self.pooled_w];
        let grid = Grid::new(
            cx,
            self.sampling_ratio,
            pooled,
            reach(dims, ty.compute()),
            |cx, a, r, p| self.bin(cx, r, [1, 0][a], p, pooled[a], dims[a]),
        );
        cx.define(cx.output(0), |cx, at| {
            let [r, c, p, q] = at else { return index(0) };
            let (batch, _) = batches.of(cx, r);
            let place = |y, x| [y, x];
            let load = |cx: &Lower<'_>, y: &Scalar, x: &Scalar| {
                widened(cx.load("data", &[&batch, c, y, x].map(Clone::clone)))
            };
            grid.pool(cx, self.mode, [r, p, q], dims, place, load)
                .cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape, Tensor};

    /// One bin on a map of 2 × 2 elements.
    fn one_bin(map: [f32; 4], roi: [f32; 4], more: &[(&str, &str)]) -> f64 {
        let mut attributes = vec![("pooled_h", "1"), ("pooled_w", "1"), ("spatial_scale", "1")];
        attributes.extend(more);
        let inputs = [
            f32s(&[1, 1, 2, 2], &map),
            f32s(&[1, 4], &roi),
            i32s(&[1], &[0]),
        ];
        run(&V9, &attributes, &inputs).to_f64_vec().unwrap()[0]
    }

    const MAP: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
    const UNIT: [f32; 4] = [0.0, 0.0, 1.0, 1.0];

    /// By hand: one sample, in the middle of the region.
    #[test]
    fn where_the_sample_is() {
        let of = |roi, aligned| {
            let more = [
                ("sampling_ratio", "1"),
                ("mode", "avg"),
                ("aligned_mode", aligned),
            ];
            one_bin(MAP, roi, &more)
        };
        assert_eq!(of(UNIT, "asymmetric"), 2.5);
        assert_eq!(of(UNIT, "half_pixel_for_nn"), 1.0);
        assert_eq!(of(UNIT, "half_pixel"), 2.5);
        // Too small for its mode, and as small as it is.
        assert_eq!(of([0.0; 4], "asymmetric"), 2.5);
        assert_eq!(of([0.0; 4], "half_pixel"), 1.0);
        // An element after the map there is still the last element, later nothing.
        assert_eq!(of([1.5, 1.5, 2.5, 2.5], "asymmetric"), 4.0);
        assert_eq!(of([1.6, 1.6, 2.6, 2.6], "asymmetric"), 0.0);
    }

    /// By hand: samples at 0.5, 1.5, … 999.5 along both axes, of which two meet the map.
    #[test]
    fn as_many_samples_as_the_region_asks_for() {
        let large = [0.0, 0.0, 1000.0, 1000.0];
        let avg = [("sampling_ratio", "0"), ("mode", "avg")];
        let found = one_bin(MAP, large, &avg);
        assert!((found - 13e-6).abs() < 1e-11, "{found}");
        let max = [("sampling_ratio", "0"), ("mode", "max")];
        assert_eq!(one_bin(MAP.map(|x| -x), large, &max), 0.0);
        assert_eq!(one_bin(MAP.map(|x| -x), UNIT, &max), -2.5);
        let none = [max[0], max[1], ("aligned_mode", "half_pixel")];
        assert_eq!(one_bin(MAP, [1.0, 1.0, 0.0, 0.0], &none), 0.0);
    }

    #[test]
    fn no_coordinate_leads_off_the_map() {
        let bad = [
            f32::NAN,
            f32::INFINITY,
            -f32::INFINITY,
            f32::MAX,
            1e30,
            -1e30,
        ];
        for x in bad {
            for y in bad {
                for ratio in ["0", "2"] {
                    for mode in ["avg", "max"] {
                        one_bin(
                            MAP,
                            [x, 0.0, 1.0, y],
                            &[("sampling_ratio", ratio), ("mode", mode)],
                        );
                        one_bin(
                            MAP,
                            [0.0, x, y, 1.0],
                            &[("sampling_ratio", ratio), ("mode", mode)],
                        );
                    }
                }
            }
        }
    }

    const ATTRIBUTES: [(&str, &str); 5] = [
        ("pooled_h", "1"),
        ("pooled_w", "2"),
        ("spatial_scale", "1"),
        ("sampling_ratio", "1"),
        ("mode", "avg"),
    ];

    #[test]
    fn inputs_must_fit() {
        let map = f32s(&[1, 1, 2, 2], &MAP);
        let of =
            |rois: Tensor, indices: Tensor| error(&V3, &ATTRIBUTES, &[map.clone(), rois, indices]);
        let message = "layer 'op' (ROIAlign, opset3): `batch_indices`[0] is 1, expected 0..=0";
        assert_eq!(of(f32s(&[1, 4], &UNIT), i32s(&[1], &[1])), message);
        let message = "`rois` must have shape [?, 4], found [1, 5]";
        assert_eq!(of(f32s(&[1, 5], &[0.0; 5]), i32s(&[1], &[0])), message);
        let message = "`rois` [1, 4] and `batch_indices` [2] must have the same first dim";
        assert_eq!(of(f32s(&[1, 4], &UNIT), i32s(&[2], &[0; 2])), message);
        let mut attributes = ATTRIBUTES;
        attributes[2].1 = "0";
        let inputs = [map.clone(), f32s(&[1, 4], &UNIT), i32s(&[1], &[0])];
        let message = "`spatial_scale` must be positive, found 0";
        assert_eq!(error(&V3, &attributes, &inputs), message);
    }

    #[test]
    fn partial_shapes_and_empty_maps() {
        let any = |rank| (ElementType::F16, PartialShape::any_of_rank(rank), None);
        let indices = (ElementType::I64, [7].as_slice().into(), None);
        let found = infer(&V3, &ATTRIBUTES, &[any(4), any(2), indices]);
        assert_eq!(found, ("f16[7, ?, 1, 2]".to_owned(), vec![]));
        let inputs = [
            f32s(&[1, 1, 0, 2], &[]),
            f32s(&[1, 4], &UNIT),
            i32s(&[1], &[0]),
        ];
        assert_eq!(
            run(&V3, &ATTRIBUTES, &inputs),
            f32s(&[1, 1, 1, 2], &[0.0; 2])
        );
    }
}
