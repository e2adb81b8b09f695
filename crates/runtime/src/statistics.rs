//! Counts of what was compiled.

/// What a compiled model has made for the shapes that it has met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// How often a part of the model was lowered to loops: for a class of shapes, or for one.
    pub lowered: usize,
    /// How often a part that had been lowered for a class of shapes before was bound to the numbers of other shapes.
    pub shared: usize,
    /// How many plans were made: a plan is a part of the model, optimised for one set of shapes.
    pub plans: usize,
    /// Kernels compiled to machine code; plans share equal ones.
    pub kernels: usize,
    /// Bytes of machine code in these kernels.
    pub code_bytes: usize,
    /// Bytes of packed constants of the plans that are kept; what several share counts once.
    pub packed_bytes: usize,
}
