//! From a program to machine code.
//!
//! Nothing is assembled that means something else than the program: whatever has no encoding, no room, or
//! leads where nobody has said (an operand that is missing, an unknown pointer, an offset beyond 32 bits) is
//! refused ([`Assembler::require`]), and the stage runs in another way.
//!
//! Each function keeps a frame pointer, so that profilers that follow these see what called it.

use super::super::{Assembled, Target};
use super::allocate::{RegisterFile, allocate};
use super::assembly::Assembly;
use super::encode::{Assembler, Condition, Gpr, Memory, RAX, RBP, RSP};
use super::frame::{self, Frame};
use super::general::{GeneralRegisters, Pointer};
use super::index_check;
use super::machine::{Form, MachineProgram, MachineStep, Operand, USUAL_TURNS};
use crate::vector_ir::program::{Stride, TripCount};
use rustc_hash::FxHashMap;

/// Longer code is not worth it.
const MOST_BYTES: usize = 1 << 16;

/// `fn(arguments: *const u64) -> u32`, by the calling convention of System V: 1 if an index is out of range.
/// `None` if something has no encoding, or there are too few registers: pointers that do not fit lie on the stack, and so do
/// values if they `may_spill`, as far as a page reaches.
pub(super) fn assemble(
    mut program: MachineProgram,
    target: Target,
    may_spill: bool,
) -> Option<Assembled> {
    let evex = target == Target::Avx512;
    let (vectors, taken) = match program.has_indices {
        true => (
            if evex { 32 } else { 16 } - index_check::SCRATCH,
            index_check::OWN,
        ),
        false => (target.registers() as u8, 0),
    };
    let file = RegisterFile {
        vectors,
        masks: if evex { 7 } else { 0 },
        may_spill,
    };
    let registers = allocate(&mut program, file)?;
    let general = GeneralRegisters::of(&program, taken)?;
    let frame = Frame::of(&program, &registers, general.on_stack, target)?;
    let mut assembly = Assembly {
        program: &program,
        registers,
        target,
        evex,
        scratch: vectors,
        general,
        frame,
        checked: None,
        most_lane: 0,
        depth: 0,
        hoisted: FxHashMap::default(),
        code: Assembler::default(),
        pool: Vec::new(),
        pooled: FxHashMap::default(),
        next_scratch: 0,
        cold: Vec::new(),
        marks: Vec::new(),
    };
    assembly.function();
    let Assembly {
        code, pool, marks, ..
    } = assembly;
    let length = code.len();
    if length >= MOST_BYTES {
        return None;
    }
    Some(Assembled {
        bytes: code.finish(&pool)?,
        code: length,
        marks,
    })
}

