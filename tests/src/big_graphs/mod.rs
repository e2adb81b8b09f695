//! Random graphs whose tensors are large enough for every optimisation to switch on: blocks of contractions, packed
//! weights, kernels that follow others, tasks of several threads, updates in place.
//!
//! [`grow`] makes a graph of choices, [`check`] runs it in ways that must give the same bits (see `run`). What
//! differs is made as small as it can be (`minimise`) and described in the message.

mod case;
mod choices;
mod fill;
mod grow;
mod minimise;
mod pick;
mod run;
mod source;
mod steps;

pub use case::Case;
pub use choices::Choices;
pub use grow::grow;
pub use minimise::check;

/// How many families of graphs there are. The first choice says which it is: so many seeds in a row have one of each.
pub const FAMILIES: usize = steps::FAMILIES.len();
