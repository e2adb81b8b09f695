//! From a vector program to machine instructions: which opcodes, in how many registers, with what from memory.
//!
//! A value becomes one register for each part of the program, or a single one if it is the same in all lanes
//! ([`RegisterGroup`]). Constants and arguments are operands in memory until [`assemble`](super::assemble) finds a register
//! for them, so whichever operand may come from memory is put last. Masks are mask registers with AVX-512; with AVX2
//! they are lanes of zeros or ones, as wide as what was compared, and resized where they govern lanes of another width.

use super::super::Target;
use super::combine::deferred;
use super::machine::{
    Broadcast, BroadcastSource, Class, Form, Id, MachineInstruction, MachineProgram, MachineStep,
    Operand, instruction,
};
use super::opcode::Opcode;
use super::opcodes;
use crate::vector_ir::ops::{Op, is_float, lane_bytes};
use crate::vector_ir::program::{Instruction, Program, Step, Value};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::{self, Boolean, F32, I64};

/// `COUNTED[k]` is `2k, 2k + 1, …, 2k + 7`, for the numbers of a register's lanes: the first is even, as registers have at least
/// two lanes.
static COUNTED: [[u64; 8]; 32] = {
    let mut all = [[0; 8]; 32];
    let mut k = 0;
    while k < 8 * 32 {
        all[k / 8][k % 8] = (k / 8 * 2 + k % 8) as u64;
        k += 1;
    }
    all
};

/// The machine program, if `target` has instructions for all of `program`.
pub(super) fn select(program: &Program, target: Target) -> Option<MachineProgram> {
    let mut selector = Selector {
        program,
        target,
        lanes: program.lanes,
        parts: program.parts,
        values: vec![None; program.types.len()],
        deferred: deferred(program, target),
        selected: MachineProgram {
            has_indices: program.has_indices,
            pointers: program.pointers.clone(),
            ..MachineProgram::default()
        },
        current: Vec::new(),
        masks: FxHashMap::default(),
    };
    let mut groups = Vec::with_capacity(program.instructions.len());
    for instruction in &program.instructions {
        selector.instruction(instruction)?;
        groups.push(std::mem::take(&mut selector.current));
    }
    selector.selected.steps = steps(&program.steps, &mut groups);
    Some(selector.selected)
}

/// The steps of the machine program, of the machine instructions for each instruction.
fn steps(of: &[Step], groups: &mut [Vec<MachineInstruction>]) -> Vec<MachineStep> {
    let mut all = Vec::new();
    for step in of {
        match step {
            Step::Do(number) => {
                let group = std::mem::take(&mut groups[*number as usize]);
                all.extend(group.into_iter().map(MachineStep::Do));
            }
            Step::Loop {
                trips, moves, body, ..
            } => all.push(MachineStep::Loop {
                trips: *trips,
                moves: moves.clone(),
                body: steps(body, groups),
            }),
            Step::IfLanes(body) => all.push(MachineStep::IfLanes(steps(body, groups))),
        }
    }
    all
}

/// The registers of a value: one for each part, or one alone if all lanes are the same.
#[derive(Clone, Debug)]
pub(super) struct RegisterGroup {
    pub(super) parts: Vec<Operand>,
    /// Bytes of a lane; of a mask those of its lanes with AVX2, 0 with AVX-512.
    pub(super) width: u8,
}

impl RegisterGroup {
    pub(super) fn new(parts: Vec<Operand>, width: u8) -> RegisterGroup {
        RegisterGroup { parts, width }
    }

    pub(super) fn part(&self, part: usize) -> Operand {
        self.parts[part.min(self.parts.len() - 1)]
    }

    pub(super) fn is_broadcast(&self) -> bool {
        matches!(self.parts[..], [Operand::Broadcast(_)])
    }
}

pub(super) struct Selector<'p> {
    pub(super) program: &'p Program,
    pub(super) target: Target,
    /// Elements in one register of the widest type.
    pub(super) lanes: usize,
    pub(super) parts: usize,
    values: Vec<Option<RegisterGroup>>,
    /// By value: whether the instructions that use it do its operation, too.
    deferred: Vec<bool>,
    pub(super) selected: MachineProgram,
    /// The machine instructions for the instruction that is being selected.
    current: Vec<MachineInstruction>,
    /// Masks of the first lanes, by how many these are.
    masks: FxHashMap<usize, Id>,
}

