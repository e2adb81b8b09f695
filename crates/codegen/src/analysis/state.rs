//! The state of an analysis.

use super::coefficient::{Coefficient, strides};
use super::facts::Facts;
use super::linear::PackedColumns;
use crate::target::Target;
use vinelift_nest::{Buffer, Interval, Nest, ParallelChunks, Ranges, Stage};

pub(crate) struct Analysis<'n> {
    pub(crate) nest: &'n Nest,
    /// Elements between neighbours along each dim of each buffer.
    pub(super) strides: Vec<Vec<Coefficient>>,
    /// The values that tables of indices lie between.
    pub(super) values: Vec<Option<Interval>>,
    /// Into which chunks the nest can be cut.
    pub(crate) chunks: ParallelChunks,
    /// About the scalars of the current stage.
    pub(crate) facts: Facts,
    pub(crate) ranges: Ranges,
    /// The data of the current stage that it reads from scratch memory.
    pub(crate) panels: Vec<PackedColumns<'n>>,
    /// The machine that vector loops are compiled for; `None` if there are to be none.
    pub(crate) target: Option<Target>,
    /// Whether stages may run by Cranelift's vectors.
    pub(crate) has_vectors: bool,
}

impl<'n> Analysis<'n> {
    /// `None` if there is no formula for the stride of a buffer.
    pub(crate) fn new(
        nest: &'n Nest,
        target: Option<Target>,
        has_vectors: bool,
    ) -> Option<Analysis<'n>> {
        Some(Analysis {
            nest,
            strides: nest.buffers.iter().map(strides).collect::<Option<_>>()?,
            values: nest.buffers.iter().map(Buffer::values).collect(),
            chunks: ParallelChunks::of(nest),
            facts: Facts::default(),
            ranges: Ranges::new(),
            panels: Vec::new(),
            target,
            has_vectors,
        })
    }

    /// Goes on with a stage.
    pub(crate) fn begin(&mut self, stage: &'n Stage) {
        self.facts.of_stage(stage);
        self.ranges = Ranges::of_stage(stage).with_symbols(self.nest);
    }
}
