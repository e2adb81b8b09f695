//! Instruction combining: operations that are left to the instructions which use their results.

use super::super::Target;
use crate::vector_ir::ops::{Op, is_whole_integer, lane_bytes};
use crate::vector_ir::program::{Instruction, Program};
use vinelift_tensor::ElementType::{F32, I32};

/// By value of the program: whether its operation is left to all those that use it, which get its operand instead.
///
/// > `i32(round(x))` is one conversion that rounds; and of integers that are stored with fewer bits, the registers
/// > that become one are packed together.
pub(super) fn deferred(program: &Program, target: Target) -> Vec<bool> {
    let mut users: Vec<Vec<&Instruction>> = vec![Vec::new(); program.types.len()];
    let mut is_variable = vec![false; program.types.len()];
    for i in &program.instructions {
        for value in i.operands.into_iter().flatten() {
            users[value.0 as usize].push(i);
        }
        if let (Op::Variable, Some(to)) = (i.op, i.to) {
            is_variable[to.0 as usize] = true;
        }
    }
    let mut deferred = vec![false; program.types.len()];
    for i in &program.instructions {
        let (Some(to), [Some(x), None, None]) = (i.to, i.operands) else {
            continue;
        };
        // A variable may have changed by then.
        if is_variable[x.0 as usize] || is_variable[to.0 as usize] {
            continue;
        }
        let users = &users[to.0 as usize];
        let mut leaves_to_users = users.iter().map(|user| match (i.op, user.op) {
            (Op::Round, Op::Convert { .. }) => (i.ty, user.ty) == (F32, I32),
            (Op::Convert { .. }, Op::Store(_)) => packs(program, target, i),
            _ => false,
        });
        deferred[to.0 as usize] = !users.is_empty() && leaves_to_users.all(|leaves| leaves);
    }
    deferred
}

/// Whether two registers or four of what is converted are packed into one of what is stored.
fn packs(program: &Program, target: Target, i: &Instruction) -> bool {
    let Op::Convert { from } = i.op else {
        return false;
    };
    let (wide, narrow) = (lane_bytes(from), lane_bytes(i.ty));
    target == Target::Avx2
        && program.few.is_none()
        && is_whole_integer(from)
        && is_whole_integer(i.ty)
        && program.lanes * usize::from(wide) == target.bytes()
        && matches!((wide, narrow), (4, 1) | (4, 2) | (2, 1))
        && (program.parts == 2 || program.parts.is_multiple_of((wide / narrow).into()))
}
