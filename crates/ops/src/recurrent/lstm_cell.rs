//! `LSTMCell`: one step of a long short-term memory. With `a = f(W_a · X + R_a · H' + B_a)` for the gates
//! `a` = i, f, o:
//! ```text
//! C = f · C' + i · g(W_c · X + R_c · H' + B_c)
//! H = o · h(C)
//! ```
//! Specifications: LSTMCell-1 for both versions, with the gates in the order f, i, c, o. Without `B` it
//! is zero. Two attributes of opset1 stand in files and not in the specification: with `input_forget`,
//! `i = 1 - f` as in OpenVINO's reference implementation; `weights_format` changes nothing, since the
//! specification fixes the order, and OpenVINO writes `ifco` for weights that it takes as fico.

use super::activation::Function;
use super::formulas::Cell;
use super::network::attributes;
use crate::{Build, Family, OpDef, Signature};
use serde::Deserialize;

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Op(|attributes| {
        attributes!([] [#[serde(default)]
            input_forget: bool, #[serde(default, rename = "weights_format")]
            _weights_format: Format]);
        let a: Attrs = attributes.parse()?;
        a.network(
            Cell::Lstm {
                input_forget: a.input_forget,
            },
            DEFAULTS,
            None,
        )
    }),
);

pub(crate) static V4: OpDef = version(
    &["opset4"],
    Build::Op(|attributes| {
        attributes!([] []);
        let a: Attrs = attributes.parse()?;
        a.network(
            Cell::Lstm {
                input_forget: false,
            },
            DEFAULTS,
            None,
        )
    }),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "LSTMCell",
        versions,
        signature: Signature::new(&[
            "X",
            "initial_hidden_state",
            "initial_cell_state",
            "W",
            "R",
            "B",
        ])
        .optional(1),
        family: Family::Recurrent,
        build,
    }
}

/// The activation functions if none are given.
pub(super) const DEFAULTS: &[Function] = &[Function::Sigmoid, Function::Tanh, Function::Tanh];

/// The attribute `weights_format`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Fico,
    Icof,
    Ifco,
    Ifoc,
    Iofc,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, run_all};
    use vinelift_tensor::Tensor;

    fn inputs() -> [Tensor; 6] {
        [
            f32s(&[1, 2], &[1.0, -1.0]),
            f32s(&[1, 1], &[0.5]),
            f32s(&[1, 1], &[2.0]),
            f32s(&[4, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5, -0.5]),
            f32s(&[4, 1], &[1.0, -1.0, 2.0, 0.5]),
            f32s(&[4], &[0.0, 0.25, 0.5, -1.0]),
        ]
    }

    fn states(def: &'static OpDef, attributes: &[(&str, &str)]) -> [f64; 2] {
        let all = [&[("hidden_size", "1")], attributes].concat();
        let outputs = run_all(def, &all, &inputs(), IndexPolicy::Spec).unwrap();
        [0, 1].map(|k| outputs[k].to_f64_vec().unwrap()[0])
    }

    /// Values of NumPy.
    #[test]
    fn hidden_and_cell_state() {
        let close = |[h, c]: [f64; 2], want: [f64; 2]| {
            assert!((h - want[0]).abs() < 1e-6 && (c - want[1]).abs() < 1e-6);
        };
        let plain = [0.53433744, 1.83672559];
        close(states(&V4, &[]), plain);
        close(states(&V1, &[("weights_format", "ifco")]), plain);
        let coupled = [("input_forget", "true")];
        close(states(&V1, &coupled), [0.53228787, 1.8002711]);
    }

    /// By hand: f and o are cut to 0.25, i is 0, and the cell state of 0.25 · 2 stays what it is.
    #[test]
    fn the_cell_state_is_not_clipped() {
        let attributes = [("activations", "relu, relu, relu"), ("clip", "0.25")];
        let [h, c] = states(&V4, &attributes);
        assert_eq!(c, 0.25 * 2.0);
        assert_eq!(h, 0.25 * c);
    }

    #[test]
    fn attributes_of_opset1_stay_there() {
        let attributes = [("hidden_size", "1"), ("input_forget", "false")];
        let found = error(&V4, &attributes, &inputs());
        assert!(found.starts_with("attribute unknown field `input_forget`"));
    }
}
