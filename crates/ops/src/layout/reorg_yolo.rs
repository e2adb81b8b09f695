//! `ReorgYolo`: `out`, of shape `[N, C · s², H / s, W / s]`, is read in the order of a shape `[N, C, H, W]`,
//! where element `[n, c, h, w]` is element `[n, c % D, h · s + c / D / s, w · s + c / D % s]` of `data` read
//! in the order of a shape `[N, D, H · s, W · s]`, `D` being `C / s²`.
//!
//! Specification: ReorgYolo-1, which the IR calls opset2. It is silent about the order; this is that of
//! OpenVINO and of the original network. If `s²` does not divide `C`, the order leads beyond the data
//! for some elements, which are 0 here.

use super::extent::{countable, divided, product};
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
    versions: &["opset2"],
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
            data[1].max().is_none_or(|most| most >= places),
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
        let (s, c) = (self.stride, data[1].pin());
        let is_whole = c % (s * s) == 0;
        if is_whole && data.iter().any(|n| n.is_symbolic()) {
            cx.define(out, |cx, at| {
                let from = self.within_image(at, c, &target);
                cx.load("data", &from)
            });
            return;
        }
        let shape = cx.shape("data");
        let [n, h, w] = [0, 2, 3].map(|d| shape[d]);
        let depth = c / (s * s);
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
    /// Where the element `at` of an output of shape `out` comes from, if `s²` divides the `channels`: then each image stays
    /// where it is, and the coordinates are sums that are proven to be in range whatever the extents are.
    fn within_image(&self, at: &[Scalar], channels: usize, out: &[Extent]) -> Vec<Scalar> {
        let (s, places) = (extent(self.stride), extent(self.stride * self.stride));
        let depth = extent(channels) / places;
        let [height, width] = [2, 3].map(|d| Scalar::extent(out[d].product(self.stride.into())));
        // In the order of a shape `[N, C, H, W]`.
        let lines = at[1].rem(index(places)) * Scalar::extent(out[2]) + &at[2];
        let (channel, row) = (&at[1] / places, &lines / s);
        let column = lines.rem(index(s)) * Scalar::extent(out[3]) + &at[3];
        // In one of a shape `[N, D, H · s, W · s]`.
        let place = &channel / depth;
        let (down, across) = (row * s + &place / s, column * s + place.rem(index(s)));
        let rows = down * s + &across / &width;
        vec![
            at[0].clone(),
            channel.rem(index(depth)) * places + &rows / &height,
            rows.rem(height),
            across.rem(width),
        ]
    }
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
}
