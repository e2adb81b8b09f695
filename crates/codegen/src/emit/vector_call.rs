//! Calls of vector loops.

use super::address::ElementAddress;
use super::emitter::{Emitter, LoopCode, Result};
use super::kernel::loop_signature;
use super::state::Bounds;
use crate::vectorize::{Argument, Pace, VectorLoop};
use cranelift_codegen::ir::{
    Block, ExtFuncData, ExternalName, InstBuilder, StackSlotData, StackSlotKind, UserExternalName,
    Value, types,
};
use vinelift_nest::{Axis, Stage};
use vinelift_tensor::ElementType::Boolean;

impl<'n> Emitter<'n, '_> {
    /// A vector loop, and all its points one by one if it finds an index out of range, or if there are too few for it;
    /// these without casts of `f16`.
    pub(super) fn run_vector_loop(
        &mut self,
        number: usize,
        [stage, legal]: [&'n Stage; 2],
        ready: VectorLoop<'n>,
        inner: &[Axis],
    ) -> Result {
        let mut ready = ready;
        let narrower = std::mem::take(&mut ready.narrower);
        // Each is a function of its own.
        let functions = (number..).step_by(self.analysis.nest.stages.len());
        let loops = std::iter::once(ready).chain(narrower);
        let loops: Vec<(usize, VectorLoop<'n>)> = functions.zip(loops).collect();
        let may_be_few = loops.iter().any(|(_, ready)| ready.may_be_few());
        let may_all_be_few = loops.iter().all(|(_, ready)| ready.may_be_few());
        let mut exact = may_all_be_few.then(|| self.builder.create_block());
        let done = (loops.len() > 1).then(|| self.builder.create_block());
        let mut rest = loops.into_iter().peekable();
        while let Some((function, ready)) = rest.next() {
            let next = rest.peek().map(|_| self.builder.create_block());
            self.enough_points(stage, &ready, next.or(exact));
            if may_be_few {
                // Scalars computed from here on do not dominate the code for too few points.
                self.open_scope();
            }
            let may_fault = ready.may_fault;
            let rows = ready.rows;
            if let Some((axis, each)) = rows {
                let turns = self.turns(stage, axis);
                self.open_loop(axis, turns, each as i64, &[]);
                self.stay_before(axis, turns, each);
            }
            let status = self.call_vector_loop((number, function), stage, ready)?;
            if rows.is_some() {
                self.close_loop(&[]);
            } else if may_fault {
                let block = exact.unwrap_or_else(|| self.builder.create_block());
                exact = Some(block);
                self.leave_if(status, block);
            }
            if may_be_few {
                self.close_scope();
            }
            if let (Some(next), Some(done)) = (next, done) {
                self.builder.ins().jump(done, &[]);
                self.builder.switch_to_block(next);
            }
        }
        if let Some(exact) = exact {
            self.know(legal);
            self.point_by_point(legal, exact, inner)?;
        }
        if let Some(done) = done {
            self.builder.ins().jump(done, &[]);
            self.builder.switch_to_block(done);
        }
        Ok(())
    }

    /// Goes on elsewhere where a vector loop has too few points.
    fn enough_points(&mut self, stage: &Stage, ready: &VectorLoop<'n>, elsewhere: Option<Block>) {
        let Some(elsewhere) = elsewhere else { return };
        for (axis, points) in ready.needs() {
            let turns = self.turns(stage, axis);
            let few = self.fewer_than(turns, points);
            self.leave_if(few, elsewhere);
        }
    }

    /// Calls a vector loop; the loops around it are open. Gives 1 if an index is out of range.
    pub(crate) fn call_vector_loop(
        &mut self,
        (number, function): (usize, usize),
        stage: &'n Stage,
        ready: VectorLoop<'n>,
    ) -> Result<Value> {
        let turns = self
            .analysis
            .chunks
            .axis(stage)
            .map(|axis| self.turns(stage, axis));
        let size = 8 * ready.arguments.len().max(1) as u32;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3);
        let slot = self.builder.create_sized_stack_slot(data);
        for (k, argument) in ready.arguments.iter().enumerate() {
            let value = self.argument(argument, turns)?;
            self.builder
                .ins()
                .stack_store(types::I64, value, slot, 8 * k as i32);
        }
        let function = self.loop_functions[function];
        let name = UserExternalName::new(0, function.as_u32());
        let name = self.builder.func.declare_imported_user_function(name);
        let signature = self.builder.func.import_signature(loop_signature());
        let function_ref = self.builder.func.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            colocated: false,
            patchable: false,
        });
        let arguments = self.builder.ins().stack_addr(types::I64, slot, 0);
        let call = self.builder.ins().call(function_ref, &[arguments]);
        let status = self.builder.inst_results(call)[0];
        let buffers = ready.arguments.iter().map(|argument| match argument {
            Argument::Address { buffer, .. } => Some(*buffer),
            _ => None,
        });
        self.loop_codes.push(LoopCode {
            buffers: buffers.collect(),
            marks: ready.code.marks,
            function,
            stage: number,
            bytes: ready.code.bytes,
            code: ready.code.code,
        });
        Ok(status)
    }

    pub(super) fn argument(
        &mut self,
        argument: &Argument<'n>,
        turns: Option<Bounds>,
    ) -> Result<Value> {
        match argument {
            Argument::First => Ok(turns.map_or_else(|| self.index(0), |turns| turns.from)),
            Argument::Points { less } => {
                let Some(Bounds { from, to, .. }) = turns else {
                    return Ok(self.index(0));
                };
                let points = self.builder.ins().isub(to, from);
                Ok(self.plus(points, -less))
            }
            Argument::Extent { extent, less } => {
                let points = self.extent(*extent);
                Ok(self.plus(points, -less))
            }
            Argument::Address {
                buffer,
                linear,
                pace,
            } => {
                self.compute(linear.leaves())?;
                let address = match self.place(*buffer, linear) {
                    ElementAddress::Bytes { address, offset } => {
                        self.plus(address, i64::from(offset))
                    }
                    ElementAddress::Packed { base, .. } => base,
                };
                Ok(match turns.filter(|_| pace.bytes != 0) {
                    Some(turns) => self.moved_on(address, turns.from, *pace),
                    None => address,
                })
            }
            Argument::Stride(bytes) => Ok(self.coefficient(*bytes, 1)),
            Argument::Collected(number) => {
                let slot = self.collected[*number];
                Ok(self.builder.ins().stack_addr(types::I64, slot, 0))
            }
            Argument::Inside(at) => {
                self.compute(at.iter().filter(|i| i.reads_zero()))?;
                let inside = match self.all_inside(at) {
                    Some(inside) => inside,
                    None => self.builder.ins().iconst(types::I8, 1),
                };
                let wide = self.builder.ins().uextend(types::I64, inside);
                Ok(self.builder.ins().ineg(wide))
            }
            Argument::Scalar(x) => {
                self.compute([*x])?;
                let value = self.get(x);
                if x.ty() == Boolean {
                    let wide = self.builder.ins().uextend(types::I64, value);
                    return Ok(self.builder.ins().ineg(wide));
                }
                Ok(value)
            }
        }
    }

    /// The address after `from` points of the axis that is cut.
    fn moved_on(&mut self, address: Value, from: Value, pace: Pace) -> Value {
        let steps = match pace.points {
            1 => from,
            points => {
                // Chunks begin at a multiple of `points`.
                let points = self.index(points);
                self.builder.ins().udiv(from, points)
            }
        };
        let skipped = self.times(steps, pace.bytes);
        self.builder.ins().iadd(address, skipped)
    }
}
