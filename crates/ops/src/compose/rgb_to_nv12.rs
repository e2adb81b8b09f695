//! `RGBtoNV12`, `BGRtoNV12`: `y = 0.257 · r + 0.504 · g + 0.098 · b + 16` for each pixel, and for each square
//! of two by two the mean of `u = -0.148 · r - 0.291 · g + 0.439 · b + 128` and that of
//! `v = 0.439 · r - 0.368 · g - 0.071 · b + 128`, all brought within 0 and 255.
//!
//! Specifications: RGBtoNV12-17, BGRtoNV12-17. Chosen where they are silent, as OpenVINO does: `u` and `v`
//! are means of what each pixel gives, and integers are rounded to nearest, ties up, before and after.

use super::yuv_to_rgb::{arithmetic, is_colour, nhwc};
use crate::elementwise::widened;
use crate::layout::extent::{countable, divided};
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{clamp, index, number, select};
use vinelift_nest::{Mode, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static RGB: OpDef =
    conversion("RGBtoNV12", Build::Op(|attributes| build(attributes, true)));

pub(crate) static BGR: OpDef = conversion(
    "BGRtoNV12",
    Build::Op(|attributes| build(attributes, false)),
);

const fn conversion(name: &'static str, build: Build) -> OpDef {
    OpDef {
        name,
        versions: &["opset17"],
        signature: Signature::new(&["data"]),
        family: Family::Compose,
        build,
    }
}

#[derive(Debug)]
struct RgbToNv12 {
    red_first: bool,
    single_plane: bool,
}

fn build(attributes: &Attributes<'_>, red_first: bool) -> Result<Box<dyn Op>, OpError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Attrs {
        #[serde(default = "crate::attrs::yes")]
        single_plane: bool,
    }
    let Attrs { single_plane } = attributes.parse()?;
    Ok(Box::new(RgbToNv12 {
        red_first,
        single_plane,
    }))
}

impl Op for RgbToNv12 {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "u8 or a float type", is_colour)?;
        let image = nhwc(cx, "data", 3)?;
        let (Some(rows), Some(columns)) = (divided(image[1], 2), divided(image[2], 2)) else {
            let message = format!(
                "`data` {} must have even numbers of rows and columns",
                cx.shape("data")
            );
            return Err(OpError::Shape(message));
        };
        let [one, two, three] = [1, 2, 3].map(Dim::fixed);
        let (whole_rows, whole_columns) = (rows.mul(two), columns.mul(two));
        let shapes = match self.single_plane {
            true => vec![vec![image[0], rows.mul(three), whole_columns, one]],
            false => vec![
                vec![image[0], whole_rows, whole_columns, one],
                vec![image[0], rows, columns, two],
            ],
        };
        let typed = |dims| {
            Ok(TensorType::new(
                element,
                countable(PartialShape::ranked(dims))?,
            ))
        };
        shapes.into_iter().map(typed).collect()
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty) = (cx.extents("data"), cx.element("data"));
        let luma = cx.output(0);
        if shape.iter().any(|n| *n == 0) {
            return;
        }
        let (batch, rows, columns) = (shape[0], shape[1], shape[2]);
        cx.stage(&[batch, rows, columns], luma, Mode::Set, |cx, at| {
            let value = finished(self.mixed(cx, at, [0.257, 0.504, 0.098], 16.0), ty);
            (at.iter().cloned().chain([index(0)]).collect(), value)
        });
        let chroma = cx.outputs().last().copied().unwrap_or(luma);
        let half = |n: Extent| n.quotient(2.into());
        let domain = [batch, half(rows), half(columns), 2.into()];
        cx.stage(&domain, chroma, Mode::Set, |cx, at| {
            let pixel = |cx: &Lower<'_>, k: i64| {
                let place = [at[0].clone(), &at[1] * 2 + k / 2, &at[2] * 2 + k % 2];
                let u = self.mixed(cx, &place, [-0.148, -0.291, 0.439], 128.0);
                let v = self.mixed(cx, &place, [0.439, -0.368, -0.071], 128.0);
                colour(select(at[3].eq(index(0)), u, v), ty)
            };
            let sum = (1..4).fold(pixel(cx, 0), |sum, k| sum + pixel(cx, k));
            let mean = sum / 4.0;
            let mean = if ty.is_integer() { nearest(mean) } else { mean };
            let place = match self.single_plane {
                true => vec![
                    at[0].clone(),
                    &at[1] + &Scalar::extent(rows),
                    &at[2] * 2 + &at[3],
                    index(0),
                ],
                false => at.to_vec(),
            };
            (place, mean.cast(ty))
        });
    }
}

