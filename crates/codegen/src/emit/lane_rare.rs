//! Steps of a vector program that are skipped unless some lane needs them.

use super::emitter::{Emitter, Result, no_primitive};
use super::lane_program::LaneProgram;
use crate::vector_ir::program::Step;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};

impl<'n> Emitter<'n, '_> {
    /// Steps that are done if the mask that was looked at last has any lanes.
    pub(super) fn if_lanes<'p>(&mut self, p: &mut LaneProgram<'p, 'n>, body: &'p [Step]) -> Result {
        let Some(has_lanes) = p.has_lanes.take() else {
            return no_primitive("steps for lanes that are not known");
        };
        let variables = p.written(body);
        let before = p.registers(&variables)?;
        let b = &mut self.builder;
        let (some, done) = (b.create_block(), b.create_block());
        b.set_cold_block(some);
        let types: Vec<_> = before.iter().map(|x| b.func.dfg.value_type(*x)).collect();
        let joined: Vec<Value> = types
            .iter()
            .map(|ty| b.append_block_param(done, *ty))
            .collect();
        let skipped: Vec<BlockArg> = before.into_iter().map(BlockArg::from).collect();
        b.ins().brif(has_lanes, some, &[], done, &skipped);
        b.switch_to_block(some);
        self.open_scope();
        self.lane_steps(p, body)?;
        self.close_scope();
        let mut after = Vec::with_capacity(types.len());
        for (register, ty) in p.registers(&variables)?.into_iter().zip(types) {
            let register = self.clif128(p.lanes).cast_register(register, ty);
            after.push(BlockArg::from(register));
        }
        self.builder.ins().jump(done, &after);
        self.builder.switch_to_block(done);
        p.put(&variables, joined);
        Ok(())
    }
}
