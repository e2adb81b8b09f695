//! `DeformableConvolution`: a convolution each of whose samples is moved, and with `mask` weighed, by data:
//! ```text
//! out[n, o, y, x] = Σ_{i, k} filters[o, i, k] · mask[n, d · K + k, y, x] · sample(data[n, c], p + Δ)
//! p = (y, x) · stride - begin + k · dilation
//! Δ = offsets[n, 2 (d · K + k) + (0, 1), y, x]
//! ```
//! where `K` is the number of elements of the kernel, `c` is the `i`-th input channel of the group of `o`, one of
//! `group`, and `d` is the deformable group of `c`, one of `deformable_group`.
//!
//! A sample is interpolated between the four elements around it. One before the first element or a whole
//! element after the last is 0; another after the last is the last. With `bilinear_interpolation_pad` the
//! map is surrounded by zeros instead.
//!
//! Specifications: DeformableConvolution-1 and -8. They say that a sample that is less than an element off the
//! map moves to its border; as in OpenVINO that happens only after the last element, and deformable
//! groups divide the input channels. Integers are not interpolated: their offsets are whole.

use super::dim_windows::places;
use super::slide::{Rounding, Slide, attributes};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::{countable, divided};
use crate::layout::index_map::{extent, extent_float, flatten, last_float, within_extent};
use crate::region::sample::{bilinear, cut};
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use vinelift_nest::Scalar;
use vinelift_nest::build::{number, select, zero};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Signature::new(&["data", "offsets", "filters"]),
    Build::Op(|attributes| {
        attributes!(
            dilations: Vec<usize>,
            #[serde(default = "crate::attrs::one")]
            group: usize,
            #[serde(default = "crate::attrs::one")]
            deformable_group: usize,
        );
        let a: Attrs = attributes.parse()?;
        let slide = a.slide(&a.dilations, Rounding::Floor);
        DeformableConvolution::build(slide, a.group, a.deformable_group, false)
    }),
);

pub(crate) static V8: OpDef = version(
    &["opset8"],
    Signature::new(&["data", "offsets", "filters", "mask"]).optional(1),
    Build::Op(|attributes| {
        attributes!(
            dilations: Vec<usize>,
            #[serde(default = "crate::attrs::one")]
            group: usize,
            #[serde(default = "crate::attrs::one")]
            deformable_group: usize,
            #[serde(default)]
            bilinear_interpolation_pad: bool,
        );
        let a: Attrs = attributes.parse()?;
        let slide = a.slide(&a.dilations, Rounding::Floor);
        let zeros_around = a.bilinear_interpolation_pad;
        DeformableConvolution::build(slide, a.group, a.deformable_group, zeros_around)
    }),
);

const fn version(versions: &'static [&'static str], signature: Signature, build: Build) -> OpDef {
    OpDef {
        name: "DeformableConvolution",
        versions,
        signature,
        family: Family::Window,
        build,
    }
}

#[derive(Debug)]
struct DeformableConvolution {
    slide: Slide,
    group: usize,
    deformable_group: usize,
    zeros_around: bool,
}

impl DeformableConvolution {
    fn build(
        slide: Slide,
        group: usize,
        deformable_group: usize,
        zeros_around: bool,
    ) -> Result<Box<dyn Op>, OpError> {
        for (name, value) in [("group", group), ("deformable_group", deformable_group)] {
            ensure!(value > 0, "`{name}` must be at least 1, found 0");
        }
        Ok(Box::new(DeformableConvolution {
            slide,
            group,
            deformable_group,
            zeros_around,
        }))
    }
}

