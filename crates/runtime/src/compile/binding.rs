//! The part of a plan that depends on the numbers of its symbols. The next binding of the same symbolic plan keeps all sizes and
//! steps of the last one that depend on no changed number: those are most steps of a language model, from token to token.

use crate::compile::native::Native;
use crate::compile::slot::Slot;
use crate::compile::step::Step;
use std::sync::Arc;
use vinelift_tensor::SymbolSet;

/// The sizes, slots and steps of a plan, at the numbers that a run gives its symbols.
pub(crate) struct Binding {
    /// The values of the symbols.
    pub(crate) values: Arc<[usize]>,
    /// The bytes of each buffer of the nest, if they can be counted.
    pub(crate) lengths: Arc<[Option<usize>]>,
    /// Where each buffer of the nest is found.
    pub(crate) slots: Arc<[Slot]>,
    /// Native code, unless the nest is interpreted.
    pub(crate) native: Option<Native>,
}

impl Binding {
    /// The symbols that have other values here than there.
    pub(super) fn changes(&self, values: &[usize]) -> SymbolSet {
        SymbolSet::of_changes(&self.values, values)
    }

    /// The steps, in order; none if the nest is interpreted.
    pub(crate) fn steps(&self) -> &[Arc<Step>] {
        self.native.as_ref().map_or(&[], |native| &native.steps)
    }

    /// Bytes of temporaries and scratch memory.
    pub(crate) fn arena(&self) -> usize {
        let native = self.native.as_ref();
        native.map_or(0, |native| native.placement.total)
    }
}