impl Selector<'_> {
    fn instruction(&mut self, i: &Instruction) -> Option<()> {
        let width = lane_bytes(i.ty);
        let lanes = match i.op {
            Op::Store(access) => return self.store(access, &self.operand(i, 0)?, width),
            Op::Prefetch(access) => return self.prefetch(access),
            Op::HasLanes => return self.has_lanes(&self.operand(i, 0)?),
            Op::CheckIndices(check) => return self.check_indices(check, width),
            _ if self.is_variable(i.to) => return self.accumulate(i),
            _ if self.is_deferred(i.to) => self.operand(i, 0)?,
            Op::Convert { from: F32 } if self.is_deferred(i.operands[0]) => {
                self.rounded_to_integers(&self.operand(i, 0)?)
            }
            Op::Constant(bits) => self.constant(bits, width),
            Op::Argument(number) => {
                let argument = self.broadcast(BroadcastSource::Argument(number), width);
                RegisterGroup::new(vec![argument], width)
            }
            Op::MaskArgument(number) => self.mask_argument(number),
            Op::Points(first) => self.points(first)?,
            Op::Load(access) => self.load(access, width)?,
            Op::LoadUniform(access) => self.load_uniform(access, width),
            Op::LoadStrided(access, 2) => self.load_every_second(access, width)?,
            Op::Gather(gather) => self.gather(gather, width)?,
            Op::LoadTable { access, extent } => self.load_table(access, extent as usize, width)?,
            Op::TableLookup { index_bytes } => {
                self.table_lookup(&self.operand(i, 0)?, index_bytes, width)?
            }
            Op::Variable => self.variable(&self.operand(i, 0)?),
            Op::MaskedConstant(bits) => self.masked_constant(&self.operand(i, 0)?, bits, width)?,
            Op::IsNonZero => self.is_not_zero(i.ty, &self.operand(i, 0)?)?,
            Op::Convert { from } => self.convert(&self.operand(i, 0)?, from, i.ty)?,
            Op::Select => {
                let [mask, yes, no] = [0, 1, 2].map(|k| self.operand(i, k));
                self.select(&mask?, i.ty, &yes?, &no?)?
            }
            Op::MulAdd => {
                let [a, b, c] = [0, 1, 2].map(|k| self.operand(i, k));
                self.multiply_add(&a?, &b?, &c?)
            }
            op if i.operands[1].is_some() => {
                self.binary(op, i.ty, &self.operand(i, 0)?, &self.operand(i, 1)?)?
            }
            op => self.unary(op, i.ty, &self.operand(i, 0)?)?,
        };
        let to = i.to?.0 as usize;
        self.values[to] = Some(lanes);
        Some(())
    }

    fn operand(&self, i: &Instruction, number: usize) -> Option<RegisterGroup> {
        self.values[i.operands[number]?.0 as usize].clone()
    }

    /// Whether a result goes where a value already is.
    fn is_variable(&self, to: Option<Value>) -> bool {
        to.is_some_and(|to| self.values[to.0 as usize].is_some())
    }

    fn is_deferred(&self, value: Option<Value>) -> bool {
        value.is_some_and(|value| self.deferred[value.0 as usize])
    }

    /// `i` in every part, of operands that have one part or as many.
    pub(super) fn each(
        &mut self,
        i: MachineInstruction,
        class: Class,
        from: &[&RegisterGroup],
    ) -> Vec<Operand> {
        let parts = from.iter().map(|x| x.parts.len()).max().unwrap_or(1);
        let mut all = Vec::with_capacity(parts);
        for part in 0..parts {
            let mut i = i;
            for (slot, x) in i.from.iter_mut().zip(from) {
                *slot = Some(x.part(part));
            }
            all.push(self.give(i, class));
        }
        all
    }

    /// A new value.
    pub(super) fn give(&mut self, i: MachineInstruction, class: Class) -> Operand {
        let to = self.selected.value(class);
        self.add(MachineInstruction { to: Some(to), ..i });
        Operand::Value(to)
    }

    pub(super) fn add(&mut self, i: MachineInstruction) {
        self.current.push(i);
    }

    pub(super) fn broadcast(&mut self, source: BroadcastSource, width: u8) -> Operand {
        self.selected.broadcast(Broadcast { source, width })
    }

    pub(super) fn constant(&mut self, bits: u64, width: u8) -> RegisterGroup {
        let constant = self.broadcast(BroadcastSource::Constant(bits), width);
        RegisterGroup::new(vec![constant], width)
    }

    pub(super) fn ones(&mut self, width: u8) -> RegisterGroup {
        self.constant(u64::MAX >> (64 - 8 * u32::from(width)), width)
    }

    /// A mask of the first lanes, which is there throughout.
    pub(super) fn first_lanes(&mut self, count: usize) -> Id {
        let selected = &mut self.selected;
        *self.masks.entry(count).or_insert_with(|| {
            let to = selected.value(Class::Mask);
            let bits = (1u64 << count) - 1;
            let mut mask = instruction(Form::Mask(bits), opcodes::NOT_MASK, 16);
            mask.to = Some(to);
            selected.masks.push(mask);
            to
        })
    }

    pub(super) fn is_512(&self) -> bool {
        self.target == Target::Avx512
    }

    /// Bytes of the register that holds lanes of `width` bytes. There is no encoding for more than a register has.
    pub(super) fn bytes(&self, width: u8) -> u8 {
        let bytes = (self.lanes * usize::from(width)).max(16);
        u8::try_from(bytes).unwrap_or(u8::MAX)
    }

    /// Bytes of elements that an instruction on them may broadcast from memory.
    pub(super) fn broadcasts(&self, width: u8) -> u8 {
        match self.target {
            Target::Avx512 if width < 4 => 0,
            _ => width,
        }
    }

    /// `to = op(x, y)`, `y` possibly from memory.
    pub(super) fn three(
        &mut self,
        op: Opcode,
        x: &RegisterGroup,
        y: &RegisterGroup,
        imm: Option<u8>,
    ) -> RegisterGroup {
        let mut i = instruction(Form::Rvm, op, self.bytes(x.width));
        i.broadcasts = self.broadcasts(x.width);
        i.immediate = imm;
        RegisterGroup::new(self.each(i, Class::Vector, &[x, y]), x.width)
    }

    /// `to = op(x)`, of lanes of another width if they get one.
    pub(super) fn two(
        &mut self,
        op: Opcode,
        x: &RegisterGroup,
        width: u8,
        imm: Option<u8>,
    ) -> RegisterGroup {
        self.of_one(Form::Rm, op, x, width, imm)
    }

    pub(super) fn of_one(
        &mut self,
        form: Form,
        op: Opcode,
        x: &RegisterGroup,
        width: u8,
        imm: Option<u8>,
    ) -> RegisterGroup {
        let bytes = self.bytes(x.width).max(self.bytes(width));
        let mut i = instruction(form, op, bytes);
        i.immediate = imm;
        RegisterGroup::new(self.each(i, Class::Vector, &[x]), width)
    }

    /// Where the turn begins, and on from there lane by lane.
    fn points(&mut self, first: Option<u32>) -> Option<RegisterGroup> {
        let begin = instruction(Form::Turn, opcodes::turn(self.target), self.bytes(8));
        let begin = RegisterGroup::new(vec![self.give(begin, Class::Vector)], 8);
        let mut steps = Vec::with_capacity(self.parts);
        for part in 0..self.parts {
            let words = COUNTED.get(part * self.lanes / 2)?;
            steps.push(self.broadcast(BroadcastSource::Whole(words), 64));
        }
        let steps = RegisterGroup::new(steps, 8);
        let points = self.binary(Op::Add, I64, &begin, &steps)?;
        let Some(first) = first else {
            return Some(points);
        };
        let first = self.broadcast(BroadcastSource::Argument(first), 8);
        self.binary(Op::Add, I64, &points, &RegisterGroup::new(vec![first], 8))
    }

    /// The constant or argument that is in all lanes, if there is one.
    pub(super) fn broadcast_source(&self, x: &RegisterGroup) -> Option<BroadcastSource> {
        match x.parts[..] {
            [Operand::Broadcast(number)] => Some(self.selected.broadcasts[number as usize].source),
            _ => None,
        }
    }

    pub(super) fn unary(
        &mut self,
        op: Op,
        ty: ElementType,
        x: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        let width = x.width;
        if ty == Boolean {
            return (op == Op::Not).then(|| self.not(x));
        }
        let sign = 1u64 << (8 * u32::from(width) - 1);
        let floats = is_float(ty);
        Some(match op {
            Op::Not => {
                let ones = self.ones(width);
                self.three(opcodes::bitwise(Op::Xor, width)?, x, &ones, None)
            }
            Op::Neg if floats => {
                let sign = self.constant(sign, width);
                self.three(opcodes::bitwise(Op::Xor, width)?, x, &sign, None)
            }
            Op::Abs if floats => {
                let rest = self.constant(sign - 1, width);
                self.three(opcodes::bitwise(Op::And, width)?, x, &rest, None)
            }
            Op::Neg => {
                let zero = self.constant(0, width);
                let subtract = opcodes::binary(Op::Sub, ty, width, self.target)?;
                self.three(subtract, &zero, x, None)
            }
            Op::Abs if !ty.is_signed_integer() => x.clone(),
            Op::Abs => match opcodes::absolute(width, self.target) {
                Some(op) => self.two(op, x, width, None),
                None => self.absolute_of_64_bits(x)?,
            },
            Op::Sqrt => self.two(opcodes::square_root(width), x, width, None),
            Op::Round | Op::Floor | Op::Ceil | Op::Trunc => {
                let mode = match op {
                    Op::Round => 8,
                    Op::Floor => 9,
                    Op::Ceil => 10,
                    _ => 11,
                };
                self.two(opcodes::round(width, self.target), x, width, Some(mode))
            }
            Op::ShiftLeft(amount) | Op::ShiftRight(amount) => {
                let left = matches!(op, Op::ShiftLeft(_));
                let signed = ty.is_signed_integer();
                match self.shifted(left, signed, x, amount) {
                    Some(shifted) => shifted,
                    None if width == 8 => self.shifted_64_bits(x, amount)?,
                    None => return None,
                }
            }
            _ => return None,
        })
    }

    /// `x` shifted by a constant, if there is an instruction for it.
    pub(super) fn shifted(
        &mut self,
        left: bool,
        signed: bool,
        x: &RegisterGroup,
        amount: u8,
    ) -> Option<RegisterGroup> {
        let (op, digit) = opcodes::shift(left, signed, x.width, self.target)?;
        let mut i = instruction(Form::Vm(digit), op, self.bytes(x.width));
        i.immediate = Some(amount);
        Some(RegisterGroup::new(
            self.each(i, Class::Vector, &[x]),
            x.width,
        ))
    }

    fn binary(
        &mut self,
        op: Op,
        ty: ElementType,
        x: &RegisterGroup,
        y: &RegisterGroup,
    ) -> Option<RegisterGroup> {
        if ty == Boolean {
            return self.of_masks(op, x, y);
        }
        if let Op::Compare(comparison) = op {
            return self.compare(comparison, ty, x, y);
        }
        let commutes = matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor);
        match opcodes::binary(op, ty, x.width, self.target) {
            None => self.composed(op, ty, x, y),
            Some(op) if commutes && x.is_broadcast() => Some(self.three(op, y, x, None)),
            Some(op) => Some(self.three(op, x, y, None)),
        }
    }

    fn multiply_add(
        &mut self,
        a: &RegisterGroup,
        b: &RegisterGroup,
        c: &RegisterGroup,
    ) -> RegisterGroup {
        let op = opcodes::multiply_add(a.width);
        let mut i = instruction(Form::MulAdd, op, self.bytes(a.width));
        i.broadcasts = self.broadcasts(a.width);
        RegisterGroup::new(self.each(i, Class::Vector, &[a, b, c]), a.width)
    }

    /// A new value in every part that starts as `start`.
    fn variable(&mut self, start: &RegisterGroup) -> RegisterGroup {
        let copy = opcodes::load(64, 4, Target::Avx2);
        let i = instruction(Form::Rm, copy, self.bytes(start.width));
        let mut parts = Vec::with_capacity(self.parts);
        for part in 0..self.parts {
            let from = [Some(start.part(part)), None, None];
            let copied = MachineInstruction { from, ..i };
            parts.push(self.give(copied, Class::Vector));
        }
        RegisterGroup::new(parts, start.width)
    }

    /// Has a variable be `x`.
    fn copy(&mut self, x: &RegisterGroup, variable: &RegisterGroup) {
        let copy = opcodes::load(64, 4, Target::Avx2);
        let i = instruction(Form::Rm, copy, self.bytes(variable.width));
        for (part, to) in variable.parts.iter().enumerate() {
            let Operand::Value(to) = *to else { continue };
            self.add(MachineInstruction {
                to: Some(to),
                from: [Some(x.part(part)), None, None],
                ..i
            });
        }
    }

    /// An instruction whose result goes to a variable.
    fn accumulate(&mut self, i: &Instruction) -> Option<()> {
        let variable = self.values[i.to?.0 as usize].clone()?;
        let (form, op, count) = match i.op {
            Op::MulAdd => (Form::MulAdd, opcodes::multiply_add(variable.width), 3),
            Op::Select => {
                let [mask, yes, no] = [0, 1, 2].map(|k| self.operand(i, k));
                let chosen = self.select(&mask?, i.ty, &yes?, &no?)?;
                self.copy(&chosen, &variable);
                return Some(());
            }
            op => match opcodes::binary(op, i.ty, variable.width, self.target) {
                Some(op) => (Form::Rvm, op, 2),
                None => {
                    let operands = [self.operand(i, 0)?, self.operand(i, 1)?];
                    let result = self.composed(op, i.ty, &operands[0], &operands[1])?;
                    self.copy(&result, &variable);
                    return Some(());
                }
            },
        };
        let operands: Vec<RegisterGroup> = (0..count)
            .map(|k| self.operand(i, k))
            .collect::<Option<_>>()?;
        for (part, operand) in variable.parts.iter().enumerate() {
            let Operand::Value(to) = *operand else {
                continue;
            };
            let mut i = instruction(form, op, self.bytes(variable.width));
            i.to = Some(to);
            for (slot, x) in i.from.iter_mut().zip(&operands) {
                *slot = Some(x.part(part));
            }
            self.add(i);
        }
        Some(())
    }
}
