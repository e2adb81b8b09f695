//! From a program to machine code.
//!
//! Nothing is assembled that means something else than the program: whatever has no encoding, no register, or
//! leads where nobody has said (an operand that is missing, an unknown pointer, an offset beyond 32 bits) is
//! refused ([`Assembler::require`]), and the stage runs in another way.
//!
//! Each function keeps a frame pointer, so that profilers that follow these see what called it.

use super::super::{Assembled, Target};
use super::allocate::{Registers, allocate};
use super::encode::{
    Assembler, Condition, Extra, General, Last, Memory, Opcode, RAX, RBP, RDI, RSP, opcode,
};
use super::index_check;
use super::machine::{Broadcast, Form, INDICES, Id, Instruction, Operand, Program, Source, Step};
use super::opcodes;
use crate::vector_ir::ops::Access;
use crate::vector_ir::program::TripCount;
use rustc_hash::FxHashMap;

/// Registers that hold pointers and counters; those from the eighth on belong to the caller.
const GENERAL: [u8; 12] = [1, 2, 6, 8, 9, 10, 11, 3, 12, 13, 14, 15];
const OWN: usize = 7;
/// Longer code is not worth it.
const MOST_BYTES: usize = 1 << 16;

/// `fn(arguments: *const u64) -> u32`, by the calling convention of System V: 1 if an index is out of range.
/// `None` if there are too few registers, or something has no encoding.
pub(super) fn assemble(program: &Program, target: Target) -> Option<Assembled> {
    let evex = target == Target::Avx512;
    let (vectors, own) = match program.has_indices {
        true => (
            if evex { 32 } else { 16 } - index_check::SCRATCH,
            index_check::OWN,
        ),
        false => (target.registers() as u8, 0),
    };
    let registers = allocate(program, vectors, if evex { 7 } else { 0 })?;
    let mut general = GENERAL.iter().skip(own).map(|r| General(*r));
    let mut pointers = FxHashMap::default();
    for argument in &program.pointers {
        pointers.insert(*argument, general.next()?);
    }
    let depth = depth(&program.steps);
    let counters: Vec<General> = general.take(depth).collect();
    if counters.len() < depth {
        return None;
    }
    let frame = index_check::frame(program)?;
    let mut assembly = Assembly {
        program,
        registers,
        target,
        evex,
        scratch: vectors,
        own,
        frame,
        checked: None,
        most_lane: 0,
        pointers,
        counters,
        depth: 0,
        hoisted: FxHashMap::default(),
        code: Assembler::default(),
        pool: Vec::new(),
        pooled: FxHashMap::default(),
        next_scratch: 0,
        cold: Vec::new(),
    };
    assembly.function();
    let Assembly { code, pool, .. } = assembly;
    let length = code.len();
    if length >= MOST_BYTES {
        return None;
    }
    Some(Assembled {
        bytes: code.finish(&pool)?,
        code: length,
    })
}

/// Loops inside each other that take a register.
fn depth(steps: &[Step]) -> usize {
    let of = |step: &Step| match step {
        Step::Do(_) => 0,
        Step::Loop {
            trips: TripCount::Lanes { .. },
            body,
            ..
        } => depth(body),
        Step::Loop { body, .. } => 1 + depth(body),
    };
    steps.iter().map(of).max().unwrap_or(0)
}

pub(super) struct Assembly<'p> {
    pub(super) program: &'p Program,
    registers: Registers,
    target: Target,
    pub(super) evex: bool,
    /// The first of the vector registers, at least two, for what is loaded for one instruction.
    pub(super) scratch: u8,
    /// How many general registers are not for pointers and counters.
    own: usize,
    /// Bytes of the stack for indices.
    pub(super) frame: i32,
    /// The indices that were checked last.
    pub(super) checked: Option<index_check::Checked>,
    /// The largest number of an element along the lanes, in the loop over lanes that is open.
    pub(super) most_lane: i64,
    pointers: FxHashMap<u32, General>,
    counters: Vec<General>,
    /// Counted loops that are open.
    depth: usize,
    /// Registers of what is broadcast once and for all.
    hoisted: FxHashMap<u32, u8>,
    pub(super) code: Assembler,
    pool: Vec<u8>,
    /// Offsets in the pool, by bits, width, and copies.
    pooled: FxHashMap<(u64, u8, u8), u32>,
    pub(super) next_scratch: u8,
    /// Checks of indices that have to go on elsewhere.
    pub(super) cold: Vec<index_check::Cold>,
}

