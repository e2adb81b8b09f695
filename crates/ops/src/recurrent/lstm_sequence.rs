//! `LSTMSequence`: steps of a [`super::lstm_cell`] along time, or in `reverse`, or both, in each sample for the
//! time in its own length. Past a sample's length `Y` is zero; the final states are those after its last step, and
//! zero for a length of 0, which the specification leaves open. A length beyond the time dim, or negative, is an
//! error.
//!
//! Specification: LSTMSequence-5.

use super::formulas::Cell;
use super::network::{Direction, attributes};
use crate::{Build, Family, OpDef, Signature};

pub(crate) static DEF: OpDef = OpDef {
    name: "LSTMSequence",
    versions: &["opset5"],
    signature: Signature::new(&[
        "X",
        "initial_hidden_state",
        "initial_cell_state",
        "sequence_lengths",
        "W",
        "R",
        "B",
    ]),
    family: Family::Recurrent,
    build: Build::Op(|attributes| {
        attributes!([direction: Direction] []);
        let a: Attrs = attributes.parse()?;
        a.network(
            Cell::Lstm {
                input_forget: false,
            },
            super::lstm_cell::DEFAULTS,
            Some(a.direction),
        )
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::recurrent::lstm_cell;
    use crate::testing::{error, f32s, i32s, run_all};

    fn ramp(shape: &[usize], from: f32) -> vinelift_tensor::Tensor {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n).map(|i| from + (i * 5 % 7) as f32 / 8.0).collect();
        f32s(shape, &values)
    }

    /// A sequence of one step in both directions is a cell, twice.
    #[test]
    fn one_step_is_a_cell() {
        let size = ("hidden_size", "3");
        let both = [size, ("direction", "bidirectional"), ("clip", "1")];
        let sequence = [
            ramp(&[2, 1, 2], -0.5),
            ramp(&[2, 2, 3], 0.0),
            ramp(&[2, 2, 3], -0.25),
            i32s(&[2], &[1, 1]),
            ramp(&[2, 12, 2], -0.5),
            ramp(&[2, 12, 3], -0.375),
            ramp(&[2, 12], 0.125),
        ];
        let out = run_all(&DEF, &both, &sequence, IndexPolicy::Spec).unwrap();
        let pick = |k: usize, axis: usize, d: usize, shape: &[usize]| {
            let tensor = &sequence[k];
            let all = tensor.as_slice::<f32>().unwrap();
            let inner: usize = tensor.shape()[axis + 1..].iter().product();
            let rows = all.chunks(inner).skip(d).step_by(2).flatten();
            f32s(shape, &rows.copied().collect::<Vec<_>>())
        };
        for d in 0..2 {
            let cell = [
                f32s(&[2, 2], &sequence[0].as_slice::<f32>().unwrap()),
                pick(1, 1, d, &[2, 3]),
                pick(2, 1, d, &[2, 3]),
                pick(4, 0, d, &[12, 2]),
                pick(5, 0, d, &[12, 3]),
                pick(6, 0, d, &[12]),
            ];
            let attributes = [size, ("clip", "1")];
            let want = run_all(&lstm_cell::V4, &attributes, &cell, IndexPolicy::Spec).unwrap();
            for (k, want) in [&want[0], &want[0], &want[1]].iter().enumerate() {
                let all = out[k].as_slice::<f32>().unwrap();
                let rows = all.chunks(3).skip(d).step_by(2).flatten();
                assert_eq!(f32s(&[2, 3], &rows.copied().collect::<Vec<_>>()), **want);
            }
        }
    }

    /// Files that come from ONNX list the functions of both directions.
    #[test]
    fn functions_of_both_directions_are_the_same() {
        let inputs = [
            ramp(&[1, 3, 2], -0.5),
            ramp(&[1, 2, 2], 0.0),
            ramp(&[1, 2, 2], -0.25),
            i32s(&[1], &[3]),
            ramp(&[2, 8, 2], -0.5),
            ramp(&[2, 8, 2], -0.375),
            ramp(&[2, 8], 0.125),
        ];
        let size = ("hidden_size", "2");
        let of =
            |direction, functions| [size, ("direction", direction), ("activations", functions)];
        let run = |functions| {
            let attributes = of("bidirectional", functions);
            run_all(&DEF, &attributes, &inputs, IndexPolicy::Spec).unwrap()
        };
        let twice = run("sigmoid, tanh, relu, sigmoid, tanh, relu");
        assert_eq!(twice, run("sigmoid,tanh,relu"));
        assert_ne!(twice, run("sigmoid,tanh,tanh"));
        let found = |direction, functions| error(&DEF, &of(direction, functions), &inputs);
        assert_eq!(
            found("bidirectional", "sigmoid,tanh,relu,sigmoid,tanh,tanh"),
            "`activations` of both directions must be the same, found sigmoid, tanh, relu and sigmoid, tanh, tanh"
        );
        assert_eq!(
            found("forward", "sigmoid,tanh,relu,sigmoid,tanh,relu"),
            "`activations` must have 3 elements, found 6"
        );
    }
}
