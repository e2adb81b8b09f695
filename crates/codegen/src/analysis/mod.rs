//! Analysis of a nest and of the stage that is being compiled; it emits no code.
//!
//! The scalar code and the vector loops ask the same questions here: which offsets step with an axis ([`linear`]), which
//! indices may be checked for several points at once ([`indices`]), how much work it is ([`work`]), and in which order
//! memory is fast ([`columns`]).

pub(crate) mod coefficient;
pub(crate) mod columns;
mod explain;
pub(crate) mod facts;
pub(crate) mod indices;
pub(crate) mod linear;
mod offsets;
pub(crate) mod runs;
mod state;
pub(crate) mod walk;
pub(crate) mod work;

pub(crate) use state::Analysis;
