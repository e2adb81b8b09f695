//! Loads and stores of elements that have bytes of their own, and loads through checked indices.

use super::address::ElementAddress;
use super::emitter::{Emitter, register};
use cranelift_codegen::ir::{InstBuilder, Value, condcodes::IntCC};
use vinelift_nest::{BufferId, Kind, Scalar};
use vinelift_tensor::ElementType;

impl<'n> Emitter<'n, '_> {
    /// `buffer[at]`, or zero where an index that reads zero is out of range. The leaves of the
    /// address have been computed.
    ///
    /// No branch is needed: such an index is 0 then, which exists unless its dim is empty.
    pub(super) fn load_checked(
        &mut self,
        buffer: BufferId,
        ty: ElementType,
        at: &'n [Scalar],
    ) -> Value {
        let never =
            |x: &Scalar| matches!(x.kind(), Kind::Wrap(w) if w.policy.zero && w.extent == 0);
        if at.iter().any(never) {
            return self.zero(ty);
        }
        let linear = self.analysis.linear(buffer, at);
        let place = self.place(buffer, &linear);
        let loaded = self.load(buffer, ty, &place);
        match self.all_inside(at) {
            Some(inside) => {
                let zero = self.zero(ty);
                self.builder.ins().select(inside, loaded, zero)
            }
            None => loaded,
        }
    }

    /// Whether all indices that read zero are in range, if there are any.
    pub(crate) fn all_inside(&mut self, at: &[Scalar]) -> Option<Value> {
        at.iter()
            .filter_map(|index| self.slots.get(&index.address())?.inside)
            .reduce(|a, b| self.builder.ins().band(a, b))
    }

    pub(super) fn load(
        &mut self,
        buffer: BufferId,
        ty: ElementType,
        place: &ElementAddress,
    ) -> Value {
        let flags = self.flags[buffer.0 as usize];
        match *place {
            ElementAddress::Packed { base, element } => self.load_packed(flags, ty, base, element),
            ElementAddress::Bytes { address, offset } => {
                let value = self
                    .builder
                    .ins()
                    .load(register(ty), flags, address, offset);
                if ty == ElementType::Boolean {
                    // Any byte but zero is true.
                    return self.builder.ins().icmp_imm_u(IntCC::NotEqual, value, 0);
                }
                value
            }
        }
    }

    pub(super) fn store(
        &mut self,
        buffer: BufferId,
        ty: ElementType,
        place: &ElementAddress,
        value: Value,
    ) {
        let flags = self.flags[buffer.0 as usize];
        match *place {
            ElementAddress::Packed { base, element } => {
                self.store_packed(flags, ty, base, element, value)
            }
            ElementAddress::Bytes { address, offset } => {
                self.builder.ins().store(flags, value, address, offset);
            }
        }
    }
}
