//! `Inverse`: `out · x = I` for each matrix of the last two dims; with `adjoint` the transpose of that, which
//! is the inverse of the transpose.
//!
//! Specification: Inverse-14: LU decomposition with partial pivoting. Computed in `f64` whatever the
//! element type is, and rounded once at the end. The inverse of a singular matrix is not defined: it
//! has infinities and NaN for elements.

use super::real::real_type;
use super::tensors::floats;
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, Stop, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::filled;
use vinelift_tensor::{Dim, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "Inverse",
    versions: &["opset14"],
    signature: Signature::new(&["data"]),
    family: Family::Native,
    build: Build::Native(parse_native::<Inverse>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inverse {
    #[serde(default)]
    adjoint: bool,
}

impl Native for Inverse {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "data")?;
        let data = cx.shape("data");
        let Some(dims) = data.dims() else {
            return Ok(vec![cx.input("data").clone()]);
        };
        let side: Option<Dim> = match dims {
            [.., n, m] => n.intersect(*m),
            _ => None,
        };
        ensure!(
            side.is_some(),
            "the last two dims of `data` {data} must be equal"
        );
        let batch = dims[..dims.len() - 2].iter().copied();
        let dims = batch.chain(side).chain(side).collect();
        Ok(vec![TensorType::new(element, PartialShape::ranked(dims))])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let mut values = cx.f64s("data")?;
        let shape = cx.shape("data");
        let n = shape.last().copied().unwrap_or_default();
        // There may be a side without elements, if there are no matrices.
        if !values.is_empty() {
            for matrix in values.chunks_exact_mut(n * n) {
                let inverse = inverse(matrix, n, cx.stop())?;
                for (k, x) in matrix.iter_mut().enumerate() {
                    let (row, column) = (k / n, k % n);
                    *x = inverse[if self.adjoint { column * n + row } else { k }];
                }
            }
        }
        let ty = cx.input("data").element_type();
        Ok(vec![floats(ty, shape, &values)?])
    }
}

/// The inverse of a matrix of `n` rows. What is left in `a` is its decomposition.
fn inverse(a: &mut [f64], n: usize, stop: Stop<'_>) -> Result<Vec<f64>, OpError> {
    let mut out = filled(n * n, 0.0)?;
    for k in 0..n {
        out[k * n + k] = 1.0;
    }
    // Each operation on rows of `a` is done to the same rows of `out` at once.
    for k in 0..n {
        stop.go_on()?;
        let mut pivot = k;
        for row in k + 1..n {
            if a[row * n + k].abs() > a[pivot * n + k].abs() {
                pivot = row;
            }
        }
        for matrix in [&mut *a, &mut out] {
            for column in 0..n {
                matrix.swap(k * n + column, pivot * n + column);
            }
        }
        for row in k + 1..n {
            let factor = a[row * n + k] / a[k * n + k];
            for column in k..n {
                a[row * n + column] -= factor * a[k * n + column];
            }
            for column in 0..n {
                out[row * n + column] -= factor * out[k * n + column];
            }
        }
    }
    for k in (0..n).rev() {
        stop.go_on()?;
        for column in 0..n {
            let known: f64 = (k + 1..n).map(|j| a[k * n + j] * out[j * n + column]).sum();
            out[k * n + column] = (out[k * n + column] - known) / a[k * n + k];
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};
    use vinelift_tensor::ElementType;

    /// Values of NumPy: `linalg.inv`.
    #[test]
    fn matrices_and_their_transposes() {
        let x = f32s(&[3, 3], &[0.0, 3.0, 1.0, 2.0, 1.0, 0.0, 1.0, 0.0, 4.0]);
        let of = |adjoint| {
            let out = run(&DEF, &[("adjoint", adjoint)], std::slice::from_ref(&x));
            out.to_f64_vec()
                .unwrap()
                .iter()
                .map(|x| (x * 25.0).round())
                .collect::<Vec<_>>()
        };
        let want = [-4.0, 12.0, 1.0, 8.0, 1.0, -2.0, 1.0, -3.0, 6.0];
        assert_eq!(of("false"), want);
        let transposed = [-4.0, 8.0, 1.0, 12.0, 1.0, -3.0, 1.0, -2.0, 6.0];
        assert_eq!(of("true"), transposed);
        let small = Tensor::from_slice(&[1, 1, 1], &[4f64]).unwrap();
        let quarter = Tensor::from_slice(&[1, 1, 1], &[0.25f64]).unwrap();
        assert_eq!(run(&DEF, &[], &[small]), quarter);
        let none = Tensor::zeros(ElementType::F16, &[2, 0, 0]).unwrap();
        assert_eq!(run(&DEF, &[], std::slice::from_ref(&none)), none);
        let none = Tensor::zeros(ElementType::F16, &[0, 1 << 40, 1 << 40]).unwrap();
        assert_eq!(run(&DEF, &[], std::slice::from_ref(&none)), none);
    }

    #[test]
    fn what_has_no_inverse() {
        let out = run(&DEF, &[], &[f32s(&[2, 2], &[1.0, 2.0, 2.0, 4.0])]);
        assert!(out.to_f64_vec().unwrap().iter().all(|x| !x.is_finite()));
        let message = "the last two dims of `data` [2, 3] must be equal";
        assert_eq!(error(&DEF, &[], &[f32s(&[2, 3], &[0.0; 6])]), message);
    }
}
