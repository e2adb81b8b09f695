//! `Swish`: `out = x / (1 + e^(-beta · x))`.
//!
//! Specification: Swish-4. `beta` is an optional input of one element, 1 if it is not there.

use super::formulas::sigmoid;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "Swish",
    versions: &["opset4"],
    signature: Signature::new(&["data", "beta"]).optional(1),
    family: Family::Elementwise,
    build: Build::Op(parse::<Swish>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Swish {}

impl Op for Swish {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer_with_numbers(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let numbers: &[&str] = if cx.has("beta") { &["beta"] } else { &[] };
        super::lower_with_numbers(cx, numbers, |x, numbers| match numbers {
            [beta, ..] => x * sigmoid(&(x * beta)),
            [] => x * sigmoid(x),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, run};
    use std::slice::from_ref;

    /// Values of Python's `math.exp`.
    #[test]
    fn with_and_without_beta() {
        let x = f32s(&[4], &[-1.0, 0.0, 2.0, -500.0]);
        let close = |inputs: &[vinelift_tensor::Tensor], want: [f64; 4]| {
            let out = run(&DEF, &[], inputs).to_f64_vec().unwrap();
            assert!(
                out.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6),
                "{out:?}"
            );
        };
        close(
            from_ref(&x),
            [-0.2689414213699951, 0.0, 1.7615941559557649, 0.0],
        );
        close(
            &[x, f32s(&[], &[2.0])],
            [-0.11920292202211755, 0.0, 1.964027580075817, 0.0],
        );
    }
}
