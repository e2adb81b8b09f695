//! Vector code before it has registers: loops of instructions over numbered values.

use super::encode::Opcode;

/// A value: something that will be in one register. It may be written more than once.
pub(crate) type Id = u32;

/// The registers that a value may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Vector,
    /// Of AVX-512: one bit for each lane.
    Mask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Value(Id),
    /// The same in all lanes, by its number in [`Program::spreads`].
    Spread(u32),
}

/// Something that is the same in all lanes, throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) source: Source,
    /// Bytes of a lane.
    pub(crate) width: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Constant(u64),
    /// Not the same in all lanes after all: 64 bytes that fill a register, by words of 8.
    Whole(&'static [u64; 8]),
    /// An argument, by its number.
    Argument(u32),
}

/// Elements in memory: those from a pointer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Which pointer; it is the argument of this number.
    pub(crate) pointer: u32,
    /// Bytes from lane to lane, 0 if all read the same.
    pub(crate) step: u8,
    pub(crate) offset: i32,
}

/// Stands for a pointer to the indices that were checked last.
pub(crate) const INDICES: u32 = u32::MAX;

/// Elements that lie where indices say, in bytes: that of the turn's lane `l` at `access + row · down + column ·
/// apart + index[l] · by`, of which `l` is the column alone, or `row · columns + column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LookUp {
    /// The first lane's number in its turn.
    pub(crate) first: u8,
    /// Bytes of an index.
    pub(crate) index_bytes: u8,
    pub(crate) by: i32,
    pub(crate) apart: u8,
    pub(crate) down: i32,
    /// 0 if all lanes are of one row. Turns begin with a row, and have whole ones.
    pub(crate) columns: u8,
    /// Bytes of an element.
    pub(crate) width: u8,
    pub(crate) lanes: u8,
}

/// How the indices of a turn are checked, with the [`limit`](super::limit) in from 0. If one is not in range, the
/// strip ends and says so. `to` is a mask for that or, with AVX2, a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Registers that the indices fill.
    pub(crate) registers: u8,
    /// When they are compared.
    pub(crate) compared: Compared,
    /// Whether less than zero counts from the end.
    pub(crate) negative: bool,
}

/// When an index is compared with its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Never: it comes from a table that has none out of range.
    Never,
    /// When all of a turn are checked, by registers. Not for look-ups: what memory holds by then may be another index.
    ByRegisters,
    /// When it has been loaded to be used, with this extent. Look-ups, and nothing else, must follow the check.
    WhenUsed(i32),
}

/// Where the operands of an instruction go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `to = op(from 0, from 1)`
    Three,
    /// `to = op(from 0)`
    Two,
    /// `to = op(from 0)`, with the operation's number in a field.
    Digit(u8),
    /// `to = op(from 0)`, with the fields the other way round.
    Back,
    /// `to = from 0 · from 1 + from 2`
    MulAdd,
    /// `to = mask ? from 1 : from 0`; without AVX-512 the mask is from 2.
    Blend,
    /// `to = memory`
    Load,
    /// `memory = from 0`
    Store,
    /// Has the cache fetch memory, which need not be any.
    Prefetch,
    /// `to = op(from 0, from 1)` of masks.
    Masks,
    /// `to = argument`, a mask, of which this is the number.
    Argument(u32),
    /// Makes the indices in memory those that [`INDICES`] leads to.
    Check(Check),
    /// `to =` the elements where indices say that have been checked.
    LookUp(LookUp),
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) form: Form,
    pub(crate) op: Opcode,
    /// Of the registers it works on.
    pub(crate) bytes: u8,
    pub(crate) to: Option<Id>,
    pub(crate) from: [Option<Operand>; 3],
    /// Lanes that it does; with AVX-512 a mask register.
    pub(crate) mask: Option<Id>,
    /// Whether other lanes become zero.
    pub(crate) zeroing: bool,
    pub(crate) immediate: Option<u8>,
    pub(crate) access: Option<Access>,
    /// Bytes of an element that may be spread from memory; 0 if it takes none.
    pub(crate) spreads: u8,
}

/// How often a loop goes round, at least once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turns {
    /// As often as the argument of this number says; nothing follows.
    Argument(u32),
    /// Over at most `extent` elements, `step` at a time; the argument of this number is the first of the last
    /// turn, which overlaps the one before. Nothing follows.
    LanesUntil {
        argument: u32,
        extent: i32,
        step: i32,
    },
    /// So many times; after each turn every pointer listed moves on by so many bytes.
    Count(i32),
    /// Over `extent` elements, `step` at a time; the last turn overlaps the one before.
    Lanes { extent: i32, step: i32 },
}

#[derive(Debug)]
pub(crate) enum Step {
    Do(Instruction),
    Loop {
        turns: Turns,
        /// Pointers that move with each turn, and by how many bytes.
        moves: Vec<(u32, i32)>,
        body: Vec<Step>,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Program {
    /// Whether it looks up elements by indices.
    pub(crate) looks_up: bool,
    pub(crate) values: Vec<Class>,
    pub(crate) spreads: Vec<Spread>,
    /// The arguments that are pointers.
    pub(crate) pointers: Vec<u32>,
    pub(crate) steps: Vec<Step>,
}

impl Program {
    pub(crate) fn value(&mut self, class: Class) -> Id {
        self.values.push(class);
        self.values.len() as Id - 1
    }

    pub(crate) fn spread(&mut self, source: Source, width: u8) -> Operand {
        let spread = Spread { source, width };
        let known = self.spreads.iter().position(|s| *s == spread);
        Operand::Spread(known.unwrap_or_else(|| {
            self.spreads.push(spread);
            self.spreads.len() - 1
        }) as u32)
    }
}

impl Instruction {
    /// Whether it is a check whose indices are compared by the look-ups that follow.
    pub(super) fn compares_when_used(&self) -> bool {
        let Form::Check(check) = self.form else {
            return false;
        };
        matches!(check.compared, Compared::WhenUsed(_))
    }

    /// What it reads that is a value.
    pub(super) fn reads(&self) -> impl Iterator<Item = Id> {
        let value = |operand: Option<Operand>| match operand {
            Some(Operand::Value(id)) => Some(id),
            _ => None,
        };
        self.from.into_iter().filter_map(value).chain(self.mask)
    }
}
