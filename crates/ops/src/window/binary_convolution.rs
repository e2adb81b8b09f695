//! `BinaryConvolution`: `out[n, c, o..] = Σ_{i, k..} ±1`, where it is 1 if the bits
//! `data[n, i, o · stride - begin + k · dilation] > 0` and `filters[c, i, k..]` are equal, and -1 otherwise. Off
//! the map the bit is `pad_value > 0`.
//!
//! Specification: BinaryConvolution-1, where this is `2 · popcount(xnor(data, filters)) - bits`, and a 0 in
//! the data means -1. That other data count by their sign, so that it may also hold -1 and 1, is as on
//! OpenVINO's CPU device. (There, a `pad_value` of 0 counts as nothing; by the specification it is -1.)

use super::convolution::channels;
use super::dim_windows::{guarded, places};
use super::slide::{Rounding, Slide, attributes};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Binary;
use vinelift_nest::build::{boolean, number, select, zero};
use vinelift_tensor::{Dim, ElementType, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "BinaryConvolution",
    versions: &["opset1"],
    signature: Signature::new(&["data", "filters"]),
    family: Family::Window,
    build: Build::Op(|attributes| {
        attributes!(
            dilations: Vec<usize>,
            #[serde(rename = "mode")]
            _mode: Mode,
            pad_value: f64,
        );
        let a: Attrs = attributes.parse()?;
        Ok(Box::new(BinaryConvolution {
            slide: a.slide(&a.dilations, Rounding::Floor),
            pad_value: a.pad_value,
        }))
    }),
};

#[derive(Debug)]
struct BinaryConvolution {
    slide: Slide,
    pad_value: f64,
}

/// The only one there is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    XnorPopcount,
}

impl Op for BinaryConvolution {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        cx.expect("filters", "u1", |t| t == ElementType::U1)?;
        self.slide.check(2)?;
        let channels = channels(cx, false, 2)?;
        let data = cx.dims("data").map_or(vec![Dim::ANY; 4], <[_]>::to_vec);
        ensure!(
            data[1].intersect(channels.third).is_some(),
            "`data` {} and `filters` {} must have equally many input channels",
            cx.shape("data"),
            cx.shape("filters")
        );
        let mut out = vec![data[0], channels.second];
        for (d, (&n, &k)) in data[2..].iter().zip(&channels.kernel).enumerate() {
            out.push(self.slide.windows(d, n, k)?);
        }
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (data, filters, ty) = (cx.extents("data"), cx.shape("filters"), cx.element("data"));
        let dims = self.slide.along_dims(&data[2..], &filters[2..]);
        let wide = ty.compute();
        cx.define(cx.output(0), |cx, at| {
            let sum = cx.reduce(Binary::Add, &filters[1..], zero(wide), |cx, k| {
                let (from, guard) = places(&dims, &at[2..], &k[1..]);
                let x = cx.load("data", &[&at[..1], &k[..1], &from[..]].concat());
                let bit = x.cast(wide).gt(zero(wide));
                let bit = guarded(guard, bit, boolean(self.pad_value > 0.0));
                let filter = widened(cx.load("filters", &[&at[1..2], k].concat()));
                let equal = bit.eq(filter.ne(zero(filter.ty())));
                select(equal, number(1.0, wide), number(-1.0, wide))
            });
            sum.cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};
    use vinelift_tensor::Tensor;

    fn attributes<'a>(pads: &'a str, pad_value: &'a str) -> [(&'a str, &'a str); 6] {
        [
            ("strides", "1,1"),
            ("dilations", "1,1"),
            ("pads_begin", pads),
            ("pads_end", pads),
            ("mode", "xnor-popcount"),
            ("pad_value", pad_value),
        ]
    }

    /// A filter of the bits 1, 0, 1.
    fn filter() -> Tensor {
        Tensor::from_bytes(ElementType::U1, &[1, 1, 1, 3], vec![0b1010_0000]).unwrap()
    }

    /// By hand.
    #[test]
    fn equal_bits_less_the_others() {
        let data = i32s(&[1, 1, 1, 5], &[1, 0, 1, 1, 0]);
        let out = run(&DEF, &attributes("0,0", "0"), &[data.clone(), filter()]);
        assert_eq!(out, i32s(&[1, 1, 1, 3], &[3, -1, -1]));
        let out = run(&DEF, &attributes("0,1", "0"), &[data.clone(), filter()]);
        assert_eq!(out, i32s(&[1, 1, 1, 5], &[-3, 3, -1, -1, 1]));
        let out = run(&DEF, &attributes("0,1", "1"), &[data, filter()]);
        assert_eq!(out, i32s(&[1, 1, 1, 5], &[-1, 3, -1, -1, 3]));
        let signs = f32s(&[1, 1, 1, 3], &[1.0, -1.0, 1.0]);
        let out = run(&DEF, &attributes("0,0", "0"), &[signs, filter()]);
        assert_eq!(out, f32s(&[1, 1, 1, 1], &[3.0]));
    }

    #[test]
    fn inputs_must_fit() {
        let data = f32s(&[1, 2, 1, 3], &[0.0; 6]);
        let message =
            "`data` [1, 2, 1, 3] and `filters` [1, 1, 1, 3] must have equally many input channels";
        let inputs = [data.clone(), filter()];
        assert_eq!(error(&DEF, &attributes("0,0", "0"), &inputs), message);
        let message = "`filters` must be u1, found f32";
        let inputs = [data.clone(), data];
        assert_eq!(error(&DEF, &attributes("0,0", "0"), &inputs), message);
    }
}
