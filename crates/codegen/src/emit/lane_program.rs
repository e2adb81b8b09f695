//! Programs of the vector IR as part of a kernel, by Cranelift's vectors of 128 bits.
//!
//! An operation that these lack is done lane by lane on scalars. Every lane computes what the scalar code computes,
//! bit by bit.

use super::emitter::{Emitter, MOST_INSTRUCTIONS, Refusal, Result, no_primitive, register};
use crate::target::clif128::{Clif128, Lanes128};
use crate::vector_ir::ops::{Access, Gather, IndexCheck, LaneOp, Op, lane_bytes};
use crate::vector_ir::program::{Instruction, Program, Step, Stride, Value as ProgramValue};
use crate::vectorize::{Argument, KernelLoop, KernelScalar};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use vinelift_nest::{Axis, AxisId, Binary, FoldBounds, Unary};
use vinelift_tensor::ElementType::{self, Boolean, I8, U8};

/// A program while it is emitted.
pub(super) struct LaneProgram<'p, 'n> {
    program: &'p Program,
    scalars: &'p [KernelScalar<'n>],
    bounds: &'p [FoldBounds<'n>],
    /// The axis that runs over lanes.
    pub(super) axis: AxisId,
    pub(super) lanes: usize,
    pub(super) arguments: Vec<Value>,
    /// How the memory behind each argument is accessed.
    pub(super) flags: Vec<MemFlagsData>,
    values: Vec<Option<Lanes128>>,
    /// For each loop that is open, by which its axis moves pointers.
    pub(super) moves: Vec<(AxisId, &'p [(u32, Stride)])>,
    /// The last check of indices, and their type.
    pub(super) check: Option<(IndexCheck, ElementType)>,
    /// Whether the mask that was looked at last has any lanes.
    pub(super) has_lanes: Option<Value>,
}

impl<'p, 'n> LaneProgram<'p, 'n> {
    /// With its arguments, and what is the same throughout, computed.
    pub(super) fn of(
        emitter: &mut Emitter<'n, '_>,
        kernel_loop: &'p KernelLoop<'n>,
    ) -> Result<LaneProgram<'p, 'n>> {
        let program = &kernel_loop.program;
        let mut this = LaneProgram {
            program,
            scalars: &kernel_loop.scalars,
            bounds: &kernel_loop.bounds,
            axis: kernel_loop.axis.id,
            lanes: kernel_loop.lanes,
            arguments: Vec::with_capacity(kernel_loop.arguments.len()),
            flags: Vec::with_capacity(kernel_loop.arguments.len()),
            values: vec![None; program.types.len()],
            moves: Vec::new(),
            check: None,
            has_lanes: None,
        };
        for argument in &kernel_loop.arguments {
            this.arguments.push(emitter.argument(argument, None)?);
            this.flags.push(match argument {
                Argument::Address { buffer, .. } => emitter.flags[buffer.0 as usize],
                _ => MemFlagsData::new().with_notrap(),
            });
        }
        for i in &program.instructions {
            let value = match i.op {
                Op::Constant(bits) => emitter.constant(bits, i.ty),
                Op::Argument(number) => emitter.low_bits(this.arguments[number as usize], i.ty),
                _ => continue,
            };
            let lanes = emitter.clif128(this.lanes).broadcast(value, i.ty);
            this.set(i.to, lanes);
        }
        Ok(this)
    }

    fn set(&mut self, to: Option<ProgramValue>, lanes: Lanes128) {
        if let Some(to) = to {
            self.values[to.0 as usize] = Some(lanes);
        }
    }

    fn get(&self, value: ProgramValue) -> Result<&Lanes128> {
        match &self.values[value.0 as usize] {
            Some(lanes) => Ok(lanes),
            None => no_primitive("a value that has no lanes"),
        }
    }

    /// If the instruction gathers elements of numbers and `next` stores them: how, their type, and where to.
    fn gathered_and_stored(
        &self,
        number: u32,
        next: &Step,
    ) -> Option<(Gather, ElementType, Access)> {
        let Step::Do(next) = next else { return None };
        let [first, second] = [number, *next].map(|k| self.program.instructions[k as usize]);
        let is_stored = second.operands[0] == first.to && first.ty != Boolean;
        match (first.op, second.op) {
            (Op::Gather(gather), Op::Store(to)) if is_stored => Some((gather, first.ty, to)),
            _ => None,
        }
    }

