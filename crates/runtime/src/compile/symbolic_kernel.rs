//! Kernels before they have numbers, and these.

use crate::compile::chain::OwnResults;
use crate::compile::contraction::PackedContraction;
use crate::compile::functions::Function;
use crate::compile::kernel::Kernel;
use crate::compile::link::Link;
use crate::compile::made_rows::MadeRows;
use std::sync::{Arc, OnceLock};
use vinelift_nest::Footprint;

/// A kernel before its symbols have numbers.
pub(super) struct SymbolicKernel {
    pub(super) kernel: Arc<Kernel>,
    /// Its code, unless it is a contraction at the example.
    pub(super) function: Option<Function>,
    /// How it uses the results of the kernel before it, if that is a contraction with which it may be fused.
    pub(super) reach: Option<Footprint>,
    /// The results of that contraction, if no other kernel uses them.
    pub(super) own_results: Option<OwnResults>,
    /// How it may be chained to the kernel before it, if that may be fused with the contraction before it.
    pub(super) link: Option<Link>,
    /// Rows of it that its tasks may make, if it is a contraction.
    pub(super) made_rows: Option<MadeRows>,
    /// The number of buffers that the kernels before it are called with.
    pub(super) arguments: usize,
    /// The engine of a contraction, if that is the same for all numbers.
    pub(super) contraction: OnceLock<Option<Arc<PackedContraction>>>,
    /// The number of the first kernel which, if both are contractions, has the same engine but for constant operands: it may be
    /// this one.
    pub(super) first_alike: usize,
}

/// Where symbols have numbers: these, and the bytes of each buffer of the nest.
pub(super) struct Numbers<'a> {
    pub(super) values: &'a Arc<[usize]>,
    pub(super) lengths: &'a [Option<usize>],
}
