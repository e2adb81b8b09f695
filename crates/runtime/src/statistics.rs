//! Counts of what was compiled.

/// Counts of the plans that a compiled model has made for the shapes that it has met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// How many plans were compiled: a plan is a part of the model, for a class of shapes or for one.
    pub plans: usize,
    /// Of these, for shapes that the model leaves open and that got code of their own: the first ones, and those of a class
    /// that took much of the time, in the background.
    pub specialized: usize,
    /// Nests that could not be proven safe after the passes, which ran as they were before, with the same results. Any is
    /// a defect of a pass.
    pub unproven: usize,
    /// How often a plan that was there was bound to the numbers of other shapes of its class.
    pub bound: usize,
    /// Kernels compiled to machine code; plans share equal ones.
    pub kernels: usize,
    /// Bytes of machine code in these kernels.
    pub code_bytes: usize,
    /// Bytes of packed constants of the plans that are kept; what several share counts once.
    pub packed_bytes: usize,
}
