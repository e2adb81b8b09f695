//! `Divide`: `out = a / b`.
//!
//! Specification: Divide-1. Of integers the quotient is rounded down if `m_pythondiv`, else toward
//! zero; division by zero, which is undefined, gives 0.

use super::formulas::signs_differ;
use super::{Broadcast, Class, Mode, Output};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::select;

pub(crate) static DEF: OpDef = OpDef {
    name: "Divide",
    versions: &["opset1"],
    signature: Signature::new(&["a", "b"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Divide>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Divide {
    #[serde(default)]
    auto_broadcast: Mode,
    #[serde(default, alias = "auto_broadcast.auto_broadcast_axis")]
    axis: i64,
    #[serde(default = "floors")]
    m_pythondiv: bool,
}

const fn floors() -> bool {
    true
}

impl Divide {
    fn broadcast(&self) -> Broadcast {
        Broadcast {
            mode: self.auto_broadcast,
            axis: self.axis,
        }
    }
}

impl Op for Divide {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer(cx, Class::Numeric, Output::Same, self.broadcast())
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower(cx, self.broadcast(), |x| {
            let (a, b) = (&x[0], &x[1]);
            if self.m_pythondiv && a.ty().is_signed_integer() {
                floored(a, b)
            } else {
                a / b
            }
        });
    }
}

fn floored(a: &Scalar, b: &Scalar) -> Scalar {
    let quotient = a / b;
    select(signs_differ(&a.rem(b.clone()), b), &quotient - 1, quotient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    /// Values of Python's `//`; 0 where that raises.
    #[test]
    fn integers_floor_by_default() {
        let min = i32::MIN;
        let a = i32s(&[6], &[-1, 7, -7, 7, 5, min]);
        let b = i32s(&[6], &[2, 2, 2, -2, 0, -1]);
        let inputs = [a, b];
        assert_eq!(
            run(&DEF, &[], &inputs),
            i32s(&[6], &[-1, 3, -4, -4, 0, min])
        );
        let truncated = run(&DEF, &[("m_pythondiv", "false")], &inputs);
        assert_eq!(truncated, i32s(&[6], &[0, 3, -3, -3, 0, min]));
    }

    #[test]
    fn of_wide_narrow_and_unsigned_integers() {
        let (a, b) = (i64s(&[1], &[(1 << 60) + 1]), i64s(&[1], &[1]));
        assert_eq!(run(&DEF, &[], &[a.clone(), b]), a);
        let bytes = |v: &[u8]| Tensor::from_slice(&[v.len()], v).unwrap();
        assert_eq!(
            run(&DEF, &[], &[bytes(&[250, 9]), bytes(&[3, 0])]),
            bytes(&[83, 0])
        );
        let small = |v: &[i8]| Tensor::from_slice(&[v.len()], v).unwrap();
        assert_eq!(
            run(&DEF, &[], &[small(&[-128, -7]), small(&[-1, 2])]),
            small(&[-128, -4])
        );
    }

    #[test]
    fn of_floats() {
        let out = run(
            &DEF,
            &[],
            &[f32s(&[3], &[1.0, -1.0, 0.0]), f32s(&[], &[0.0])],
        );
        let out = out.to_f64_vec().unwrap();
        assert_eq!(out[..2], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!(out[2].is_nan());
    }
}
