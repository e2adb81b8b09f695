//! `GRUCell`: one step of a gated recurrent unit.
//! ```text
//! z = f(W_z · X + R_z · H' + B_z)    r = f(W_r · X + R_r · H' + B_r)
//! n = g(W_n · X + R_n · (r · H') + B_n), or with linear_before_reset
//! n = g(W_n · X + r · (R_n · H' + B_rn) + B_n)
//! H = (1 - z) · n + z · H'
//! ```
//! Specification: GRUCell-3. Without `B` it is zero.

use super::activation::Function;
use super::formulas::Cell;
use super::network::attributes;
use crate::{Build, Family, OpDef, Signature};

pub(crate) static DEF: OpDef = OpDef {
    name: "GRUCell",
    versions: &["opset3"],
    signature: Signature::new(&["X", "initial_hidden_state", "W", "R", "B"]).optional(1),
    family: Family::Recurrent,
    build: Build::Op(|attributes| {
        attributes!([#[serde(default)] linear_before_reset: bool] []);
        let a: Attrs = attributes.parse()?;
        a.network(
            Cell::Gru {
                linear_before_reset: a.linear_before_reset,
            },
            DEFAULTS,
            None,
        )
    }),
};

/// The activation functions if none are given.
pub(super) const DEFAULTS: &[Function] = &[Function::Sigmoid, Function::Tanh];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};
    use vinelift_tensor::Tensor;

    fn inputs(biases: &[f32]) -> Vec<Tensor> {
        vec![
            f32s(&[1, 2], &[1.0, -1.0]),
            f32s(&[1, 1], &[0.5]),
            f32s(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
            f32s(&[3, 1], &[1.0, -1.0, 2.0]),
            f32s(&[biases.len()], biases),
        ]
    }

    /// Values of NumPy.
    #[test]
    fn where_the_reset_gate_goes() {
        let size = ("hidden_size", "1");
        let out = run(&DEF, &[size], &inputs(&[0.0, 0.25, 0.5]));
        assert!((out.to_f64_vec().unwrap()[0] - 0.52163184).abs() < 1e-6);
        let linear = [size, ("linear_before_reset", "true")];
        let out = run(&DEF, &linear, &inputs(&[0.0, 0.25, 0.5, -1.0]));
        assert!((out.to_f64_vec().unwrap()[0] - 0.4930892).abs() < 1e-6);
    }

    #[test]
    fn biases_may_be_missing_but_not_too_few() {
        let mut few = inputs(&[0.0; 3]);
        let linear = [("hidden_size", "1"), ("linear_before_reset", "1")];
        let message = "`B` must have shape [4], found [3]";
        assert_eq!(error(&DEF, &linear, &few), message);
        let with = run(&DEF, &linear[..1], &few);
        few.pop();
        assert_eq!(run(&DEF, &linear[..1], &few), with);
    }
}
