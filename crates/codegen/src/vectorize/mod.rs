//! Vector loops: which stages, or inner loops of them, become one ([`choose`]), and how it is built ([`build`]).
//!
//! A vector loop is a function of its own, in vectors as wide as the machine has them
//! ([`Target`](crate::target::Target)). Where it finds an
//! index out of range it ends and says so; the kernel then goes through its points again, one by one.

mod access;
mod arithmetic;
mod block_columns;
mod build;
mod choose;
mod collected;
mod delinearize;
mod gather;
mod prefetch;
mod reduce;
mod unroll_and_jam;
mod vector_loop;

pub(crate) use block_columns::BlockColumns;
pub(crate) use collected::Collected;
pub(crate) use vector_loop::{Argument, Pace, VectorLoop};
