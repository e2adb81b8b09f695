//! Vector loops: which stages, or inner loops of them, become one ([`choose`]), and how it is built ([`build`]).
//!
//! A vector loop is a function of its own, in vectors as wide as the machine has them
//! ([`Target`](crate::target::Target)), or else part of the kernel, in Cranelift's vectors ([`in_kernel`]). Where it
//! finds an index out of range it ends; the kernel then goes through its points again, one by one.
//!
//! | loop | what only it has |
//! |---|---|
//! | function | outer loops inside, short rows, unrolling, unroll-and-jam, row tables, prefetch |
//! | in the kernel | scalars of the kernel's own code, operations lane by lane, stages that combine with their target |

mod access;
mod arithmetic;
mod block_columns;
mod build;
mod choose;
mod collected;
mod delinearize;
mod division;
mod division_by_any;
mod gather;
mod in_kernel;
mod jam;
mod jam_rows;
mod long_integers;
mod prefetch;
mod rare;
mod reduce;
mod speculation;
mod unroll_and_jam;
mod values;
mod vector_loop;

pub(crate) use block_columns::{BlockColumns, BlockLoop};
pub(crate) use collected::Collected;
pub(crate) use vector_loop::{Argument, KernelLoop, KernelScalar, Pace, VectorLoop};
