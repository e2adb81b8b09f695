//! Kernels before their symbols have values, and the values.

use crate::compile::chain::OwnResults;
use crate::compile::contraction::PackedContraction;
use crate::compile::functions::Function;
use crate::compile::kernel::Kernel;
use crate::compile::link::Link;
use crate::compile::made_rows::MadeRows;
use std::sync::{Arc, OnceLock};
use vinelift_nest::Footprint;

/// A kernel for all values of its symbols.
pub(super) struct SymbolicKernel {
    pub(super) kernel: Arc<Kernel>,
    /// Its code, unless it is a contraction at the example.
    pub(super) function: Option<Function>,
    pub(super) coupling: Coupling,
    /// The number of buffers that the kernels before it are called with.
    pub(super) arguments: usize,
    /// The engine of a contraction, if that is the same for all numbers.
    pub(super) contraction: OnceLock<Option<Arc<PackedContraction>>>,
    /// If it is a contraction: the kernels that write its left operand, if they fill a part of it with zeros.
    pub(super) left_writers: Vec<usize>,
    /// The number of the first kernel which, if both are contractions, has the same engine but for constant operands: it may be
    /// this one.
    pub(super) first_alike: usize,
}

impl SymbolicKernel {
    /// Whether it is a contraction at the example.
    pub(super) fn is_contraction(&self) -> bool {
        self.function.is_none()
    }
}

/// How a kernel may be run with the tasks of a kernel before it, or that with its own.
#[derive(Default)]
pub(super) struct Coupling {
    /// If it is code that may be fused with a contraction before it: how it uses the results of that.
    pub(super) reach: Option<Footprint>,
    /// The results of that contraction, if no other kernel uses them.
    pub(super) own_results: Option<OwnResults>,
    /// If it is a contraction: how it may be chained to the code before it, which may be fused with the contraction before that.
    pub(super) link: Option<Link>,
    /// If it is a contraction: the rows of it that its tasks may make.
    pub(super) made_rows: Option<MadeRows>,
}

/// The values of the symbols, and the bytes of each buffer of the nest at these.
pub(super) struct Numbers<'a> {
    pub(super) values: &'a Arc<[usize]>,
    pub(super) lengths: &'a [Option<usize>],
}
