//! `ConvolutionBackpropData`: what `Convolution` does, transposed:
//! `out[n, c, y..] = Σ_{i, k..} data[n, i, x..] · filters[i, c, k..]` over the `x` with
//! `x · stride - begin + k · dilation = y`. `GroupConvolutionBackpropData`: the same in each group, with
//! filters `[group, i, c, k..]`.
//!
//! Specifications: ConvolutionBackpropData-1, GroupConvolutionBackpropData-1. With `output_shape` the
//! pads follow from it; otherwise there are none unless `auto_pad` is explicit. Where the specification is
//! silent, as OpenVINO, ONNX Runtime and TensorFlow: there are no pads of less than 0, so that an output
//! which is longer than all that reaches it ends in zeros.

mod lowering;

use super::convolution::channels;
use super::slide::AutoPad;
use crate::error::ensure;
use crate::layout::extent::{countable, natural_extents, naturals};
use crate::layout::index_map::extent;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use lowering::Steps;
use serde::Deserialize;
use vinelift_tensor::{Dim, Extent, Formula, PartialShape, symbols};

pub(crate) static CONVOLUTION: OpDef = backprop(
    "ConvolutionBackpropData",
    Build::Op(|attributes| build(attributes, false)),
);

pub(crate) static GROUP: OpDef = backprop(
    "GroupConvolutionBackpropData",
    Build::Op(|attributes| build(attributes, true)),
);