impl Assembly<'_> {
    fn function(&mut self) {
        let saved = self.general.saved.clone();
        self.mark("enter", None);
        self.code.push(RBP);
        self.code.copy(RBP, RSP);
        for &register in &saved {
            self.code.push(register);
        }
        if self.frame.bytes > 0 {
            self.code.add(RSP, -self.frame.bytes);
            self.code.and(RSP, -frame::ALIGNMENT);
        }
        self.mark("arguments", None);
        for &argument in &self.program.pointers {
            let to = match self.general.pointers.get(&argument) {
                Some(&Pointer::Register(register)) => register,
                _ => self.general.spare,
            };
            self.load_argument(to, argument);
            self.keep_pointer(argument, to);
        }
        self.mark("the same in all lanes", None);
        self.hoist();
        for mask in &self.program.masks {
            self.instruction(mask);
        }
        self.steps(&self.program.steps);
        self.mark("leave", None);
        self.code.set(RAX, 0);
        let end = self.code.here();
        if self.frame.bytes > 0 {
            let below = Memory::At {
                base: RBP,
                scale: 0,
                offset: saved.len() as i32 * -8,
            };
            self.code.address(RSP, below);
        }
        for &register in saved.iter().rev() {
            self.code.pop(register);
        }
        self.code.pop(RBP);
        self.code.clear_upper();
        self.code.ret();
        if !self.cold.is_empty() {
            self.mark("indices that are not all in range", None);
            let fault = self.end_with_fault(end);
            self.cold_checks(fault);
        }
    }

    /// Keeps what is broadcast in the registers that are left over, the most useful first.
    fn hoist(&mut self) {
        let mut weights = vec![0; self.program.broadcasts.len()];
        count(&self.program.steps, 1, &mut weights);
        let mut order: Vec<u32> = (0..weights.len() as u32)
            .filter(|s| weights[*s as usize] > 1)
            .collect();
        order.sort_by_key(|s| std::cmp::Reverse(weights[*s as usize]));
        for (broadcast, register) in order
            .into_iter()
            .zip(self.registers.first_free..self.scratch)
        {
            self.broadcast_to(broadcast, register);
            self.hoisted.insert(broadcast, register);
        }
    }

    fn steps(&mut self, steps: &[MachineStep]) {
        for step in steps {
            match step {
                MachineStep::Do(instruction) => {
                    self.mark(instruction.form.what(), instruction.access);
                    self.instruction(instruction);
                }
                MachineStep::Loop { trips, moves, body } => match *trips {
                    TripCount::Fixed(turns) => self.counted(turns, moves, body),
                    TripCount::Argument(argument) => {
                        let counter = self.general.counters[self.depth];
                        self.mark("loop", None);
                        self.load_argument(counter, argument);
                        self.count_down(counter, moves, body);
                    }
                    TripCount::Times(argument) => self.times(argument, moves, body),
                    TripCount::Lanes { extent, step } => {
                        self.most_lane = i64::from(extent);
                        self.over_lanes(extent, step, body);
                    }
                    TripCount::LanesUntil {
                        argument,
                        extent,
                        step,
                    } => {
                        self.most_lane = i64::from(extent);
                        self.code.require(step > 0);
                        self.over_lanes_until(argument, step, body);
                    }
                    TripCount::OfKernel => self.code.require(false),
                },
                MachineStep::IfLanes(body) => {
                    let done = self.code.label();
                    self.code.jump_if(Condition::Zero, done);
                    self.steps(body);
                    self.code.put(done);
                }
            }
        }
    }

    fn counted(&mut self, turns: i32, moves: &[(u32, Stride)], body: &[MachineStep]) {
        self.code.require(turns > 0);
        let counter = self.general.counters[self.depth];
        self.mark("loop", None);
        self.code.set(counter, turns);
        self.count_down(counter, moves, body);
        for &(pointer, stride) in moves {
            match stride {
                Stride::Bytes(bytes) => {
                    let back = bytes.checked_mul(turns).and_then(i32::checked_neg);
                    self.code.require(back.is_some());
                    self.move_pointer(pointer, Stride::Bytes(back.unwrap_or(0)));
                }
                Stride::Argument(bytes) => {
                    self.load_argument(counter, bytes);
                    self.code.multiply(counter, turns);
                    self.move_back(pointer, counter);
                }
            }
        }
    }

    /// Moves the pointers back by as much as all turns have moved them.
    fn times(&mut self, argument: u32, moves: &[(u32, Stride)], body: &[MachineStep]) {
        let counter = self.general.counters[self.depth];
        self.mark("loop", None);
        self.load_argument(counter, argument);
        self.count_down(counter, moves, body);
        for &(pointer, stride) in moves {
            self.load_argument(counter, argument);
            match stride {
                Stride::Bytes(bytes) => self.code.multiply(counter, bytes),
                Stride::Argument(bytes) => {
                    let bytes = self.argument_at(bytes);
                    self.code.multiply_by(counter, bytes);
                }
            }
            self.move_back(pointer, counter);
        }
    }

    fn move_pointer(&mut self, pointer: u32, stride: Stride) {
        let register = self.pointer(pointer);
        match stride {
            Stride::Bytes(bytes) => self.code.add(register, bytes),
            Stride::Argument(bytes) => {
                let bytes = self.argument_at(bytes);
                self.code.add_from(register, bytes);
            }
        }
        self.keep_pointer(pointer, register);
    }

    /// Moves a pointer back by as many bytes as a register says.
    fn move_back(&mut self, pointer: u32, bytes: Gpr) {
        let register = self.pointer(pointer);
        self.code.subtract(register, bytes);
        self.keep_pointer(pointer, register);
    }

    fn count_down(&mut self, counter: Gpr, moves: &[(u32, Stride)], body: &[MachineStep]) {
        self.depth += 1;
        let top = self.code.here();
        self.steps(body);
        self.mark("next turn", None);
        for &(pointer, stride) in moves {
            self.move_pointer(pointer, stride);
        }
        self.code.add(counter, -1);
        self.code.jump_if(Condition::NotZero, top);
        self.depth -= 1;
    }

    fn over_lanes(&mut self, extent: i32, step: i32, body: &[MachineStep]) {
        // One turn beyond the last is counted to. Of fewer elements than a step there is one turn, whose masks leave
        // the others out.
        let counts = step > 0 && extent > 0 && extent.checked_add(step).is_some();
        self.code.require(counts);
        if !counts {
            return;
        }
        self.mark("loop over lanes", None);
        self.code.set(RAX, 0);
        let top = self.code.here();
        self.steps(body);
        self.mark("next turn", None);
        self.code.add(RAX, step);
        self.code.compare(RAX, extent - step);
        self.code.jump_if(Condition::LessOrEqual, top);
        if extent % step != 0 {
            let done = self.code.label();
            self.code.compare(RAX, extent);
            self.code.jump_if(Condition::GreaterOrEqual, done);
            self.code.set(RAX, extent - step);
            self.code.jump(top);
            self.code.put(done);
        }
    }

    fn over_lanes_until(&mut self, argument: u32, step: i32, body: &[MachineStep]) {
        let last = self.general.counters[self.depth];
        self.depth += 1;
        self.load_argument(last, argument);
        self.mark("loop over lanes", None);
        self.code.set(RAX, 0);
        let top = self.code.here();
        self.steps(body);
        self.mark("next turn", None);
        self.code.add(RAX, step);
        self.code.compare_with(RAX, last);
        self.code.jump_if(Condition::LessOrEqual, top);
        let done = self.code.label();
        self.code.add(RAX, -step);
        self.code.compare_with(RAX, last);
        self.code.jump_if(Condition::GreaterOrEqual, done);
        self.code.copy(RAX, last);
        self.code.jump(top);
        self.code.put(done);
        self.depth -= 1;
    }
}

/// How much a register saves for each thing that is broadcast.
fn count(steps: &[MachineStep], weight: u64, weights: &mut [u64]) {
    for step in steps {
        match step {
            MachineStep::Loop { body, .. } => {
                count(body, weight.saturating_mul(USUAL_TURNS), weights)
            }
            MachineStep::IfLanes(body) => count(body, weight / USUAL_TURNS, weights),
            // Far away.
            MachineStep::Do(i) if i.compares_when_used() => {}
            MachineStep::Do(i) => {
                for (k, operand) in i.from.iter().enumerate() {
                    if let Some(Operand::Broadcast(broadcast)) = operand {
                        // The last operand may come from memory just as well.
                        let last = matches!(
                            (i.form, k),
                            (Form::Rvm | Form::Blend, 1) | (Form::MulAdd, 2)
                        );
                        let cost = if last && i.broadcasts != 0 { 1 } else { 3 };
                        let sum = &mut weights[*broadcast as usize];
                        *sum = sum.saturating_add(weight.saturating_mul(cost));
                    }
                }
            }
        }
    }
}
