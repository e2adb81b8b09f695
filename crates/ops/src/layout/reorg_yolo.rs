//! `ReorgYolo`: `out`, of shape `[N, C · s², H / s, W / s]`, is read in the order of a shape `[N, C, H, W]`,
//! where element `[n, c, h, w]` is element `[n, c % D, h · s + c / D / s, w · s + c / D % s]` of `data` read
//! in the order of a shape `[N, D, H · s, W · s]`, `D` being `C / s²`.
//!
//! Specification: ReorgYolo-1, which the IR calls opset1 or opset2. It is silent about the order; this is that of
//! OpenVINO and of the original network. If `s²` does not divide `C`, the order leads beyond the data
//! for some elements, which are 0 here.

use super::extent::{countable, divided, may_be_at_most, product};
use super::index_map::{extent, flatten, unflatten, within_extent};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select, zero};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "ReorgYolo",
    versions: &["opset1", "opset2"],
    signature: Signature::new(&["data"]),
    family: Family::Layout,
    build: Build::Op(parse::<ReorgYolo>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorgYolo {
    stride: usize,
}

impl Op for ReorgYolo {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let s = self.stride;
        ensure!(s >= 1, "`stride` must be at least 1, found {s}");
        cx.expect_rank("data", 4)?;
        let places = product("stride", &[s, s])?;
        let data = cx.dims("data").map_or(vec![Dim::ANY; 4], <[_]>::to_vec);
        let found = cx.shape("data");
        ensure!(
            may_be_at_most(Dim::fixed(places), data[1]),
            "`data` {found} must have at least {places} channels"
        );
        let mut out = vec![data[0], data[1].mul(Dim::fixed(places))];
        for dim in &data[2..] {
            let Some(dim) = divided(*dim, s) else {
                let message = format!("a stride of {s} does not divide `data` {found}");
                return Err(OpError::Shape(message));
            };
            out.push(dim);
        }
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (data, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        let target = cx.extents_of(out);
        if target.iter().any(|n| *n == 0) {
            return;
        }
        let s = self.stride;
        let is_symbolic = data.iter().any(|n| n.is_symbolic());
        if is_symbolic && let Some(depth) = self.depth(data[1]) {
            cx.define(out, |cx, at| {
                let from = self.within_image(at, depth, &target);
                cx.load("data", &from)
            });
            return;
        }
        let shape = cx.shape("data");
        let is_whole = shape[1].is_multiple_of(s * s);
        let [n, h, w] = [0, 2, 3].map(|d| shape[d]);
        let depth = shape[1] / (s * s);
        let rows = [n, depth, h * s, w * s];
        cx.define(out, |cx, at| {
            let to = unflatten(&flatten(at, &target), &shape);
            let place = &to[1] / extent(depth);
            let from = [
                to[0].clone(),
                to[1].rem(index(extent(depth))),
                &to[2] * extent(s) + &place / extent(s),
                &to[3] * extent(s) + place.rem(index(extent(s))),
            ];
            let flat = flatten(&from, &rows);
            let value = cx.load("data", &unflatten(&flat, &shape));
            if is_whole {
                return value;
            }
            let all = shape.iter().product::<usize>();
            select(within_extent(&flat, all.into()), value, zero(ty))
        });
    }
}

impl ReorgYolo {
    /// `D`, if `s²` divides the number of channels.
    fn depth(&self, channels: Extent) -> Option<Extent> {
        let places = Extent::from(self.stride * self.stride);
        let depth = channels.quotient(places);
        depth.product(places).same(channels).then_some(depth)
    }

    /// Where the element `at` of an output of shape `out` comes from, if `s²` divides the number of channels: then each image
    /// stays where it is, and the coordinates are sums that are proven to be in range whatever the extents are.
    ///
    /// In the order of a shape `[N, C, H, W]`, a row of the output is a part of a row, one of `s`, and so it is in that of a
    /// shape `[N, D, H · s, W · s]`: what is divided is the same for a whole row.
    fn within_image(&self, at: &[Scalar], depth: Extent, out: &[Extent]) -> Vec<Scalar> {
        let (s, places) = (extent(self.stride), extent(self.stride * self.stride));
        let [depth, height] = [depth, out[2].product(self.stride.into())].map(Scalar::extent);
        // In the order of a shape `[N, C, H, W]`.
        let parts = at[1].rem(index(places)) * Scalar::extent(out[2]) + &at[2];
        let (channel, row, part) = (&at[1] / places, &parts / s, parts.rem(index(s)));
        // In one of a shape `[N, D, H · s, W · s]`, each row of which is `s` rows of the data.
        let place = &channel / &depth;
        let rows = (row * s + &place / s) * s + part;
        vec![
            at[0].clone(),
            channel.rem(depth) * places + &rows / &height,
            rows.rem(height),
            &at[3] * s + place.rem(index(s)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i32s, infer, run};
    use vinelift_tensor::{ElementType, Tensor, extents};

    fn counting(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        i32s(shape, &(0..n as i32).collect::<Vec<_>>())
    }

    /// Results of OpenVINO 2026.4.1 on its CPU.
    #[test]
    fn order() {
        let out = run(&DEF, &[("stride", "2")], &[counting(&[1, 4, 2, 2])]);
        let want = [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15];
        assert_eq!(out, i32s(&[1, 16, 1, 1], &want));
        let x = counting(&[2, 3, 1, 2]);
        let out = run(&DEF, &[("stride", "1")], std::slice::from_ref(&x));
        assert_eq!(out, x);
    }

    #[test]
    fn channels_that_are_no_multiple() {
        let out = run(&DEF, &[("stride", "2")], &[counting(&[1, 5, 2, 2])]);
        assert_eq!(out.shape(), [1, 20, 1, 1]);
    }

    #[test]
    fn shapes() {
        let data = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(8), Dim::ANY, Dim::fixed(6)]);
        let found = infer(&DEF, &[("stride", "2")], &[(ElementType::F16, data, None)]);
        assert_eq!(found.0, "f16[?, 32, ?, 3]");
        let of = |shape: &[usize]| error(&DEF, &[("stride", "2")], &[counting(shape)]);
        let message = "`data` [1, 3, 2, 2] must have at least 4 channels";
        assert_eq!(of(&[1, 3, 2, 2]), message);
        let message = "a stride of 2 does not divide `data` [1, 4, 3, 2]";
        assert_eq!(of(&[1, 4, 3, 2]), message);
    }

    /// Classes give what each shape gives alone, whichever of its extents are symbols; those that do not fit are in none.
    #[test]
    fn classes_of_images() {
        for (stride, shape, other) in [
            ("2", [3, 8, 4, 6], [2, 12, 6, 8]),
            ("3", [2, 18, 6, 9], [5, 36, 9, 6]),
            ("1", [2, 5, 3, 4], [3, 2, 2, 2]),
        ] {
            let attributes = [("stride", stride)];
            for open in 1..16 {
                let is_open = |d: &usize| open >> d & 1 == 1;
                let dims: Vec<usize> = (0..4).filter(is_open).collect();
                let values = |shape: [usize; 4]| dims.iter().map(|d| shape[*d]).collect::<Vec<_>>();
                let class = Class::new(&DEF, &attributes, &values(shape), |s| {
                    let mut extents = extents(&shape);
                    dims.iter().zip(s).for_each(|(d, n)| extents[*d] = *n);
                    vec![(ElementType::I32, extents, None)]
                });
                let mut mixed = shape;
                dims.iter().for_each(|d| mixed[*d] = other[*d]);
                let data = counting(&mixed);
                let found = class.run(&values(mixed), std::slice::from_ref(&data));
                let want = run(&DEF, &attributes, &[data]);
                assert_eq!(found, Some(vec![want]), "{dims:?} {mixed:?}");
            }
        }
        let class = Class::new(&DEF, &[("stride", "2")], &[8, 4], |s| {
            vec![(ElementType::I32, vec![1.into(), s[0], s[1], 6.into()], None)]
        });
        for wrong in [[10, 4], [12, 5], [2, 4]] {
            let data = counting(&[1, wrong[0], wrong[1], 6]);
            assert_eq!(class.run(&wrong, &[data]), None);
        }
    }
}
