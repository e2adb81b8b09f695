//! Vector loops over blocks of columns.

use super::vector_loop::{KernelLoop, VectorLoop};
use crate::analysis::Analysis;
use crate::analysis::columns::{Columns, place_panels};
use crate::analysis::indices::CheckedIndex;
use crate::analysis::runs::Runs;
use vinelift_nest::{Axis, Stage};

/// A stage in blocks of columns.
pub(crate) struct BlockColumns<'n> {
    pub(crate) columns: Columns<'n>,
    pub(crate) block: BlockLoop<'n>,
}

/// The vector loop that does a block, or is inside of the loop that does.
pub(crate) enum BlockLoop<'n> {
    /// A function, until it is called.
    Function(Option<VectorLoop<'n>>),
    InKernel(KernelLoop<'n>),
    /// None: elements are stored one by one, with these indices of several checked at once.
    Update(Vec<CheckedIndex<'n>>),
}

impl BlockColumns<'_> {
    pub(crate) fn runs(&self) -> Runs {
        match &self.block {
            BlockLoop::Function(function) => {
                function.as_ref().map_or(Runs::SCALAR, VectorLoop::runs)
            }
            BlockLoop::InKernel(kernel_loop) => kernel_loop.runs(),
            BlockLoop::Update(_) => Runs::SCALAR,
        }
    }
}

impl<'n> Analysis<'n> {
    /// How the points of a stage are done in blocks of columns, if they should be. `many` are its axes of more
    /// than one point.
    pub(crate) fn columns_of(
        &mut self,
        stage: &'n Stage,
        many: &[Axis],
    ) -> Option<BlockColumns<'n>> {
        let &[.., rows, lane] = many else {
            return None;
        };
        let (_, lanes) = self.kernel_lanes(stage)?;
        let mut columns = self.columns(stage, [rows, lane], lanes)?;
        place_panels(&mut columns.panels, columns.count);
        let outer = many.len() - 2;
        self.panels = std::mem::take(&mut columns.panels);
        let function = self.vector_loop_of_columns(stage, [rows, lane], columns.count, outer);
        let block = match function {
            Some(function) => BlockLoop::Function(Some(function)),
            None => match self.kernel_loop_of(stage) {
                Some(kernel_loop) => BlockLoop::InKernel(kernel_loop),
                None => BlockLoop::Update(self.checks(stage, lane.id)),
            },
        };
        columns.panels = std::mem::take(&mut self.panels);
        let is_done = !matches!(&block, BlockLoop::Update(checks) if checks.is_empty());
        is_done.then_some(BlockColumns { columns, block })
    }
}
