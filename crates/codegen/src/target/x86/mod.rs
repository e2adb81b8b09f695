//! x86-64: AVX2 and AVX-512.
//!
//! [`select`] turns a vector program into machine instructions over values ([`machine`]), of two operations one where there is
//! such an instruction ([`combine`], [`memory_operands`]), [`allocate`] gives the
//! values registers by a linear scan that spills, [`general`] gives them to pointers, [`frame`] is the stack, and
//! [`assemble`] lays out the function, instruction by instruction ([`instructions`]), whose bytes are [`encode`]'s. Checks of
//! indices have code far away ([`index_check`]) and are followed by [`gather`]s.

mod allocate;
mod assemble;
mod assembly;
mod combine;
mod encode;
mod frame;
mod gather;
mod general;
mod index_check;
mod instructions;
mod machine;
mod memory_operands;
mod opcode;
mod opcodes;
mod row_table;
mod select;
mod select_avx2;
mod select_convert;
mod select_masks;
mod select_memory;
mod select_products;
#[cfg(test)]
mod tests;

pub(super) use row_table::holds_table;

use super::{Assembled, Target};
use crate::vector_ir::program::Program;

pub(super) fn compile(program: &Program, target: Target, may_spill: bool) -> Option<Assembled> {
    let mut selected = select::select(program, target)?;
    memory_operands::fold_loads(&mut selected);
    assemble::assemble(selected, target, may_spill)
}
