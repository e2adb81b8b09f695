//! Loads of one use, as operands in memory of the instructions that use them.
//!
//! > `x = memory; y = a + x` is `y = a + memory`, as long as nothing is stored in between.

use super::machine::{Form, INDICES, Id, MachineInstruction, MachineProgram, MachineStep, Operand};
use super::opcode::Opcode;
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
            MachineStep::Loop { body, .. } | MachineStep::IfLanes(body) => count_uses(body, uses),
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
            MachineStep::Loop { body, .. } | MachineStep::IfLanes(body) => {
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
                MachineStep::Loop { .. } | MachineStep::IfLanes(_) => None,
            }
        };
        if let Some((at, with_memory)) = with_memory(i, load) {
            *i = with_memory;
            folded[at] = true;
        }
        match (i.form, i.to, i.access) {
            (Form::Store | Form::Check(_), ..) => loads.clear(),
            (Form::Load, Some(to), Some(access)) => {
                let is_single = uses[to as usize] == 1;
                if is_single && i.mask.is_none() && access.pointer != INDICES {
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
    // Which operands may come from memory, and the others in the order in which they are then.
    let orders: &[(Option<Operand>, [Option<Operand>; 3])] = match i.form {
        Form::Rm => &[(a, [None; 3])],
        Form::Rvm if commutes(i.op) && is_value(b) => &[(b, [a, None, None]), (a, [b, None, None])],
        Form::Rvm => &[(b, [a, None, None])],
        // Both others are in registers.
        Form::MulAdd if [a, b, c].into_iter().all(is_value) => {
            &[(b, [a, None, c]), (a, [b, None, c]), (c, [a, b, None])]
        }
        _ => return None,
    };
    orders.iter().find_map(|&(operand, from)| {
        let (at, load) = load(operand)?;
        let fits = loaded_bytes(&load)? == read_bytes(i)?;
        let access = load.access;
        fits.then_some((at, MachineInstruction { from, access, ..*i }))
    })
}

/// The bytes of a load of neighbours in memory; `None` for one element in all lanes.
fn loaded_bytes(load: &MachineInstruction) -> Option<u8> {
    match (load.op.map, load.op.code) {
        (1, 0x6e) => Some(4),
        (1, 0x7e) => Some(8),
        (1, 0x6f) => Some(load.bytes),
        _ => None,
    }
}

/// The bytes of the last operand in memory, of an instruction that may have one there.
fn read_bytes(i: &MachineInstruction) -> Option<u8> {
    if i.form != Form::Rm {
        return Some(i.bytes);
    }
    let widens_by = match (i.op.prefix, i.op.map, i.op.code) {
        (1, 2, 0x20 | 0x23 | 0x25 | 0x30 | 0x33 | 0x35) => 2,
        (1, 2, 0x21 | 0x24 | 0x31 | 0x34) => 4,
        (1, 2, 0x22 | 0x32) => 8,
        // From `f16`.
        (1, 2, 0x13) => 2,
        // From `i32`.
        (0, 1, 0x5b) => 1,
        _ => return None,
    };
    Some(i.bytes / widens_by)
}

/// Whether the operands of an instruction may change places: sums, products, and operations on bits.
fn commutes(op: Opcode) -> bool {
    match (op.prefix, op.map) {
        (0, 1) => matches!(op.code, 0x58 | 0x59),
        (1, 1) => matches!(
            op.code,
            0x58 | 0x59 | 0xd4 | 0xd5 | 0xdb | 0xeb | 0xef | 0xfc..=0xfe
        ),
        (1, 2) => op.code == 0x40,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Target;
    use super::super::machine::{Class, instruction};
    use super::super::opcodes;
    use super::*;
    use crate::vector_ir::ops::{Access, Op};
    use vinelift_tensor::ElementType::F32;

    /// A load of `loaded` bytes, `between`, and the sum of the load and another value in 32 bytes, `uses` times.
    fn sum(loaded: u8, between: Option<Form>, uses: usize) -> MachineProgram {
        let mut program = MachineProgram::default();
        let [a, x, y] = [0; 3].map(|_: usize| program.value(Class::Vector));
        let access = |pointer| Access {
            pointer,
            step: 4,
            offset: 0,
        };
        let mut load = instruction(
            Form::Load,
            opcodes::load(loaded, 4, Target::Avx2),
            loaded.max(16),
        );
        (load.to, load.access) = (Some(x), Some(access(0)));
        program.steps.push(MachineStep::Do(load));
        program.steps.extend(between.map(|form| {
            let mut other = instruction(form, opcodes::store(32, 4, Target::Avx2), 32);
            other.from[0] = Some(Operand::Value(a));
            other.access = Some(access(1));
            MachineStep::Do(other)
        }));
        for _ in 0..uses {
            let add = opcodes::binary(Op::Add, F32, 4, Target::Avx2).unwrap();
            let mut add = instruction(Form::Rvm, add, 32);
            // The sum takes its last operand from memory, so that they change places.
            add.from = [Some(Operand::Value(x)), Some(Operand::Value(a)), None];
            add.to = Some(y);
            program.steps.push(MachineStep::Do(add));
        }
        program
    }

    /// How many steps are left, and whether the last has an operand in memory.
    fn folded(mut program: MachineProgram) -> (usize, bool) {
        fold_loads(&mut program);
        match program.steps.last() {
            Some(MachineStep::Do(i)) => (program.steps.len(), i.access.is_some()),
            _ => panic!("no loop"),
        }
    }

    #[test]
    fn loads_of_one_use_are_operands() {
        assert_eq!(folded(sum(32, None, 1)), (1, true));
        assert_eq!(folded(sum(32, Some(Form::Prefetch), 1)), (2, true));
    }

    #[test]
    fn others_stay() {
        // Memory may be another by then; it is read twice; the sum would read more of it.
        assert_eq!(folded(sum(32, Some(Form::Store), 1)), (3, false));
        assert_eq!(folded(sum(32, None, 2)), (3, false));
        for loaded in [4, 8, 16] {
            assert_eq!(folded(sum(loaded, None, 1)), (2, false));
        }
    }
}
