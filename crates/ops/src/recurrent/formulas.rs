//! The formulas of one step of a cell, from the input `x`, the state `H'` (and `C'`) before it, and
//! `x_k = W_k · x + b_k`, `p_k = R_k · H'` for each gate `k`:
//! ```text
//! RNN   H = f(x + p)
//! GRU   z = f(x_z + p_z)    r = f(x_r + p_r)    H = (1 - z) · n + z · H'
//!       n = g(x_n + R_n · (r · H')), or g(x_n + r · (p_n + b')) with linear_before_reset
//! LSTM  a = f(x_a + p_a) for a = i, f, o; i = 1 - f with input_forget
//!       C = f · C' + i · g(x_c + p_c)           H = o · h(C)
//! ```

use super::activation::Activations;
use std::ops::Range;
use vinelift_nest::Scalar;
use vinelift_nest::build::number;

/// A kind of cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    Rnn,
    /// The gates are z, r, n.
    Gru {
        linear_before_reset: bool,
    },
    /// The gates are f, i, c, o.
    Lstm {
        input_forget: bool,
    },
}

/// A part of a step, with one or more values for each element of the hidden state.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// `R_k · H'` for these gates.
    Products(Range<usize>),
    /// `r · H'`
    Reset,
    /// `R_k · (r · H')` for this gate.
    ProductOfReset(usize),
    /// `C`
    Cell,
    /// `H`
    Hidden,
}

/// The context of a formula: one element of the hidden state in one step.
pub(super) trait Frame {
    /// `x_k`
    fn input(&self, gate: usize) -> Scalar;
    /// Row `gate` of the biases.
    fn bias(&self, gate: usize) -> Scalar;
    /// `R_k` times what the cell multiplies with it.
    fn product(&self, gate: usize) -> Scalar;
    /// `H'`
    fn hidden_before(&self) -> Scalar;
    /// `C'`
    fn cell_before(&self) -> Scalar;
    /// `C`
    fn cell(&self) -> Scalar;
}

/// The gates z, r, n of a GRU.
const UPDATE: usize = 0;
const RESET: usize = 1;
const NEW: usize = 2;

/// The gates f, i, c, o of an LSTM.
const FORGET: usize = 0;
const INPUT: usize = 1;
const CANDIDATE: usize = 2;
const OUTPUT: usize = 3;

impl Cell {
    /// How many gates there are.
    pub(super) fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// How many biases there are for each element of the hidden state.
    pub(super) fn biases(self) -> usize {
        match self {
            Cell::Gru {
                linear_before_reset: true,
            } => 4,
            _ => self.gates(),
        }
    }

    /// Whether there is a cell state.
    pub(super) fn has_cell_state(self) -> bool {
        matches!(self, Cell::Lstm { .. })
    }

    /// The parts, each of which needs only those before it. The last is [`Part::Hidden`].
    pub(super) fn parts(self) -> Vec<Part> {
        match self {
            Cell::Rnn => vec![Part::Products(0..1), Part::Hidden],
            Cell::Gru {
                linear_before_reset: true,
            } => vec![Part::Products(0..3), Part::Hidden],
            Cell::Gru { .. } => vec![
                Part::Products(0..NEW),
                Part::Reset,
                Part::ProductOfReset(NEW),
                Part::Hidden,
            ],
            Cell::Lstm { .. } => vec![Part::Products(0..4), Part::Cell, Part::Hidden],
        }
    }

    /// `r · H'`
    pub(super) fn reset(self, act: &Activations, at: &impl Frame) -> Scalar {
        gate(act, 0, at, RESET) * at.hidden_before()
    }

    /// `C`
    pub(super) fn cell(self, act: &Activations, at: &impl Frame) -> Scalar {
        let forget = gate(act, 0, at, FORGET);
        let input_forget = matches!(self, Cell::Lstm { input_forget: true });
        let input = if input_forget {
            number(1.0, forget.ty()) - &forget
        } else {
            gate(act, 0, at, INPUT)
        };
        forget * at.cell_before() + input * gate(act, 1, at, CANDIDATE)
    }

    /// `H`
    pub(super) fn hidden(self, act: &Activations, at: &impl Frame) -> Scalar {
        match self {
            Cell::Rnn => gate(act, 0, at, 0),
            Cell::Gru {
                linear_before_reset,
            } => {
                let new = if linear_before_reset {
                    let linear = at.product(NEW) + at.bias(NEW + 1);
                    act.clipped(1, at.input(NEW) + gate(act, 0, at, RESET) * linear)
                } else {
                    gate(act, 1, at, NEW)
                };
                let update = gate(act, 0, at, UPDATE);
                (number(1.0, update.ty()) - &update) * new + update * at.hidden_before()
            }
            Cell::Lstm { .. } => gate(act, 0, at, OUTPUT) * act.plain(2, at.cell()),
        }
    }
}

/// Function `function` of `x_k` and the product of gate `k`.
fn gate(act: &Activations, function: usize, at: &impl Frame, k: usize) -> Scalar {
    act.clipped(function, at.input(k) + at.product(k))
}
