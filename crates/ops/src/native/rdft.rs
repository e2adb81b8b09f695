//! `RDFT`: the transform of `DFT` for a real tensor, without the second half along the last of the
//! axes, which repeats the first: `S / 2 + 1` elements of `S` are left. The output has one more dim,
//! for real and imaginary part.
//!
//! Specification: RDFT-9. An axis is first cut or filled up with zeros to its `signal_size`; -1 leaves
//! it as it is.

use super::fourier::{self, Direction};
use crate::layout::extent::countable;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::{Dim, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "RDFT",
    versions: &["opset9"],
    signature: Signature::new(&["data", "axes", "signal_size"]).optional(1),
    family: Family::Native,
    build: Build::Native(parse_native::<Rdft>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rdft {}

impl Native for Rdft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let half = |n: Dim| Dim::between(n.min() / 2 + 1, n.max().map(|n| n / 2 + 1));
        let shape = fourier::infer(cx, false)?.shape(|n| n, half, true);
        Ok(vec![TensorType::new(cx.element("data"), countable(shape)?)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let data = fourier::read(cx, false)?;
        let mut shape = data.shape().to_vec();
        let axes = fourier::axes_of(cx, shape.len())?;
        for &(axis, size) in &axes {
            shape[axis] = size.unwrap_or(shape[axis]);
        }
        let mut data = data.resized(&shape)?;
        // The last axis first: the others then have half the work.
        if let Some(&(last, _)) = axes.last() {
            data.transform(last, Direction::Forward, cx.stop())?;
            data = data.with_extent(last, shape[last] / 2 + 1)?;
        }
        for &(axis, _) in axes.iter().rev().skip(1) {
            data.transform(axis, Direction::Forward, cx.stop())?;
        }
        Ok(vec![data.to_tensor(cx.input("data").element_type())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape};

    /// Values of NumPy: `rfft` and `rfftn`.
    #[test]
    fn half_of_the_last_axis() {
        let x = f32s(&[2, 2], &[1.0, 2.0, 3.0, 5.0]);
        let of = |axes: &[i64], sizes: &[i64]| {
            let lists = [axes, sizes].map(|v| i64s(&[v.len()], v));
            let out = run(&DEF, &[], &[&[x.clone()][..], &lists].concat());
            (out.shape().to_vec(), out.to_f64_vec().unwrap())
        };
        let want = vec![11.0, 0.0, -3.0, 0.0, -5.0, 0.0, 1.0, 0.0];
        assert_eq!(of(&[0, 1], &[-1, 2]), (vec![2, 2, 2], want));
        let want = vec![4.0, 0.0, 7.0, 0.0, -2.0, 0.0, -3.0, 0.0];
        assert_eq!(of(&[-2], &[2]), (vec![2, 2, 2], want));
        let want = vec![1.0, 0.0, 3.0, 0.0];
        assert_eq!(of(&[1], &[1]), (vec![2, 1, 2], want));
        assert_eq!(of(&[1], &[0]), (vec![2, 1, 2], vec![0.0; 4]));
    }

    #[test]
    fn partial_shapes() {
        let dim = Dim::between(5, Some(8));
        let data = PartialShape::ranked(vec![Dim::ANY, dim]);
        let of = |axes: &[i64]| {
            let data = (ElementType::F32, data.clone(), None);
            let axes = i64s(&[axes.len()], axes);
            let axes = (ElementType::I64, axes.shape().into(), Some(axes));
            infer(&DEF, &[], &[data, axes]).0
        };
        assert_eq!(of(&[0, 1]), "f32[?, 3..5, 2]");
        assert_eq!(of(&[1, 0]), "f32[1.., 5..8, 2]");
    }
}
