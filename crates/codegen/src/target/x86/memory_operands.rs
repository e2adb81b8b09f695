//! Loads of one use, as operands in memory of the instructions that use them.
//!
//! > `x = memory; y = a + x` is `y = a + memory`, as long as nothing is stored in between.

use super::machine::{Form, INDICES, Id, MachineInstruction, MachineProgram, MachineStep, Operand};
use super::opcodes;
use rustc_hash::FxHashMap;

/// Takes the loads out of the program that an instruction of the same loop can do.
pub(super) fn fold_loads(program: &mut MachineProgram) {
    let mut uses = vec![0; program.values.len()];
    count_uses(&program.steps, &mut uses);
    fold(&mut program.steps, &uses);
}

/// How many operands each value is.
fn count_uses(steps: &[MachineStep], uses: &mut [u32]) {
    for step in steps {
        match step {
            MachineStep::Do(i) => i.reads().for_each(|id| uses[id as usize] += 1),
            MachineStep::Loop { body, .. } => count_uses(body, uses),
        }
    }
}

fn fold(steps: &mut Vec<MachineStep>, uses: &[u32]) {
    // By value, which step loads it: of those since which nothing has been stored.
    let mut loads: FxHashMap<Id, usize> = FxHashMap::default();
    let mut folded = vec![false; steps.len()];
    for at in 0..steps.len() {
        let (before, rest) = steps.split_at_mut(at);
        let i = match &mut rest[0] {
            MachineStep::Do(i) => i,
            MachineStep::Loop { body, .. } => {
                fold(body, uses);
                loads.clear();
                continue;
            }
        };
        let load = |operand: Option<Operand>| {
            let Some(Operand::Value(id)) = operand else {
                return None;
            };
            let at = *loads.get(&id)?;
            match &before[at] {
                MachineStep::Do(load) => Some((at, *load)),
                MachineStep::Loop { .. } => None,
            }
        };
        if let Some((at, with_memory)) = with_memory(i, load) {
            *i = with_memory;
            folded[at] = true;
        }
        match (i.form, i.to, i.access) {
            (Form::Store | Form::Check(_), ..) => loads.clear(),
            (Form::Load, Some(to), Some(access)) => {
                let is_single = uses[to as usize] == 1 && i.mask.is_none();
                if is_single && access.pointer != INDICES && opcodes::loaded_bytes(i).is_some() {
                    loads.insert(to, at);
                }
            }
            _ => {}
        }
    }
    let mut folded = folded.into_iter();
    steps.retain(|_| !folded.next().unwrap_or(false));
}

/// The instruction with an operand in memory, and which step loads it until now.
fn with_memory(
    i: &MachineInstruction,
    load: impl Fn(Option<Operand>) -> Option<(usize, MachineInstruction)>,
) -> Option<(usize, MachineInstruction)> {
    if i.access.is_some() || i.mask.is_some() {
        return None;
    }
    let [a, b, c] = i.from;
    let is_value = |x: Option<Operand>| matches!(x, Some(Operand::Value(_)));
    // Which operands may come from memory, and in which order they are then.
    let orders = match i.form {
        Form::Rm => vec![(a, [None; 3])],
        Form::Rvm => {
            let swapped = (a, [b, None, None]);
            let commutes = opcodes::commutes(i.op) && is_value(b);
            [(b, [a, None, None])]
                .into_iter()
                .chain(commutes.then_some(swapped))
                .collect()
        }
        // Two others are in registers.
        Form::MulAdd if [a, b, c].into_iter().all(is_value) => {
            vec![(b, [a, None, c]), (a, [b, None, c]), (c, [a, b, None])]
        }
        _ => return None,
    };
    orders.into_iter().find_map(|(operand, from)| {
        let (at, load) = load(operand)?;
        let fits = opcodes::loaded_bytes(&load)? == opcodes::read_bytes(i)?;
        let access = load.access;
        fits.then_some((at, MachineInstruction { from, access, ..*i }))
    })
}
