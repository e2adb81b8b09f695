//! `IsInf`: `out = (x = ∞ and detect_positive) or (x = -∞ and detect_negative)`.
//!
//! Specification: IsInf-10.

use super::{Broadcast, Class, Output};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{boolean, number};

pub(crate) static DEF: OpDef = OpDef {
    name: "IsInf",
    versions: &["opset10"],
    signature: Signature::new(&["data"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<IsInf>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IsInf {
    #[serde(default = "crate::attrs::yes")]
    detect_negative: bool,
    #[serde(default = "crate::attrs::yes")]
    detect_positive: bool,
}

impl Op for IsInf {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer(cx, Class::Float, Output::Boolean, Broadcast::NUMPY)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower(cx, Broadcast::NUMPY, |x| {
            let infinity = number(f64::INFINITY, x[0].ty());
            match (self.detect_negative, self.detect_positive) {
                (true, true) => x[0].abs().eq(infinity),
                (true, false) => x[0].eq(-infinity),
                (false, true) => x[0].eq(infinity),
                (false, false) => boolean(false),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, run};
    use std::slice::from_ref;
    use vinelift_tensor::Tensor;

    #[test]
    fn detects_what_is_asked_for() {
        let x = f32s(&[4], &[f32::NEG_INFINITY, f32::INFINITY, f32::NAN, 3e38]);
        let detect = |negative, positive, want: [bool; 4]| {
            let attributes = [("detect_negative", negative), ("detect_positive", positive)];
            let out = run(&DEF, &attributes, from_ref(&x));
            assert_eq!(out, Tensor::from_bools(&[4], &want).unwrap());
        };
        detect("true", "true", [true, true, false, false]);
        detect("true", "false", [true, false, false, false]);
        detect("false", "true", [false, true, false, false]);
        detect("false", "false", [false; 4]);
    }
}
