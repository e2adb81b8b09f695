//! `Convolution`: `out[n, c, o..] = Σ_{i, k..} data[n, i, o · stride - begin + k · dilation] · filters[c, i, k..]`.
//! `GroupConvolution`: the same in each of the groups that the channels are divided into, with filters
//! `[group, c, i, k..]`.
//!
//! Specifications: Convolution-1, GroupConvolution-1. Integers wrap.

use super::dim_windows::{guarded, places};
use super::slide::{Rounding, Slide, attributes};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::layout::index_map::extent;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, zero};
use vinelift_tensor::{Dim, PartialShape};

pub(crate) static CONVOLUTION: OpDef = convolution(
    "Convolution",
    Build::Op(|attributes| build(attributes, false)),
);

pub(crate) static GROUP: OpDef = convolution(
    "GroupConvolution",
    Build::Op(|attributes| build(attributes, true)),
);

const fn convolution(name: &'static str, build: Build) -> OpDef {
    OpDef {
        name,
        versions: &["opset1"],
        signature: Signature::new(&["data", "filters"]),
        family: Family::Window,
        build,
    }
}

#[derive(Debug)]
struct Convolution {
    slide: Slide,
    grouped: bool,
}

fn build(attributes: &Attributes<'_>, grouped: bool) -> Result<Box<dyn Op>, OpError> {
    attributes!(dilations: Vec<usize>);
    let a: Attrs = attributes.parse()?;
    let slide = a.slide(&a.dilations, Rounding::Floor);
    Ok(Box::new(Convolution { slide, grouped }))
}

impl Op for Convolution {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        cx.expect_same("data", "filters")?;
        let spatial = self.slide.strides.len();
        self.slide.check(spatial)?;
        let channels = channels(cx, self.grouped, spatial)?;
        let rank = spatial + 2;
        let data = cx.dims("data").map_or(vec![Dim::ANY; rank], <[_]>::to_vec);
        let mut out = vec![data[0], channels.groups.mul(channels.second)];
        ensure!(
            data[1]
                .intersect(channels.groups.mul(channels.third))
                .is_some(),
            "`data` {} and `filters` {} must have equally many input channels",
            cx.shape("data"),
            cx.shape("filters")
        );
        for (d, (&n, &k)) in data[2..].iter().zip(&channels.kernel).enumerate() {
            out.push(self.slide.windows(d, n, k)?);
        }
        Ok(vec![TensorType::new(
            element,
            countable(PartialShape::ranked(out))?,
        )])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (data, filters, ty) = (cx.extents("data"), cx.shape("filters"), cx.element("data"));
        let skip = usize::from(self.grouped);
        let (each, inputs) = (filters[skip], filters[skip + 1]);
        let dims = self.slide.along_dims(&data[2..], &filters[skip + 2..]);
        cx.define(cx.output(0), |cx, at| {
            let sum = cx.sum_of_products(&filters[skip + 1..], ty.compute(), |cx, k| {
                let (from, guard) = places(&dims, &at[2..], &k[1..]);
                let (channel, filter) = group(self.grouped, &at[1], each, &k[0], inputs);
                let x = cx.load("data", &[&[at[0].clone(), channel], &from[..]].concat());
                let filter = cx.load("filters", &[&filter, k].concat());
                (widened(guarded(guard, x, zero(ty))), widened(filter))
            });
            sum.cast(ty)
        });
    }
}

/// For output channel `c`, one of `each` in its group, and the `k`-th of the `inputs` channels in a
/// group: which channel of the data that is, and the leading indices of the filters.
fn group(
    grouped: bool,
    c: &Scalar,
    each: usize,
    k: &Scalar,
    inputs: usize,
) -> (Scalar, Vec<Scalar>) {
    if !grouped {
        return (k.clone(), vec![c.clone()]);
    }
    let each = extent(each.max(1));
    let (group, own) = match each {
        1 => (c.clone(), index(0)),
        _ => (c / each, c.rem(index(each))),
    };
    let channel = match inputs {
        1 => group.clone(),
        _ => &group * extent(inputs) + k,
    };
    (channel, vec![group, own])
}

/// The parts of the shape of the filters, with one group if there are none.
pub(super) struct Channels {
    pub(super) groups: Dim,
    pub(super) second: Dim,
    pub(super) third: Dim,
    pub(super) kernel: Vec<Dim>,
}

