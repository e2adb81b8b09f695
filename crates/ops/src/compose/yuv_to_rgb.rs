//! `NV12toRGB`, `NV12toBGR`, `I420toRGB`, `I420toBGR`: with `c = 1.164 · (y - 16)`,
//! `r = c + 1.596 · (v - 128)`, `g = c - 0.391 · (u - 128) - 0.813 · (v - 128)`, `b = c + 2.018 · (u - 128)`,
//! brought within 0 and 255; one `u` and one `v` serve a square of two by two pixels.
//!
//! Specifications: NV12toRGB-8, NV12toBGR-8, I420toRGB-8, I420toBGR-8. Below the rows of `y`, a single plane
//! holds `u` and `v` by turns (NV12), or all `u` and then all `v` (I420), packed without regard to rows. Chosen
//! where the specifications are silent, as OpenVINO does: integers are rounded to nearest, ties to even.

use crate::attrs::NoAttributes;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::{countable, divided};
use crate::layout::index_map::unflatten;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use vinelift_nest::Scalar;
use vinelift_nest::build::{clamp, index, select};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static NV12_TO_RGB: OpDef = nv12(
    "NV12toRGB",
    Build::Op(|attributes| build(attributes, Planes::Interleaved, true)),
);

pub(crate) static NV12_TO_BGR: OpDef = nv12(
    "NV12toBGR",
    Build::Op(|attributes| build(attributes, Planes::Interleaved, false)),
);

pub(crate) static I420_TO_RGB: OpDef = i420(
    "I420toRGB",
    Build::Op(|attributes| build(attributes, Planes::Separate, true)),
);

pub(crate) static I420_TO_BGR: OpDef = i420(
    "I420toBGR",
    Build::Op(|attributes| build(attributes, Planes::Separate, false)),
);

const fn nv12(name: &'static str, build: Build) -> OpDef {
    conversion(name, Signature::new(&["y", "uv"]).optional(1), build)
}

const fn i420(name: &'static str, build: Build) -> OpDef {
    conversion(name, Signature::new(&["y", "u", "v"]).optional(2), build)
}

const fn conversion(name: &'static str, signature: Signature, build: Build) -> OpDef {
    OpDef {
        name,
        versions: &["opset8"],
        signature,
        family: Family::Compose,
        build,
    }
}

#[derive(Debug)]
struct YuvToRgb {
    planes: Planes,
    red_first: bool,
}

/// Where `u` and `v` are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Planes {
    /// NV12.
    Interleaved,
    /// I420.
    Separate,
}

fn build(
    attributes: &Attributes<'_>,
    planes: Planes,
    red_first: bool,
) -> Result<Box<dyn Op>, OpError> {
    let NoAttributes {} = attributes.parse()?;
    Ok(Box::new(YuvToRgb { planes, red_first }))
}

impl Op for YuvToRgb {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("y", "u8 or a float type", is_colour)?;
        let mut image = nhwc(cx, "y", 1)?;
        if cx.input_count() == 1 {
            let Some(third) = divided(image[1], 3) else {
                let message = format!("the rows of `y` {} must be a multiple of 3", cx.shape("y"));
                return Err(OpError::Shape(message));
            };
            image[1] = third.mul(Dim::fixed(2));
        } else {
            let (names, channels): (&[&'static str], usize) = match self.planes {
                Planes::Interleaved => (&["uv"], 2),
                Planes::Separate => (&["u", "v"], 1),
            };
            ensure!(
                cx.input_count() == names.len() + 1,
                "{} inputs, expected `y` alone or all planes",
                cx.input_count()
            );
            for name in names {
                cx.expect_same("y", name)?;
                let plane = nhwc(cx, name, channels)?;
                let two = Dim::fixed(2);
                let whole = [plane[0], plane[1].mul(two), plane[2].mul(two)];
                for (d, whole) in whole.into_iter().enumerate() {
                    let Some(dim) = image[d].intersect(whole) else {
                        let message = format!(
                            "`{name}` {} must have half the rows and columns of `y` {}",
                            cx.shape(name),
                            cx.shape("y")
                        );
                        return Err(OpError::Shape(message));
                    };
                    image[d] = dim;
                }
            }
        }
        let even = image[1..3].iter().all(|d| divided(*d, 2).is_some());
        ensure!(
            even,
            "an image must have even numbers of rows and columns, found {} by {}",
            image[1],
            image[2]
        );
        image[3] = Dim::fixed(3);
        let shape = countable(PartialShape::ranked(image))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (ty, out) = (cx.element("y"), cx.output(0));
        let image = cx.extents_of(out);
        if image.iter().any(|n| *n == 0) {
            return;
        }
        let wide = arithmetic(ty);
        cx.define(out, |cx, at| {
            let value = |x: Scalar| widened(x).cast(wide);
            let mut luma = at.to_vec();
            luma[3] = index(0);
            let [u, v] = self.chroma(cx, at, &image);
            let c = (value(cx.load("y", &luma)) + -16.0) * 1.164;
            let (u, v) = (value(u) + -128.0, value(v) + -128.0);
            let red = &c + &v * 1.596;
            let green = &c - &u * 0.391 - &v * 0.813;
            let blue = &c + &u * 2.018;
            let (first, last) = if self.red_first {
                (red, blue)
            } else {
                (blue, red)
            };
            let rest = select(at[3].eq(index(1)), green, last);
            let colour = clamp(select(at[3].eq(index(0)), first, rest), 0.0, 255.0);
            match ty.is_integer() {
                true => colour.round().cast(ty),
                false => colour.cast(ty),
            }
        });
    }
}

