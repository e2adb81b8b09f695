//! `Interpolate`: `out[o..] = Σ_{i..} w_1[o_1, i_1] · … · w_k[o_k, i_k] · data[i..]` over the axes that are
//! resized, with weights by `mode` around the coordinate of the input that belongs to `o`; with mode
//! `nearest` the element nearest to that coordinate. Pads are zeros around `data`.
//!
//! Specifications: Interpolate-1, Interpolate-4, Interpolate-11. Chosen where they are silent, as
//! OpenVINO does:
//! * an axis whose extent stays is copied, whatever the transformation and the scale;
//! * extents by scales are `⌊n · (scale + 1e-6)⌋`, in `f32`, so that 1/3 of 3 is 1;
//! * `antialias` means something to mode `linear` alone, and missing pads are 0;
//! * integers are rounded to nearest, ties to even, and clamped to their type; the modes of Pillow
//!   do so after each axis, the last axis first, as Pillow does;
//! * Interpolate-1 takes coordinates as `asymmetric`, with `align_corners` as `align_corners`; mode
//!   `linear` without pads takes them as `half_pixel` unless it resizes dims 2 and 3 of four. Nearest
//!   elements are as by `simple`. Mode `linear` is that of ONNX below rank 5.
//!
//! Mode `linear_onnx` and those of Pillow take any axes. An element of no weight is still multiplied, so that
//! an infinite neighbour may give NaN, as in the reference. A single pad of Interpolate-1 holds for each
//! of its axes.

mod attributes;
mod coordinates;
mod formulas;
mod mix;
mod positions;
mod resize;
mod resized;
mod taps;
#[cfg(test)]
mod tests;
mod windows;

use crate::error::ensure;
use crate::layout::extent::{countable, grown, natural_extents};
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use attributes::{Axes, By, Interpolate, build, build_1};
use resize::Resize;
use resized::Resized;
use vinelift_nest::MAX_RANK;
use vinelift_tensor::memory::room_for;
use vinelift_tensor::{Dim, Extent, PartialShape, Tensor};

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Signature::new(&["data", "target_spatial_shape"]),
    Build::Op(build_1),
);

pub(crate) static V4: OpDef = version(
    &["opset4"],
    Signature::new(&["data", "sizes", "scales", "axes"]).optional(1),
    Build::Op(|attributes| build(attributes, false)),
);

pub(crate) static V11: OpDef = version(
    &["opset11"],
    Signature::new(&["image", "scales_or_sizes", "axes"]).optional(1),
    Build::Op(|attributes| build(attributes, true)),
);

const fn version(versions: &'static [&'static str], signature: Signature, build: Build) -> OpDef {
    OpDef {
        name: "Interpolate",
        versions,
        signature,
        family: Family::Window,
        build,
    }
}

/// Weights and positions are tables with an entry for each element along an axis, or several.
const LONGEST: usize = 1 << 22;

/// The memory that it takes to make the tables, for each element along an axis.
const TABLES: usize = 192;

impl Op for Interpolate {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect(self.data, "a numeric type", |t| {
            t.is_integer() || t.is_float()
        })?;
        let asked = match self.by {
            By::Sizes => {
                let sizes = cx.elements(self.asked)?;
                let extents = sizes.map(|sizes| natural_extents(self.asked, &sizes));
                extents.transpose()?.map(Asked::Sizes)
            }
            By::Scales => {
                cx.expect(self.asked, "a float type", |t| t.is_float())?;
                cx.expect_list(self.asked, MAX_RANK)?;
                cx.constant(self.asked).map(scales).transpose()?
            }
        };
        if let Some(Asked::Scales(scales)) = &asked {
            let usable = |s: &f64| s.is_finite() && *s > 0.0;
            let fine = scales.iter().all(usable);
            ensure!(
                fine,
                "`{}` {scales:?} must be above 0 and finite",
                self.asked
            );
        }
        let input = match self.axes {
            Axes::Input => cx.integers("axes")?,
            Axes::These(_) => None,
        };
        let Some(dims) = cx.dims(self.data) else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let Some(axes) = self.axes(input, self.has_axes(cx), dims.len()) else {
            let shape = PartialShape::any_of_rank(dims.len());
            return Ok(vec![TensorType::new(element, shape)]);
        };
        let axes = distinct(axes, dims.len())?;
        if let Some(asked) = &asked {
            ensure!(
                asked.len() == axes.len(),
                "`{}` must hold one element for each of the axes {axes:?}, found {}",
                self.asked,
                asked.len()
            );
        }
        let padded = self.padded(dims, &axes)?;
        let mut out = padded.clone();
        for (k, &d) in axes.iter().enumerate() {
            out[d] = match &asked {
                None => Dim::ANY,
                Some(Asked::Sizes(sizes)) => sizes[k].into(),
                Some(Asked::Scales(scales)) => scaled_dim(padded[d], scales[k]),
            };
        }
        let shape = countable(PartialShape::ranked(out.clone()))?;
        let empty = out.iter().any(|n| n.is(0));
        for &d in axes.iter().filter(|_| !empty) {
            self.fits(d, padded[d], out[d])?;
        }
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents(self.data);
        let out = cx.extents_of(cx.output(0));
        if out.iter().any(|n| *n == 0) {
            return;
        }
        let rank = shape.len();
        let input = match self.axes {
            Axes::Input if cx.has("axes") => cx.integers("axes"),
            _ => None,
        };
        let axes = self.axes(input, false, rank).unwrap_or_default();
        let axes = distinct(axes, rank).unwrap_or_default();
        let dims: Vec<Dim> = shape.iter().map(|&n| n.into()).collect();
        let padded = self.padded(&dims, &axes).unwrap_or(dims);
        let scales = match self.by {
            By::Scales => cx.constant(self.asked).and_then(|t| t.to_f64_vec().ok()),
            By::Sizes => None,
        };
        let resized: Vec<Resized> = (axes.iter().enumerate())
            .map(|(k, &dim)| Resized {
                dim,
                from: padded[dim].extent().unwrap_or(shape[dim]),
                to: out[dim],
                scale: scales.as_ref().map(|scales| scales[k]),
            })
            .collect();
        let (pads_begin, pads_end) = self.pads(rank, &axes);
        let resize = Resize {
            data: cx.input(self.data),
            pads_begin,
            pads_end,
            axes: resized,
            transform: self.transform(rank, &axes),
        };
        match self.filter(rank) {
            None => resize.nearest(cx, self.nearest),
            Some(filter) => resize.filtered(cx, filter),
        }
    }
}