/// Checks the ranks of `data` and `filters`.
pub(super) fn channels(cx: &Infer<'_>, grouped: bool, spatial: usize) -> Result<Channels, OpError> {
    let skip = usize::from(grouped);
    ensure!(
        spatial > 0,
        "there must be at least one spatial dim, found none in `strides`"
    );
    cx.expect_rank("data", spatial + 2)?;
    cx.expect_rank("filters", spatial + 2 + skip)?;
    let any = vec![Dim::ANY; spatial + 2 + skip];
    let filters = cx.dims("filters").map_or(any, <[_]>::to_vec);
    Ok(Channels {
        groups: if grouped { filters[0] } else { Dim::fixed(1) },
        second: filters[skip],
        third: filters[skip + 1],
        kernel: filters[skip + 2..].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn counting(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        i32s(shape, &(0..n as i32).collect::<Vec<_>>())
    }

    fn attributes<'a>(pads: &'a str, strides: &'a str) -> [(&'a str, &'a str); 4] {
        [
            ("strides", strides),
            ("dilations", "1,1"),
            ("pads_begin", pads),
            ("pads_end", pads),
        ]
    }

    /// The examples of ONNX's documentation of `Conv`, with and without padding and strides.
    #[test]
    fn ones_over_a_square() {
        let ones = i32s(&[1, 1, 3, 3], &[1; 9]);
        let of = |pads, strides, shape: &[usize]| {
            let inputs = [counting(shape), ones.clone()];
            run(&CONVOLUTION, &attributes(pads, strides), &inputs)
        };
        #[rustfmt::skip]
        let padded = [
            12, 21, 27, 33, 24, 33, 54, 63, 72, 51, 63, 99, 108, 117, 81,
            93, 144, 153, 162, 111, 72, 111, 117, 123, 84,
        ];
        assert_eq!(
            of("1,1", "1,1", &[1, 1, 5, 5]),
            i32s(&[1, 1, 5, 5], &padded)
        );
        let want = [54, 63, 72, 99, 108, 117, 144, 153, 162];
        assert_eq!(of("0,0", "1,1", &[1, 1, 5, 5]), i32s(&[1, 1, 3, 3], &want));
        #[rustfmt::skip]
        let want = [12, 27, 24, 63, 108, 81, 123, 198, 141, 112, 177, 124];
        assert_eq!(of("1,1", "2,2", &[1, 1, 7, 5]), i32s(&[1, 1, 4, 3], &want));
    }

    /// Values of NumPy: two groups of one input and two output channels each.
    #[test]
    fn groups() {
        let (data, filters) = (counting(&[1, 2, 1, 2]), counting(&[2, 2, 1, 1, 1]));
        let out = run(&GROUP, &attributes("0,0", "1,1"), &[data, filters]);
        assert_eq!(out, i32s(&[1, 4, 1, 2], &[0, 0, 0, 1, 4, 6, 6, 9]));
        let inputs = [counting(&[1, 3, 1, 2]), counting(&[2, 2, 1, 1, 1])];
        let message = "`data` [1, 3, 1, 2] and `filters` [2, 2, 1, 1, 1] must have equally many \
                       input channels";
        assert_eq!(error(&GROUP, &attributes("0,0", "1,1"), &inputs), message);
    }

    #[test]
    fn nothing_to_sum() {
        let inputs = [counting(&[1, 0, 2, 2]), counting(&[1, 0, 1, 1])];
        let out = run(&CONVOLUTION, &attributes("0,0", "1,1"), &inputs);
        assert_eq!(out, i32s(&[1, 1, 2, 2], &[0; 4]));
    }

    #[test]
    fn partial_shapes() {
        let of = |data, filters: &[usize]| {
            let inputs = [
                (ElementType::F16, data, None),
                (ElementType::F16, filters.into(), None),
            ];
            infer(&CONVOLUTION, &attributes("1,1", "2,2"), &inputs).0
        };
        let data = PartialShape::any_of_rank(4);
        assert_eq!(of(data, &[8, 3, 3, 3]), "f16[?, 8, 1.., 1..]");
        assert_eq!(
            of(PartialShape::DYNAMIC, &[8, 3, 3, 3]),
            "f16[?, 8, 1.., 1..]"
        );
    }
}
