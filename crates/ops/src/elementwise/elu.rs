//! `Elu`: `out = x > 0 ? x : alpha · (e^x - 1)`.
//!
//! Specification: Elu-1.

use super::{Broadcast, Class, Output};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{number, select};
use vinelift_nest::{Scalar, Unary};

pub(crate) static DEF: OpDef = OpDef {
    name: "Elu",
    versions: &["opset1"],
    signature: Signature::new(&["x"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Elu>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Elu {
    alpha: f64,
}

impl Op for Elu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer(cx, Class::Float, Output::Same, Broadcast::NUMPY)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower(cx, Broadcast::NUMPY, |x| {
            elu(&x[0], &number(self.alpha, x[0].ty()))
        });
    }
}

/// `x > 0 ? x : alpha · (e^x - 1)`
pub(super) fn elu(x: &Scalar, alpha: &Scalar) -> Scalar {
    let below = alpha * Scalar::unary(Unary::Expm1, x.clone());
    select(x.gt(number(0.0, x.ty())), x.clone(), below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};

    /// Values of Python's `math.expm1`.
    #[test]
    fn scales_below_zero() {
        let x = f32s(&[5], &[-1.0, 0.0, 2.0, f32::NEG_INFINITY, -1e-6]);
        let out = run(&DEF, &[("alpha", "2")], &[x]).to_f64_vec().unwrap();
        let want = [-1.2642411176571153, 0.0, 2.0, -2.0, -1.999999e-6];
        for (a, b) in out.iter().zip(want) {
            assert!((a - b).abs() <= 1e-6 * f64::abs(b), "{out:?}");
        }
    }

    #[test]
    fn takes_floats_and_a_number() {
        let message = "`x` must be a float type, found i32";
        assert_eq!(error(&DEF, &[("alpha", "1")], &[i32s(&[0], &[])]), message);
        assert_eq!(
            error(&DEF, &[], &[f32s(&[0], &[])]),
            "attribute missing field `alpha`"
        );
    }
}