impl Assembly<'_> {
    fn function(&mut self) {
        let used = self.own + self.pointers.len() + self.counters.len();
        let saved: Vec<General> = GENERAL[OWN.min(used)..used]
            .iter()
            .map(|r| General(*r))
            .collect();
        self.code.push(RBP);
        self.code.copy(RBP, RSP);
        for &register in &saved {
            self.code.push(register);
        }
        if self.frame > 0 {
            self.code.add(RSP, -self.frame);
            // Whole registers are stored there: none is to cross a line of the cache.
            self.code.and(RSP, -index_check::ALIGNMENT);
        }
        for &argument in &self.program.pointers {
            let to = self.pointers[&argument];
            self.load_argument(to, argument);
        }
        self.hoist();
        for mask in &self.program.masks {
            self.instruction(mask);
        }
        self.steps(&self.program.steps);
        self.code.set(RAX, 0);
        let end = self.code.here();
        if self.frame > 0 {
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

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Do(instruction) => self.instruction(instruction),
                Step::Loop { trips, moves, body } => match *trips {
                    TripCount::Fixed(turns) => self.counted(turns, moves, body),
                    TripCount::Argument(argument) => {
                        let counter = self.counters[self.depth];
                        self.load_argument(counter, argument);
                        self.count_down(counter, moves, body);
                    }
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
                },
            }
        }
    }

    fn counted(&mut self, turns: i32, moves: &[(u32, i32)], body: &[Step]) {
        self.code.require(turns > 0);
        let counter = self.counters[self.depth];
        self.code.set(counter, turns);
        self.count_down(counter, moves, body);
        for &(pointer, by) in moves {
            let back = by.checked_mul(turns).and_then(i32::checked_neg);
            self.code.require(back.is_some());
            let pointer = self.pointer(pointer);
            self.code.add(pointer, back.unwrap_or(0));
        }
    }

    fn count_down(&mut self, counter: General, moves: &[(u32, i32)], body: &[Step]) {
        self.depth += 1;
        let top = self.code.here();
        self.steps(body);
        for &(pointer, by) in moves {
            let pointer = self.pointer(pointer);
            self.code.add(pointer, by);
        }
        self.code.add(counter, -1);
        self.code.jump_if(Condition::NotZero, top);
        self.depth -= 1;
    }

    fn over_lanes(&mut self, extent: i32, step: i32, body: &[Step]) {
        // One turn beyond the last is counted to. Of fewer elements than a step there is one turn, whose masks leave
        // the others out.
        let counts = step > 0 && extent > 0 && extent.checked_add(step).is_some();
        self.code.require(counts);
        if !counts {
            return;
        }
        self.code.set(RAX, 0);
        let top = self.code.here();
        self.steps(body);
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

    fn over_lanes_until(&mut self, argument: u32, step: i32, body: &[Step]) {
        let last = self.counters[self.depth];
        self.depth += 1;
        self.load_argument(last, argument);
        self.code.set(RAX, 0);
        let top = self.code.here();
        self.steps(body);
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

    fn instruction(&mut self, i: &Instruction) {
        self.next_scratch = self.scratch;
        if !matches!(i.form, Form::Lookup(_)) {
            self.end_of_look_ups();
        }
        let has_result = !matches!(i.form, Form::Store | Form::Prefetch);
        self.code.require(i.to.is_some() == has_result);
        let to = i.to.map_or(0, |id| self.register_of(id));
        let [a, b, c] = i.from;
        match i.form {
            Form::Three => {
                let (first, last) = (self.register(a), self.last(b, i));
                self.emit(i, to, first, last);
            }
            Form::Two => {
                let last = self.last(a, i);
                self.emit(i, to, 0, last);
            }
            Form::Digit(digit) => {
                let last = Last::Register(self.register(a));
                self.emit(i, digit, to, last);
            }
            Form::Back => {
                let first = self.register(a);
                self.emit(i, first, 0, Last::Register(to));
            }
            Form::MulAdd => self.multiply_add(i, to),
            Form::Blend => {
                let (no, yes) = (self.register(a), self.last(b, i));
                let immediate = match self.evex {
                    true => {
                        self.code.require(i.mask.is_some());
                        None
                    }
                    false => Some(self.register(c) << 4),
                };
                self.emit(&Instruction { immediate, ..*i }, to, no, yes);
            }
            Form::Load => {
                let last = Last::Memory(self.memory(i.access));
                let mask = match self.evex {
                    true => 0,
                    // The mask of a masked load is an ordinary register.
                    false => i.mask.map_or(0, |id| self.register_of(id)),
                };
                self.emit(i, to, mask, last);
            }
            Form::Store => {
                let first = self.register(a);
                let last = Last::Memory(self.memory(i.access));
                self.emit(i, first, 0, last);
            }
            Form::Prefetch => {
                let memory = self.memory(i.access);
                self.code.prefetch(memory);
            }
            Form::Masks => {
                let (first, last) = match b {
                    Some(_) => (self.register(a), Last::Register(self.register(b))),
                    None => (0, Last::Register(self.register(a))),
                };
                self.code.vex(i.op, i.bytes, to, first, last, i.immediate);
            }
            Form::Check(check) => self.check(i, check, to),
            Form::Lookup(elements) => self.look_up(i, elements, to),
            Form::Mask(bits) => {
                let memory = Memory::Pool(self.constant(bits, 8, 1));
                self.code
                    .vex(LOAD_MASK, 16, to, 0, Last::Memory(memory), None);
            }
            Form::Argument(argument) => {
                let memory = self.argument_at(argument);
                self.code
                    .vex(LOAD_MASK, 16, to, 0, Last::Memory(memory), None);
            }
        }
    }

    /// The register that a value is in.
    fn register_of(&mut self, id: Id) -> u8 {
        let register = self.registers.of.get(id as usize).copied();
        self.code.require(register.is_some());
        register.unwrap_or(0)
    }

    /// The register that holds a pointer.
    fn pointer(&mut self, argument: u32) -> General {
        let register = self.pointers.get(&argument).copied();
        self.code.require(register.is_some());
        register.unwrap_or(RDI)
    }

    fn argument_at(&mut self, argument: u32) -> Memory {
        let offset = i32::try_from(argument).ok();
        let offset = offset.and_then(|argument| argument.checked_mul(8));
        self.code.require(offset.is_some());
        Memory::At {
            base: RDI,
            scale: 0,
            offset: offset.unwrap_or(0),
        }
    }

    fn load_argument(&mut self, to: General, argument: u32) {
        if let Memory::At { base, offset, .. } = self.argument_at(argument) {
            self.code.load(to, base, offset);
        }
    }

    /// Which form of the instruction there is depends on where the result goes.
    fn multiply_add(&mut self, i: &Instruction, to: u8) {
        const FIRST_THIRD: u8 = 0x98;
        const FIRST_SECOND: u8 = 0xa8;
        const SECOND_THIRD: u8 = 0xb8;
        let at = |this: &Self, x: Option<Operand>| this.in_register(x);
        let [a, b, c] = i.from;
        // Named by which of to, the middle and the last operand are multiplied.
        let (code, middle, last) = if at(self, c) == Some(to) {
            match at(self, a) {
                Some(_) => (SECOND_THIRD, a, b),
                None => (SECOND_THIRD, b, a),
            }
        } else if at(self, a) == Some(to) {
            match at(self, b) {
                Some(_) => (FIRST_SECOND, b, c),
                None => (FIRST_THIRD, c, b),
            }
        } else if at(self, b) == Some(to) {
            match at(self, a) {
                Some(_) => (FIRST_SECOND, a, c),
                None => (FIRST_THIRD, c, a),
            }
        } else {
            let from = self.register(c);
            self.copy(i.bytes, to, from);
            match at(self, a) {
                Some(_) => (SECOND_THIRD, a, b),
                None => (SECOND_THIRD, b, a),
            }
        };
        let middle = self.register(middle);
        let last = self.last(last, i);
        let op = Opcode {
            code: i.op.code | code,
            ..i.op
        };
        self.emit(&Instruction { op, ..*i }, to, middle, last);
    }

    fn emit(&mut self, i: &Instruction, first: u8, second: u8, last: Last) {
        if !self.evex {
            self.code
                .vex(i.op, i.bytes, first, second, last, i.immediate);
            return;
        }
        let mask = i.mask.map_or(0, |id| self.register_of(id));
        let extra = Extra {
            mask,
            zeroing: i.zeroing,
            immediate: i.immediate,
        };
        self.code.evex(i.op, i.bytes, first, second, last, extra);
    }

    fn copy(&mut self, bytes: u8, to: u8, from: u8) {
        if to == from {
            return;
        }
        let last = Last::Register(from);
        match self.evex {
            true => self.code.evex(MOVE, bytes, to, 0, last, Extra::default()),
            false => self.code.vex(MOVE, bytes, to, 0, last, None),
        }
    }

    /// The register that an operand is in, if it is in one.
    fn in_register(&self, operand: Option<Operand>) -> Option<u8> {
        match operand {
            Some(Operand::Value(id)) => self.registers.of.get(id as usize).copied(),
            Some(Operand::Broadcast(broadcast)) => self.hoisted.get(&broadcast).copied(),
            None => None,
        }
    }

    /// The register that an operand is in, or is put into now.
    pub(super) fn register(&mut self, operand: Option<Operand>) -> u8 {
        match (self.in_register(operand), operand) {
            (Some(register), _) => register,
            (None, Some(Operand::Broadcast(broadcast))) => {
                let register = self.next_scratch;
                let registers = if self.evex { 32 } else { 16 };
                self.code.require(register < registers);
                self.next_scratch += 1;
                self.broadcast_to(broadcast, register);
                register
            }
            (None, _) => {
                self.code.require(false);
                0
            }
        }
    }

    /// As [`Assembly::register`], or in memory if the instruction can take it from there.
    fn last(&mut self, operand: Option<Operand>, i: &Instruction) -> Last {
        if let (None, Some(Operand::Broadcast(number))) = (self.in_register(operand), operand) {
            let broadcast = self.program.broadcasts[number as usize];
            let constant = match broadcast.source {
                Source::Constant(bits) => Some(bits),
                Source::Whole(_) | Source::Argument(_) => None,
            };
            if self.evex && i.broadcasts == broadcast.width {
                return Last::Broadcast(self.broadcast_memory(number));
            }
            if let (false, Some(bits)) = (self.evex, constant)
                && i.broadcasts != 0
            {
                let copies = 32 / broadcast.width;
                return Last::Memory(Memory::Pool(self.constant(bits, broadcast.width, copies)));
            }
        }
        Last::Register(self.register(operand))
    }

    fn broadcast_memory(&mut self, number: u32) -> Memory {
        let broadcast = self.program.broadcasts[number as usize];
        match broadcast.source {
            Source::Constant(bits) => Memory::Pool(self.constant(bits, broadcast.width, 1)),
            Source::Whole(words) => {
                let start = self.pool.len().next_multiple_of(64);
                self.pool.resize(start, 0);
                self.pool.extend(words.iter().flat_map(|w| w.to_le_bytes()));
                Memory::Pool(start as u32)
            }
            Source::Argument(argument) => self.argument_at(argument),
        }
    }

    fn broadcast_to(&mut self, number: u32, register: u8) {
        let Broadcast { source, width } = self.program.broadcasts[number as usize];
        let last = Last::Memory(self.broadcast_memory(number));
        let op = match source {
            Source::Whole(_) => MOVE,
            _ => opcodes::broadcast(width, self.target),
        };
        match self.evex {
            true => self.code.evex(op, 64, register, 0, last, Extra::default()),
            false => self.code.vex(op, 32, register, 0, last, None),
        }
    }

    /// The offset in the pool of so many copies of a constant.
    fn constant(&mut self, bits: u64, width: u8, copies: u8) -> u32 {
        *self.pooled.entry((bits, width, copies)).or_insert_with(|| {
            let size = usize::from(width) * usize::from(copies);
            self.pool.resize(self.pool.len().next_multiple_of(size), 0);
            let start = self.pool.len();
            for _ in 0..copies {
                self.pool.extend(&bits.to_le_bytes()[..width.into()]);
            }
            start as u32
        })
    }

    pub(super) fn memory(&mut self, access: Option<Access>) -> Memory {
        let (base, step, offset) = match access {
            Some(Access {
                pointer: INDICES,
                step,
                offset,
            }) => (self.checked_at(offset), step, offset),
            Some(access) => (self.pointer(access.pointer), access.step, access.offset),
            None => {
                self.code.require(false);
                (RDI, 0, 0)
            }
        };
        Memory::At {
            base,
            scale: step,
            offset,
        }
    }
}

const MOVE: Opcode = opcode(2, 1, false, 0x6f);
const LOAD_MASK: Opcode = opcode(0, 1, true, 0x90);

/// How much a register saves for each thing that is broadcast.
fn count(steps: &[Step], weight: usize, weights: &mut [usize]) {
    for step in steps {
        match step {
            Step::Loop { body, .. } => count(body, weight.saturating_mul(8), weights),
            // Far away.
            Step::Do(i) if i.compares_when_used() => {}
            Step::Do(i) => {
                for (k, operand) in i.from.iter().enumerate() {
                    if let Some(Operand::Broadcast(broadcast)) = operand {
                        // The last operand may come from memory just as well.
                        let last = matches!(
                            (i.form, k),
                            (Form::Three | Form::Blend, 1) | (Form::MulAdd, 2)
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
