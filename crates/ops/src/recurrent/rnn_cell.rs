//! `RNNCell`: one step of a simple recurrent network, `H = f(W · X + R · H' + B)`.
//!
//! Specification: RNNCell-3, which the IR calls opset1.

use super::activation::Function;
use super::formulas::Cell;
use super::network::attributes;
use crate::{Build, Family, OpDef, Signature};

pub(crate) static DEF: OpDef = OpDef {
    name: "RNNCell",
    versions: &["opset1"],
    signature: Signature::new(&["X", "initial_hidden_state", "W", "R", "B"]),
    family: Family::Recurrent,
    build: Build::Op(|attributes| {
        attributes!([] []);
        let a: Attrs = attributes.parse()?;
        a.network(Cell::Rnn, DEFAULTS, None)
    }),
};

/// The activation functions if none are given.
pub(super) const DEFAULTS: &[Function] = &[Function::Tanh];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, infer, run};
    use vinelift_tensor::{ElementType, PartialShape, Tensor};

    /// `x` [1, 2] and `h` [3, -4] of one sample, with weights that exchange the inputs and halve the
    /// state.
    fn inputs() -> [Tensor; 5] {
        [
            f32s(&[1, 2], &[1.0, 2.0]),
            f32s(&[1, 2], &[3.0, -4.0]),
            f32s(&[2, 2], &[0.0, 1.0, 1.0, 0.0]),
            f32s(&[2, 2], &[0.5, 0.0, 0.0, 0.5]),
            f32s(&[2], &[0.25, 0.5]),
        ]
    }

    /// By hand: the sums are 3.75 and -0.5.
    #[test]
    fn clips_before_the_activation() {
        let of = |attributes: &[(&str, &str)]| {
            let all = [&[("hidden_size", "2")], attributes].concat();
            run(&DEF, &all, &inputs()).to_f64_vec().unwrap()
        };
        assert_eq!(of(&[("activations", "relu")]), [3.75, 0.0]);
        assert_eq!(of(&[("activations", "RELU"), ("clip", "3")]), [3.0, 0.0]);
        assert_eq!(of(&[("activations", "relu"), ("clip", "0")]), [3.75, 0.0]);
        let hard = [("activations", "hardsigmoid"), ("clip", "1.5")];
        assert!((of(&hard)[0] - 0.8).abs() < 1e-6);
        let sloped = [
            &hard[..],
            &[("activations_alpha", "0.25"), ("activations_beta", "0.5")],
        ];
        assert_eq!(of(&sloped.concat()), [0.875, 0.375]);
        let tanh = of(&[]);
        assert!((tanh[1] - (-0.5f64).tanh()).abs() < 1e-6);
    }

    #[test]
    fn attributes_must_fit() {
        let of = |attributes: &[(&str, &str)]| error(&DEF, attributes, &inputs());
        let size = ("hidden_size", "2");
        let message = "`activations` must have 1 elements, found 2";
        assert_eq!(of(&[size, ("activations", "tanh, tanh")]), message);
        let message =
            "attribute `activations` must be one of sigmoid, tanh, relu, hardsigmoid, found `elu`";
        assert_eq!(of(&[size, ("activations", "elu")]), message);
        assert_eq!(
            of(&[size, ("clip", "-1")]),
            "`clip` must be at least 0, found -1"
        );
        assert_eq!(
            of(&[("hidden_size", "0")]),
            "`hidden_size` must be at least 1, found 0"
        );
        let message = "`initial_hidden_state` must have shape [1, 3], found [1, 2]";
        assert_eq!(of(&[("hidden_size", "3")]), message);
        assert_eq!(of(&[]), "attribute missing field `hidden_size`");
    }

    #[test]
    fn the_batch_may_come_from_any_input() {
        let any = |rank| (ElementType::F16, PartialShape::any_of_rank(rank), None);
        let h = (ElementType::F16, [3, 2].as_slice().into(), None);
        let unknown = (ElementType::F16, PartialShape::DYNAMIC, None);
        let inputs = [unknown, h, any(2), any(2), any(1)];
        let found = infer(&DEF, &[("hidden_size", "2")], &inputs);
        assert_eq!(found, ("f16[3, 2]".to_owned(), vec![]));
    }
}
