//! Long loops look now and then whether they are to stop.
//!
//! Of the loops around a point, one looks: the outermost whose turns are short enough, and only if all of them
//! together are not. What is cut into chunks is called in pieces by whoever runs it, so the loop that is cut does not
//! look.

use super::abi::{RawFault, STOPPED};
use super::emitter::Emitter;
use super::state::{Bounds, Looks};
use crate::analysis::work::{for_each_with_trips, large_points};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use std::mem::offset_of;
use vinelift_nest::{Axis, Kind, Stage};

/// The work between two looks, in tenths of a nanosecond as [`Nest::work`](vinelift_nest::Nest::work) counts it: loops
/// that run point by point may take several times as long.
const EVERY: usize = 20_000_000;

impl<'n> Emitter<'n, '_> {
    /// Notes how much work the loops of a stage are, if one of them is to poll whether to stop.
    pub(super) fn note_work(&mut self, stage: &'n Stage) {
        self.looks = Looks::default();
        let mut inside = self.analysis.work_under(stage, &stage.value);
        let whole = stage.domain.iter().map(|axis| large_points(axis.extent));
        if whole.fold(inside, usize::saturating_mul) <= EVERY {
            return;
        }
        self.looks.cut = self.analysis.cut_axis(stage);
        for axis in stage.domain.iter().rev() {
            self.looks.points.insert(axis.id, inside);
            inside = inside.saturating_mul(large_points(axis.extent));
        }
        for x in stage.at.iter().chain([&stage.value]) {
            for_each_with_trips(x, &mut |x, _| {
                let Kind::Reduce { axes, body, .. } = x.kind() else {
                    return;
                };
                let mut inside = self.analysis.work_under(stage, body);
                for axis in axes.iter().rev() {
                    self.looks.points.insert(axis.id, inside);
                    inside = inside.saturating_mul(large_points(axis.extent));
                }
            });
        }
    }

    /// At the top of the body of a loop that steps by `step` points: ends the kernel if it is to stop, where this loop
    /// is the one to look.
    pub(super) fn look_whether_to_stop(
        &mut self,
        axis: Axis,
        turns: Bounds,
        step: i64,
        counter: Value,
    ) {
        let Some(&point) = self.looks.points.get(&axis.id) else {
            return;
        };
        let turn = point.saturating_mul(usize::try_from(step).unwrap_or(1));
        let is_cut = self.looks.cut == Some(axis.id);
        let all = point.saturating_mul(large_points(axis.extent));
        if is_cut || turn > EVERY || all <= EVERY {
            return;
        }
        let every = (EVERY / turn.max(1)).max(1);
        let Ok(every) = i64::try_from(1usize << every.ilog2()) else {
            return;
        };
        let b = &mut self.builder;
        let (stop, go_on) = (b.create_block(), b.create_block());
        if every > 1 {
            let look = b.create_block();
            let done = b.ins().isub(counter, turns.from);
            let number = match step {
                1 => done,
                step => b.ins().udiv_imm_u(done, step),
            };
            let rest = b.ins().band_imm_s(number, every - 1);
            b.ins().brif(rest, go_on, &[], look, &[]);
            b.switch_to_block(look);
        }
        let once = MemFlagsData::trusted().with_readonly().with_can_move();
        let place = offset_of!(RawFault, stop) as i32;
        let flag = b.ins().load(types::I64, once, self.fault, place);
        // It is read again each time.
        let flag = b
            .ins()
            .atomic_load(types::I8, MemFlagsData::trusted(), flag);
        b.ins().brif(flag, stop, &[], go_on, &[]);
        b.set_cold_block(stop);
        b.switch_to_block(stop);
        self.leave_kernel(STOPPED);
        self.builder.switch_to_block(go_on);
    }
}
