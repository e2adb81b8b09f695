//! Loops: one for each axis with more than one point.
//!
//! Wherever a branch leaves a loop, the block outside is its first target. Cranelift's optimiser
//! visits the second target first, and moves nothing out of a loop any more once it has seen a block
//! behind it.

use super::{Binding, Emitter};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, condcodes::IntCC, types};
use vinelift_nest::Axis;

/// A loop that is open: code is being emitted into its body.
pub(super) struct Loop {
    axis: Axis,
    /// Points that one turn does.
    step: i64,
    head: Block,
    exit: Block,
    counter: Value,
    /// The accumulators as they are at the top, if the loop is part of a reduction.
    carried: Vec<Value>,
}

impl Emitter<'_, '_> {
    /// Binds an axis of one point without a loop.
    pub(super) fn bind_point(&mut self, axis: Axis) {
        let value = self.index(0);
        self.axes.insert(axis.id, Binding { value, depth: 0 });
    }

    /// Opens a loop over an axis, `step` points at a time. Gives `carried` as it is at the top of the
    /// body.
    pub(super) fn open_loop_by(&mut self, axis: Axis, step: i64, carried: &[Value]) -> Vec<Value> {
        let b = &mut self.builder;
        let (head, body, exit) = (b.create_block(), b.create_block(), b.create_block());
        let zero = b.ins().iconst(types::I64, 0);
        let mut arguments = vec![BlockArg::from(zero)];
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
            .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, counter, axis.extent as i64);
        b.ins().brif(done, exit, &[], body, &[]);
        b.switch_to_block(body);
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
