//! Recurrent networks: cells, which take one step, and sequences of cells.
//!
//! The formulas of a step stand in [`formulas`], for cells and sequences alike. A cell computes each part of
//! them in a stage of its own, and in a sequence these stages take turns, step by step.
//!
//! Arithmetic is done in the type that `ElementType::compute` gives, the states are kept in it from
//! step to step, and results are rounded once, at the end.

mod activation;
mod cell;
mod formulas;
pub(crate) mod gru_cell;
pub(crate) mod gru_sequence;
pub(crate) mod lstm_cell;
pub(crate) mod lstm_sequence;
mod network;
mod operator;
pub(crate) mod rnn_cell;
pub(crate) mod rnn_sequence;
mod sequence;
mod shapes;
