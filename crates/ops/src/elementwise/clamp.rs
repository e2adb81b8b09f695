//! `Clamp`: `out = min(max(x, min), max)`.
//!
//! Specification: Clamp-1. Of integers, `min` is rounded up and `max` down; bounds beyond the type's
//! own mean those. NaN stays NaN.

use super::{Broadcast, Class, Output};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build;
use vinelift_tensor::ElementType;

pub(crate) static DEF: OpDef = OpDef {
    name: "Clamp",
    versions: &["opset1"],
    signature: Signature::new(&["x"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Clamp>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clamp {
    min: f64,
    max: f64,
}

impl Op for Clamp {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let Clamp { min, max } = self;
        let ordered = min <= max;
        ensure!(ordered, "`min` {min} must not be above `max` {max}");
        super::infer(cx, Class::Numeric, Output::Same, Broadcast::NUMPY)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let Clamp { min, max } = *self;
        let ty = cx.element("x");
        super::lower(cx, Broadcast::NUMPY, |x| {
            let x = x[0].clone();
            if ty.is_float() {
                return build::clamp(x, min, max);
            }
            let bound = |b: f64| build::integer(within(b, ty), x.ty());
            bound(max.floor()).min(bound(min.ceil()).max(x.clone()))
        });
    }
}

/// The bits of the value of the integer type `ty` nearest to `bound`.
fn within(bound: f64, ty: ElementType) -> i64 {
    let bits = ty.bits() as u32;
    let (low, high) = match ty.is_signed_integer() {
        true => (-1i128 << (bits - 1), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    (bound as i128).clamp(low, high) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, run};
    use std::slice::from_ref;
    use vinelift_tensor::Tensor;

    #[test]
    fn of_floats() {
        let x = f32s(&[4], &[-1.0, 0.25, f32::INFINITY, f32::NAN]);
        let out = run(&DEF, &[("min", "0"), ("max", "inf")], from_ref(&x))
            .to_f64_vec()
            .unwrap();
        assert_eq!(out[..3], [0.0, 0.25, f64::INFINITY]);
        assert!(out[3].is_nan());
        let out = run(&DEF, &[("min", "-0.5"), ("max", "0.5")], &[x])
            .to_f64_vec()
            .unwrap();
        assert_eq!(out[..3], [-0.5, 0.25, 0.5]);
    }

    #[test]
    fn bounds_of_integers_are_rounded_inwards() {
        let x = i64s(&[4], &[i64::MIN, -3, 3, i64::MAX]);
        let out = run(&DEF, &[("min", "-2.5"), ("max", "2.5")], from_ref(&x));
        assert_eq!(out, i64s(&[4], &[-2, -2, 2, 2]));
        let out = run(&DEF, &[("min", "-1e30"), ("max", "1e30")], from_ref(&x));
        assert_eq!(out, x);
        let bytes = Tensor::from_slice(&[3], &[0u8, 7, 255]).unwrap();
        let out = run(&DEF, &[("min", "-5"), ("max", "300")], from_ref(&bytes));
        assert_eq!(out, bytes);
    }

    #[test]
    fn the_bounds_must_be_in_order() {
        let message = |min: &str| error(&DEF, &[("min", min), ("max", "1")], &[f32s(&[0], &[])]);
        assert_eq!(message("2"), "`min` 2 must not be above `max` 1");
        assert_eq!(message("nan"), "`min` NaN must not be above `max` 1");
    }
}