impl Op for DeformableConvolution {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        let has_mask = cx.input_count() > 3;
        let others = ["offsets", "filters", "mask"];
        for name in &others[..if has_mask { 3 } else { 2 }] {
            cx.expect_same("data", name)?;
            cx.expect_rank(name, 4)?;
        }
        cx.expect_rank("data", 4)?;
        self.slide.check(2)?;
        let dims = |name: &str| cx.dims(name).map_or(vec![Dim::ANY; 4], <[_]>::to_vec);
        let (data, filters) = (dims("data"), dims("filters"));
        let inputs = filters[1].mul(Dim::fixed(self.group));
        ensure!(
            data[1].intersect(inputs).is_some(),
            "`data` {} must have `group` {} times as many channels as `filters` {}",
            cx.shape("data"),
            self.group,
            cx.shape("filters")
        );
        for (name, dim, by, parts) in [
            ("filters", filters[0], "group", self.group),
            ("data", data[1], "deformable_group", self.deformable_group),
        ] {
            ensure!(
                divided(dim, parts).is_some(),
                "the channels of `{name}` {} must divide into `{by}` {parts}",
                cx.shape(name)
            );
        }
        let mut out = vec![data[0], filters[0]];
        for d in 0..2 {
            out.push(self.slide.windows(d, data[d + 2], filters[d + 2])?);
        }
        let samples = Dim::fixed(self.deformable_group)
            .mul(filters[2])
            .mul(filters[3]);
        let offsets = samples.mul(Dim::fixed(2));
        for (name, channels) in [("offsets", offsets), ("mask", samples)] {
            if name == "mask" && !has_mask {
                continue;
            }
            let want = PartialShape::ranked(vec![out[0], channels, out[2], out[3]]);
            let found = cx.shape(name);
            let both = found.intersect(&want);
            let Some(&[n, _, y, x]) = both.as_ref().and_then(|s| s.dims()) else {
                return Err(OpError::Shape(format!(
                    "`{name}` must have shape {want}, found {found}"
                )));
            };
            out = vec![n, out[1], y, x];
        }
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (data, ty) = (cx.extents("data"), cx.element("data"));
        let filters = cx.shape("filters");
        let wide = ty.compute();
        let out = cx.output(0);
        if data.iter().any(|n| *n == 0) {
            cx.define(out, |_, _| zero(ty));
            return;
        }
        let size = cx.extents_of(out);
        let [rows, columns] = [filters[2].into(), filters[3].into()];
        let samples = [data[0], data[1], rows, columns, size[2], size[3]];
        let samples = cx.temporary("samples", wide, &samples);
        let dims = self.slide.along_dims(&data[2..], &filters[2..]);
        let each = extent(data[1].pin() / self.deformable_group);
        cx.define(samples, |cx, at| {
            let [n, c, k_y, k_x, y, x] = at else {
                return zero(wide);
            };
            let point = [c / each, k_y.clone(), k_x.clone()];
            let point = flatten(&point, &[self.deformable_group, filters[2], filters[3]]);
            let (places, _) = places(&dims, &at[4..], &at[2..4]);
            let data_at = |y: &Scalar, x: &Scalar| [n, c, y, x].map(Clone::clone);
            let offset = |axis: i64| {
                let channel = &point * 2 + axis;
                cx.load("offsets", &[n, &channel, y, x].map(Clone::clone))
            };
            let sample = self.sample(
                cx,
                &places,
                [offset(0), offset(1)],
                [data[2], data[3]],
                data_at,
            );
            match cx.inputs().len() > 3 {
                true => sample * widened(cx.load("mask", &[n, &point, y, x].map(Clone::clone))),
                false => sample,
            }
        });
        let each = extent((filters[0] / self.group).max(1));
        cx.define(out, |cx, at| {
            let [n, o, y, x] = at else { return zero(ty) };
            let sum = cx.sum_of_products(&filters[1..], wide, |cx, k| {
                let channel = match self.group {
                    1 => k[0].clone(),
                    _ => o / each * extent(filters[1]) + &k[0],
                };
                let from = [n, &channel, &k[1], &k[2], y, x].map(Clone::clone);
                let filter = cx.load("filters", &[o, &k[0], &k[1], &k[2]].map(Clone::clone));
                (cx.load_from(samples, &from), widened(filter))
            });
            sum.cast(ty)
        });
    }
}

impl DeformableConvolution {
    /// The value at `places` moved by `offsets` in a map of extents `dims`; `at` gives the indices of an
    /// element of the map.
    fn sample(
        &self,
        cx: &Lower<'_>,
        places: &[Scalar],
        offsets: [Scalar; 2],
        dims: [Extent; 2],
        at: impl Fn(&Scalar, &Scalar) -> [Scalar; 4],
    ) -> Scalar {
        let load = |cx: &Lower<'_>, y: &Scalar, x: &Scalar| widened(cx.load("data", &at(y, x)));
        let wide = offsets[0].ty().compute();
        if wide.is_integer() {
            let on = |d: usize| {
                let place = &places[d] + offsets[d].clone().cast(wide).cast(ElementType::I64);
                let guard = within_extent(&place, dims[d]);
                (place, guard)
            };
            let ((y, on_y), (x, on_x)) = (on(0), on(1));
            return select(on_y & on_x, load(cx, &y, &x), zero(wide));
        }
        let place = |d: usize| places[d].clone().cast(wide) + widened(offsets[d].clone());
        let (y, x) = (place(0), place(1));
        let value = bilinear(cx, [&y, &x], dims, load);
        let bound = |x: &Scalar, n: Extent| {
            let end = x.lt(extent_float(n, wide));
            match self.zeros_around {
                true => end & x.gt(number(-1.0, wide)),
                false => end & x.ge(zero(wide)),
            }
        };
        let value = match self.zeros_around {
            true => value * nearness(&y, dims[0]) * nearness(&x, dims[1]),
            false => value,
        };
        select(bound(&y, dims[0]) & bound(&x, dims[1]), value, zero(wide))
    }
}