impl YuvToRgb {
    /// The `u` and `v` of pixel `at` of an image of shape `image`.
    fn chroma(&self, cx: &Lower<'_>, at: &[Scalar], image: &[Extent]) -> [Scalar; 2] {
        let (n, i, j) = (&at[0], &at[1] / 2, &at[2] / 2);
        let (rows, columns) = (image[1], image[2]);
        let at = |row: &Scalar, column: Scalar, channel: i64| {
            [n.clone(), row.clone(), column, index(channel)]
        };
        match (self.planes, cx.inputs().len()) {
            (Planes::Interleaved, 1) => {
                let row = &i + &Scalar::extent(rows);
                [0, 1].map(|k| cx.load("y", &at(&row, &j * 2 + k, 0)))
            }
            (Planes::Interleaved, _) => [0, 1].map(|k| cx.load("uv", &at(&i, j.clone(), k))),
            (Planes::Separate, 1) => {
                let half = [rows, columns].map(|n| n.quotient(2.into()));
                let places = match image.iter().any(|n| n.is_symbolic()) {
                    true => below_by_halves(&i, &j, half),
                    false => below(&i, &j, half),
                };
                places.map(|[row, column]| cx.load("y", &at(&row, column, 0)))
            }
            (Planes::Separate, _) => ["u", "v"].map(|name| cx.load(name, &at(&i, j.clone(), 0))),
        }
    }
}

/// The rows and columns at which element `(i, j)` of the two planes of `half` the rows and columns is, below those of `y`.
fn below(i: &Scalar, j: &Scalar, half: [Extent; 2]) -> [[Scalar; 2]; 2] {
    let quarter = half[0].product(half[1]);
    let flat = i * &Scalar::extent(half[1]) + j;
    [4, 5].map(|quarters: usize| {
        let before = quarter.product(quarters.into());
        let flat = &flat + &Scalar::extent(before);
        let all = [half[0].product(3.into()), half[1].product(2.into())];
        let place = unflatten(&flat, &all);
        [place[0].clone(), place[1].clone()]
    })
}

/// The same where extents have symbols: a row of a plane is half a row of `y`, so that nothing is divided for each of its
/// elements.
fn below_by_halves(i: &Scalar, j: &Scalar, half: [Extent; 2]) -> [[Scalar; 2]; 2] {
    [4, 5].map(|quarters: usize| {
        let half_row = Scalar::extent(half[0].product(quarters.into())) + i;
        let column = half_row.rem(index(2)) * Scalar::extent(half[1]) + j;
        [half_row / 2, column]
    })
}

/// The element types of pictures.
pub(super) fn is_colour(ty: ElementType) -> bool {
    ty == ElementType::U8 || ty.is_float()
}

/// The dims of a picture with `channels` channels.
pub(super) fn nhwc(
    cx: &Infer<'_>,
    name: &'static str,
    channels: usize,
) -> Result<Vec<Dim>, OpError> {
    cx.expect_rank(name, 4)?;
    let dims = cx.dims(name).map_or(vec![Dim::ANY; 4], <[_]>::to_vec);
    ensure!(
        dims[3].contains(channels),
        "the last dim of `{name}` {} must be {channels}",
        cx.shape(name)
    );
    Ok(dims)
}

