//! Stages whose target is reached through data-dependent indices: one point after the other, with the
//! indices of a block of points checked at once.

use super::checked::CompareTime;
use super::emitter::{Emitter, Result};
use super::state::Bounds;
use crate::analysis::indices::CheckedIndex;
use cranelift_codegen::ir::InstBuilder;
use vinelift_nest::{Axis, Stage};

/// Points whose indices are checked at once.
pub(super) const BLOCK: usize = 8;

impl<'n> Emitter<'n, '_> {
    /// The innermost loop, over `axis`, by blocks of points, and what is left of it point by point.
    pub(super) fn update_loop(
        &mut self,
        stage: &'n Stage,
        axis: Axis,
        checks: &[CheckedIndex<'n>],
    ) -> Result {
        let turns = self.turns(stage, axis);
        let has_rest = turns.part().is_some() || !axis.extent.is_multiple_of(BLOCK);
        let Bounds { from, to, .. } = turns;
        let middle = self.whole_blocks(turns, BLOCK as i64);
        self.open_loop(axis, Bounds::between(from, middle), BLOCK as i64, &[]);
        let ways = self.check(checks, axis, BLOCK, CompareTime::for_stage(stage))?;
        let join = self.builder.create_block();
        for point in 0..BLOCK {
            self.in_range(&ways, axis.id, point, |this| this.assign(stage))?;
        }
        self.builder.ins().jump(join, &[]);
        let cold = self.one_by_one(&ways, axis, BLOCK, |this, _| this.assign(stage))?;
        self.builder.ins().jump(join, &[]);
        cold.end(self);
        self.builder.switch_to_block(join);
        self.close_loop(&[]);
        if has_rest {
            self.open_loop(axis, Bounds::between(middle, to), 1, &[]);
            self.assign(stage)?;
            self.close_loop(&[]);
        }
        Ok(())
    }
}
