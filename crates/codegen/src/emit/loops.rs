//! Loops: one for each axis with more than one point.
//!
//! Wherever a branch leaves a loop, the block outside is its first target. Cranelift's optimiser
//! visits the second target first, and moves nothing out of a loop any more once it has seen a block
//! behind it.

use super::emitter::{Emitter, Result};
use super::state::{Binding, Bounds, Loop};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, condcodes::IntCC, types};
use vinelift_nest::{Axis, FoldBounds, Stage};

impl<'n> Emitter<'n, '_> {
    /// All points of an axis or, if it is the one of a nest that is cut, those of the chunk that the kernel was
    /// asked for.
    pub(crate) fn turns(&mut self, stage: &Stage, axis: Axis) -> Bounds {
        if let Some((_, turns)) = self.narrowed.filter(|(id, _)| *id == axis.id) {
            return turns;
        }
        let cut = self
            .analysis
            .chunks
            .axis(stage)
            .filter(|cut| cut.id == axis.id);
        if cut.filter(|_| self.analysis.chunks.extent > 1).is_none() {
            return self.all_turns(axis);
        }
        let each = self.analysis.cut_turns(stage) as i64;
        let [from, to] = self.chunk;
        let from = self.times(from, each);
        let to = self.times(to, each);
        Bounds {
            from,
            to,
            is_part: true,
        }
    }

    /// The points between bounds that their axis has; its ends have been computed.
    pub(super) fn turns_between(&mut self, bounds: FoldBounds<'_>) -> Bounds {
        let mut turns = self.all_turns(bounds.axis);
        if let Some(begin) = bounds.begin {
            let begin = self.get(begin);
            turns.from = self.builder.ins().smax(begin, turns.from);
        }
        if let Some(end) = bounds.end {
            let end = self.get(end);
            turns.to = self.builder.ins().smin(end, turns.to);
        }
        turns.is_part = true;
        turns
    }

    /// Where the last whole block of `size` turns ends; `size` is a power of two.
    pub(super) fn whole_blocks(&mut self, turns: Bounds, size: i64) -> Value {
        let count = self.builder.ins().isub(turns.to, turns.from);
        let whole = self.builder.ins().band_imm_s(count, -size);
        self.builder.ins().iadd(turns.from, whole)
    }

    /// Whether there are fewer turns than that.
    pub(super) fn fewer_than(&mut self, turns: Bounds, points: usize) -> Value {
        let count = self.builder.ins().isub(turns.to, turns.from);
        let condition = IntCC::SignedLessThan;
        self.builder
            .ins()
            .icmp_imm_s(condition, count, points as i64)
    }

    /// Makes sure that no chunk has less than `points` of an axis.
    pub(super) fn chunk_at_least(&mut self, stage: &Stage, axis: Axis, points: usize) {
        if self
            .analysis
            .chunks
            .axis(stage)
            .is_some_and(|cut| cut.id == axis.id)
        {
            let each = self.analysis.cut_turns(stage);
            let chunks = &mut self.analysis.chunks;
            let least = points.div_ceil(each).next_multiple_of(chunks.unit);
            chunks.grain = chunks.grain.max(least);
        }
    }

    /// Moves an axis back where fewer than `size` turns are left, so that the last block of turns overlaps the one before.
    pub(super) fn stay_before(&mut self, axis: Axis, turns: Bounds, size: usize) {
        let fills = !turns.is_part && axis.extent.is_multiple_of(size);
        let Some(binding) = self.axes.get(&axis.id).copied().filter(|_| !fills) else {
            return;
        };
        let last = self.builder.ins().iadd_imm_s(turns.to, -(size as i64));
        let beyond = self
            .builder
            .ins()
            .icmp(IntCC::SignedGreaterThan, binding.value, last);
        let value = self.builder.ins().select(beyond, last, binding.value);
        self.axes.insert(axis.id, Binding { value, ..binding });
    }

    /// `many`, or the loops over the axes `inner` point by point where there are too `few` of them: a fact that only a run knows.
    pub(super) fn unless_few(
        &mut self,
        few: Option<Value>,
        (stage, inner): (&'n Stage, &[Axis]),
        many: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        let Some(few) = few else {
            return many(self);
        };
        let b = &mut self.builder;
        let (points, vectors, done) = (b.create_block(), b.create_block(), b.create_block());
        b.ins().brif(few, points, &[], vectors, &[]);
        b.switch_to_block(vectors);
        self.open_scope();
        many(self)?;
        self.close_scope();
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(points);
        let depth = self.loops.len();
        for axis in inner {
            let turns = self.turns(stage, *axis);
            self.open_loop(*axis, turns, 1, &[]);
        }
        self.assign(stage)?;
        while self.loops.len() > depth {
            self.close_loop(&[]);
        }
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(done);
        Ok(())
    }

    fn all_turns(&mut self, axis: Axis) -> Bounds {
        let (from, to) = (self.index(0), self.extent(axis.extent));
        Bounds {
            from,
            to,
            is_part: false,
        }
    }

    /// Binds an axis of one point without a loop.
    pub(super) fn bind_point(&mut self, axis: Axis) {
        let value = self.index(0);
        self.bind_to(axis, value);
    }

    /// Binds an axis to a value that is known outside of all loops.
    pub(super) fn bind_to(&mut self, axis: Axis, value: Value) {
        let binding = Binding {
            value,
            plus: 0,
            depth: 0,
        };
        self.axes.insert(axis.id, binding);
    }

    /// Opens a loop over an axis, `step` points at a time. Gives `carried` as it is at the top of the
    /// body.
    pub(super) fn open_loop_by(&mut self, axis: Axis, step: i64, carried: &[Value]) -> Vec<Value> {
        let turns = self.all_turns(axis);
        self.open_loop(axis, turns, step, carried)
    }

    /// As [`Self::open_loop_by`], over some of the points.
    pub(super) fn open_loop(
        &mut self,
        axis: Axis,
        turns: Bounds,
        step: i64,
        carried: &[Value],
    ) -> Vec<Value> {
        let b = &mut self.builder;
        let (head, body, exit) = (b.create_block(), b.create_block(), b.create_block());
        let mut arguments = vec![BlockArg::from(turns.from)];
        arguments.extend(carried.iter().map(|v| BlockArg::from(*v)));
        b.ins().jump(head, &arguments);
        let counter = b.append_block_param(head, types::I64);
        let parameter = |value: &Value| {
            let ty = b.func.dfg.value_type(*value);
            b.append_block_param(head, ty)
        };
        let carried: Vec<Value> = carried.iter().map(parameter).collect();
        b.switch_to_block(head);
        let done = b
            .ins()
            .icmp(IntCC::SignedGreaterThanOrEqual, counter, turns.to);
        b.ins().brif(done, exit, &[], body, &[]);
        b.switch_to_block(body);
        self.look_whether_to_stop(axis, turns, step, counter);
        self.loops.push(Loop {
            axis,
            step,
            head,
            exit,
            counter,
            carried: carried.clone(),
        });
        self.axes.insert(
            axis.id,
            Binding {
                value: counter,
                plus: 0,
                depth: self.loops.len(),
            },
        );
        self.open_scope();
        carried
    }

    /// Closes the innermost loop; `carried` is what goes back to the top. Gives what it was in the
    /// end.
    pub(super) fn close_loop(&mut self, carried: &[Value]) -> Vec<Value> {
        let Some(open) = self.loops.pop() else {
            return Vec::new();
        };
        self.close_scope();
        self.axes.remove(&open.axis.id);
        let next = self.builder.ins().iadd_imm_s(open.counter, open.step);
        let mut arguments = vec![BlockArg::from(next)];
        arguments.extend(carried.iter().map(|v| BlockArg::from(*v)));
        self.builder.ins().jump(open.head, &arguments);
        self.builder.switch_to_block(open.exit);
        open.carried
    }
}
