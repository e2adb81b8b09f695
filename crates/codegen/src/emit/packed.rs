//! Elements that share bytes.
//!
//! | type | bytes |
//! |---|---|
//! | `u1` | eight to a byte, the first in the highest bit |
//! | `u2` | four to a byte, the first in the lowest bits |
//! | `u4`, `i4`, `f4e2m1`, `nf4` | two to a byte, the first in the low half |
//! | `u3` | eight to three bytes: two bytes of their two low bits, one of their high bits, the first highest |
//! | `u6` | four to three bytes: two bytes of their four low bits, one of their two high bits, the first highest |

use super::emitter::Emitter;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use vinelift_tensor::ElementType;

/// Some bits of an element: `bits` of them, at bit `shift` of the byte at `address`, that stand for
/// those from bit `position` of its code.
struct Field {
    address: Value,
    shift: Value,
    bits: u32,
    position: i64,
}

impl Emitter<'_, '_> {
    /// The code of an element, zeros above it.
    pub(super) fn load_packed(
        &mut self,
        flags: MemFlagsData,
        ty: ElementType,
        base: Value,
        element: Value,
    ) -> Value {
        let mut code = None;
        for field in self.fields(ty, base, element) {
            let byte = self.builder.ins().load(types::I8, flags, field.address, 0);
            let bits = self.builder.ins().ushr(byte, field.shift);
            let bits = self.builder.ins().band_imm_u(bits, (1 << field.bits) - 1);
            let bits = self.builder.ins().ishl_imm_u(bits, field.position);
            code = Some(match code {
                Some(code) => self.builder.ins().bor(code, bits),
                None => bits,
            });
        }
        match code {
            Some(code) => code,
            None => self.zero(ty),
        }
    }

    /// Writes the code of an element and leaves its neighbours as they are.
    pub(super) fn store_packed(
        &mut self,
        flags: MemFlagsData,
        ty: ElementType,
        base: Value,
        element: Value,
        code: Value,
    ) {
        for field in self.fields(ty, base, element) {
            let mask = (1 << field.bits) - 1;
            let bits = self.builder.ins().ushr_imm_u(code, field.position);
            let bits = self.builder.ins().band_imm_u(bits, mask);
            let bits = self.builder.ins().ishl(bits, field.shift);
            let mask = self.builder.ins().iconst(types::I8, mask);
            let mask = self.builder.ins().ishl(mask, field.shift);
            let byte = self.builder.ins().load(types::I8, flags, field.address, 0);
            let others = self.builder.ins().band_not(byte, mask);
            let byte = self.builder.ins().bor(others, bits);
            self.builder.ins().store(flags, byte, field.address, 0);
        }
    }

    /// Where the bits of an element are; its number is not negative.
    fn fields(&mut self, ty: ElementType, base: Value, element: Value) -> Vec<Field> {
        match ty {
            ElementType::U1 => {
                let whole = self.split(base, element, 3, 1);
                vec![self.field(&whole, 3, true, 0, 0)]
            }
            ElementType::U2 => {
                let whole = self.split(base, element, 2, 1);
                vec![self.field(&whole, 2, false, 0, 0)]
            }
            ElementType::U3 => {
                let group = self.split(base, element, 3, 3);
                vec![
                    self.field(&group, 2, true, 0, 0),
                    self.field(&group, 3, true, 2, 2),
                ]
            }
            ElementType::U6 => {
                let group = self.split(base, element, 2, 3);
                vec![
                    self.field(&group, 1, true, 0, 0),
                    self.field(&group, 2, true, 2, 4),
                ]
            }
            _ => {
                let whole = self.split(base, element, 1, 1);
                vec![self.field(&whole, 1, false, 0, 0)]
            }
        }
    }

    /// The group of `2^log` elements in `bytes` bytes: its address, and the number within it.
    fn split(&mut self, base: Value, element: Value, log: i64, bytes: i64) -> (Value, Value) {
        let group = self.builder.ins().ushr_imm_u(element, log);
        let offset = self.builder.ins().imul_imm_s(group, bytes);
        let address = self.builder.ins().iadd(base, offset);
        let within = self.builder.ins().band_imm_u(element, (1 << log) - 1);
        (address, within)
    }

    /// A field of which `2^log` fill a byte, the first of them in the highest bits if
    /// `first_highest`; the bytes of such fields begin at byte `start` of the group.
    fn field(
        &mut self,
        &(address, within): &(Value, Value),
        log: i64,
        first_highest: bool,
        start: i64,
        position: i64,
    ) -> Field {
        let last = (1 << log) - 1;
        let byte = self.builder.ins().ushr_imm_u(within, log);
        let byte = self.builder.ins().iadd_imm_s(byte, start);
        let address = self.builder.ins().iadd(address, byte);
        let slot = self.builder.ins().band_imm_u(within, last);
        let slot = if first_highest {
            self.builder.ins().bxor_imm_u(slot, last)
        } else {
            slot
        };
        let bits = 8 >> log;
        let shift = self.builder.ins().imul_imm_s(slot, bits);
        Field {
            address,
            shift,
            bits: bits as u32,
            position,
        }
    }
}
