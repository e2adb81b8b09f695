//! `Gelu`: `out = x · Φ(x)`, `Φ` being the normal distribution:
//! `½ x (1 + erf(x / √2))`, or by its approximation `½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
//!
//! Specifications: Gelu-2, which is always exact, and Gelu-7.

use super::{Broadcast, Class, Output};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use vinelift_nest::Scalar;

pub(crate) static V2: OpDef = gelu(&["opset2"], Build::Op(parse::<Exact>));
pub(crate) static V7: OpDef = gelu(&["opset7"], Build::Op(parse::<Gelu>));

const fn gelu(versions: &'static [&'static str], build: Build) -> OpDef {
    let signature = Signature::new(&["x"]);
    OpDef {
        name: "Gelu",
        versions,
        signature,
        family: Family::Elementwise,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exact {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gelu {
    #[serde(default)]
    approximation_mode: Approximation,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Approximation {
    #[default]
    Erf,
    Tanh,
}

impl Op for Exact {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        super::infer(cx, Class::Float, Output::Same, Broadcast::NUMPY)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower(cx, Broadcast::NUMPY, |x| formula(&x[0], Approximation::Erf));
    }
}

impl Op for Gelu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        Exact {}.infer(cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        super::lower(cx, Broadcast::NUMPY, |x| {
            formula(&x[0], self.approximation_mode)
        });
    }
}

fn formula(x: &Scalar, approximation: Approximation) -> Scalar {
    let sigmoid = match approximation {
        Approximation::Erf => (x * FRAC_1_SQRT_2).erf(),
        Approximation::Tanh => {
            let cubic = x * x * x * 0.044715;
            ((x + cubic) * (FRAC_1_SQRT_2 * FRAC_2_SQRT_PI)).tanh()
        }
    };
    x * 0.5 * (sigmoid + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    const X: [f32; 6] = [-1.0, 0.0, 0.5, 3.0, -1e20, 1e20];

    fn close(def: &'static OpDef, mode: Option<&str>, want: [f64; 6]) {
        let attributes: Vec<_> = mode
            .map(|m| ("approximation_mode", m))
            .into_iter()
            .collect();
        let out = run(def, &attributes, &[f32s(&[6], &X)])
            .to_f64_vec()
            .unwrap();
        let near = |(a, b): (&f64, f64)| (a - b).abs() <= 1e-6 * b.abs();
        assert!(out.iter().zip(want).all(near), "{out:?}, expected {want:?}");
    }

    /// Values of Python's `math.erf` and `math.tanh`.
    #[test]
    fn both_formulas() {
        let erf = [
            -0.15865525393145707,
            0.0,
            0.34573123063700656,
            2.99595030590511,
            0.0,
            1e20f32.into(),
        ];
        close(&V2, None, erf);
        close(&V7, None, erf);
        close(&V7, Some("ERF"), erf);
        let tanh = [
            -0.15880800939172324,
            0.0,
            0.34571400982514394,
            2.996362607918227,
            0.0,
            1e20f32.into(),
        ];
        close(&V7, Some("TANH"), tanh);
    }

    #[test]
    fn the_mode_is_one_of_two() {
        let message = "attribute `approximation_mode` must be one of erf, tanh, found `fast`";
        let attributes = [("approximation_mode", "fast")];
        assert_eq!(error(&V7, &attributes, &[f32s(&[0], &[])]), message);
    }
}
