//! `Round`: the integer nearest to `x`; of two as near, the even one or that away from zero.
//!
//! Specification: Round-5.

use super::{Broadcast, Class, Output};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{number, select};

pub(crate) static DEF: OpDef = OpDef {
    name: "Round",
    versions: &["opset5"],
    signature: Signature::new(&["x"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Round>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    HalfToEven,
    HalfAwayFromZero,
}

impl Op for Round {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer(cx, Class::Numeric, Output::Same, Broadcast::NUMPY)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower(cx, Broadcast::NUMPY, |x| match self.mode {
            _ if x[0].ty().is_integer() => x[0].clone(),
            Mode::HalfToEven => x[0].round(),
            Mode::HalfAwayFromZero => half_away(&x[0]),
        });
    }
}

/// Not by adding a half, which itself would round.
pub(crate) fn half_away(x: &Scalar) -> Scalar {
    let of = |n: f64| number(n, x.ty());
    let whole = x.trunc();
    let away = select(x.lt(of(0.0)), of(-1.0), of(1.0));
    select((x - &whole).abs().ge(of(0.5)), &whole + away, whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i64s, run};
    use std::slice::from_ref;

    /// The example of the specification, and numbers on which adding a half goes wrong.
    #[test]
    fn both_rules_for_halves() {
        let x = [
            -4.5,
            -1.9,
            -1.5,
            0.5,
            0.9,
            1.5,
            2.3,
            2.5,
            0.49999997,
            8388609.0,
            f32::INFINITY,
        ];
        let x = f32s(&[11], &x);
        let even = [
            -4.0,
            -2.0,
            -2.0,
            0.0,
            1.0,
            2.0,
            2.0,
            2.0,
            0.0,
            8388609.0,
            f32::INFINITY,
        ];
        assert_eq!(run(&DEF, &[], from_ref(&x)), f32s(&[11], &even));
        let away = [
            -5.0,
            -2.0,
            -2.0,
            1.0,
            1.0,
            2.0,
            2.0,
            3.0,
            0.0,
            8388609.0,
            f32::INFINITY,
        ];
        let out = run(&DEF, &[("mode", "half_away_from_zero")], &[x]);
        assert_eq!(out, f32s(&[11], &away));
    }

    #[test]
    fn integers_stay() {
        let x = i64s(&[1], &[i64::MAX]);
        assert_eq!(run(&DEF, &[], from_ref(&x)), x);
    }
}
