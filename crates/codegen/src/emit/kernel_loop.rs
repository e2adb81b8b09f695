//! Stages whose innermost axis runs over lanes of registers of 128 bits, inside the kernel.
//!
//! The loop over the axis steps by as many points as the lanes are. The last step overlaps the one before, so
//! that there is no scalar tail: what it writes again has the same values. Where a value is combined with
//! what the target holds, the rest is done point by point instead. The body is a program of the vector IR
//! ([`lane_program`](super::lane_program)). If it finds an index out of range, all points of the axis are done again, one
//! by one, which reports the first that is wrong.

use super::emitter::{Emitter, Result};
use super::lane_program::LaneProgram;
use super::state::Bounds;
use crate::vector_ir::program::Step;
use crate::vectorize::KernelLoop;
use vinelift_nest::{Mode, Stage};

impl<'n> Emitter<'n, '_> {
    /// The loop over the innermost axis, by vectors if there are points enough.
    pub(super) fn kernel_loop_or_points(
        &mut self,
        stage: &'n Stage,
        kernel_loop: &KernelLoop<'n>,
    ) -> Result {
        let (axis, lanes) = (kernel_loop.axis, kernel_loop.lanes);
        // A stage that combines must not do a point twice: no last turn overlaps.
        if axis.extent >= lanes || stage.mode != Mode::Set {
            return self.kernel_loop(stage, kernel_loop);
        }
        let turns = self.turns(stage, axis);
        let few = self.fewer_than(turns, lanes);
        self.unless_few(Some(few), (stage, &[axis]), |this| {
            this.kernel_loop(stage, kernel_loop)
        })
    }

    fn kernel_loop(&mut self, stage: &'n Stage, kernel_loop: &KernelLoop<'n>) -> Result {
        self.chunk_at_least(stage, kernel_loop.axis, kernel_loop.lanes);
        let around = self.instead_of_faults;
        if !kernel_loop.may_fault || around.is_some() {
            return self.vectors_and_rest(stage, kernel_loop);
        }
        let exact = self.builder.create_block();
        self.instead_of_faults = Some(exact);
        // Values after the first index are not needed where an index is wrong.
        self.open_scope();
        let done = self.vectors_and_rest(stage, kernel_loop);
        self.close_scope();
        self.instead_of_faults = around;
        done?;
        self.point_by_point(stage, exact, &[kernel_loop.axis])
    }

    fn vectors_and_rest(&mut self, stage: &'n Stage, kernel_loop: &KernelLoop<'n>) -> Result {
        let (axis, lanes) = (kernel_loop.axis, kernel_loop.lanes);
        let turns = self.turns(stage, axis);
        let fills = turns.part().is_none() && axis.extent.is_multiple_of(lanes);
        // A point that is combined with the target may not be done twice.
        let rest = match stage.mode {
            Mode::Set => None,
            Mode::Combine(_) => Some(self.whole_blocks(turns, lanes as i64)),
        };
        let blocks = rest.map_or(turns, |middle| Bounds::between(turns.from, middle));
        let mut program = LaneProgram::of(self, kernel_loop)?;
        for step in &kernel_loop.program.steps {
            match step {
                Step::Do(number) => self.lane_instruction(&mut program, *number)?,
                Step::Loop { body, .. } => {
                    self.open_loop(axis, blocks, lanes as i64, &[]);
                    if rest.is_none() {
                        self.stay_before(axis, turns, lanes);
                    }
                    self.lane_steps(&mut program, body)?;
                    self.close_loop(&[]);
                }
                Step::IfLanes(body) => self.lane_steps(&mut program, body)?,
            }
        }
        if let Some(middle) = rest.filter(|_| !fills) {
            self.open_loop(axis, Bounds::between(middle, turns.to), 1, &[]);
            self.assign(stage)?;
            self.close_loop(&[]);
        }
        Ok(())
    }
}