    /// The registers of variables.
    pub(super) fn registers(&self, variables: &[ProgramValue]) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for variable in variables {
            all.extend(&self.get(*variable)?.registers);
        }
        Ok(all)
    }

    /// Has variables be in other registers.
    pub(super) fn put(&mut self, variables: &[ProgramValue], registers: Vec<Value>) {
        let mut registers = registers.into_iter();
        for variable in variables {
            if let Some(lanes) = &mut self.values[variable.0 as usize] {
                let count = lanes.registers.len();
                lanes.registers = registers.by_ref().take(count).collect();
            }
        }
    }

    /// The variables from before these steps that the steps write.
    pub(super) fn written(&self, steps: &[Step]) -> Vec<ProgramValue> {
        let mut found = Vec::new();
        let mut open: Vec<&Step> = steps.iter().collect();
        while let Some(step) = open.pop() {
            match step {
                Step::Loop { body, .. } | Step::IfLanes(body) => open.extend(body),
                Step::Do(number) => {
                    let to = self.program.instructions[*number as usize].to;
                    let is_known = |to: &ProgramValue| self.values[to.0 as usize].is_some();
                    found.extend(to.filter(is_known).filter(|to| !found.contains(to)));
                }
            }
        }
        found
    }
}

impl<'n, 'f> Emitter<'n, 'f> {
    pub(super) fn clif128(&mut self, lanes: usize) -> Clif128<'_, 'f> {
        Clif128 {
            lanes,
            is_x86: self.is_x86,
            builder: &mut self.builder,
        }
    }

    /// As many bits of an argument as a lane of that type has.
    fn low_bits(&mut self, argument: Value, ty: ElementType) -> Value {
        let register = register(ty);
        match self.builder.func.dfg.value_type(argument) == types::I64 && register.is_int() {
            true if register != types::I64 => self.builder.ins().ireduce(register, argument),
            _ => argument,
        }
    }

