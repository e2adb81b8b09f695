//! Types and shapes. With `D` directions, `G` gates and hidden size `H`:
//! ```text
//!           X                     initial states     W              R           B         outputs
//! cell      [batch, input]        [batch, H]         [G·H, input]   [G·H, H]    [G·H]     [batch, H] each
//! sequence  [batch, steps, input] [batch, D, H]      [D, G·H, …]    [D, …]      [D, …]    [batch, D, steps, H],
//!                                                                                         [batch, D, H] each
//! ```
//! and `sequence_lengths` of `[batch]`.

use super::network::Network;
use crate::error::ensure;
use crate::{Infer, OpError, TensorType};
use vinelift_tensor::{Dim, PartialShape};

pub(super) fn infer(network: &Network, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
    let cell = network.cell;
    let element = cx.expect("X", "a float type", |t| t.is_float())?;
    let states: &[&'static str] = if cell.has_cell_state() {
        &["initial_hidden_state", "initial_cell_state"]
    } else {
        &["initial_hidden_state"]
    };
    let with_bias = cx.has("B");
    let rest = ["W", "R", "B"];
    let rest = &rest[..if with_bias { 3 } else { 2 }];
    for name in states.iter().chain(rest) {
        cx.expect_same("X", name)?;
    }

    let size = network.hidden_size;
    ensure!(size > 0, "`hidden_size` must be at least 1, found 0");
    let rows = |count: usize| {
        let rows = size
            .checked_mul(count)
            .filter(|n| i64::try_from(*n).is_ok());
        rows.map(Dim::fixed)
            .ok_or_else(|| OpError::Shape(format!("`hidden_size` {size} is too large")))
    };
    let (gates, biases, hidden) = (rows(cell.gates())?, rows(cell.biases())?, Dim::fixed(size));
    let directions: Vec<Dim> = network
        .direction
        .iter()
        .map(|d| Dim::fixed(d.count()))
        .collect();
    let directed = |dims: &[Dim]| [&directions, dims].concat();

    let is_sequence = network.direction.is_some();
    let x = meet(cx, "X", vec![Dim::ANY; if is_sequence { 3 } else { 2 }])?;
    let (mut batch, input) = (x[0], x[x.len() - 1]);
    for state in states {
        let dims = [&[batch], &directions[..], &[hidden]].concat();
        batch = meet(cx, state, dims)?[0];
    }
    if is_sequence {
        cx.expect_integer("sequence_lengths")?;
        batch = meet(cx, "sequence_lengths", vec![batch])?[0];
    }
    meet(cx, "W", directed(&[gates, input]))?;
    meet(cx, "R", directed(&[gates, hidden]))?;
    if with_bias {
        meet(cx, "B", directed(&[biases]))?;
    }

    let state = [&[batch], &directions[..], &[hidden]].concat();
    let mut outputs = vec![state.clone(); states.len()];
    if is_sequence {
        outputs.insert(0, [&[batch], &directions[..], &[x[1], hidden]].concat());
    }
    let typed = |dims| TensorType::new(element, PartialShape::ranked(dims));
    Ok(outputs.into_iter().map(typed).collect())
}

/// The dims of input `name` as far as they are known; they must fit `want`.
fn meet(cx: &Infer<'_>, name: &'static str, want: Vec<Dim>) -> Result<Vec<Dim>, OpError> {
    let want = PartialShape::ranked(want);
    let found = cx.shape(name);
    let both = found.intersect(&want);
    let both = both.as_ref().and_then(|s| s.dims());
    both.map(<[Dim]>::to_vec)
        .ok_or_else(|| OpError::Shape(format!("`{name}` must have shape {want}, found {found}")))
}
