//! `NV12toRGB`, `NV12toBGR`, `I420toRGB`, `I420toBGR`: with `c = 1.164 · (y - 16)`,
//! `r = c + 1.596 · (v - 128)`, `g = c - 0.391 · (u - 128) - 0.813 · (v - 128)`, `b = c + 2.018 · (u - 128)`,
//! brought within 0 and 255; one `u` and one `v` serve a square of two by two pixels.
//!
//! Specifications: NV12toRGB-8, NV12toBGR-8, I420toRGB-8, I420toBGR-8. Below the rows of `y`, a single plane
//! holds `u` and `v` by turns (NV12), or all `u` and then all `v` (I420), packed without regard to rows. Chosen
//! where the specifications are silent, as OpenVINO does: integers are rounded to nearest, ties to even.

#[cfg(test)]
mod tests;

use crate::attrs::NoAttributes;
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::{countable, divided};
use crate::layout::index_map::unflatten;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use vinelift_nest::build::{clamp, index};
use vinelift_nest::{Mode, Scalar};
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
        let value = |x: Scalar| widened(x).cast(wide);
        let [n, rows, columns] = [image[0], image[1], image[2]];
        let [half_rows, half] = [rows, columns].map(|extent| extent.quotient(2.into()));

        // Each of these stages computes elements that are neighbours in memory: pixels of even or of odd columns, of one colour.
        let luma = cx.temporary("luma", wide, &[2.into(), n, rows, half]);
        for parity in 0..2 {
            cx.stage(&[n, rows, half], luma, Mode::Set, |cx, at| {
                let pixel = [at[0].clone(), at[1].clone(), &at[2] * 2 + parity, index(0)];
                let c = (value(cx.load("y", &pixel)) + -16.0) * 1.164;
                ([&[index(parity)], at].concat(), c)
            });
        }
        let chroma = cx.temporary("chroma", wide, &[2.into(), n, half_rows, half]);
        for channel in 0..2 {
            cx.stage(&[n, half_rows, half], chroma, Mode::Set, |cx, at| {
                let value = value(self.chroma(cx, channel, at, &image)) + -128.0;
                ([&[index(channel as i64)], at].concat(), value)
            });
        }
        let planes = cx.temporary("planes", ty, &[6.into(), n, rows, half]);
        for (colour, parity) in (0..3).flat_map(|colour| [0, 1].map(|parity| (colour, parity))) {
            cx.stage(&[n, rows, half], planes, Mode::Set, |cx, at| {
                let c = cx.load_from(luma, &[&[index(parity)], at].concat());
                let [u, v] = [0, 1].map(|channel| {
                    let at = [index(channel), at[0].clone(), &at[1] / 2, at[2].clone()];
                    cx.load_from(chroma, &at)
                });
                let mixed = match (colour, self.red_first) {
                    (0, true) | (2, false) => c + v * 1.596,
                    (1, _) => c - u * 0.391 - v * 0.813,
                    _ => c + u * 2.018,
                };
                let mixed = clamp(mixed, 0.0, 255.0);
                let value = match ty.is_integer() {
                    true => mixed.round().cast(ty),
                    false => mixed.cast(ty),
                };
                ([&[index(2 * colour + parity)], at].concat(), value)
            });
        }
        // A row stays in the cache until all of it has come.
        cx.stage(&[n, rows, 6.into(), half], out, Mode::Set, |cx, at| {
            let [n, i, plane, j] = [0, 1, 2, 3].map(|d| at[d].clone());
            let (colour, parity) = (&plane / 2, plane.clone().rem(index(2)));
            let value = cx.load_from(planes, &[plane, n.clone(), i.clone(), j.clone()]);
            (vec![n, i, j * 2 + parity, colour], value)
        });
    }
}

impl YuvToRgb {
    /// The `u`, or `v` for channel 1, of the pixels of rows `2 · at[1]` and columns `2 · at[2]` and those after them, of an image
    /// of shape `image`.
    fn chroma(&self, cx: &Lower<'_>, channel: usize, at: &[Scalar], image: &[Extent]) -> Scalar {
        let [n, i, j] = [0, 1, 2].map(|d| at[d].clone());
        let k = index(channel as i64);
        match (self.planes, cx.inputs().len()) {
            (Planes::Interleaved, 1) => {
                let row = i + &Scalar::extent(image[1]);
                cx.load("y", &[n, row, j * 2 + k, index(0)])
            }
            (Planes::Interleaved, _) => cx.load("uv", &[n, i, j, k]),
            (Planes::Separate, 1) => {
                let half = [image[1], image[2]].map(|n| n.quotient(2.into()));
                let places = match image.iter().any(|n| n.is_symbolic()) {
                    true => below_by_halves(&i, &j, half),
                    false => below(&i, &j, half),
                };
                let [row, column] = places[channel].clone();
                cx.load("y", &[n, row, column, index(0)])
            }
            (Planes::Separate, _) => cx.load(["u", "v"][channel], &[n, i, j, index(0)]),
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