    pub(super) fn lane_steps<'p>(
        &mut self,
        p: &mut LaneProgram<'p, 'n>,
        steps: &'p [Step],
    ) -> Result {
        let mut steps = steps.iter().peekable();
        while let Some(step) = steps.next() {
            match step {
                Step::Do(number) => {
                    let next = steps.peek();
                    match next.and_then(|next| p.gathered_and_stored(*number, next)) {
                        Some((gather, ty, to)) => {
                            self.gather_lanes(p, gather, ty, Some(to))?;
                            steps.next();
                        }
                        None => self.lane_instruction(p, *number)?,
                    }
                }
                Step::Loop {
                    axis, moves, body, ..
                } => self.fold_loop(p, *axis, moves, body)?,
                Step::IfLanes(body) => self.if_lanes(p, body)?,
            }
        }
        Ok(())
    }

    /// The loop over an axis of a fold.
    fn fold_loop<'p>(
        &mut self,
        p: &mut LaneProgram<'p, 'n>,
        axis: Axis,
        moves: &'p [(u32, Stride)],
        body: &'p [Step],
    ) -> Result {
        let variables = p.written(body);
        let first = p.registers(&variables)?;
        let bounds = p.bounds.iter().find(|bounds| bounds.axis.id == axis.id);
        let carried = match bounds {
            Some(bounds) => {
                self.compute(bounds.ends())?;
                let turns = self.turns_between(*bounds);
                self.open_loop(axis, turns, 1, &first)
            }
            None => self.open_loop_by(axis, 1, &first),
        };
        p.put(&variables, carried);
        p.moves.push((axis.id, moves));
        self.lane_steps(p, body)?;
        p.moves.pop();
        let last = p.registers(&variables)?;
        let after = self.close_loop(&last);
        p.put(&variables, after);
        Ok(())
    }

    pub(super) fn lane_instruction(&mut self, p: &mut LaneProgram<'_, 'n>, number: u32) -> Result {
        if self.builder.func.dfg.num_insts() > MOST_INSTRUCTIONS {
            return Err(Refusal::TooLarge);
        }
        let i = p.program.instructions[number as usize];
        // Booleans are bytes in memory.
        let element = if i.ty == Boolean { U8 } else { i.ty };
        let lanes = match i.op {
            Op::Prefetch(_) => return Ok(()),
            Op::HasLanes => {
                let mask = match i.operands[0] {
                    Some(mask) => p.get(mask)?,
                    None => return no_primitive("a mask that is none"),
                };
                p.has_lanes = Some(self.clif128(p.lanes).has_lanes(mask));
                return Ok(());
            }
            Op::CheckIndices(check) => {
                p.check = Some((check, i.ty));
                return Ok(());
            }
            Op::Store(access) => {
                let at = self.lane_address(p, access, lane_bytes(i.ty).into());
                let value = match i.operands[0] {
                    Some(value) => p.get(value)?,
                    None => return no_primitive("a store of nothing"),
                };
                let flags = p.flags[access.pointer as usize];
                self.clif128(p.lanes).store(flags, at, value);
                return Ok(());
            }
            Op::Load(access) => {
                let at = self.lane_address(p, access, lane_bytes(i.ty).into());
                let flags = p.flags[access.pointer as usize];
                self.clif128(p.lanes).load(element, flags, at)
            }
            Op::LoadUniform(access) => {
                let value = self.load_element(p, access, element, 0, 0);
                self.clif128(p.lanes).broadcast(value, element)
            }
            Op::LoadStrided(access, step) => self.load_strided(p, access, element, step),
            Op::Gather(gather) => self.gather_lanes(p, gather, element, None)?,
            Op::Scalar(number) => self.scalar_lanes(p, &p.scalars[number as usize].clone())?,
            Op::MaskArgument(number) => {
                let mask = self.low_bits(p.arguments[number as usize], I8);
                self.clif128(p.lanes).broadcast(mask, U8)
            }
            _ => self.lane_operation(p, &i)?,
        };
        p.set(i.to, lanes);
        Ok(())
    }

    fn lane_operation(&mut self, p: &LaneProgram<'_, 'n>, i: &Instruction) -> Result<Lanes128> {
        let mut operands = Vec::with_capacity(3);
        for value in i.operands.iter().flatten() {
            operands.push(p.get(*value)?);
        }
        if let (Op::Variable, [x]) = (i.op, &operands[..]) {
            return Ok(match i.ty {
                Boolean => (*x).clone(),
                ty => self.clif128(p.lanes).reinterpreted(x, ty),
            });
        }
        let lanes = match self.clif128(p.lanes).apply(i.op, i.ty, &operands) {
            Some(lanes) => lanes,
            None => self.lane_by_lane(p.lanes, i, &operands)?,
        };
        // Masks have any width, but a variable keeps its own.
        match i.to.and_then(|to| p.values[to.0 as usize].as_ref()) {
            Some(variable) if i.ty == Boolean => {
                Ok(self.clif128(p.lanes).masks(&lanes, variable.width))
            }
            _ => Ok(lanes),
        }
    }

    /// An operation in every lane, on scalars.
    fn lane_by_lane(
        &mut self,
        lanes: usize,
        i: &Instruction,
        operands: &[&Lanes128],
    ) -> Result<Lanes128> {
        let mut results = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            let mut scalars = Vec::with_capacity(operands.len());
            for (k, x) in operands.iter().enumerate() {
                let ty = i.op.operand_type(k, i.ty);
                scalars.push(self.clif128(lanes).scalar(ty, x, lane));
            }
            results.push(self.scalar_operation(i.op, i.ty, &scalars)?);
        }
        Ok(self.lanes_of(lanes, i.ty, &results))
    }

    /// The operation of one lane.
    fn scalar_operation(&mut self, op: Op, ty: ElementType, x: &[Value]) -> Result<Value> {
        match (op, x) {
            (Op::ByLane(LaneOp::Unary(op)), [x]) => self.unary(op, ty, *x),
            (Op::ByLane(LaneOp::Binary(op, bits)), [x, y]) => self.binary(op, ty, *x, *y, bits),
            (Op::ByLane(LaneOp::Cast(from)) | Op::Convert { from }, [x]) => self.cast(*x, from, ty),
            (Op::Neg, [x]) => self.unary(Unary::Neg, ty, *x),
            (Op::Div, [x, y]) => self.binary(Binary::Div, ty, *x, *y, None),
            _ => no_primitive(format_args!("{op:?} of {ty}")),
        }
    }
}
