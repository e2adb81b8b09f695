//! Stages: the loops over a domain, and the store inside.

use super::{Emitter, Result, Runs};
use cranelift_codegen::ir::InstBuilder;
use vinelift_nest::{Kind, Mode, Ranges, Scalar, Stage};

impl<'n> Emitter<'n, '_> {
    pub(super) fn stage(&mut self, number: usize, stage: &'n Stage) -> Result {
        if stage.domain.iter().any(|axis| axis.extent == 0) {
            return Ok(());
        }
        self.facts.of_stage(stage);
        self.ranges = Ranges::of_stage(stage);
        self.open_scope();
        let loops = self.loops.len();
        for &axis in stage.domain.iter().filter(|axis| axis.extent == 1) {
            self.bind_point(axis);
        }
        let mut strip = self.ready_strip(stage);
        let inner = strip.as_ref().map(|strip| strip.outer);
        let plan = match &strip {
            Some(_) => None,
            None => self.plan(stage),
        };
        self.runs[number] = match (&strip, plan) {
            (Some(strip), _) => Runs {
                lanes: strip.lanes,
                bits: strip.bits,
            },
            (None, Some(plan)) => Runs {
                lanes: plan.lanes,
                bits: 128,
            },
            (None, None) => Runs::SCALAR,
        };
        let many = stage.domain.iter().filter(|axis| axis.extent > 1);
        let last = many.clone().count().wrapping_sub(1);
        for (k, &axis) in many.enumerate() {
            // The value of a point that may be skipped is not evaluated in any case.
            let value = Some(&stage.value).filter(|_| !stage.at.iter().any(reads_zero));
            self.hoist(stage.at.iter().chain(value))?;
            if inner == Some(k) {
                break;
            }
            match plan {
                Some(plan) if k == last => self.vector_loop(stage, plan)?,
                _ => {
                    let turns = self.turns(stage, axis);
                    self.open_loop(axis, turns, 1, &[]);
                }
            }
        }
        match strip.take() {
            Some(strip) => self.call_strip(number, stage, strip)?,
            None if plan.is_none() => self.assign(stage)?,
            None => {}
        }
        while self.loops.len() > loops {
            self.close_loop(&[]);
        }
        self.close_scope();
        Ok(())
    }

    /// `target[at] mode= value` at one point, or nothing if an index that reads zero is out of range.
    fn assign(&mut self, stage: &'n Stage) -> Result {
        let linear = self.linear(stage.target, &stage.at);
        self.compute(linear.leaves())?;
        let after = self.all_inside(&stage.at).map(|inside| {
            let (store, after) = (self.builder.create_block(), self.builder.create_block());
            self.builder.ins().brif(inside, store, &[], after, &[]);
            self.builder.switch_to_block(store);
            self.open_scope();
            after
        });
        self.compute([&stage.value])?;
        let mut value = self.get(&stage.value);
        let place = self.place(stage.target, &linear);
        let ty = self.nest.buf(stage.target).ty;
        if let Mode::Combine(op) = stage.mode {
            let old = self.load(stage.target, ty, &place);
            value = self.binary(op, ty, old, value, stage.value.as_const())?;
        }
        self.store(stage.target, ty, &place, value);
        if let Some(after) = after {
            self.close_scope();
            self.builder.ins().jump(after, &[]);
            self.builder.switch_to_block(after);
        }
        Ok(())
    }
}

fn reads_zero(index: &Scalar) -> bool {
    matches!(index.kind(), Kind::Wrap(wrap) if wrap.policy.zero)
}