/// The output's extents along the axes.
enum Asked {
    Sizes(Vec<Extent>),
    Scales(Vec<f64>),
}

impl Asked {
    fn len(&self) -> usize {
        match self {
            Asked::Sizes(sizes) => sizes.len(),
            Asked::Scales(scales) => scales.len(),
        }
    }
}

fn scales(tensor: &Tensor) -> Result<Asked, OpError> {
    Ok(Asked::Scales(tensor.to_f64_vec()?))
}

impl Interpolate {
    fn has_axes(&self, cx: &Infer<'_>) -> bool {
        matches!(self.axes, Axes::Input) && cx.has("axes")
    }

    /// The axes where they are known. `input` is the value of the input `axes`, which may be `there`
    /// without being known.
    fn axes(&self, input: Option<Vec<i64>>, there: bool, rank: usize) -> Option<Vec<i64>> {
        match (&self.axes, input) {
            (Axes::These(axes), _) => Some(axes.clone()),
            (Axes::Input, Some(axes)) => Some(axes),
            (Axes::Input, None) => (!there).then(|| (0..rank as i64).collect()),
        }
    }

    /// Whether axis `d` can be resized.
    fn fits(&self, d: usize, from: Dim, to: Dim) -> Result<(), OpError> {
        ensure!(
            !from.is(0) || to.min() == 0,
            "axis {d} of extent 0 cannot be resized to {to}"
        );
        if let (Some(a), Some(b)) = (from.extent(), to.extent())
            && (a.is_symbolic() || b.is_symbolic())
            && [a, b].iter().all(|n| n.at_most(LONGEST.into()))
        {
            return Ok(());
        }
        let long = from.min().max(to.min());
        if long > LONGEST && from != to {
            let what = format!("an axis of {long} elements that is resized, {LONGEST} at most");
            return Err(OpError::Unsupported(what));
        }
        // Making the tables cannot fail, so tables for which there is no memory are refused here.
        drop(room_for::<u8>(if from == to { 0 } else { long * TABLES })?);
        Ok(())
    }

    fn padded(&self, dims: &[Dim], axes: &[usize]) -> Result<Vec<Dim>, OpError> {
        let (begin, end) = self.pads(dims.len(), axes);
        let far = begin.iter().chain(&end).any(|&pad| pad > LONGEST);
        ensure!(
            !far,
            "pads {begin:?} and {end:?} must be at most {LONGEST} each"
        );
        let pads = begin.iter().zip(&end);
        let padded = dims.iter().zip(pads);
        Ok(padded
            .map(|(&n, (b, e))| grown(n, (b + e) as i128))
            .collect())
    }
}

/// Axes that count from the front and occur once.
fn distinct(axes: Vec<i64>, rank: usize) -> Result<Vec<usize>, OpError> {
    let mut found = Vec::with_capacity(axes.len());
    for axis in axes {
        let d = usize::try_from(axis).ok().filter(|&d| d < rank);
        let Some(d) = d else {
            let message = format!("axis {axis} must be at least 0 and below the rank, {rank}");
            return Err(OpError::Shape(message));
        };
        ensure!(!found.contains(&d), "axis {axis} occurs twice");
        found.push(d);
    }
    Ok(found)
}

/// The extents of a dim scaled.
fn scaled_dim(dim: Dim, scale: f64) -> Dim {
    let scale = scale as f32;
    if scale == 1.0 {
        return dim;
    }
    if let Some(scaled) = dim.extent().and_then(|n| scaled_extent(n, scale)) {
        return scaled.into();
    }
    let scaled = |n: usize| scaled(n, scale);
    Dim::between(scaled(dim.min()), dim.max().map(scaled))
}

fn scaled(n: usize, scale: f32) -> usize {
    (n as f32 * (scale + 1e-6)) as usize
}

/// An extent that has symbols scaled, where that is a product or a quotient of it.
fn scaled_extent(n: Extent, scale: f32) -> Option<Extent> {
    /// Longer ones are not looked at: in the end, the 1e-6 makes another extent of them.
    const LONG: usize = 1 << 14;
    /// Of the denominators of scales.
    const MOST: usize = 32;
    if !n.is_symbolic() || !n.at_most(LONG.into()) {
        return None;
    }
    let is_right = |times: usize, over: usize| {
        let mut all = Extent::LEAST..=LONG;
        let product = |n: usize| n.checked_mul(times).map(|product| product / over);
        times > 0 && all.all(|n| product(n) == Some(scaled(n, scale)))
    };
    let mut ratios = (1..=MOST).map(|over| ((scale * over as f32).round() as usize, over));
    let (times, over) = ratios.find(|(times, over)| is_right(*times, *over))?;
    Some(n.product(times.into()).quotient(over.into()))
}
