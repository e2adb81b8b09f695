//! `DFT` and `IDFT`: `out[m..] = Σ x[j..] · exp(∓2πi Σ_a m_a · j_a / S_a)` over the axes `a` in `axes`, of
//! lengths `S_a`; `IDFT` has the plus sign and divides by the product of the lengths. The last dim
//! holds real and imaginary part.
//!
//! Specifications: DFT-7, IDFT-7. An axis is first cut or filled up with zeros to its `signal_size`;
//! -1 leaves it as it is. Axes count without the last dim, negative ones too.

use super::fourier::{self, Direction};
use crate::layout::extent::countable;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::Tensor;

pub(crate) static DFT: OpDef = declare("DFT", Build::Native(parse_native::<Forward>));
pub(crate) static IDFT: OpDef = declare("IDFT", Build::Native(parse_native::<Inverse>));

const fn declare(name: &'static str, build: Build) -> OpDef {
    OpDef {
        name,
        versions: &["opset7"],
        signature: Signature::new(&["data", "axes", "signal_size"]).optional(1),
        family: Family::Native,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forward {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inverse {}

impl Native for Forward {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx)
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        evaluate(cx, Direction::Forward)
    }
}

impl Native for Inverse {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx)
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        evaluate(cx, Direction::Inverse)
    }
}

fn infer(cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
    let shape = fourier::infer(cx, true)?.shape(|n| n, |n| n, true);
    Ok(vec![TensorType::new(cx.element("data"), countable(shape)?)])
}

fn evaluate(cx: &Evaluate<'_>, direction: Direction) -> Result<Vec<Tensor>, OpError> {
    let data = fourier::read(cx, true)?;
    let mut shape = data.shape().to_vec();
    let axes = fourier::axes_of(cx, shape.len())?;
    for &(axis, size) in &axes {
        shape[axis] = size.unwrap_or(shape[axis]);
    }
    let mut data = data.resized(&shape)?;
    for (axis, _) in axes {
        data.transform(axis, direction, cx.stop())?;
    }
    Ok(vec![data.to_tensor(cx.input("data").element_type())?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, infer, run};
    use vinelift_tensor::{Dim, ElementType, PartialShape};

    fn near(found: &Tensor, shape: &[usize], want: &[f64]) {
        assert_eq!(found.shape(), shape);
        let values = found.to_f64_vec().unwrap();
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
        assert!(values.iter().zip(want).all(close), "{values:?}");
    }

    /// Values of NumPy: `fft`, `ifft` and `fft2` with `n` and `s`.
    #[test]
    fn along_axes_cut_and_filled() {
        let x = f32s(&[3, 2], &[1.0, 0.0, 2.0, 1.0, 4.0, -1.0]);
        let out = run(&DFT, &[], &[x.clone(), i64s(&[1], &[0])]);
        let (s, t) = (3f64.sqrt(), -2.0);
        near(&out, &[3, 2], &[7.0, 0.0, t + s, s, t - s, -s]);
        let out = run(&IDFT, &[], &[out, i64s(&[1], &[-1])]);
        near(&out, &[3, 2], &[1.0, 0.0, 2.0, 1.0, 4.0, -1.0]);
        let of = |size: i64| {
            run(
                &DFT,
                &[],
                &[x.clone(), i64s(&[1], &[0]), i64s(&[1], &[size])],
            )
        };
        near(&of(2), &[2, 2], &[3.0, 1.0, -1.0, -1.0]);
        near(&of(1), &[1, 2], &[1.0, 0.0]);
        near(&of(0), &[0, 2], &[]);
        let out = of(4);
        near(&out, &[4, 2], &[7.0, 0.0, -2.0, -1.0, 3.0, -2.0, -4.0, 3.0]);
        let plane = f32s(&[2, 2, 2], &[1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 5.0, 0.0]);
        let out = run(
            &DFT,
            &[],
            &[plane, i64s(&[2], &[1, 0]), i64s(&[2], &[1, -1])],
        );
        near(&out, &[2, 1, 2], &[4.0, 0.0, -2.0, 0.0]);
    }

    #[test]
    fn extents_of_nothing_may_be_huge() {
        let shape = [1 << 40, 1 << 40, 0, 2];
        let data = Tensor::zeros(ElementType::F32, &shape).unwrap();
        let of = |axis: i64, size: i64| {
            let lists = [axis, size].map(|v| i64s(&[1], &[v]));
            run(&DFT, &[], &[&[data.clone()][..], &lists].concat())
        };
        assert_eq!(of(0, -1).shape(), shape);
        assert_eq!(of(1, 3).shape(), [1 << 40, 3, 0, 2]);
    }

    #[test]
    fn what_does_not_fit() {
        let x = f32s(&[3, 2], &[0.0; 6]);
        let of = |x: &Tensor, axes: &[i64], sizes: &[i64]| {
            let lists = [axes, sizes].map(|v| i64s(&[v.len()], v));
            error(&DFT, &[], &[&[x.clone()][..], &lists].concat())
        };
        assert_eq!(of(&x, &[1], &[1]), "axis 1 is out of range for rank 1");
        let message = "`signal_size` must be at least -1, found -2";
        assert_eq!(of(&x, &[0], &[-2]), message);
        let message = "`signal_size` must have as many elements as `axes`, 1, found 2";
        assert_eq!(of(&x, &[0], &[1, 1]), message);
        let message = "the last dim of `data` [1, 3] must be 2, for real and imaginary part";
        assert_eq!(of(&f32s(&[1, 3], &[0.0; 3]), &[0], &[1]), message);
    }

    #[test]
    fn partial_shapes() {
        let data =
            PartialShape::ranked(vec![Dim::ANY, Dim::fixed(5), Dim::fixed(3), Dim::fixed(2)]);
        let list = |v: Option<&[i64]>| {
            let shape = PartialShape::ranked(vec![Dim::fixed(2)]);
            (ElementType::I64, shape, v.map(|v| i64s(&[v.len()], v)))
        };
        let of = |axes, sizes| {
            let data = (ElementType::F16, data.clone(), None);
            infer(&DFT, &[], &[data, list(axes), list(sizes)]).0
        };
        assert_eq!(of(Some(&[2, 0]), Some(&[7, -1])), "f16[?, 5, 7, 2]");
        assert_eq!(of(Some(&[2, 0]), None), "f16[?, 5, ?, 2]");
        assert_eq!(of(None, None), "f16[?, ?, ?, 2]");
    }
}
