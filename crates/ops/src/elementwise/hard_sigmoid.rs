//! `HardSigmoid`: `out = max(0, min(1, alpha · x + beta))`.
//!
//! Specification: HardSigmoid-1. `alpha` and `beta` are inputs of one element; NaN stays NaN.

use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::clamp;

pub(crate) static DEF: OpDef = OpDef {
    name: "HardSigmoid",
    versions: &["opset1"],
    signature: Signature::new(&["x", "alpha", "beta"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<HardSigmoid>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HardSigmoid {}

impl Op for HardSigmoid {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer_with_numbers(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower_with_numbers(cx, &["alpha", "beta"], |x, numbers| {
            clamp(x * &numbers[0] + &numbers[1], 0.0, 1.0)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    #[test]
    fn clamps_a_line() {
        let (x, alpha) = (f32s(&[4], &[-3.0, 0.0, 0.5, 3.0]), f32s(&[], &[0.5]));
        let out = run(&DEF, &[], &[x.clone(), alpha.clone(), f32s(&[], &[0.25])]);
        assert_eq!(out, f32s(&[4], &[0.0, 0.25, 0.5, 1.0]));
        let out = run(&DEF, &[], &[x, alpha, f32s(&[1], &[0.0])]);
        assert_eq!(out, f32s(&[4], &[0.0, 0.0, 0.25, 1.0]));
    }

    #[test]
    fn the_numbers_are_single() {
        let inputs = [f32s(&[0], &[]), f32s(&[2], &[1.0; 2]), f32s(&[], &[0.0])];
        assert_eq!(
            error(&DEF, &[], &inputs),
            "`alpha` must hold one element, found [2]"
        );
    }
}
