//! The values, in one call, of extents that have symbols: the numbers of the call.
//!
//! The caller gives a table of them, one for each formula that the kernel needs: extents, and products of extents that
//! are strides. It does not change during a call, so that loads from it may be moved out of loops, and be one.

use super::emitter::Emitter;
use crate::analysis::coefficient::Coefficient;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, condcodes::IntCC, types};
use vinelift_tensor::{Extent, Formula};

impl Emitter<'_, '_> {
    /// An extent as a number.
    pub(super) fn extent(&mut self, extent: Extent) -> Value {
        if let Some(number) = extent.number() {
            return self.index(number as i64);
        }
        let offset = 8 * self.numbers.of(extent) as i32;
        let once = MemFlagsData::trusted().with_readonly().with_can_move();
        let table = self.numbers.table();
        self.builder.ins().load(types::I64, once, table, offset)
    }

    /// A product of extents as a number.
    fn factor(&mut self, factor: Formula) -> Value {
        let example = factor.evaluate(&self.analysis.nest.symbols);
        let example = example.and_then(|example| usize::try_from(example).ok());
        self.extent(Extent::new(factor, example.unwrap_or(usize::MAX)))
    }

    /// `coefficient · size`
    pub(super) fn coefficient(&mut self, coefficient: Coefficient, size: i64) -> Value {
        let (number, factor) = coefficient.parts();
        let number = number.wrapping_mul(size);
        match factor {
            None => self.index(number),
            Some(factor) => {
                let factor = self.factor(factor);
                self.times(factor, number)
            }
        }
    }

    /// `x · coefficient · size`
    pub(super) fn scaled(&mut self, x: Value, coefficient: Coefficient, size: i64) -> Value {
        match coefficient.number() {
            Some(number) => {
                let number = number.wrapping_mul(size);
                self.times(x, number)
            }
            None => {
                let coefficient = self.coefficient(coefficient, size);
                self.builder.ins().imul(x, coefficient)
            }
        }
    }

    /// `x · number`, without an instruction if that is `x`: each that Cranelift need not take away again saves time.
    pub(super) fn times(&mut self, x: Value, number: i64) -> Value {
        match number {
            1 => x,
            _ => self.builder.ins().imul_imm_s(x, number),
        }
    }

    /// `x + number`, likewise.
    pub(super) fn plus(&mut self, x: Value, number: i64) -> Value {
        match number {
            0 => x,
            _ => self.builder.ins().iadd_imm_s(x, number),
        }
    }

    /// Whether `x` and an extent compare so.
    pub(super) fn compare_with(&mut self, condition: IntCC, x: Value, extent: Extent) -> Value {
        match extent.number() {
            Some(number) => self.builder.ins().icmp_imm_s(condition, x, number as i64),
            None => {
                let extent = self.extent(extent);
                self.builder.ins().icmp(condition, x, extent)
            }
        }
    }
}