const fn backprop(name: &'static str, build: Build) -> OpDef {
    OpDef {
        name,
        versions: &["opset1"],
        signature: Signature::new(&["data", "filters", "output_shape"]).optional(1),
        family: Family::Window,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attrs {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    #[serde(default)]
    pads_begin: Vec<i64>,
    #[serde(default)]
    pads_end: Vec<i64>,
    #[serde(default)]
    output_padding: Vec<i64>,
    #[serde(default)]
    auto_pad: AutoPad,
}

#[derive(Debug)]
struct Backprop {
    attrs: Attrs,
    grouped: bool,
}

fn build(attributes: &Attributes<'_>, grouped: bool) -> Result<Box<dyn Op>, OpError> {
    let mut attrs: Attrs = attributes.parse()?;
    if attrs.output_padding.is_empty() {
        attrs.output_padding = vec![0; attrs.strides.len()];
    }
    Ok(Box::new(Backprop { attrs, grouped }))
}

impl Op for Backprop {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        cx.expect_same("data", "filters")?;
        let a = &self.attrs;
        let spatial = a.strides.len();
        let explicit = a.auto_pad == AutoPad::Explicit && !cx.has("output_shape");
        for (name, list, needed, least) in [
            ("strides", &a.strides, true, 1),
            ("dilations", &a.dilations, true, 1),
            ("output_padding", &a.output_padding, true, 0),
            ("pads_begin", &a.pads_begin, explicit, 0),
            ("pads_end", &a.pads_end, explicit, 0),
        ] {
            ensure!(
                !needed || list.len() == spatial,
                "`{name}` {list:?} must have {spatial} elements, one for each spatial dim"
            );
            naturals(name, list, least)?;
        }
        let channels = channels(cx, self.grouped, spatial)?;
        let any = vec![Dim::ANY; spatial + 2];
        let data = cx.dims("data").map_or(any, <[_]>::to_vec);
        ensure!(
            data[1]
                .intersect(channels.groups.mul(channels.second))
                .is_some(),
            "`data` {} and `filters` {} must have equally many input channels",
            cx.shape("data"),
            cx.shape("filters")
        );
        let mut out = vec![data[0], channels.groups.mul(channels.third)];
        let asked = match cx.elements("output_shape")? {
            Some(asked) => {
                let asked = natural_extents("output_shape", &asked)?;
                ensure!(
                    asked.len() == spatial,
                    "`output_shape` {asked:?} must have {spatial} elements"
                );
                Some(asked)
            }
            None => None,
        };
        for d in 0..spatial {
            let (n, k) = (data[2 + d], channels.kernel[d]);
            ensure!(
                k.max() != Some(0),
                "the kernel has no elements in spatial dim {d}"
            );
            if cx.has("output_shape") {
                let known = asked.as_ref().map(|asked| asked[d]);
                if let (Some(n), Some(k), Some(y)) = (n.extent(), k.get(), known) {
                    self.begin(d, n, k, Some(y))?;
                }
                out.push(known.map_or(Dim::ANY, Dim::from));
            } else {
                out.push(self.extent(d, n, k)?);
            }
        }
        Ok(vec![TensorType::new(
            element,
            countable(PartialShape::ranked(out))?,
        )])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let filters = cx.shape("filters");
        let kernel = &filters[2 + usize::from(self.grouped)..];
        let dims = self.steps(cx, kernel);
        lowering::lower(cx, &dims, self.grouped);
    }
}

impl Backprop {
    /// The steps of each spatial dim.
    fn steps(&self, cx: &Lower<'_>, kernel: &[usize]) -> Vec<Steps> {
        let (data, out) = (cx.extents("data"), cx.extents_of(cx.output(0)));
        let is_asked = cx.has("output_shape");
        let of = |(d, &kernel): (usize, &usize)| {
            let asked = is_asked.then_some(out[2 + d]);
            Steps {
                stride: self.attrs.strides[d],
                dilation: self.attrs.dilations[d],
                begin: self.begin(d, data[2 + d], kernel, asked).unwrap_or(0),
                kernel: extent(kernel),
                data: data[2 + d],
                out: out[2 + d],
            }
        };
        kernel.iter().enumerate().map(of).collect()
    }

    /// `stride · (n - 1) + (k - 1) · dilation + 1 + output_padding`, or why that is too large.
    fn full(&self, d: usize, n: usize, k: usize) -> Result<i128, OpError> {
        let a = &self.attrs;
        let steps = i128::from(a.strides[d]).saturating_mul(n as i128 - 1);
        let reach = i128::from(a.dilations[d]).saturating_mul(k as i128 - 1);
        let full = steps.saturating_add(reach) + 1 + i128::from(a.output_padding[d]);
        ensure!(
            full.abs() < 1 << 62 && reach < 1 << 62,
            "spatial dim {d}: an output of {full} elements is too large"
        );
        Ok(full)
    }

    /// As [`Backprop::full`] less `pads`, as a formula, if the extent has symbols.
    fn formula(&self, d: usize, n: Extent, k: usize, pads: i128) -> Option<Formula> {
        let stride = Formula::number(self.attrs.strides[d]);
        // Of one element, the rest does not depend on the stride.
        let rest = self.full(d, 1, k).ok()? - pads;
        let rest = Formula::number(i64::try_from(rest).ok()?).minus(&stride)?;
        let full = n.formula().times(&stride)?.plus(&rest);
        full.filter(|_| n.is_symbolic())
    }

    /// How much longer than `y` the output would be without pads, which the plan relies on from now on.
    fn surplus(&self, d: usize, n: Extent, k: usize, y: Extent) -> Result<i128, OpError> {
        let known = |full: Formula| symbols::pin(&full.minus(y.formula())?);
        if let Some(surplus) = self.formula(d, n, k, 0).and_then(known) {
            return Ok(surplus.into());
        }
        Ok(self.full(d, n.pin(), k)? - y.pin() as i128)
    }

    /// How many elements of padding lie before the output.
    fn begin(&self, d: usize, n: Extent, k: usize, asked: Option<Extent>) -> Result<i64, OpError> {
        let begin = match (asked, self.attrs.auto_pad) {
            (None, AutoPad::Explicit) => return Ok(self.attrs.pads_begin[d]),
            (None, _) => 0,
            (Some(y), auto_pad) => {
                let total = self.surplus(d, n, k, y)?.max(0);
                match auto_pad {
                    AutoPad::SameUpper => total - total / 2,
                    _ => total / 2,
                }
            }
        };
        let fits = i64::try_from(begin).ok().filter(|b| b.abs() < 1 << 62);
        fits.ok_or_else(|| {
            OpError::Shape(format!("spatial dim {d}: pads of {begin} are too large"))
        })
    }

    /// The extent of the output along spatial dim `d`.
    fn extent(&self, d: usize, n: Dim, k: Dim) -> Result<Dim, OpError> {
        let a = &self.attrs;
        let pads = match a.auto_pad {
            AutoPad::Explicit => i128::from(a.pads_begin[d]) + i128::from(a.pads_end[d]),
            _ => 0,
        };
        ensure!(
            pads < 1 << 62,
            "spatial dim {d}: pads of {pads} are too large"
        );
        if let (Some(n), Some(k)) = (n.extent(), k.get())
            && let Some(extent) = self.formula(d, n, k, pads).and_then(Extent::of)
        {
            return Ok(extent.into());
        }
        let of = |n, k| self.full(d, n, k).map(|full| full - pads);
        let min = of(n.min(), k.min().max(1)).unwrap_or(0);
        let max = n.max().zip(k.max()).map(|(n, k)| of(n, k)).transpose()?;
        ensure!(
            max.is_none_or(|max| max >= 0),
            "spatial dim {d}: an output of {} elements is negative",
            max.unwrap_or(0)
        );
        let natural = |n: i128| usize::try_from(n.max(0)).unwrap_or(usize::MAX);
        Ok(Dim::between(natural(min), max.map(natural)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, infer, run};
    use vinelift_tensor::ElementType;

    const ONES: [(&str, &str); 4] = [
        ("strides", "1,1"),
        ("dilations", "1,1"),
        ("pads_begin", "0,0"),
        ("pads_end", "0,0"),
    ];

    /// The first example of ONNX's documentation of `ConvTranspose`.
    #[test]
    fn ones_over_a_square() {
        let data = i32s(&[1, 1, 3, 3], &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let out = run(&CONVOLUTION, &ONES, &[data, i32s(&[1, 1, 3, 3], &[1; 9])]);
        #[rustfmt::skip]
        let want = [
            0, 1, 3, 3, 2, 3, 8, 15, 12, 7, 9, 21, 36, 27, 15, 9, 20, 33, 24, 13, 6, 13, 21, 15, 8,
        ];
        assert_eq!(out, i32s(&[1, 1, 5, 5], &want));
    }

    /// Worked out by hand with the formulas of the specification.
    #[test]
    fn strides_groups_and_an_output_shape() {
        let attributes = [
            ("strides", "2"),
            ("dilations", "1"),
            ("output_padding", "1"),
        ];
        let pads = [("pads_begin", "1"), ("pads_end", "0")];
        let inputs = [
            i32s(&[1, 2, 2], &[1, 2, 3, 4]),
            i32s(&[2, 1, 1, 2], &[1, 10, 1, 100]),
        ];
        let out = run(&GROUP, &[&attributes[..], &pads].concat(), &inputs);
        let want = [10, 2, 20, 0, 300, 4, 400, 0];
        assert_eq!(out, i32s(&[1, 2, 4], &want));
        let inputs = [i32s(&[1, 1, 2], &[1, 2]), i32s(&[1, 1, 2], &[1, 10])];
        let of = |auto, length: i64| {
            let attributes = [("strides", "2"), ("dilations", "1"), ("auto_pad", auto)];
            let inputs = [&inputs[..], &[i64s(&[1], &[length])]].concat();
            run(&CONVOLUTION, &attributes, &inputs)
        };
        assert_eq!(of("same_lower", 3), i32s(&[1, 1, 3], &[1, 10, 2]));
        assert_eq!(of("same_upper", 3), i32s(&[1, 1, 3], &[10, 2, 20]));
        // As OpenVINO 2026.4.1.
        for auto in ["same_lower", "same_upper", "explicit", "valid"] {
            let longer = i32s(&[1, 1, 6], &[1, 10, 2, 20, 0, 0]);
            assert_eq!(of(auto, 6), longer, "{auto}");
        }
        let inputs = [i32s(&[1, 1, 2], &[0; 2]), i32s(&[2, 1, 2], &[0; 4])];
        let message =
            "`data` [1, 1, 2] and `filters` [2, 1, 2] must have equally many input channels";
        let explicit = [("strides", "1"), ("dilations", "1"), ("auto_pad", "valid")];
        assert_eq!(error(&CONVOLUTION, &explicit, &inputs), message);
    }

    #[test]
    fn partial_shapes() {
        let of = |with: bool| {
            let mut inputs = vec![
                (ElementType::F32, PartialShape::any_of_rank(4), None),
                (ElementType::F32, [3usize, 8, 3, 3][..].into(), None),
            ];
            if with {
                inputs.push((ElementType::I64, PartialShape::any_of_rank(1), None));
            }
            infer(&CONVOLUTION, &ONES, &inputs)
        };
        assert_eq!(of(false), ("f32[?, 8, 2.., 2..]".to_owned(), vec![]));
        assert_eq!(of(true), ("f32[?, 8, ?, ?]".to_owned(), vec![2]));
    }
}
