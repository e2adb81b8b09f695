//! Data-dependent indices, and the report when one is out of range.

use super::abi::{FAULTED, RawFault};
use super::emitter::Emitter;
use super::state::{Slot, Task};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, condcodes::IntCC, types};
use std::mem::offset_of;
use vinelift_nest::{MAX_RANK, Scalar, Wrap};

impl<'n> Emitter<'n, '_> {
    /// Checks an index that has been computed.
    pub(super) fn wrap(&mut self, whole: &'n Scalar, wrap: &'n Wrap) {
        let found = self.found(wrap);
        if self.analysis.never_faults(wrap) && !wrap.policy.zero {
            self.set(whole, found);
            return;
        }
        let index = if wrap.policy.negative && wrap.index.ty().is_signed_integer() {
            let sign = self.builder.ins().sshr_imm_u(found, 63);
            let shift = match wrap.extent.number() {
                Some(extent) => self.builder.ins().band_imm_s(sign, extent as i64),
                None => {
                    let extent = self.extent(wrap.extent);
                    self.builder.ins().band(sign, extent)
                }
            };
            self.builder.ins().iadd(found, shift)
        } else {
            found
        };
        // Unsigned: what is negative still is above any extent.
        if wrap.policy.zero {
            let inside = self.compare_with(IntCC::UnsignedLessThan, index, wrap.extent);
            let zero = self.index(0);
            let value = self.builder.ins().select(inside, index, zero);
            self.set(
                whole,
                Slot {
                    value,
                    inside: Some(inside),
                },
            );
            return;
        }
        let outside = self.compare_with(IntCC::UnsignedGreaterThanOrEqual, index, wrap.extent);
        if let Some(instead) = self.instead_of_faults {
            let resume = self.builder.create_block();
            self.builder.ins().brif(outside, instead, &[], resume, &[]);
            self.builder.switch_to_block(resume);
            self.set(whole, index);
            return;
        }
        let (resume, cold) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(cold);
        self.builder.ins().brif(outside, cold, &[], resume, &[]);
        self.builder.switch_to_block(cold);
        self.open_scope();
        self.tasks.push(Task::Report {
            whole,
            wrap,
            index,
            resume,
        });
        self.need(&wrap.position);
    }

    /// The index as it is, as 64 bits.
    pub(super) fn found(&mut self, wrap: &Wrap) -> Value {
        let value = self.get(&wrap.index);
        self.extend(value, wrap.index.ty(), types::I64)
    }

    /// Fills in the fault and returns. The position has been computed.
    pub(super) fn report(&mut self, wrap: &'n Wrap) {
        let found = self.found(wrap);
        let rank = wrap.position.len().min(MAX_RANK);
        let site = self.index(wrap.site.0.into());
        self.store_fault(offset_of!(RawFault, site), site);
        let extent = self.extent(wrap.extent);
        self.store_fault(offset_of!(RawFault, extent), extent);
        for (field, number) in [
            (
                offset_of!(RawFault, unsigned),
                i64::from(!wrap.index.ty().is_signed_integer()),
            ),
            (
                offset_of!(RawFault, negative),
                i64::from(wrap.policy.negative),
            ),
            (offset_of!(RawFault, rank), rank as i64),
        ] {
            let number = self.index(number);
            self.store_fault(field, number);
        }
        self.store_fault(offset_of!(RawFault, index), found);
        for (d, coordinate) in wrap.position.iter().take(rank).enumerate() {
            let coordinate = self.get(coordinate);
            self.store_fault(offset_of!(RawFault, position) + d * 8, coordinate);
        }
        self.leave_kernel(FAULTED);
    }

    fn store_fault(&mut self, field: usize, value: Value) {
        self.builder
            .ins()
            .store(MemFlagsData::trusted(), value, self.fault, field as i32);
    }
}
