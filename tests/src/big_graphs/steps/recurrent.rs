//! Layers of recurrent cells.

use crate::big_graphs::fill::Fill;
use crate::big_graphs::grow::{Grow, Value};
use vinelift::ElementType::{F32, I32};

/// A sequence of LSTM or GRU cells.
pub(super) fn recurrent(grow: &mut Grow<'_>) -> Option<()> {
    let fits = |v: &Value| {
        v.ty == F32 && v.rank() == 3 && v.shape[0] <= 8 && v.shape[1] <= 100 && v.shape[2] <= 300
    };
    let x = grow.find(fits).unwrap_or_else(|| {
        let shape = [
            grow.choices.of(&[1, 2, 4]),
            grow.choices.of(&[5, 17, 40]),
            grow.choices.of(&[32, 64, 100]),
        ];
        grow.parameter(F32, &shape)
    });
    let (batch, steps, width) = (x.shape[0], x.shape[1], x.shape[2]);
    if grow.is_batched(&x.shape) {
        return None;
    }
    let (hidden, lstm) = (grow.choices.of(&[32, 48, 96]), grow.choices.chance(50));
    let direction = grow.choices.of(&["forward", "reverse", "bidirectional"]);
    let ways = if direction == "bidirectional" { 2 } else { 1 };
    let gates = if lstm { 4 } else { 3 };
    grow.charge(2 * ways * batch * steps * gates * hidden * (width + hidden))?;
    let length = steps as i64;
    let low = if grow.choices.chance(60) { length } else { 1 };
    let lengths = grow.constant(I32, &[batch], Fill::Integers { low, high: length });
    let state = [batch, ways, hidden];
    let h = grow.parameter(F32, &state);
    let w = grow.weights(F32, &[ways, gates * hidden, width], width);
    let r = grow.weights(F32, &[ways, gates * hidden, hidden], hidden);
    let all = [batch, ways, steps, hidden];
    let attributes = format!("hidden_size=\"{hidden}\" direction=\"{direction}\"");
    let outputs = if lstm {
        let c = grow.parameter(F32, &state);
        let b = grow.weights(F32, &[ways, 4 * hidden], 4);
        let outputs = [(F32, &all[..]), (F32, &state[..]), (F32, &state[..])];
        grow.several(
            "LSTMSequence",
            "opset5",
            attributes,
            &[&x, &h, &c, &lengths, &w, &r, &b],
            &outputs,
        )?
    } else {
        let reset = grow.choices.chance(50);
        let b = grow.weights(F32, &[ways, if reset { 4 } else { 3 } * hidden], 4);
        let attributes = format!("{attributes} linear_before_reset=\"{reset}\"");
        let outputs = [(F32, &all[..]), (F32, &state[..])];
        grow.several(
            "GRUSequence",
            "opset5",
            attributes,
            &[&x, &h, &lengths, &w, &r, &b],
            &outputs,
        )?
    };
    for value in outputs {
        grow.keep(value.bounded(4.0))?;
    }
    Some(())
}
