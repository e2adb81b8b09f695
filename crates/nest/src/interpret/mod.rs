//! The reference semantics of a nest, and the constant folder.
//!
//! The interpreter shares nothing with a code generator but [`legalize`](crate::legalize): it says
//! what a nest means, one point after another, as plainly as its speed allows. Conversions of `f16` are
//! those of the crate `half`.
//!
//! For each point of a stage's domain, in row-major order: the indices of the target are evaluated;
//! if one is out of range by [`Policy::zero`](crate::Policy::zero) the point ends there; otherwise
//! the value is evaluated and stored. A scalar is evaluated at most once per point, and only when
//! its value is needed: neither the side of a select that is not taken nor the position of a wrap in
//! range is, unless evaluating it cannot be observed.
//!
//! It does not trust the nest: whatever `verify` would have refused ends in an error here, and no
//! access reaches outside a buffer.

mod analyze;
mod arith;
mod compile;
mod machine;
mod memory;
mod program;
mod rows;
mod value;

use crate::ir::{Fault, Nest};
use crate::math::{legalize, legalize_with_halves};
use compile::compile;
use machine::Machine;
use memory::Memory;
use program::Program;
use rows::RowEvaluation;
use std::sync::atomic::AtomicBool;
pub(crate) use value::value_where;

/// The bytes behind a buffer of a nest.
#[derive(Debug)]
pub enum BufferBytes<'a> {
    /// Bytes that are only read.
    Read(&'a [u8]),
    /// Bytes that may be written; a stage that reads what none has written sees them.
    Write(&'a mut [u8]),
    /// The memory of a [`Role::Temporary`](crate::Role::Temporary): the interpreter allocates it, as zeros.
    Temporary,
}

/// Why a nest could not be interpreted to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpretError {
    /// The data is at fault: an index in it is out of range. See [`Fault::message`].
    #[error("index {} at {:?} is out of range for an extent of {}", .0.index, .0.position, .0.extent)]
    Fault(Fault),
    /// The caller is at fault: a buffer without, or with too many or too few bytes.
    #[error("buffer `{name}` takes {expected} bytes, found {found}")]
    Buffer {
        /// The buffer's name.
        name: String,
        /// The length of its shape and type.
        expected: usize,
        /// The length handed in; 0 for [`BufferBytes::Temporary`].
        found: usize,
    },
    /// The caller is at fault: a buffer that the nest writes was handed in as [`BufferBytes::Read`].
    #[error("buffer `{0}` is written, found read-only bytes")]
    ReadOnly(String),
    /// The caller is at fault: not one entry per buffer of the nest.
    #[error("the nest has {expected} buffers, found {found}")]
    Count {
        /// The number of buffers of the nest.
        expected: usize,
        /// The number of entries handed in.
        found: usize,
    },
    /// The nest is at fault: an index that no wrap checks is out of range.
    #[error(
        "unchecked index {index} of dim {dim} of buffer `{name}` is out of its extent {extent}"
    )]
    Outside {
        /// The buffer's name.
        name: String,
        /// The dim.
        dim: usize,
        /// The index found.
        index: i64,
        /// The extent of the dim.
        extent: usize,
    },
    /// The machine's fault: it has no memory for a temporary.
    #[error("no memory for the {bytes} bytes of `{name}`")]
    Memory {
        /// The buffer's name.
        name: String,
        /// The length of its shape and type.
        bytes: usize,
    },
    /// Nobody is at fault: whoever started it has stopped it.
    #[error("stopped")]
    Stopped,
    /// The nest is at fault: it breaks a rule that `verify` checks.
    #[error("malformed nest: {0}")]
    Malformed(String),
}

/// Runs a nest over `buffers`, one for each of the nest's, in their order.
///
/// A [`Role::Table`](crate::Role::Table) holds its bytes itself: its entry is ignored, and may be
/// an empty [`BufferBytes::Read`]. When the nest ends with an error, what had been written by then
/// stays written.
pub fn interpret(nest: &Nest, buffers: &mut [BufferBytes<'_>]) -> Result<(), InterpretError> {
    interpret_until(nest, buffers, &AtomicBool::new(false))
}

/// As [`interpret`], to be given up with [`InterpretError::Stopped`] soon after `stop` has become true.
pub fn interpret_until(
    nest: &Nest,
    buffers: &mut [BufferBytes<'_>],
    stop: &AtomicBool,
) -> Result<(), InterpretError> {
    if buffers.len() != nest.buffers.len() {
        return Err(InterpretError::Count {
            expected: nest.buffers.len(),
            found: buffers.len(),
        });
    }
    let nest = legalize_with_halves(nest).unwrap_or_else(|| legalize(nest));
    let mut memory = Memory::new(&nest, buffers)?;
    let mut start = 0;
    while start < nest.stages.len() {
        let end = nest.group_end(start);
        let stages = nest.stages[start..end].iter();
        let programs: Vec<Program> = stages
            .map(|stage| compile(&nest, stage))
            .collect::<Result<_, _>>()?;
        match programs.as_slice() {
            [program] => {
                let rows = RowEvaluation::of(program, &memory);
                let machine = Machine::new(program, &mut memory, stop);
                match rows {
                    Some(rows) => rows.run(machine)?,
                    None => machine.run_points()?,
                }
            }
            programs => {
                for turn in 0..nest.stages[start].turns() {
                    for program in programs {
                        Machine::new(program, &mut memory, stop).run_turn(turn)?;
                    }
                }
            }
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