impl RgbToNv12 {
    /// The weighted sum of red, green and blue of pixel `at`, and `shift`.
    fn mixed(&self, cx: &Lower<'_>, at: &[Scalar], weights: [f64; 3], shift: f64) -> Scalar {
        let wide = arithmetic(cx.element("data"));
        let [red, green, blue] = [0, 1, 2].map(|k| {
            let channel = if self.red_first { k } else { 2 - k };
            let place: Vec<Scalar> = at.iter().cloned().chain([index(channel)]).collect();
            widened(cx.load("data", &place)).cast(wide)
        });
        red * weights[0] + green * weights[1] + blue * weights[2] + shift
    }
}

/// `x` brought within 0 and 255, in whole numbers if `ty` is an integer.
fn colour(x: Scalar, ty: ElementType) -> Scalar {
    let x = clamp(x, 0.0, 255.0);
    match ty.is_integer() {
        true => nearest(x),
        false => x,
    }
}

/// As [`colour`], as a value of `ty`.
fn finished(x: Scalar, ty: ElementType) -> Scalar {
    colour(x, ty).cast(ty)
}

/// The integer nearest to `x`, which is not negative; ties go up.
fn nearest(x: Scalar) -> Scalar {
    let floor = x.floor();
    let up = (&x - &floor).ge(number(0.5, x.ty()));
    select(up, &floor + 1.0, floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, infer, run, run_all};
    use vinelift_tensor::{ElementType, Tensor};

    fn bytes(shape: &[usize], values: &[u8]) -> Tensor {
        Tensor::from_slice(shape, values).unwrap()
    }

    /// By the formulas of the specification: black, white, red and blue.
    #[test]
    fn planes_and_order() {
        let rgb = [0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255];
        let rgb = bytes(&[1, 2, 2, 3], &rgb);
        // Of u 128, 128, 90, 240; of v 128, 128, 240, 110.
        let (luma, chroma) = ([16, 235, 82, 41], [147, 152]);
        let single = bytes(&[1, 3, 2, 1], &[&luma[..], &chroma].concat());
        assert_eq!(run(&RGB, &[], std::slice::from_ref(&rgb)), single);
        let attributes = [("single_plane", "false")];
        let bgr: Vec<u8> = rgb
            .bytes()
            .chunks(3)
            .flat_map(|p| [p[2], p[1], p[0]])
            .collect();
        let bgr = bytes(&[1, 2, 2, 3], &bgr);
        let planes = run_all(&BGR, &attributes, &[bgr], IndexPolicy::Spec).unwrap();
        assert_eq!(planes[0], bytes(&[1, 2, 2, 1], &luma));
        assert_eq!(planes[1], bytes(&[1, 1, 1, 2], &chroma));
    }

    #[test]
    fn shapes() {
        let dims = vec![Dim::ANY, Dim::fixed(4), Dim::ANY, Dim::fixed(3)];
        let data = (ElementType::F32, PartialShape::ranked(dims), None);
        assert_eq!(
            infer(&RGB, &[], std::slice::from_ref(&data)).0,
            "f32[?, 6, ?, 1]"
        );
        let found = infer(&BGR, &[("single_plane", "false")], &[data]).0;
        assert_eq!(found, "f32[?, 4, ?, 1] f32[?, 2, ?, 2]");
        let data = Tensor::zeros(ElementType::U8, &[1, 3, 2, 3]).unwrap();
        let message = "`data` [1, 3, 2, 3] must have even numbers of rows and columns";
        assert_eq!(error(&RGB, &[], &[data]), message);
    }
}
