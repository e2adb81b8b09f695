//! `GRUSequence`: steps of a [`super::gru_cell`] along time, or in `reverse`, or both, in each sample for the
//! time in its own length. Past a sample's length `Y` is zero; the final states are those after its last step, and
//! zero for a length of 0, which the specification leaves open. A length beyond the time dim, or negative, is an
//! error.
//!
//! Specification: GRUSequence-5.

use super::formulas::Cell;
use super::network::{Direction, attributes};
use crate::{Build, Family, OpDef, Signature};

pub(crate) static DEF: OpDef = OpDef {
    name: "GRUSequence",
    versions: &["opset5"],
    signature: Signature::new(&[
        "X",
        "initial_hidden_state",
        "sequence_lengths",
        "W",
        "R",
        "B",
    ]),
    family: Family::Recurrent,
    build: Build::Op(|attributes| {
        attributes!([direction: Direction, #[serde(default)] linear_before_reset: bool] []);
        let a: Attrs = attributes.parse()?;
        a.network(
            Cell::Gru {
                linear_before_reset: a.linear_before_reset,
            },
            super::gru_cell::DEFAULTS,
            Some(a.direction),
        )
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i32s, run};

    /// Two steps of the examples of [`super::super::gru_cell`], values of NumPy.
    #[test]
    fn two_steps() {
        for (linear, biases, want) in [
            ("false", &[0.0, 0.25, 0.5][..], WANT[0]),
            ("true", &[0.0, 0.25, 0.5, -1.0][..], WANT[1]),
        ] {
            let attributes = [
                ("hidden_size", "1"),
                ("direction", "forward"),
                ("linear_before_reset", linear),
            ];
            let inputs = [
                f32s(&[1, 2, 2], &[1.0, -1.0, 0.5, 2.0]),
                f32s(&[1, 1, 1], &[0.5]),
                i32s(&[1], &[2]),
                f32s(&[1, 3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
                f32s(&[1, 3, 1], &[1.0, -1.0, 2.0]),
                f32s(&[1, biases.len()], biases),
            ];
            let out = run(&DEF, &attributes, &inputs).to_f64_vec().unwrap();
            assert!((out[0] - want[0]).abs() < 1e-6 && (out[1] - want[1]).abs() < 1e-6);
        }
    }

    const WANT: [[f64; 2]; 2] = [[0.52163184, 0.64803750], [0.49308920, 0.62873986]];
}
