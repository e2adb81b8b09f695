//! Machine instructions before they have registers, over numbered values, in loops.

use super::opcode::Opcode;
use crate::vector_ir::ops::{Access, Compared, Gather};
use crate::vector_ir::program::{Stride, TripCount};

/// A value: something that will be in one register. It may be written more than once.
pub(super) type Id = u32;

/// The registers that a value may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Vector,
    /// A mask register of AVX-512: one bit for each lane.
    Mask,
    /// None: it is spilled to the stack. Only [`Form::Spill`] writes it, and [`Form::Reload`] reads it.
    Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Value(Id),
    /// The same in all lanes, by its number in [`MachineProgram::broadcasts`].
    Broadcast(u32),
}

/// Something that is the same in all lanes, throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broadcast {
    pub(super) source: BroadcastSource,
    /// Bytes of a lane.
    pub(super) width: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BroadcastSource {
    Constant(u64),
    /// Not the same in all lanes after all: 64 bytes that fill a register, by words of 8.
    Whole(&'static [u64; 8]),
    /// An argument, by its number.
    Argument(u32),
}

/// Stands for a pointer to the indices that were checked last.
pub(super) const INDICES: u32 = u32::MAX;

/// The elements of some lanes that lie where indices say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GatherPart {
    /// The first lane's number in its turn.
    pub(super) first: u8,
    pub(super) lanes: u8,
    /// Bytes of an element.
    pub(super) width: u8,
    pub(super) gather: Gather,
}

/// How the indices of a turn are checked, with the [`limit`](super::index_check::limit) in from 0. If one is not in range, the
/// function ends and says so. `to` is a mask for that or, with AVX2, a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// Registers that the indices fill.
    pub(super) registers: u8,
    /// When they are compared.
    pub(super) compared: Compared,
    /// Whether less than zero counts from the end.
    pub(super) negative: bool,
}

impl Check {
    /// Bytes of the indices of a turn, in registers of `register` bytes.
    pub(super) fn bytes(self, register: u8) -> i32 {
        i32::from(self.registers) * i32::from(register)
    }
}

/// Where the operands of an instruction go. Of `Rvm`, `Rm` and `MulAdd`, one that is missing is in memory, at the access: the last of
/// the former two, any of the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `to = op(from 0, from 1)`
    Rvm,
    /// `to = op(from 0)`
    Rm,
    /// `to = op(from 0)`, with the operation's number in a field.
    Vm(u8),
    /// `to = op(from 0)`, with the fields the other way round.
    Mr,
    /// `to = from 0 · from 1 + from 2`
    MulAdd,
    /// `to = mask ? from 1 : from 0`; without AVX-512 the mask is from 2.
    Blend,
    /// `to =` where the turn of the loop over lanes begins, in all lanes of 64 bits.
    Turn,
    /// `to = memory`
    Load,
    /// `memory = from 0`
    Store,
    /// Has the cache fetch memory, which need not be any.
    Prefetch,
    /// `to = op(from 0, from 1)` of masks.
    Masks,
    /// Finds out whether a mask, `from 0`, has any lanes.
    HasLanes,
    /// `to = argument`, a mask, of which this is the number.
    Argument(u32),
    /// `to =` the mask of these bits.
    Mask(u64),
    /// Makes the indices in memory those that [`INDICES`] leads to.
    Check(Check),
    /// `to =` the elements where indices say that have been checked.
    Gather(GatherPart),
    /// `to`, a slot, `= from 0`
    Spill,
    /// `to = from 0`, a slot.
    Reload,
}

impl Form {
    /// A label for the listing of the code.
    pub(super) fn what(self) -> &'static str {
        match self {
            Form::Rvm | Form::Rm | Form::Vm(_) | Form::Mr => "compute",
            Form::MulAdd => "multiply and add",
            Form::Blend => "select",
            Form::Turn => "where the turn begins",
            Form::Load => "load",
            Form::Store => "store",
            Form::Prefetch => "prefetch",
            Form::Masks => "compute a mask",
            Form::HasLanes => "is it needed",
            Form::Argument(_) | Form::Mask(_) => "a mask",
            Form::Check(_) => "check indices",
            Form::Gather(_) => "gather elements",
            Form::Spill => "spill",
            Form::Reload => "reload",
        }
    }
}

/// An instruction. It writes its result whole: lanes that a mask leaves out are zero, or [`Form::Blend`]'s first operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineInstruction {
    pub(super) form: Form,
    pub(super) op: Opcode,
    /// The size of the registers it works on.
    pub(super) bytes: u8,
    pub(super) to: Option<Id>,
    pub(super) from: [Option<Operand>; 3],
    /// The mask of the lanes that it does, all if there is none; with AVX-512 it is in a mask register.
    pub(super) mask: Option<Id>,
    /// Whether other lanes become zero.
    pub(super) zeroing: bool,
    pub(super) immediate: Option<u8>,
    pub(super) access: Option<Access>,
    /// Bytes of an element that it may broadcast from memory; 0 if it takes none.
    pub(super) broadcasts: u8,
}

/// An instruction that only needs its operands.
pub(super) fn instruction(form: Form, op: Opcode, bytes: u8) -> MachineInstruction {
    MachineInstruction {
        form,
        op,
        bytes: bytes.max(16),
        to: None,
        from: [None; 3],
        mask: None,
        zeroing: false,
        immediate: None,
        access: None,
        broadcasts: 0,
    }
}

/// An estimate: how many turns a loop has, and how many turns skip what may be skipped for one that does not.
pub(super) const USUAL_TURNS: u64 = 8;

#[derive(Clone, Debug)]
pub(super) enum MachineStep {
    Do(MachineInstruction),
    Loop {
        trips: TripCount,
        /// Pointers that move with each turn.
        moves: Vec<(u32, Stride)>,
        body: Vec<MachineStep>,
    },
    /// Steps that the code skips unless the [`Form::HasLanes`] right before has found a lane.
    IfLanes(Vec<MachineStep>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct MachineProgram {
    /// Whether it looks up elements by indices.
    pub(super) has_indices: bool,
    pub(super) values: Vec<Class>,
    pub(super) broadcasts: Vec<Broadcast>,
    /// The arguments that are pointers.
    pub(super) pointers: Vec<u32>,
    /// Masks that are the same throughout, which come before all steps.
    pub(super) masks: Vec<MachineInstruction>,
    pub(super) steps: Vec<MachineStep>,
}

impl MachineProgram {
    pub(super) fn value(&mut self, class: Class) -> Id {
        self.values.push(class);
        self.values.len() as Id - 1
    }

    pub(super) fn broadcast(&mut self, broadcast: Broadcast) -> Operand {
        let known = self.broadcasts.iter().position(|b| *b == broadcast);
        Operand::Broadcast(known.unwrap_or_else(|| {
            self.broadcasts.push(broadcast);
            self.broadcasts.len() - 1
        }) as u32)
    }
}

impl MachineInstruction {
    /// Whether it is a check whose indices are compared by the gathers that follow.
    pub(super) fn compares_when_used(&self) -> bool {
        let Form::Check(check) = self.form else {
            return false;
        };
        matches!(check.compared, Compared::WhenUsed(_))
    }

    /// The values that it reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = Id> {
        let value = |operand: Option<Operand>| match operand {
            Some(Operand::Value(id)) => Some(id),
            _ => None,
        };
        self.from.into_iter().filter_map(value).chain(self.mask)
    }
}
