//! `IRDFT`: the inverse of `RDFT`. Along the last of the axes, of length `S`, element `S - k` is taken to
//! be the conjugate of element `k`; the result of the transform of `IDFT` is then real.
//!
//! Specification: IRDFT-9. Without `signal_size`, or where it is -1, `S` is `2 · (n - 1)` for the `n`
//! elements that there are. The formula of the specification does not say what becomes of other
//! lengths: as in OpenVINO and NumPy the axis is cut or filled up with zeros to `S / 2 + 1` elements.

use super::fourier::{self, Direction};
use super::tensors::floats;
use crate::layout::extent::{countable, grown};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::{Dim, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "IRDFT",
    versions: &["opset9"],
    signature: Signature::new(&["data", "axes", "signal_size"]).optional(1),
    family: Family::Native,
    build: Build::Native(parse_native::<Irdft>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Irdft {}

impl Native for Irdft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let whole = |n: Dim| grown(n.mul(Dim::fixed(2)), -2);
        let shape = fourier::infer(cx, true)?.shape(whole, |n| n, false);
        Ok(vec![TensorType::new(cx.element("data"), countable(shape)?)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let mut data = fourier::read(cx, true)?;
        let mut shape = data.shape().to_vec();
        let axes = fourier::axes_of(cx, shape.len())?;
        if let Some((&(last, size), outer)) = axes.split_last() {
            let length = size.unwrap_or(shape[last].saturating_mul(2).saturating_sub(2));
            for &(axis, size) in outer {
                shape[axis] = size.unwrap_or(shape[axis]);
            }
            shape[last] = shape[last].min(length / 2 + 1);
            data = data.resized(&shape)?;
            for &(axis, _) in outer {
                data.transform(axis, Direction::Inverse, cx.stop())?;
            }
            data = data.inverse_of_half(last, length, cx.stop())?;
        }
        let ty = cx.input("data").element_type();
        Ok(vec![floats(ty, data.shape(), &data.reals()?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape};

    fn of(
        shape: &[usize],
        x: &[f32],
        axes: &[i64],
        sizes: Option<&[i64]>,
    ) -> (Vec<usize>, Vec<f64>) {
        let lists = [Some(axes), sizes].into_iter().flatten();
        let lists: Vec<Tensor> = lists.map(|v| i64s(&[v.len()], v)).collect();
        let out = run(&DEF, &[], &[&[f32s(shape, x)][..], &lists].concat());
        let rounded = out.to_f64_vec().unwrap().into_iter();
        (
            out.shape().to_vec(),
            rounded.map(|x| (x * 1e6).round() / 1e6).collect(),
        )
    }

    /// Values of NumPy: `irfft` and `irfftn`.
    #[test]
    fn real_again() {
        let x = [10.0, 3.0, -2.0, 2.0, -2.0, 7.0];
        let of_size = |n: i64| of(&[3, 2], &x, &[0], Some(&[n]));
        assert_eq!(
            of(&[3, 2], &x, &[-1], None),
            (vec![4], vec![1.0, 2.0, 3.0, 4.0])
        );
        assert_eq!(of_size(4), (vec![4], vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(of_size(2), (vec![2], vec![4.0, 6.0]));
        let three = vec![2.0, 2.845_299, 5.154_701];
        assert_eq!(of_size(3), (vec![3], three));
        let eight = vec![0.25, -1.207_107, 1.25, 3.0, 1.25, 0.207_107, 2.25, 3.0];
        assert_eq!(of_size(8), (vec![8], eight));
        assert_eq!(of_size(1), (vec![1], vec![10.0]));
        assert_eq!(of_size(0), (vec![0], vec![]));
        assert_eq!(of(&[1, 2], &[1.0, 0.0], &[0], None), (vec![0], vec![]));
        let plane = [11.0, 0.0, -3.0, 0.0, -5.0, 0.0, 1.0, 0.0];
        let want = (vec![2, 2], vec![1.0, 2.0, 3.0, 5.0]);
        assert_eq!(of(&[2, 2, 2], &plane, &[0, 1], None), want);
    }

    #[test]
    fn extents_of_nothing_may_be_huge() {
        let (shape, _) = of(&[0, 1 << 40, 2], &[], &[1], None);
        assert_eq!(shape, [0, (1 << 41) - 2]);
    }

    #[test]
    fn partial_shapes() {
        let dim = Dim::between(3, Some(5));
        let data = PartialShape::ranked(vec![Dim::ANY, dim, Dim::fixed(2)]);
        let axes = (
            ElementType::I64,
            PartialShape::any_of_rank(1),
            Some(i64s(&[1], &[1])),
        );
        let found = infer(&DEF, &[], &[(ElementType::F32, data, None), axes]);
        assert_eq!(found.0, "f32[?, 4..8]");
    }
}
