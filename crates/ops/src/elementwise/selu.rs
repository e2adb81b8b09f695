//! `Selu`: `out = lambda · (x > 0 ? x : alpha · (e^x - 1))`.
//!
//! Specification: Selu-1. `alpha` and `lambda` are inputs of one element.

use super::elu::elu;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "Selu",
    versions: &["opset1"],
    signature: Signature::new(&["data", "alpha", "lambda"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Selu>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selu {}

impl Op for Selu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer_with_numbers(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower_with_numbers(cx, &["alpha", "lambda"], |x, numbers| {
            &numbers[1] * elu(x, &numbers[0])
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, run};

    /// Value of Python's `math.expm1`.
    #[test]
    fn scales_both_sides() {
        let inputs = [
            f32s(&[3], &[-1.0, 0.0, 2.0]),
            f32s(&[1], &[2.0]),
            f32s(&[1], &[3.0]),
        ];
        let out = run(&DEF, &[], &inputs).to_f64_vec().unwrap();
        assert!((out[0] + 3.792723352971346).abs() < 1e-5);
        assert_eq!(out[1..], [0.0, 6.0]);
    }
}
