//! The stack of a function: from the stack pointer up, the indices of a turn, registers that were spilled, and
//! pointers that have no register.

use super::super::Target;
use super::allocate::Registers;
use super::encode::{Memory, RSP};
use super::machine::{Form, MachineProgram, MachineStep};
use crate::vector_ir::ops::Compared;

/// The alignment of all of it, the largest register's bytes: none of those is to cross a line of the cache.
pub(super) const ALIGNMENT: i32 = 64;

/// The page behind the stack that is in use is a guard: with what is pushed before, it must not be jumped over.
const MOST: i32 = 3584;

const POINTER: i32 = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Where the first slot lies, and bytes of each.
    slots: i32,
    slot: i32,
    /// Where the first pointer lies.
    pointers: i32,
    /// Bytes of all of it.
    pub(super) bytes: i32,
}

impl Frame {
    /// With room for `pointers` pointers; `None` if it is too large.
    pub(super) fn of(
        program: &MachineProgram,
        registers: &Registers,
        pointers: usize,
        target: Target,
    ) -> Option<Frame> {
        let (slot, pointers_bytes) = (target.bytes() as i32, i32::try_from(pointers).ok()?);
        let slots = aligned(bytes_of_indices(&program.steps));
        let pointers = slots + slot * i32::from(registers.slots);
        let bytes = pointers.checked_add(pointers_bytes.checked_mul(POINTER)?)?;
        (bytes <= MOST).then_some(Frame {
            slots,
            slot,
            pointers,
            bytes: aligned(bytes),
        })
    }

    /// Where a spilled register lies, by the number of its slot.
    pub(super) fn slot(&self, number: u8) -> Memory {
        Memory::At {
            base: RSP,
            scale: 0,
            offset: self.slots + self.slot * i32::from(number),
        }
    }

    /// Where a pointer lies, from the stack pointer on, by its number among those that have no register.
    pub(super) fn pointer(&self, number: usize) -> i32 {
        self.pointers + POINTER * number as i32
    }
}

/// The most bytes of indices that a check may put on the stack.
fn bytes_of_indices(steps: &[MachineStep]) -> i32 {
    let of = |step: &MachineStep| match step {
        MachineStep::Loop { body, .. } | MachineStep::IfLanes(body) => bytes_of_indices(body),
        MachineStep::Do(i) => match i.form {
            Form::Check(check) if check.compared != Compared::Never => check.bytes(i.bytes),
            _ => 0,
        },
    };
    steps.iter().map(of).max().unwrap_or(0)
}

fn aligned(bytes: i32) -> i32 {
    (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}
