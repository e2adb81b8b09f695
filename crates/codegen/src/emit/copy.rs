//! Stages that copy bytes: what runs over neighbours in both buffers becomes one copy.

use super::address::ElementAddress;
use super::emitter::{Emitter, Result, Support};
use crate::analysis::coefficient::Coefficient;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_module::FuncId;
use vinelift_nest::{Axis, BufferId, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType;

/// A stage whose inner loops copy neighbours.
#[derive(Clone, Copy)]
pub(super) struct CopyStage<'n> {
    buffer: BufferId,
    at: &'n [Scalar],
    /// The first loop of the stage that is part of the copy.
    pub(super) outermost: usize,
    /// Elements that it copies for each point of that loop, and for all of them.
    each: Coefficient,
    elements: Coefficient,
}

/// Copies up to this are emitted in place; a call takes a few nanoseconds.
const MOST_BYTES_IN_PLACE: usize = 256;

impl<'n> Emitter<'n, '_> {
    /// How a stage copies, if that is what it does. `loops` are its axes of more than one point.
    pub(super) fn copy_of(&self, stage: &'n Stage, loops: &[Axis]) -> Option<CopyStage<'n>> {
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return None;
        };
        let ty = stage.value.ty();
        // Booleans are made 0 or 1 on their way.
        let has_bytes = !ty.is_packed() && ty != ElementType::Boolean;
        let to_itself = *buffer == stage.target
            || self
                .analysis
                .nest
                .buf(*buffer)
                .shape
                .iter()
                .any(|n| *n == 0);
        if stage.mode != Mode::Set || !has_bytes || to_itself {
            return None;
        }
        let from = self.analysis.linear(*buffer, at);
        let to = self.analysis.linear(stage.target, &stage.at);
        let mut outermost = loops.len();
        let [mut each, mut elements] = [Coefficient::from(1); 2];
        for axis in loops.iter().rev() {
            let neighbours = |linear| self.analysis.moves_with(axis.id, linear) == Some(elements);
            if !neighbours(&from) || !neighbours(&to) {
                break;
            }
            // A run whose length is no formula ends here.
            let Some(more) = elements.checked_by(axis.extent) else {
                break;
            };
            outermost -= 1;
            (each, elements) = (elements, more);
        }
        (outermost < loops.len()).then_some(CopyStage {
            buffer: *buffer,
            at,
            outermost,
            each,
            elements,
        })
    }

    /// How many bytes each copy moves, for the dump.
    pub(super) fn bytes_of(&self, copy: CopyStage<'n>, stage: &Stage) -> Coefficient {
        copy.elements.times(self.size_of(stage.target))
    }

    /// Bytes of an element, which has some of its own.
    fn size_of(&self, buffer: BufferId) -> i64 {
        (self.analysis.nest.buf(buffer).ty.bits() / 8) as i64
    }

    /// Copies in place of the loops from `copy.outermost` on, which are `inner`.
    pub(super) fn copy(&mut self, stage: &'n Stage, copy: CopyStage<'n>, inner: &[Axis]) -> Result {
        let size = self.size_of(stage.target);
        let turns = self.turns(stage, inner[0]);
        for axis in inner {
            self.bind_point(*axis);
        }
        let mut bytes = match copy.elements.number() {
            Some(elements) => Bytes::Constant((elements * size) as usize),
            None => Bytes::Variable(self.coefficient(copy.elements, size)),
        };
        if let Some((from, to)) = turns.part() {
            // Some of the points of the outermost loop.
            self.bind_to(inner[0], from);
            let count = self.builder.ins().isub(to, from);
            bytes = Bytes::Variable(self.scaled(count, copy.each, size));
        }
        let target = self.analysis.linear(stage.target, &stage.at);
        self.compute(target.leaves())?;
        let after = self.unless_skipped(&stage.at);
        let source = self.analysis.linear(copy.buffer, copy.at);
        self.compute(source.leaves())?;
        let to = self.place(stage.target, &target);
        let from = self.place(copy.buffer, &source);
        if let (ElementAddress::Bytes { .. }, ElementAddress::Bytes { .. }) = (&to, &from) {
            let flags = [copy.buffer, stage.target].map(|b| self.flags[b.0 as usize]);
            match self.all_inside(copy.at) {
                None => self.copy_bytes(flags, &from, &to, bytes),
                Some(inside) => {
                    let b = &mut self.builder;
                    let (some, none, join) = (b.create_block(), b.create_block(), b.create_block());
                    b.set_cold_block(none);
                    b.ins().brif(inside, some, &[], none, &[]);
                    b.switch_to_block(none);
                    let cleared = [self.beginning(&to), self.count(bytes)];
                    self.call(|support| support.clear, &cleared);
                    self.builder.ins().jump(join, &[]);
                    self.builder.switch_to_block(some);
                    self.copy_bytes(flags, &from, &to, bytes);
                    self.builder.ins().jump(join, &[]);
                    self.builder.switch_to_block(join);
                }
            }
        }
        self.end_unless_skipped(after);
        for axis in inner {
            self.axes.remove(&axis.id);
        }
        Ok(())
    }

    fn beginning(&mut self, place: &ElementAddress) -> Value {
        match *place {
            ElementAddress::Bytes { address, offset } => self.plus(address, i64::from(offset)),
            ElementAddress::Packed { base, .. } => base,
        }
    }

    fn count(&mut self, bytes: Bytes) -> Value {
        match bytes {
            Bytes::Constant(bytes) => self.index(bytes as i64),
            Bytes::Variable(bytes) => bytes,
        }
    }

    fn copy_bytes(
        &mut self,
        [reads, writes]: [MemFlagsData; 2],
        from: &ElementAddress,
        to: &ElementAddress,
        bytes: Bytes,
    ) {
        let (
            Bytes::Constant(length @ 1..=MOST_BYTES_IN_PLACE),
            ElementAddress::Bytes {
                address: from_address,
                offset: from_offset,
            },
            ElementAddress::Bytes {
                address: to_address,
                offset: to_offset,
            },
        ) = (bytes, from, to)
        else {
            let arguments = [self.beginning(to), self.beginning(from), self.count(bytes)];
            self.call(|support| support.copy, &arguments);
            return;
        };
        let (from, to) = ((*from_address, *from_offset), (*to_address, *to_offset));
        self.copy_in_place([reads, writes], from, to, length);
    }

    /// Copies `bytes` bytes by loads and stores.
    pub(super) fn copy_in_place(
        &mut self,
        [reads, writes]: [MemFlagsData; 2],
        (from, from_offset): (Value, i32),
        (to, to_offset): (Value, i32),
        bytes: usize,
    ) {
        let pieces: Vec<(usize, usize)> = pieces(bytes);
        for group in pieces.chunks(8) {
            let mut loaded = Vec::with_capacity(group.len());
            for &(at, width) in group {
                let ty = match width {
                    16 => types::I8X16,
                    _ => crate::target::clif128::integer(width),
                };
                let offset = from_offset + at as i32;
                loaded.push(self.builder.ins().load(ty, reads, from, offset));
            }
            for (&(at, _), value) in group.iter().zip(loaded) {
                let offset = to_offset + at as i32;
                self.builder.ins().store(writes, value, to, offset);
            }
        }
    }

    fn call(&mut self, function: impl Fn(&Support) -> FuncId, arguments: &[Value]) {
        let name = cranelift_codegen::ir::UserExternalName {
            namespace: 0,
            index: function(&self.support).as_u32(),
        };
        let name = self.builder.func.declare_imported_user_function(name);
        let mut signature =
            cranelift_codegen::ir::Signature::new(self.builder.func.signature.call_conv);
        let parameter = cranelift_codegen::ir::AbiParam::new(types::I64);
        signature.params.extend(vec![parameter; arguments.len()]);
        let signature = self.builder.import_signature(signature);
        let function = self
            .builder
            .import_function(cranelift_codegen::ir::ExtFuncData {
                name: cranelift_codegen::ir::ExternalName::user(name),
                signature,
                // The library may be mapped too far from the code for a short call.
                colocated: false,
                patchable: false,
            });
        self.builder.ins().call(function, arguments);
    }
}

#[derive(Clone, Copy)]
enum Bytes {
    Constant(usize),
    Variable(Value),
}

/// The widest moves that cover `length` bytes, as offsets and widths; the last overlaps the one before
/// if it must.
fn pieces(length: usize) -> Vec<(usize, usize)> {
    let widest = [16, 8, 4, 2, 1].into_iter().find(|w| *w <= length);
    let width = widest.unwrap_or(1);
    let whole = (0..length / width).map(|k| (k * width, width));
    let rest = length % width;
    let last = match rest {
        0 => None,
        // The smallest move that is enough, ending where the copy ends.
        _ => Some(rest.next_power_of_two()).map(|width| (length - width, width)),
    };
    whole.chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_byte_and_no_other() {
        for length in 1..=MOST_BYTES_IN_PLACE {
            let mut covered = vec![false; length];
            for (at, width) in pieces(length) {
                covered[at..at + width].fill(true);
            }
            assert!(covered.iter().all(|c| *c), "{length}");
        }
        assert_eq!(pieces(12), [(0, 8), (8, 4)]);
        assert_eq!(pieces(27), [(0, 16), (11, 16)]);
    }
}