/// How much of what stands at the border of a dim of `n` elements is left at a position off it, with
/// zeros around.
fn nearness(x: &Scalar, n: Extent) -> Scalar {
    let on = cut(x, 0.0, last_float(n, x.ty()));
    number(1.0, x.ty()) - (x - on).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, infer, run};

    const ATTRIBUTES: [(&str, &str); 4] = [
        ("strides", "1,1"),
        ("dilations", "1,1"),
        ("pads_begin", "0,0"),
        ("pads_end", "0,0"),
    ];

    /// One element of a map of 1, 2, 3, 4 in rows of 2, moved.
    fn moved(offset: [f32; 2], zeros_around: &str) -> f64 {
        let map = f32s(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let [y, x] = offset;
        let offsets = f32s(&[1, 2, 2, 2], &[y, 0.0, 0.0, 0.0, x, 0.0, 0.0, 0.0]);
        let filter = f32s(&[1, 1, 1, 1], &[1.0]);
        let attributes = [
            &ATTRIBUTES[..],
            &[("bilinear_interpolation_pad", zeros_around)],
        ];
        let out = run(&V8, &attributes.concat(), &[map, offsets, filter]);
        out.to_f64_vec().unwrap()[0]
    }

    /// By hand.
    #[test]
    fn samples_between_elements_and_off_the_map() {
        assert_eq!(moved([0.5, 0.5], "false"), 2.5);
        assert_eq!(moved([0.0, 1.5], "false"), 2.0);
        assert_eq!(moved([0.0, 2.0], "false"), 0.0);
        assert_eq!(moved([-0.5, 0.0], "false"), 0.0);
        assert_eq!(moved([0.5, 0.5], "true"), 2.5);
        assert_eq!(moved([0.0, 1.75], "true"), 0.5);
        assert_eq!(moved([-0.5, -0.5], "true"), 0.25);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30] {
            assert_eq!(moved([bad, 0.0], "true"), 0.0);
            assert_eq!(moved([0.0, bad], "false"), 0.0);
        }
    }

    /// By hand: every input channel has offsets, a mask and a filter of its own.
    #[test]
    fn groups_and_masks() {
        let map = i32s(&[1, 2, 1, 3], &[1, 2, 3, 10, 20, 30]);
        // The first channel moves by 1 and the second by -1.
        #[rustfmt::skip]
        let offsets = i32s(&[1, 4, 1, 3], &[0, 0, 0, 1, 1, 1, 0, 0, 0, -1, -1, -1]);
        let mask = i32s(&[1, 2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        let filters = i32s(&[2, 1, 1, 1], &[1, -1]);
        let groups = [("group", "2"), ("deformable_group", "2")];
        let attributes = [&ATTRIBUTES[..], &groups].concat();
        let inputs = [map, offsets, filters, mask];
        let out = run(&V8, &attributes, &inputs);
        assert_eq!(out, i32s(&[1, 2, 1, 3], &[2, 6, 0, 0, -50, -120]));
        let out = run(&V1, &attributes, &inputs[..3]);
        assert_eq!(out, i32s(&[1, 2, 1, 3], &[2, 3, 0, 0, -10, -20]));
    }

    #[test]
    fn inputs_must_fit() {
        let ones = |shape: &[usize]| f32s(shape, &vec![1.0; shape.iter().product()]);
        let of = |offsets: &[usize], filters: &[usize]| {
            error(
                &V1,
                &ATTRIBUTES,
                &[ones(&[1, 2, 3, 3]), ones(offsets), ones(filters)],
            )
        };
        let message = "`offsets` must have shape [1, 8, 2, 2], found [1, 4, 2, 2]";
        assert_eq!(of(&[1, 4, 2, 2], &[1, 2, 2, 2]), message);
        let message = "`data` [1, 2, 3, 3] must have `group` 1 times as many channels as `filters` [1, 1, 2, 2]";
        assert_eq!(of(&[1, 8, 2, 2], &[1, 1, 2, 2]), message);
    }

    #[test]
    fn partial_shapes() {
        let any = (ElementType::F16, PartialShape::any_of_rank(4), None);
        let offsets = (ElementType::F16, [5, 18, 7, 8].as_slice().into(), None);
        let filters = (ElementType::F16, [4, 2, 3, 3].as_slice().into(), None);
        let found = infer(&V1, &ATTRIBUTES, &[any, offsets, filters]).0;
        assert_eq!(found, "f16[5, 4, 7, 8]");
    }
}