/// The type in which colours of type `ty` are mixed.
pub(super) fn arithmetic(ty: ElementType) -> ElementType {
    match ty.compute() {
        ElementType::U8 => ElementType::F32,
        wide => wide,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, infer, run};
    use vinelift_tensor::Tensor;

    fn bytes(shape: &[usize], values: &[u8]) -> Tensor {
        Tensor::from_slice(shape, values).unwrap()
    }

    const LUMA: [u8; 8] = [16, 235, 100, 180, 81, 145, 41, 255];

    /// By the formulas of the specification, in NumPy.
    #[test]
    fn planes_and_order() {
        let y = bytes(&[1, 2, 4, 1], &LUMA);
        let uv = bytes(&[1, 1, 2, 2], &[120, 126, 172, 65]);
        let (u, v) = (
            bytes(&[1, 1, 2, 1], &[120, 172]),
            bytes(&[1, 1, 2, 1], &[126, 65]),
        );
        let two = run(&NV12_TO_RGB, &[], &[y.clone(), uv]);
        let three = run(&I420_TO_RGB, &[], &[y, u, v]);
        assert_eq!(two, three);
        let nv12 = bytes(&[1, 3, 4, 1], &[&LUMA[..], &[120, 126, 172, 65]].concat());
        assert_eq!(run(&NV12_TO_RGB, &[], std::slice::from_ref(&nv12)), two);
        let i420 = bytes(&[1, 3, 4, 1], &[&LUMA[..], &[120, 172, 126, 65]].concat());
        assert_eq!(run(&I420_TO_RGB, &[], std::slice::from_ref(&i420)), two);
        let swapped: Vec<u8> = two
            .bytes()
            .chunks(3)
            .flat_map(|p| [p[2], p[1], p[0]])
            .collect();
        let swapped = bytes(&[1, 2, 4, 3], &swapped);
        assert_eq!(run(&NV12_TO_BGR, &[], &[nv12]), swapped);
        assert_eq!(run(&I420_TO_BGR, &[], &[i420]), swapped);
        #[rustfmt::skip]
        let want = [0, 5, 0, 252, 255, 239, 0, 132, 187, 90, 225, 255, 72, 80, 60, 147, 155, 134, 0, 63, 118, 178, 255, 255];
        assert_eq!(two, bytes(&[1, 2, 4, 3], &want));
    }

    #[test]
    fn shapes() {
        let data = |dims| (ElementType::F16, PartialShape::ranked(dims), None);
        let one = Dim::fixed(1);
        let half = data(vec![Dim::fixed(2), Dim::ANY, Dim::fixed(4), Dim::fixed(2)]);
        let y = data(vec![Dim::ANY, Dim::fixed(6), Dim::ANY, one]);
        let found = infer(&NV12_TO_BGR, &[], &[y.clone(), half]);
        assert_eq!(found, ("f16[2, 6, 8, 3]".to_owned(), vec![]));
        assert_eq!(infer(&I420_TO_RGB, &[], &[y]).0, "f16[?, 4, ?, 3]");
        let zeros = |shape: &[usize]| Tensor::zeros(ElementType::U8, shape).unwrap();
        let message = "the rows of `y` [1, 4, 2, 1] must be a multiple of 3";
        assert_eq!(error(&NV12_TO_RGB, &[], &[zeros(&[1, 4, 2, 1])]), message);
        let message = "an image must have even numbers of rows and columns, found 2 by 3";
        assert_eq!(error(&NV12_TO_RGB, &[], &[zeros(&[1, 3, 3, 1])]), message);
        let planes = [zeros(&[1, 2, 2, 1]), zeros(&[1, 1, 1, 1])];
        let message = "2 inputs, expected `y` alone or all planes";
        assert_eq!(error(&I420_TO_RGB, &[], &planes), message);
        let message = "the last dim of `uv` [1, 1, 1, 1] must be 2";
        assert_eq!(error(&NV12_TO_RGB, &[], &planes), message);
        let planes = [zeros(&[1, 2, 2, 1]), zeros(&[1, 2, 1, 2])];
        let message = "`uv` [1, 2, 1, 2] must have half the rows and columns of `y` [1, 2, 2, 1]";
        assert_eq!(error(&NV12_TO_RGB, &[], &planes), message);
    }
}
