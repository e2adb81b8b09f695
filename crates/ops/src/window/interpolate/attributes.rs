//! The attributes of the versions, brought to one form.

use super::coordinates::{Nearest, Transform};
use super::taps::Filter;
use crate::error::ensure;
use crate::{Attributes, Op, OpError};
use serde::Deserialize;

#[derive(Debug)]
pub(super) struct Interpolate {
    /// The names of the inputs with the data and with the extents or scales.
    pub(super) data: &'static str,
    pub(super) asked: &'static str,
    pub(super) by: By,
    pub(super) axes: Axes,
    pub(super) mode: Mode,
    /// Without one it is that of Interpolate-1.
    pub(super) transform: Option<Transform>,
    pub(super) align_corners: bool,
    pub(super) nearest: Nearest,
    pub(super) antialias: bool,
    pub(super) pads_begin: Vec<usize>,
    pub(super) pads_end: Vec<usize>,
    pub(super) cube_coeff: f64,
}

/// The attribute `shape_calculation_mode`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    Sizes,
    Scales,
}

/// Which axes are resized.
#[derive(Debug)]
pub(super) enum Axes {
    /// These.
    These(Vec<i64>),
    /// The input `axes`, all if there is none.
    Input,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Nearest,
    Linear,
    LinearOnnx,
    Cubic,
    Area,
    BilinearPillow,
    BicubicPillow,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Mode::Nearest => "nearest",
            Mode::Linear => "linear",
            Mode::LinearOnnx => "linear_onnx",
            Mode::Cubic => "cubic",
            Mode::Area => "area",
            Mode::BilinearPillow => "bilinear_pillow",
            Mode::BicubicPillow => "bicubic_pillow",
        }
    }
}

pub(super) fn build_1(attributes: &Attributes<'_>) -> Result<Box<dyn Op>, OpError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Attrs {
        axes: Vec<i64>,
        mode: Mode,
        #[serde(default = "crate::attrs::yes")]
        align_corners: bool,
        #[serde(default)]
        antialias: bool,
        #[serde(default)]
        pads_begin: Vec<usize>,
        #[serde(default)]
        pads_end: Vec<usize>,
    }
    let a: Attrs = attributes.parse()?;
    if a.mode == Mode::Area {
        let what = "mode `area`, which the specification does not define";
        return Err(OpError::Unsupported(what.to_owned()));
    }
    let known = matches!(a.mode, Mode::Nearest | Mode::Linear | Mode::Cubic);
    let found = a.mode.name();
    ensure!(
        known,
        "`mode` must be one of nearest, linear, cubic, area, found {found}"
    );
    Ok(Box::new(Interpolate {
        data: "data",
        asked: "target_spatial_shape",
        by: By::Sizes,
        axes: Axes::These(a.axes),
        mode: a.mode,
        transform: None,
        align_corners: a.align_corners,
        nearest: Nearest::Simple,
        antialias: a.antialias,
        pads_begin: a.pads_begin,
        pads_end: a.pads_end,
        cube_coeff: CUBE_COEFF,
    }))
}

pub(super) fn build(attributes: &Attributes<'_>, pillow: bool) -> Result<Box<dyn Op>, OpError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Attrs {
        mode: Mode,
        shape_calculation_mode: By,
        #[serde(default)]
        coordinate_transformation_mode: Transform,
        #[serde(default)]
        nearest_mode: Nearest,
        #[serde(default)]
        antialias: bool,
        #[serde(default)]
        pads_begin: Vec<usize>,
        #[serde(default)]
        pads_end: Vec<usize>,
        #[serde(default = "cube_coeff")]
        cube_coeff: f64,
    }
    let a: Attrs = attributes.parse()?;
    let known = match a.mode {
        Mode::Area => false,
        Mode::BilinearPillow | Mode::BicubicPillow => pillow,
        _ => true,
    };
    let all = "nearest, linear, linear_onnx, cubic";
    let more = if pillow {
        ", bilinear_pillow, bicubic_pillow"
    } else {
        ""
    };
    let found = a.mode.name();
    ensure!(known, "`mode` must be one of {all}{more}, found {found}");
    Ok(Box::new(Interpolate {
        data: if pillow { "image" } else { "data" },
        asked: match (pillow, a.shape_calculation_mode) {
            (true, _) => "scales_or_sizes",
            (false, By::Sizes) => "sizes",
            (false, By::Scales) => "scales",
        },
        by: a.shape_calculation_mode,
        axes: Axes::Input,
        mode: a.mode,
        transform: Some(a.coordinate_transformation_mode),
        align_corners: false,
        nearest: a.nearest_mode,
        antialias: a.antialias,
        pads_begin: a.pads_begin,
        pads_end: a.pads_end,
        cube_coeff: a.cube_coeff,
    }))
}

const CUBE_COEFF: f64 = -0.75;

fn cube_coeff() -> f64 {
    CUBE_COEFF
}

impl Interpolate {
    /// How many elements are put before and after each dim.
    pub(super) fn pads(&self, rank: usize, axes: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let complete = |pads: &[usize]| -> Vec<usize> {
            if let (Axes::These(_), [pad]) = (&self.axes, pads) {
                return (0..rank)
                    .map(|d| if axes.contains(&d) { *pad } else { 0 })
                    .collect();
            }
            (0..rank)
                .map(|d| pads.get(d).copied().unwrap_or(0))
                .collect()
        };
        (complete(&self.pads_begin), complete(&self.pads_end))
    }

    pub(super) fn transform(&self, rank: usize, axes: &[usize]) -> Transform {
        if let Some(transform) = self.transform {
            return transform;
        }
        let padded = self.pads_begin.iter().chain(&self.pads_end).any(|&p| p > 0);
        let image = rank == 4 && matches!(axes, [2, 3] | [3, 2]);
        let linear = matches!(self.mode, Mode::Linear | Mode::LinearOnnx);
        match self.align_corners {
            true => Transform::AlignCorners,
            false if linear && !padded && !image => Transform::HalfPixel,
            false => Transform::Asymmetric,
        }
    }

    /// How elements are mixed, `None` for the nearest.
    pub(super) fn filter(&self, rank: usize) -> Option<Filter> {
        let a = self.cube_coeff;
        match self.mode {
            Mode::Nearest | Mode::Area => None,
            Mode::Linear if self.transform.is_none() && rank < 5 => Some(Filter::LinearOnnx),
            Mode::Linear => Some(Filter::Linear {
                antialias: self.antialias,
            }),
            Mode::LinearOnnx => Some(Filter::LinearOnnx),
            Mode::Cubic => Some(Filter::Cubic { a }),
            Mode::BilinearPillow => Some(Filter::Pillow { cubic: None }),
            Mode::BicubicPillow => Some(Filter::Pillow { cubic: Some(a) }),
        }
    }
}
