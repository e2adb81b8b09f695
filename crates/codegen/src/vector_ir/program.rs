//! Programs: instructions over numbered values, and the loops around them.

use super::ops::Op;
use vinelift_nest::Axis;
use vinelift_tensor::ElementType;

/// A value by its number. Only an [`Op::Variable`] is written more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) op: Op,
    pub(crate) ty: ElementType,
    /// `x`, `y` and `z`.
    pub(crate) operands: [Option<Value>; 3],
    pub(crate) to: Option<Value>,
}

/// How often a loop goes round, at least once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TripCount {
    /// As often as the argument of this number says. Pointers stay where the last turn has moved them, so nothing may follow.
    Argument(u32),
    /// Over at most `extent` elements, `step` at a time; the argument of this number is the first of the last
    /// turn, which overlaps the one before. Pointers stay where they are then, so nothing may follow.
    LanesUntil {
        argument: u32,
        extent: i32,
        step: i32,
    },
    /// As often as the argument of this number says; the pointers are back where they were in the end.
    Times(u32),
    /// This many times; the pointers are back where they were in the end.
    Fixed(i32),
    /// Over `extent` elements, `step` at a time; the last turn overlaps the one before.
    Lanes { extent: i32, step: i32 },
    /// The loop is one of the kernel that the program is part of.
    OfKernel,
}

/// By how many bytes a turn of a loop moves a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    Bytes(i32),
    /// As many as the argument of this number says.
    Argument(u32),
}

#[derive(Debug)]
pub(crate) enum Step {
    /// The instruction of this number.
    Do(u32),
    Loop {
        axis: Axis,
        trips: TripCount,
        /// Pointers that move with each turn.
        moves: Vec<(u32, Stride)>,
        body: Vec<Step>,
    },
    /// Steps that a back end may skip if the mask of the [`Op::HasLanes`] right before has no lanes. Variables then stay as they
    /// are; other values that these steps compute are used in them alone.
    IfLanes(Vec<Step>),
}

#[derive(Debug, Default)]
pub(crate) struct Program {
    /// Lanes of a register of the widest type in the program, and how many such registers a value takes.
    pub(crate) lanes: usize,
    pub(crate) parts: usize,
    /// The elements of the lane axis, if they are fewer than the lanes: other lanes touch no memory.
    pub(crate) few: Option<usize>,
    /// Whether it looks up elements by indices.
    pub(crate) has_indices: bool,
    /// The type of each value.
    pub(crate) types: Vec<ElementType>,
    /// In the order in which they were built, which is one in which values come before they are used.
    pub(crate) instructions: Vec<Instruction>,
    /// The arguments that are pointers.
    pub(crate) pointers: Vec<u32>,
    /// All instructions but `Constant` and `Argument`, each once.
    pub(crate) steps: Vec<Step>,
}

impl Program {
    /// A new value.
    pub(crate) fn value(&mut self, ty: ElementType) -> Value {
        self.types.push(ty);
        Value(self.types.len() as u32 - 1)
    }
}
