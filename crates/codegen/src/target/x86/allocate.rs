//! Registers for the values of a program, by a linear scan that spills.
//!
//! Where registers run out, the value that is cheapest to keep on the stack for the instructions that it is live
//! over becomes a [`Class::Slot`]: every instruction that reads it gets a value of its own, reloaded just before, and
//! every one that writes it spills its result. Then the scan begins again. The values of one instruction are
//! never spilled and fit any register file, so this ends.

use super::machine::{
    Class, Form, Id, MachineInstruction, MachineProgram, MachineStep, Operand, USUAL_TURNS,
    instruction,
};
use super::opcodes;
use rustc_hash::FxHashMap;

/// How many registers there are, and what happens where these are too few.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterFile {
    pub(super) vectors: u8,
    /// Mask registers, which are numbered from 1.
    pub(super) masks: u8,
    pub(super) may_spill: bool,
}

/// The register, or slot on the stack, of each value.
pub(super) struct Registers {
    pub(super) of: Vec<u8>,
    /// Vector registers from here on are free throughout.
    pub(super) first_free: u8,
    /// Slots for spilled values.
    pub(super) slots: u8,
}

/// Gives each value of `program` a register, once those that do not fit have been spilled; `None` if they may
/// not be, or are too many.
pub(super) fn allocate(program: &mut MachineProgram, file: RegisterFile) -> Option<Registers> {
    let first_reloaded = program.values.len() as Id;
    loop {
        let live = Liveness::of(program);
        match scan(&program.values, &live, file, first_reloaded)? {
            Ok(registers) => return Some(registers),
            Err(spilled) if file.may_spill => spill(program, &spilled),
            Err(_) => return None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Live {
    start: usize,
    end: usize,
    /// How many loops are open around its first instruction.
    depth: usize,
    used: bool,
    /// How often it is read or written.
    uses: u64,
}

impl Live {
    /// Whether spilling it adds fewer accesses for each instruction that it is live over.
    fn is_cheaper_than(&self, other: &Live) -> bool {
        let cost = |x: &Live, y: &Live| u128::from(x.uses) * (y.end - y.start) as u128;
        cost(self, other) < cost(other, self)
    }
}

/// One linear scan: the registers, or the values to spill. `None` if all that is live belongs to one instruction.
fn scan(
    classes: &[Class],
    live: &[Live],
    file: RegisterFile,
    first_reloaded: Id,
) -> Option<Result<Registers, Vec<Id>>> {
    let mut order: Vec<Id> = (0..classes.len() as Id)
        .filter(|id| live[*id as usize].used)
        .collect();
    order.sort_by_key(|id| live[*id as usize].start);
    let mut of = vec![0; classes.len()];
    let mut spilled = Vec::new();
    let mut vectors: Vec<Option<Id>> = vec![None; file.vectors.into()];
    let mut masks: Vec<Option<Id>> = vec![None; file.masks.into()];
    let mut slots: Vec<Option<Id>> = Vec::new();
    let mut first_free = 0;
    for id in order {
        let class = classes[id as usize];
        let busy = match class {
            Class::Vector => &mut vectors,
            Class::Mask => &mut masks,
            Class::Slot => &mut slots,
        };
        let register = match (free(busy, live, id), class) {
            (Some(register), _) => register,
            (None, Class::Slot) => {
                busy.push(None);
                busy.len() - 1
            }
            (None, _) => match evict(busy, live, id, first_reloaded)? {
                Eviction::Itself => {
                    spilled.push(id);
                    continue;
                }
                Eviction::Of(register, victim) => {
                    spilled.push(victim);
                    register
                }
            },
        };
        busy[register] = Some(id);
        let number = u8::try_from(register).ok()?;
        of[id as usize] = number + u8::from(class == Class::Mask);
        if class == Class::Vector {
            first_free = first_free.max(number + 1);
        }
    }
    let slots = u8::try_from(slots.len()).ok()?;
    Some(match spilled.is_empty() {
        true => Ok(Registers {
            of,
            first_free,
            slots,
        }),
        false => Err(spilled),
    })
}

/// A register that is free for `id`. `busy` has, for each, the value that was given it last: an instruction may write where
/// it reads for the last time.
fn free(busy: &[Option<Id>], live: &[Live], id: Id) -> Option<usize> {
    let start = live[id as usize].start;
    let is_free = |by: &Option<Id>| by.is_none_or(|by| live[by as usize].end <= start);
    busy.iter().position(is_free)
}

/// Which value goes to the stack for one that has no register.
enum Eviction {
    Itself,
    /// The value in the register of this number.
    Of(usize, Id),
}

/// The cheapest to spill of `id` and the values in registers.
fn evict(busy: &[Option<Id>], live: &[Live], id: Id, first_reloaded: Id) -> Option<Eviction> {
    let register = cheapest(busy, live, first_reloaded)?;
    let victim = busy[register]?;
    let is_cheaper = live[id as usize].is_cheaper_than(&live[victim as usize]);
    Some(match id < first_reloaded && is_cheaper {
        true => Eviction::Itself,
        false => Eviction::Of(register, victim),
    })
}

/// The register whose value is the cheapest to spill.
fn cheapest(busy: &[Option<Id>], live: &[Live], first_reloaded: Id) -> Option<usize> {
    let mut best: Option<(usize, Live)> = None;
    for (register, by) in busy.iter().enumerate() {
        let Some(id) = by.filter(|id| *id < first_reloaded) else {
            continue;
        };
        let candidate = live[id as usize];
        if best.is_none_or(|(_, best)| candidate.is_cheaper_than(&best)) {
            best = Some((register, candidate));
        }
    }
    best.map(|(register, _)| register)
}

/// Which instructions each value is live over, by their numbers in the order of the code.
struct Liveness {
    live: Vec<Live>,
    position: usize,
    /// For each loop that is open, the values from outside that it touches.
    open: Vec<Vec<Id>>,
    /// Steps around it that may be skipped.
    skipped: u32,
}

impl Liveness {
    fn of(program: &MachineProgram) -> Vec<Live> {
        let mut liveness = Liveness {
            live: vec![Live::default(); program.values.len()],
            position: 0,
            open: Vec::new(),
            skipped: 0,
        };
        for mask in &program.masks {
            liveness.position += 1;
            liveness.instruction(mask);
        }
        liveness.steps(&program.steps);
        liveness.live
    }

    fn steps(&mut self, steps: &[MachineStep]) {
        for step in steps {
            self.position += 1;
            match step {
                MachineStep::Do(instruction) => self.instruction(instruction),
                MachineStep::Loop { body, .. } => {
                    self.open.push(Vec::new());
                    self.steps(body);
                    self.position += 1;
                    // Values from outside must survive until the last turn.
                    for id in self.open.pop().unwrap_or_default() {
                        self.touch(id, 0);
                    }
                }
                MachineStep::IfLanes(body) => {
                    self.skipped += 1;
                    self.steps(body);
                    self.skipped -= 1;
                }
            }
        }
    }

    fn instruction(&mut self, instruction: &MachineInstruction) {
        let depth = (self.open.len() as u32).saturating_sub(self.skipped);
        let turns = USUAL_TURNS.saturating_pow(depth);
        for id in instruction.reads().chain(instruction.to) {
            self.touch(id, turns);
        }
    }

    fn touch(&mut self, id: Id, turns: u64) {
        let live = &mut self.live[id as usize];
        if !live.used {
            *live = Live {
                start: self.position,
                end: self.position,
                depth: self.open.len(),
                used: true,
                uses: 0,
            };
        }
        live.end = self.position;
        live.uses = live.uses.saturating_add(turns);
        if live.depth < self.open.len()
            && let Some(innermost) = self.open.last_mut()
        {
            innermost.push(id);
        }
    }
}

/// Has the values in `ids` kept on the stack.
fn spill(program: &mut MachineProgram, ids: &[Id]) {
    let mut spills = Spills {
        spilled: FxHashMap::default(),
        values: std::mem::take(&mut program.values),
    };
    for &id in ids {
        let class = std::mem::replace(&mut spills.values[id as usize], Class::Slot);
        spills.spilled.insert(id, class);
    }
    let mut masks = Vec::new();
    for mask in &program.masks {
        spills.instruction(*mask, |i| masks.push(i));
    }
    program.masks = masks;
    program.steps = spills.steps(std::mem::take(&mut program.steps));
    program.values = spills.values;
}

struct Spills {
    /// Where they were to be before.
    spilled: FxHashMap<Id, Class>,
    values: Vec<Class>,
}

impl Spills {
    fn steps(&mut self, steps: Vec<MachineStep>) -> Vec<MachineStep> {
        let mut all = Vec::with_capacity(steps.len());
        for step in steps {
            match step {
                MachineStep::Do(i) => self.instruction(i, |i| all.push(MachineStep::Do(i))),
                MachineStep::Loop { trips, moves, body } => {
                    let body = self.steps(body);
                    all.push(MachineStep::Loop { trips, moves, body });
                }
                MachineStep::IfLanes(body) => all.push(MachineStep::IfLanes(self.steps(body))),
            }
        }
        all
    }

    /// Gives `add` the instruction with its own values, reloads before it and the spill after it.
    fn instruction(&mut self, mut i: MachineInstruction, mut add: impl FnMut(MachineInstruction)) {
        // An operand that it reads twice, or reads and writes, is one value.
        let mut own: Vec<(Id, Id)> = Vec::new();
        let operands = i.from.iter_mut().flatten().filter_map(|x| match x {
            Operand::Value(id) => Some(id),
            Operand::Broadcast(_) => None,
        });
        for id in operands.chain(i.mask.as_mut()) {
            let known = own.iter().find(|(slot, _)| slot == id);
            if let Some((_, value)) = known {
                *id = *value;
            } else if let Some(value) = self.own(*id) {
                add(moved(Form::Reload, value, *id));
                own.push((*id, value));
                *id = value;
            }
        }
        let Some(slot) = i.to.filter(|id| self.spilled.contains_key(id)) else {
            add(i);
            return;
        };
        let known = own.iter().find(|(id, _)| *id == slot);
        i.to = known.map(|(_, value)| *value).or_else(|| self.own(slot));
        add(i);
        if let Some(value) = i.to {
            add(moved(Form::Spill, slot, value));
        }
    }

    /// A value that stands for a spilled one in one instruction.
    fn own(&mut self, id: Id) -> Option<Id> {
        let class = *self.spilled.get(&id)?;
        self.values.push(class);
        Some(self.values.len() as Id - 1)
    }
}

fn moved(form: Form, to: Id, from: Id) -> MachineInstruction {
    MachineInstruction {
        to: Some(to),
        from: [Some(Operand::Value(from)), None, None],
        ..instruction(form, opcodes::NOT_MASK, 16)
    }
}
