//! `ExperimentalDetectronROIFeatureExtractor`: [`super::roi_align`] of each region `(x1, y1, x2, y2)` in one level
//! of a pyramid of feature maps, the larger the region, the smaller the map:
//! ```text
//! level = ⌊2 + log2(√((x2 - x1) · (y2 - y1)) / 224 + 1e-6)⌋, cut to the levels there are
//! out_0[r] = the mean of samples of rois[r] / pyramid_scales[level], in pyramid[level][0]
//! out_1 = rois
//! ```
//! Regions have a size of at least 1; with `aligned` their corners are moved by -0.5.
//!
//! Specification: ExperimentalDetectronROIFeatureExtractor-6. It says that the regions come out in another
//! order; they do not in OpenVINO, neither in the reference implementation nor on the CPU. From there also:
//! the `1e-6`, and that a region without an area gives 0.

use super::align::{Grid, Mode};
use super::regions::{self, check_positive, scaled, stage};
use super::roi_align::{bin, reach};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::index_map::extent;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{BufferId, Scalar};
use vinelift_tensor::{Dim, ElementType, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "ExperimentalDetectronROIFeatureExtractor",
    versions: &["opset6"],
    signature: Signature::new(&["rois", "pyramid"]).variadic(),
    family: Family::Region,
    build: Build::Op(parse::<RoiFeatureExtractor>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoiFeatureExtractor {
    output_size: usize,
    sampling_ratio: usize,
    pyramid_scales: Vec<u32>,
    #[serde(default)]
    aligned: bool,
}

impl Op for RoiFeatureExtractor {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        check_positive("output_size", self.output_size)?;
        let element = cx.expect("rois", "a float type", |t| t.is_float())?;
        let count = regions::rows(cx, 4)?;
        let pyramid = &cx.inputs()[1..];
        let scales = &self.pyramid_scales;
        ensure!(
            scales.len() >= pyramid.len() && !scales.contains(&0),
            "`pyramid_scales` {scales:?} must have a positive number for each of {} levels",
            pyramid.len()
        );
        let mut channels = Dim::ANY;
        for (level, map) in pyramid.iter().enumerate() {
            if map.element != element {
                return Err(OpError::Type {
                    input: "pyramid",
                    expected: format!("of the type of `rois`, {element}"),
                    found: map.element.to_string(),
                });
            }
            let dims = vec![Dim::fixed(1), channels, Dim::ANY, Dim::ANY];
            let want = PartialShape::ranked(dims);
            let both = map.shape.intersect(&want);
            let Some(dims) = both.as_ref().and_then(|s| s.dims()) else {
                let found = &map.shape;
                return Err(OpError::Shape(format!(
                    "level {level} of `pyramid` must have shape {want}, found {found}"
                )));
            };
            channels = dims[1];
        }
        let features = regions::output(cx, count, channels, [self.output_size; 2])?;
        let rois = PartialShape::ranked(vec![count, Dim::fixed(4)]);
        Ok(vec![features, TensorType::new(element, rois)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("rois");
        let wide = ty.compute();
        let pyramid = cx.inputs()[1..].to_vec();
        let regions = cx.extents("rois")[0];
        // From 0 on; -1 for a region without an area.
        let level = stage(cx, "level", ElementType::I64, &[regions], |cx, r| {
            let corner = |k: i64| scaled(cx, &r[0], k, 1.0);
            let area = (corner(2) - corner(0)) * (corner(3) - corner(1));
            let relative = area.sqrt() / 224.0 + 1e-6;
            // The level is at least `l` if the side is at least 2^(l - 2).
            let mut level = index(0);
            for l in 1..pyramid.len() {
                let bound = number(2f64.powi(l as i32 - 2), wide);
                level = level + select(relative.ge(bound), index(1), index(0));
            }
            select(area.gt(zero(wide)), level, index(-1))
        });
        let grids: Vec<(BufferId, Option<Grid>)> = pyramid
            .iter()
            .zip(&self.pyramid_scales)
            .map(|(map, scale)| (*map, self.grid(cx, *map, *scale)))
            .collect();
        cx.define(cx.output(0), |cx, at| {
            let [r, c, p, q] = at else { return zero(ty) };
            let level = cx.load_from(level, std::slice::from_ref(r));
            let mut value = zero(wide);
            for (l, (map, grid)) in grids.iter().enumerate().rev() {
                let Some(grid) = grid else { continue };
                let shape = cx.extents_of(*map);
                let load = |cx: &Lower<'_>, y: &Scalar, x: &Scalar| {
                    widened(cx.load_from(*map, &[&index(0), c, y, x].map(Clone::clone)))
                };
                let dims = [shape[2], shape[3]];
                let place = |y, x| [y, x];
                let here = grid.pool(cx, Mode::Avg, [r, p, q], dims, place, load);
                value = select(level.eq(index(extent(l))), here, value);
            }
            value.cast(ty)
        });
        cx.define(cx.output(1), |cx, at| cx.load("rois", at));
    }
}

impl RoiFeatureExtractor {
    /// The samples of all regions in one level of the pyramid, if that has any elements.
    fn grid(&self, cx: &mut Lower<'_>, map: BufferId, scale: u32) -> Option<Grid> {
        let shape = cx.extents_of(map);
        let dims = [shape[2], shape[3]];
        let pooled = self.output_size;
        let bins = [pooled; 2];
        let bin = |cx: &Lower<'_>, a: usize, r: &Scalar, p: &Scalar| {
            let corner = |column| {
                let x = scaled(cx, r, column, 1.0 / f64::from(scale));
                if self.aligned { x - 0.5 } else { x }
            };
            let low = [1, 0][a];
            bin(corner(low), corner(low + 2), Some(1.0), p, pooled, dims[a])
        };
        let any = !dims.iter().any(|n| *n == 0);
        let reach = reach(dims, cx.element("rois").compute());
        any.then(|| Grid::new(cx, self.sampling_ratio, bins, reach, bin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, infer, run_all};

    const ATTRIBUTES: [(&str, &str); 3] = [
        ("output_size", "1"),
        ("sampling_ratio", "2"),
        ("pyramid_scales", "4, 8, 16"),
    ];

    /// By hand: maps that hold their level plus 1. Side 112 is the least for level 1, 224 for level 2.
    #[test]
    fn larger_regions_look_at_smaller_maps() {
        let sides = [30.0, 111.9, 112.0, 223.0, 225.0, 300.0, 0.0];
        let rois: Vec<f32> = sides.iter().flat_map(|s| [0.0, 0.0, *s, *s]).collect();
        let mut inputs = vec![f32s(&[7, 4], &rois)];
        for (level, side) in [100, 50, 25].into_iter().enumerate() {
            let values = vec![level as f32 + 1.0; side * side];
            inputs.push(f32s(&[1, 1, side, side], &values));
        }
        let out = run_all(&DEF, &ATTRIBUTES, &inputs, IndexPolicy::Spec).unwrap();
        let found = out[0].to_f64_vec().unwrap();
        assert_eq!(found, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 0.0]);
        assert_eq!(out[1], inputs[0]);
    }

    #[test]
    fn levels_must_fit() {
        let rois = f32s(&[1, 4], &[0.0; 4]);
        let inputs = [
            rois.clone(),
            f32s(&[1, 1, 1, 1], &[0.0]),
            f32s(&[1, 2, 1, 1], &[0.0; 2]),
        ];
        let message = "level 1 of `pyramid` must have shape [1, 1, ?, ?], found [1, 2, 1, 1]";
        assert_eq!(error(&DEF, &ATTRIBUTES, &inputs), message);
        let mut attributes = ATTRIBUTES;
        attributes[2].1 = "4";
        let message = "`pyramid_scales` [4] must have a positive number for each of 2 levels";
        assert_eq!(error(&DEF, &attributes, &inputs), message);
        let any = |rank| (ElementType::F32, PartialShape::any_of_rank(rank), None);
        let found = infer(&DEF, &ATTRIBUTES, &[any(2), any(4)]).0;
        assert_eq!(found, "f32[?, ?, 1, 1] f32[?, 4]");
    }
}
