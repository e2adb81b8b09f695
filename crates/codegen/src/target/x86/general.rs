//! General registers for pointers and the counters of loops. Pointers that these are too few for lie on the stack.

use super::encode::Gpr;
use super::machine::{MachineProgram, MachineStep, USUAL_TURNS};
use crate::vector_ir::program::TripCount;
use rustc_hash::FxHashMap;

/// Registers for pointers and counters, by their numbers. The caller's values are in those from position [`OWN`] on, so a function
/// saves these before it uses them.
const ALL: [u8; 12] = [1, 2, 6, 8, 9, 10, 11, 3, 12, 13, 14, 15];
const OWN: usize = 7;

#[derive(Clone, Copy, Debug)]
pub(super) enum Pointer {
    Register(Gpr),
    /// On the stack, by its number among those.
    Stack(usize),
}

#[derive(Debug)]
pub(super) struct GeneralRegisters {
    /// By the arguments that they are.
    pub(super) pointers: FxHashMap<u32, Pointer>,
    /// How many pointers are on the stack.
    pub(super) on_stack: usize,
    /// The register that a pointer from the stack is loaded into, if any is there.
    pub(super) spare: Gpr,
    /// For each depth of loops.
    pub(super) counters: Vec<Gpr>,
    /// Registers of the caller that the function must give back as they were.
    pub(super) saved: Vec<Gpr>,
}

impl GeneralRegisters {
    /// The registers behind the first `taken`; `None` if there are too few for the counters.
    pub(super) fn of(program: &MachineProgram, taken: usize) -> Option<GeneralRegisters> {
        let depth = depth(&program.steps);
        let room = (ALL.len() - taken).checked_sub(depth)?;
        let mut order = program.pointers.clone();
        let (mut in_registers, mut spares) = (order.len(), 0);
        if order.len() > room {
            (in_registers, spares) = (room.checked_sub(1)?, 1);
            let mut uses = FxHashMap::default();
            count(&program.steps, 1, &mut uses);
            order.sort_by_key(|pointer| std::cmp::Reverse(uses.get(pointer).copied()));
        }
        let mut general = ALL[taken..].iter().map(|r| Gpr(*r));
        let mut pointers = FxHashMap::default();
        for (k, argument) in order.into_iter().enumerate() {
            let pointer = match k.checked_sub(in_registers) {
                None => Pointer::Register(general.next()?),
                Some(number) => Pointer::Stack(number),
            };
            pointers.insert(argument, pointer);
        }
        let spare = general.clone().next().unwrap_or(Gpr(ALL[0]));
        let counters = general.skip(spares).take(depth).collect();
        let used = taken + in_registers + spares + depth;
        Some(GeneralRegisters {
            on_stack: pointers.len().saturating_sub(in_registers),
            pointers,
            spare,
            counters,
            saved: ALL[OWN.min(used)..used].iter().map(|r| Gpr(*r)).collect(),
        })
    }
}

/// Loops inside each other that take a register.
fn depth(steps: &[MachineStep]) -> usize {
    let of = |step: &MachineStep| match step {
        MachineStep::Do(_) => 0,
        MachineStep::Loop {
            trips: TripCount::Lanes { .. },
            body,
            ..
        } => depth(body),
        MachineStep::Loop { body, .. } => 1 + depth(body),
        MachineStep::IfLanes(body) => depth(body),
    };
    steps.iter().map(of).max().unwrap_or(0)
}

/// How often each pointer is read or moved.
fn count(steps: &[MachineStep], turns: u64, uses: &mut FxHashMap<u32, u64>) {
    for step in steps {
        let (pointers, turns): (Vec<u32>, u64) = match step {
            MachineStep::Do(i) => (i.access.iter().map(|a| a.pointer).collect(), turns),
            MachineStep::Loop { moves, body, .. } => {
                let turns = turns.saturating_mul(USUAL_TURNS);
                count(body, turns, uses);
                (moves.iter().map(|(pointer, _)| *pointer).collect(), turns)
            }
            MachineStep::IfLanes(body) => {
                count(body, turns, uses);
                (Vec::new(), turns)
            }
        };
        for pointer in pointers {
            let sum = uses.entry(pointer).or_default();
            *sum = sum.saturating_add(turns);
        }
    }
}
