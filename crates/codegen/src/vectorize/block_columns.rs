//! Vector loops over blocks of columns.

use super::vector_loop::VectorLoop;
use crate::analysis::Analysis;
use crate::analysis::columns::{Columns, place_panels};
use crate::analysis::legality::{LanePlan, Runs};
use vinelift_nest::{Axis, Stage};

/// A stage in blocks of columns.
pub(crate) struct BlockColumns<'n> {
    pub(crate) columns: Columns<'n>,
    /// The vector loop that does a block, if one can.
    pub(crate) vector_loop: Option<VectorLoop<'n>>,
}

impl BlockColumns<'_> {
    pub(crate) fn runs(&self) -> Runs {
        match &self.vector_loop {
            Some(vector_loop) => vector_loop.runs(),
            None => self.columns.plan.runs(),
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
        plan: LanePlan,
    ) -> Option<BlockColumns<'n>> {
        let &[.., rows, lane] = many else {
            return None;
        };
        let mut columns = self.columns(stage, rows, plan)?;
        place_panels(&mut columns.panels, columns.count);
        let outer = many.len() - 2;
        self.panels = std::mem::take(&mut columns.panels);
        let vector_loop = self.vector_loop_of_columns(stage, [rows, lane], columns.count, outer);
        columns.panels = std::mem::take(&mut self.panels);
        Some(BlockColumns {
            columns,
            vector_loop,
        })
    }
}
