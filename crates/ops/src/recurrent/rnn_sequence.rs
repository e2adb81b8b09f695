//! `RNNSequence`: steps of a [`super::rnn_cell`] along time, or in `reverse`, or both, in each sample for the
//! time in its own length. Past a sample's length `Y` is zero; the final states are those after its last step, and
//! zero for a length of 0, which the specification leaves open. A length beyond the time dim, or negative, is an
//! error.
//!
//! Specification: RNNSequence-5.

use super::formulas::Cell;
use super::network::{Direction, attributes};
use crate::{Build, Family, OpDef, Signature};

pub(crate) static DEF: OpDef = OpDef {
    name: "RNNSequence",
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
        attributes!([direction: Direction] []);
        let a: Attrs = attributes.parse()?;
        a.network(Cell::Rnn, super::rnn_cell::DEFAULTS, Some(a.direction))
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, infer, run_all};
    use vinelift_tensor::{ElementType, PartialShape, Tensor};

    fn inputs(lengths: &[i32]) -> [Tensor; 6] {
        #[rustfmt::skip]
        let x = [1.0, -1.0, 2.0, 0.0, 0.0, 1.0, 3.0, 1.0, 1.0, 1.0, -1.0, 2.0];
        [
            f32s(&[2, 3, 2], &x),
            f32s(&[2, 1, 1], &[0.5, -0.5]),
            i32s(&[2], lengths),
            f32s(&[1, 1, 2], &[1.0, 0.0]),
            f32s(&[1, 1, 1], &[1.0]),
            f32s(&[1, 1], &[0.25]),
        ]
    }

    fn attributes(direction: &str) -> [(&str, &str); 3] {
        [
            ("hidden_size", "1"),
            ("direction", direction),
            ("activations", "relu"),
        ]
    }

    /// By hand: each state is the sum of the one before, the first input and 0.25.
    #[test]
    fn each_sample_in_its_own_length() {
        let of = |direction: &str, lengths: &[i32]| {
            let all = attributes(direction);
            let out = run_all(&DEF, &all, &inputs(lengths), IndexPolicy::Spec).unwrap();
            [0, 1].map(|k: usize| out[k].to_f64_vec().unwrap())
        };
        let [y, last] = of("forward", &[3, 2]);
        assert_eq!(y, [1.75, 4.0, 4.25, 2.75, 4.0, 0.0]);
        assert_eq!(last, [4.25, 4.0]);
        let [y, last] = of("reverse", &[3, 2]);
        assert_eq!(y, [4.25, 3.0, 0.75, 4.0, 0.75, 0.0]);
        assert_eq!(last, [4.25, 4.0]);
        let [y, last] = of("reverse", &[1, 0]);
        assert_eq!(y, [1.75, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(last, [1.75, 0.0]);
    }

    #[test]
    fn no_steps_at_all() {
        let mut inputs = inputs(&[0, 0]);
        inputs[0] = f32s(&[2, 0, 2], &[]);
        let out = run_all(&DEF, &attributes("reverse"), &inputs, IndexPolicy::Spec).unwrap();
        assert_eq!(out[0].shape(), [2, 1, 0, 1]);
        assert_eq!(out[1], f32s(&[2, 1, 1], &[0.0; 2]));
    }

    #[test]
    fn lengths_and_directions_must_fit() {
        let found = error(&DEF, &attributes("forward"), &inputs(&[3, 4]));
        let message =
            "layer 'op' (RNNSequence, opset5): `sequence_lengths`[1] is 4, expected 0..=3";
        assert_eq!(found, message);
        let found = error(&DEF, &attributes("bidirectional"), &inputs(&[3, 3]));
        let message = "`initial_hidden_state` must have shape [2, 2, 1], found [2, 1, 1]";
        assert_eq!(found, message);
    }

    #[test]
    fn partial_shapes() {
        let any = |rank| (ElementType::F32, PartialShape::any_of_rank(rank), None);
        let lengths = (ElementType::I64, [7].as_slice().into(), None);
        let inputs = [any(3), any(3), lengths, any(3), any(3), any(2)];
        let found = infer(&DEF, &attributes("bidirectional"), &inputs);
        assert_eq!(found, ("f32[7, 2, ?, 1] f32[7, 2, 1]".to_owned(), vec![]));
    }
}
